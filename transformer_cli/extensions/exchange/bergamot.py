"""The export format `bergamot`: a folder for the translators in browsers (Bergamot, Firefox, TranslateLocally), with weights in int8.

A product of matrices is computed in whole numbers: the weights are rounded when the file is written, and what they are
multiplied with is rounded when it comes, by a factor (alpha) that was measured on text beforehand.

Source: the format of github.com/browsermt/marian-dev: the functions binary::saveItems and packAndSave, and the script that
computes alphas.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config
from transformer_cli.decoding.shortlist import load_shortlist, shortlist_path
from transformer_cli.extensions.exchange.binary_shortlist import binary_shortlist_content
from transformer_cli.extensions.exchange.export_format import (
    ExportFormat,
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
    json_content,
    quoted,
)
from transformer_cli.extensions.exchange.marian import (
    MarianFolder,
    MarianFormat,
    MarianVocabulary,
    marian_arrays,
    marian_vocabulary,
    vocabulary_names,
)
from transformer_cli.extensions.exchange.marian_format import (
    SETTINGS,
    Arrays,
    damaged,
    has_ssru,
    settings_in,
    settings_of,
)
from transformer_cli.extensions.exchange.marian_reading import MarianModel
from transformer_cli.extensions.exchange.verification import stored_sources
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import primary_language
from transformer_cli.text.sentencepiece_model import parsed_model

MODEL_FILE, CONFIG_FILE = "model.intgemm.alphas.bin", "config.intgemm8bitalpha.yml"
SHORTLIST = "lex"
"""Begins the name of a shortlist."""
_VERSION = 1
_INT8, _FLOAT32, _INTGEMM8 = 0x0101, 0x0404, 0x4101
"""Types in the file: int8 of texts, float32, and matrices in int8."""
_ALIGNMENT = 256
_ALPHA = "_QuantMultA"
_OUTPUT_ALPHA = "none_QuantMultA"
"""The alpha of the output, when a shortlist has chosen some of its rows: they have no name."""
_SPREADS = 1.1
"""An alpha lets this many standard deviations above the mean of the largest values pass without cutting them."""
NUM_CALIBRATED = 200
_WIDTH_STEP, _ENTRIES_STEP = 64, 8
_CONTROL = 3
_NEVER, _NEVER_UNKNOWN = -1e4, -100.0
"""Biases of entries that no translation contains. Text to train on may contain the unknown one, whose loss shall be finite."""
_USAGE = """\
With [TranslateLocally](https://translatelocally.com): put the folder where it keeps its models. In Python, with the engine of Firefox:

```python
from pathlib import Path
from fxtranslate import Translator  # pip install fxtranslate

folder = Path({name})
source, target = ((folder / name).read_bytes() for name in {vocabs!r})
model = (folder / "model.intgemm.alphas.bin").read_bytes()
print(Translator(model=model, src_vocab=source, trg_vocab=target).translate("Good morning."))
```
"""


class BergamotFormat(ExportFormat):
    """A folder for the translators in browsers."""

    name = "bergamot"
    modules = ("sentencepiece", "google.protobuf")
    quantizations = ("int8",)
    library = "bergamot"
    is_greedy = True
    splits_sentences = True

    def obstacles(self, config: Config) -> list[Obstacle]:
        found, model = MarianFormat().obstacles(config), config.model
        if not has_ssru(model):
            reason = "its programs know decoders with an SSRU: decoder_layer: ssru"
            found.append(Obstacle("model.decoder_layer: attention", reason))
        if model.tie_embeddings == "none":
            reason = "its programs read tied tables only: target-output or all"
            found.append(Obstacle("model.tie_embeddings: none", reason))
        for name in ("d_model", "d_ff"):
            if getattr(model, name) % _WIDTH_STEP:
                reason = f"products in int8 need a multiple of {_WIDTH_STEP}"
                found.append(Obstacle(f"model.{name}: {getattr(model, name)}", reason))
        return found

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        add_to_folder(path, bergamot_files(trained, is_rounded=quantization is not None))

    def open(self, path: Path) -> OtherEngine:
        return BergamotFolder(path)

    def usage(self, trained: TrainedModel, name: str) -> str:
        return _USAGE.format(name=quoted(name), vocabs=vocabulary_names(trained))


def bergamot_files(trained: TrainedModel, *, is_rounded: bool) -> dict[str, bytes]:
    """The files, by their names in the folder.

    Args:
        is_rounded: whether the matrices are in int8; if not, all numbers are in float32, for a comparison.
    """
    names, both = vocabulary_names(trained), trained.tokenizers
    vocabularies = [_filled_up(marian_vocabulary(tokenizer)) for tokenizer in both]
    files = {name: one.content for name, one in zip(names, vocabularies, strict=True)}
    rows = [one.rows for one in vocabularies]
    config = trained.config
    settings = settings_of(config.model, (len(rows[0]), len(rows[1])))
    arrays = marian_arrays(trained, *rows)
    added = [index for index, row in enumerate(rows[1]) if row == Tokenizer.pad_id]
    arrays["decoder_ff_logit_out_b"][:, added] = _NEVER
    # Marian never writes it, and Firefox's engine, which may, shows nothing in its place.
    arrays["decoder_ff_logit_out_b"][:, rows[1].index(Tokenizer.unk_id)] = _NEVER_UNKNOWN
    alphas = _alphas(trained, arrays, settings, rows[0]) if is_rounded else {}
    files[MODEL_FILE] = model_content(arrays, alphas, settings)
    search = _search(names)
    if config.decoding.shortlist is not None:
        name = _shortlist_name(config)
        files[name] = _shortlist(trained, (rows[0], rows[1]))
        search["shortlist"] = [name, False]
    files[CONFIG_FILE] = yaml.safe_dump(search, sort_keys=False).encode()
    files["model_info.json"] = json_content(_description(config))
    return files


def _shortlist_name(config: Config) -> str:
    settings, [direction] = config.decoding.shortlist, config.data.directions
    assert settings is not None
    ends = "".join(map(primary_language, direction))
    return f"{SHORTLIST}.{settings.frequent}.{settings.best}.{ends}.s2t.bin"


def _shortlist(trained: TrainedModel, rows: tuple[Sequence[int], Sequence[int]]) -> bytes:
    """The shortlist of the run: each source gets the same candidates.

    Args:
        rows: for each id of Marian, our id, of source and target.

    Raises:
        MissingInputError: the run has none.
    """
    settings = trained.config.decoding.shortlist
    assert settings is not None
    found = load_shortlist(shortlist_path(trained.folder), settings, trained.tokenizers)
    # Unused entries stand for padding.
    theirs = {ours: place for place, ours in enumerate(rows[1]) if ours != Tokenizer.pad_id}
    lists = [{theirs[one] for one in found.translations_of(ours).tolist() if one in theirs} for ours in rows[0]]
    # Frequent tokens need not be the first of the vocabulary, but each source has an end.
    lists[rows[0].index(Tokenizer.eos_id)] |= {theirs[one] for one in found.always.tolist() if one in theirs}
    lists[-1] |= {0}  # an empty list at the end is taken for damage
    return binary_shortlist_content(1, max(map(len, lists)), [sorted(one) for one in lists])


def _filled_up(vocabulary: MarianVocabulary) -> MarianVocabulary:
    """The vocabulary with unused entries at its end, so that its size is a multiple of 8."""
    missing = -len(vocabulary.rows) % _ENTRIES_STEP
    model = parsed_model(vocabulary.content, "the tokenizer of the run")
    for number in range(missing):
        model.pieces.add(piece=f"<unused_{number}>", score=0.0, type=_CONTROL)
    model.trainer_spec.vocab_size = len(model.pieces)
    rows = [*vocabulary.rows, *([Tokenizer.pad_id] * missing)]
    return MarianVocabulary(model.SerializeToString(), rows)


def _search(vocabularies: Sequence[str]) -> dict[str, Any]:
    return {
        "relative-paths": True,
        "models": [MODEL_FILE],
        "vocabs": list(vocabularies),
        "beam-size": 1,
        "normalize": 1.0,
        "word-penalty": 0,
        "max-length-factor": 2.0,
        "mini-batch": 64,
        "maxi-batch": 1000,
        "maxi-batch-sort": "src",
        "workspace": 2000,
        "skip-cost": True,
        "gemm-precision": "int8shiftAlphaAll",
    }


def _description(config: Config) -> dict[str, Any]:
    """What TranslateLocally shows of a model."""
    [direction] = config.data.directions
    return {
        "modelName": f"{direction.source}-{direction.target} {config.name}",
        "shortName": config.name,
        "type": "custom",
        "src": direction.source,
        "trg": direction.target,
        "version": 1,
        "API": 1,
    }


# Rounding.


def is_matrix(name: str) -> bool:
    """Whether an array is multiplied in int8."""
    return "Wemb" in name or name.rpartition("_")[2][:1] == "W"


def _alphas(
    trained: TrainedModel, arrays: Arrays, settings: dict[str, Any], source_rows: Sequence[int]
) -> dict[str, float]:
    """The factor by which the left side of each product is multiplied before it is rounded, by the names of the matrices."""
    model = MarianModel(arrays, settings)
    places: dict[int, int] = {}
    for theirs, ours in enumerate(source_rows):
        places.setdefault(ours, theirs)
    tokenizer, longest = trained.source_tokenizer, trained.config.model.max_length
    texts = [text for text, _ in stored_sources(trained)[:NUM_CALIBRATED]]
    ordinary = range(len(tokenizer.special_tokens), tokenizer.vocab_size)
    numbers = np.random.default_rng(0)
    encoded = [tokenizer.encode(text)[: longest - 1] for text in texts]
    if not encoded:  # a checkpoint that was copied alone
        encoded = [numbers.choice(ordinary, 10).tolist() for _ in range(NUM_CALIBRATED)]
    sources = [[places[index] for index in (*ids, tokenizer.eos_id)] for ids in encoded]
    model.greedy(sources, [2 * len(ids) for ids in sources], end=0, banned=[1])
    return {
        name: 127.0 / max(float(np.mean(found) + _SPREADS * np.std(found)), 1e-6)
        for name, found in model.largest.items()
    }


class Rounded(NamedTuple):
    """A matrix in int8."""

    numbers: NDArray[np.int8]
    scale: float
    """The matrix was multiplied with it before it was rounded."""


def rounded(matrix: NDArray[Any]) -> Rounded:
    """A matrix as whole numbers from -127 to 127."""
    scale = 127.0 / max(float(np.abs(matrix).max()), 1e-9)
    numbers = np.clip(np.rint(matrix * np.float32(scale)), -127, 127).astype(np.int8)
    return Rounded(numbers, scale)


# The file.


class _Item(NamedTuple):
    name: str
    type: int
    shape: tuple[int, ...]
    content: bytes


def model_content(arrays: Arrays, alphas: Mapping[str, float], settings: Mapping[str, Any]) -> bytes:
    """The content of a model file.

    Args:
        alphas: for each matrix that is stored in int8, the factor of its left side; all other arrays stay in float32.
    """
    items = [_item(name, array, is_rounded=name in alphas) for name, array in arrays.items()]
    numbers = {f"{name}{_ALPHA}": alpha for name, alpha in alphas.items()}
    output = next((name for name in ("Wemb", "decoder_Wemb") if name in alphas), None)
    if output is not None:
        numbers[_OUTPUT_ALPHA] = alphas[output]
    items += [_Item(name, _FLOAT32, (1,), np.float32(alpha).tobytes()) for name, alpha in numbers.items()]
    text = yaml.safe_dump(dict(settings), allow_unicode=True).encode() + b"\0"
    padded = text + bytes(-len(text) % _ALIGNMENT)
    items = [*sorted(items), _Item(SETTINGS, _INT8, (len(padded),), padded)]
    contents = [item.content + bytes(-len(item.content) % _ALIGNMENT) for item in items]
    parts = [struct.pack("<QQ", _VERSION, len(items))]
    for item, content in zip(items, contents, strict=True):
        name = item.name.encode() + b"\0"
        parts.append(struct.pack("<QQQQ", len(name), item.type, len(item.shape), len(content)))
    parts += [item.name.encode() + b"\0" for item in items]
    parts += [struct.pack(f"<{len(item.shape)}i", *item.shape) for item in items]
    place = sum(map(len, parts)) + 8
    gap = (place // _ALIGNMENT + 1) * _ALIGNMENT - place
    return b"".join([*parts, struct.pack("<Q", gap), bytes(gap), *contents])


def _item(name: str, array: NDArray[Any], *, is_rounded: bool) -> _Item:
    if not is_rounded:
        return _Item(name, _FLOAT32, array.shape, array.astype("<f4").tobytes())
    numbers, scale = rounded(array)
    # A matrix is stored transposed, a table as it is; both with their own shape in the header.
    stored = numbers if "Wemb" in name else np.ascontiguousarray(numbers.T)
    content = stored.tobytes() + np.float32(scale).tobytes()
    return _Item(name, _INTGEMM8, array.shape, content)


class BinaryModel(NamedTuple):
    """The content of a model file; matrices in int8 are multiplied out."""

    arrays: Arrays
    """In float32."""
    alphas: dict[str, float]
    settings: dict[str, Any]
    is_rounded: bool
    """Whether a matrix of the file is in int8."""


def read_model(content: bytes, path: Path) -> BinaryModel:
    """The inverse of `model_content`, apart from rounding.

    Args:
        path: what messages call the file.

    Raises:
        DataError: it is no such file, is cut off, or holds something else than numbers; the message names the tensor.
    """
    arrays: Arrays = {}
    alphas: dict[str, float] = {}
    settings: dict[str, Any] | None = None
    items = _stored_items(content, path)
    for item in items:
        if item.name == SETTINGS:
            settings = settings_in(np.frombuffer(item.content, np.int8), path)
            continue
        numbers = _numbers_of(item, path)
        if item.name.endswith(_ALPHA):
            alphas[item.name.removesuffix(_ALPHA)] = float(numbers.ravel()[0])
        else:
            arrays[item.name] = numbers
    if settings is None:
        raise DataError(
            f"{path}: there is no {SETTINGS} in it, which says what kind of model it is",
            hint="give the model file of the folder, such as model.intgemm.alphas.bin; a lex.*.bin is its shortlist",
        )
    return BinaryModel(arrays, alphas, settings, any(item.type == _INTGEMM8 for item in items))


_MOST_ITEMS, _MOST_AXES = 100_000, 8


def _stored_items(content: bytes, path: Path) -> list[_Item]:
    """The items of a model file."""
    place = 0

    def values(form: str, what: str) -> tuple[int, ...]:
        nonlocal place
        size = struct.calcsize(form)
        if place + size > len(content):
            raise damaged(path, f"the file ends in {what}: cut off, or no model file of Marian")
        found = struct.unpack_from(form, content, place)
        place += size
        return found

    version, num_items = values("<QQ", "its first line")
    if version != _VERSION or not 0 < num_items <= _MOST_ITEMS:
        raise DataError(
            f"{path}: not a binary model of Marian, or of an unknown version ({version})",
            hint="docs/marian.md lists what can be imported",
        )
    headers = [values("<QQQQ", "the list of its tensors") for _ in range(num_items)]
    names = []
    for length, *_ in headers:
        [raw] = values(f"<{length}s", "the names of its tensors") if length <= 10_000 else (b"",)
        names.append(bytes(raw).rstrip(b"\0").decode("utf-8", errors="replace"))
        if not names[-1]:
            raise damaged(path, f"tensor {len(names)} has no name")
    shapes = []
    for name, (_, _, num_axes, _) in zip(names, headers, strict=True):
        if not 0 < num_axes <= _MOST_AXES:
            raise damaged(path, f"tensor {name} has {num_axes} axes")
        shapes.append(values(f"<{num_axes}i", f"the shape of tensor {name}"))
    [gap] = values("<Q", "the list of its tensors")
    place += gap
    items = []
    for name, shape, (_, kind, _, num_bytes) in zip(names, shapes, headers, strict=True):
        if place + num_bytes > len(content):
            raise damaged(
                path, f"tensor {name} is cut off: the file ends {place + num_bytes - len(content):,} bytes too early"
            )
        items.append(_Item(name, kind, shape, content[place : place + num_bytes]))
        place += num_bytes
    return items


def _numbers_of(item: _Item, path: Path) -> NDArray[np.float32]:
    """The numbers of an item in float32."""
    size = math.prod(item.shape)
    if item.type not in (_FLOAT32, _INTGEMM8):
        raise DataError(
            f"{path}: tensor {item.name} holds numbers of the type {item.type:#06x}; only float32 ({_FLOAT32:#06x}) and int8 ({_INTGEMM8:#06x}) can be read",
            hint="convert the model again with marian-conv and --gemm-type intgemm8, or take its model.npz",
        )
    needed = 4 * size if item.type == _FLOAT32 else size + 4
    if min(item.shape) < 1 or needed > len(item.content):
        raise damaged(
            path,
            f"tensor {item.name} of the shape {list(item.shape)} needs {needed:,} bytes, and has {len(item.content):,}",
        )
    if item.type == _INTGEMM8:
        numbers = _multiplied_out(item.name, item.content, item.shape)
    else:
        numbers = np.frombuffer(item.content, "<f4", count=size).reshape(item.shape).copy()
    if not np.isfinite(numbers).all():
        raise damaged(path, f"tensor {item.name} holds NaN or infinity")
    return numbers


def _multiplied_out(name: str, stored: bytes, shape: tuple[int, ...]) -> NDArray[np.float32]:
    size = math.prod(shape)
    [scale] = struct.unpack_from("<f", stored, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = np.frombuffer(stored, np.int8, count=size).astype(np.float32) / np.float32(scale)
    return numbers.reshape(shape) if "Wemb" in name else numbers.reshape(shape[::-1]).T


class BergamotFolder(MarianFolder):
    """An `OtherEngine`: the files of a folder, computed in numpy with the rounding of int8."""

    def __init__(self, folder: Path) -> None:
        content, vocabularies = self._contents(folder)
        found = read_model(content, folder / MODEL_FILE)
        self._open(MarianModel(found.arrays, found.settings, found.alphas), vocabularies)

    def _contents(self, folder: Path) -> tuple[bytes, Sequence[bytes]]:
        """The model and its vocabularies, of source and target."""
        names = yaml.safe_load((folder / CONFIG_FILE).read_text(encoding="utf-8"))["vocabs"]
        return (folder / MODEL_FILE).read_bytes(), [(folder / name).read_bytes() for name in names]
