"""From the files of Marian to a model with its tokenizers: `model.npz` or a binary model in int8, vocabularies (`.spm`, YAML beside `.spm`, or YAML of whole words), and `decoder.yml`."""

import copy
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import SHORTLIST_FILE
from transformer_cli.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from transformer_cli.config.loading import parse_yaml
from transformer_cli.decoding.shortlist import MOST_BEST, shortlist_content
from transformer_cli.extensions.exchange.bergamot import CONFIG_FILE, read_model
from transformer_cli.extensions.exchange.binary_shortlist import (
    BinaryShortlist,
    read_binary_shortlist,
)
from transformer_cli.extensions.exchange.imported_model import FINE_TUNING, MOST_HYPOTHESES, ImportedModel
from transformer_cli.extensions.exchange.marian_format import (
    EOS,
    UNK,
    Arrays,
    NpzModel,
    checked_arrays,
    has_ssru,
    marian_parts,
    model_config,
    read_npz,
    read_yaml_vocabulary,
)
from transformer_cli.extensions.exchange.marian_reading import MarianModel
from transformer_cli.extensions.exchange.model_folder import (
    MAX_TEXT_BYTES,
    MAX_TOKENIZER_BYTES,
    ModelFolder,
    NamedLanguages,
    folder_languages,
    imported_data,
)
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import (
    SpecialEntries,
    language_codes,
    marian_tokenizers,
    ordered_entries,
    read_sentencepiece,
)
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.process.messages import for_shell
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import SPECIALS
from transformer_cli.text.sentencepiece_model import (
    SPECIAL_PIECES,
    library_parts,
    parsed_model,
)
from transformer_cli.text.tokenizer_file import (
    SpaceLayout,
    TokenizerParts,
    tokenizer_errors_explained,
)

_YAML_ENDINGS = (".yml", ".yaml", ".json")
_SPACE = "\u2581"
_ADDED = "<start of Marian>"
_NO_ROW = -1
_NEVER = -100.0
"""The bias of entries that Marian does not have: exp(-100) is 0 beside any other probability."""
_MAX_DIFFERENCE = 1e-6
_NUM_COMPARED = 8
_CONTROL, _UNKNOWN = 3, 2
_THEIR_START = "<s_of_marian>"
"""Our name of an entry <s> of theirs, which is not our [SOS]."""
_MAX_SHORTLIST_BYTES = 1 << 30


class MarianTokenizers(NamedTuple):
    """Both tokenizers as ours, and the ids that their entries have in Marian."""

    source: Tokenizer
    target: Tokenizer
    source_rows: Sequence[int]
    """For each of our ids, that of Marian; -1: Marian has no such entry."""
    target_rows: Sequence[int]
    config: TokenizerConfig
    languages: tuple[str, ...] = ()
    """The target languages for which the vocabulary has an entry such as >>fra<<."""

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of Marian's vocabularies."""
        return max(self.source_rows) + 1, max(self.target_rows) + 1


def model_file(folder: Path) -> Path | None:
    """The `.npz` of a model in a folder, or else its binary model; None if there is none.

    A copy of a model at its best validation (`X.npz.best-perplexity.npz`, which OPUS-MT publishes) counts where the model itself is not.

    Raises:
        DataError: several files may be meant.
    """
    npz = [path for path in sorted(folder.glob("*.npz")) if not path.name.endswith((".optimizer.npz", ".orig.npz"))]
    found = [path for path in npz if ".npz." not in path.name] or npz
    if not found and any(folder.glob("*.spm")):
        found = sorted(folder.glob("model*.bin"))
    found = [path for path in found if path.name == "model.npz"] or found
    if len(found) > 1:
        raise DataError(
            f"{folder}: several models: {', '.join(path.name for path in found[:10])}",
            hint=f"give one of these files in place of the folder: tfm import {for_shell(found[0])}",
        )
    return found[0] if found else None


def import_marian(path: Path, name: str, named: NamedLanguages) -> ImportedModel:
    """The model in a `.npz` file, or in a binary one of Bergamot and Firefox, whose matrices in int8 are multiplied out.

    Args:
        path: of the file. Its vocabularies and its decoder.yml lie beside it.
        name: of the run.
        named: its languages, as the user says.

    Raises:
        MissingInputError: a file is missing.
        DataError: a file is damaged, or the model has no counterpart here; the message names the setting or the tensor.
        UsageError: the languages are not known, or the package sentencepiece is missing.
    """
    folder = ModelFolder(path.parent)
    is_npz = path.suffix.lower() == ".npz"
    found, is_rounded = (read_npz(path), False) if is_npz else _read_binary(path)
    config = model_config(found.settings, f"{path}, special:model.yml")
    search = decoder_settings(folder, path)
    vocabularies = vocabulary_files(folder, search, path)
    is_tied = config.tie_embeddings == "all"
    if all(name.endswith(".spm") for name in vocabularies):
        tokenizers = tokenizers_of_spm(folder, vocabularies, is_tied=is_tied)
        languages = folder_languages(folder, named, codes=[])
    else:
        entries = _yaml_vocabularies(folder, vocabularies)
        codes = language_codes(entries[0]) if entries[0] is entries[1] else []
        languages = folder_languages(folder, named, codes=codes)
        tokenizers = _tokenizers_of_yaml(folder, entries, languages.tagged)
    state = state_of(found, config, tokenizers, path)
    shortlist = binary_shortlist(folder, search, tokenizers)
    run = Config(
        name=name,
        data=imported_data(languages),
        tokenizer=tokenizers.config,
        model=config,
        training=FINE_TUNING,
        decoding=search_of(search),
    )
    return ImportedModel(
        origin=f"a {'Transformer' if is_npz else 'binary model'} of Marian",
        config=run,
        state=state,
        tokenizers=(tokenizers.source, tokenizers.target),
        compare=functools.partial(compare_with_files, found, tokenizers),
        notes=(
            *([_ROUNDED] if is_rounded else []),
            *([note_of_shortlist(shortlist)] if shortlist else []),
            *_notes(search, config, has_shortlist=shortlist is not None),
        ),
        files={SHORTLIST_FILE: our_shortlist(shortlist, tokenizers)} if shortlist else {},
    )


_ROUNDED = "matrices of this file are rounded to int8: the run has these numbers in float32, and rounds nothing else"


def _read_binary(path: Path) -> tuple[NpzModel, bool]:
    """The model, and whether its matrices are rounded to int8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
    found = read_model(content, path)
    return NpzModel(found.arrays, found.settings), found.is_rounded


# Files beside the model.


def decoder_settings(folder: ModelFolder, path: Path) -> dict[str, Any]:
    """The settings of the search: of MODEL.npz.decoder.yml, decoder.yml, or the config of a folder for browsers; empty if there is none."""
    names = (f"{path.name}.decoder.yml", "decoder.yml", f"{path.stem}.decoder.yml", CONFIG_FILE)
    for name in names:
        if folder.has(name):
            origin = str(folder.path / name)
            found = parse_yaml(folder.text(name, max_bytes=MAX_TEXT_BYTES), origin)
            if not isinstance(found, dict):
                raise DataError(f"{origin}: not a mapping of settings")
            return found
    return {}


def vocabulary_files(folder: ModelFolder, search: Mapping[str, Any], path: Path) -> tuple[str, str]:
    """The names of the vocabularies of source and target, which lie beside the model.

    Args:
        search: of decoder.yml, which names them; if it does not, there must be one or two .spm files.

    Raises:
        DataError: they are not there, or it is not clear which file belongs to which side.
    """
    named = search.get("vocabs")
    if isinstance(named, list) and len(named) == 2 and all(isinstance(one, str) for one in named):
        found = [_name_in(one) for one in named]
        if missing := [one for one in found if not folder.has(one)]:
            raise DataError(
                f"{folder.path / missing[0]}: no such file; decoder.yml names it as a vocabulary",
                hint="copy the vocabularies beside the model",
            )
        return found[0], found[1]
    if (found_files := _spm_files(folder)) is not None:
        return found_files
    shown = ", ".join(sorted(one.name for one in folder.path.glob("*.spm"))) or "none"
    raise DataError(
        f"{path}: it is not clear which vocabularies it has (.spm files beside it: {shown})",
        hint='put a decoder.yml beside it with two lines: "relative-paths: true" and "vocabs: [SOURCE.spm, TARGET.spm]"',
    )


def _name_in(path: str) -> str:
    """The name of a file in a path that Marian has written, on Windows or elsewhere."""
    return PureWindowsPath(path).name


def _spm_files(folder: ModelFolder) -> tuple[str, str] | None:
    """The .spm files of source and target; None if it is not clear which they are."""
    spm = sorted(one.name for one in folder.path.glob("*.spm"))
    if len(spm) == 1:
        return spm[0], spm[0]
    pairs = (("source", "target"), ("src", "trg"), ("src", "tgt"), ("srcvocab", "trgvocab"))
    for ends in pairs:
        sides = [[one for one in spm if end in one.split(".")] for end in ends]
        if all(len(one) == 1 for one in sides):
            return sides[0][0], sides[1][0]
    return None


# Tokenizers.


def tokenizers_of_spm(folder: ModelFolder, names: tuple[str, str], *, is_tied: bool) -> MarianTokenizers:
    """The tokenizers of a model whose vocabularies are .spm files.

    Args:
        names: of the files of source and target.
        is_tied: whether both sides have one table.

    Raises:
        DataError: a file is damaged, or of a kind that we do not have.
    """
    contents = [folder.bytes(name, max_bytes=MAX_TOKENIZER_BYTES) for name in names]
    sides = [our_vocabulary(content, str(folder.path / name)) for content, name in zip(contents, names, strict=True)]
    are_shared = contents[0] == contents[1]
    if is_tied and not are_shared:
        raise DataError(
            f"{folder.path / names[1]}: another vocabulary than {names[0]}, but source and target have one table of embeddings",
            hint="copy the vocabularies of this model again",
        )
    with tokenizer_errors_explained("the tokenizer cannot be built"):
        source = Tokenizer(sides[0].parts)
        target = source if are_shared else Tokenizer(sides[1].parts)
    layout = source.parts.layout
    config = TokenizerConfig(
        kind="sentencepiece",
        shared=are_shared,
        algorithm="bpe" if layout.kind == "BPE" else None,
        normalization=None if layout.is_sentencepiece else "identity",
        byte_fallback=True if layout.has_byte_fallback else None,
    )
    return MarianTokenizers(source, target, sides[0].rows, sides[1].rows, config)


class OurVocabulary(NamedTuple):
    """A vocabulary of Marian as ours."""

    parts: TokenizerParts
    rows: list[int]
    """For each of our ids, that of Marian; -1: Marian has no such entry."""


def our_vocabulary(content: bytes, origin: str) -> OurVocabulary:
    """An .spm file with our special tokens first, and all other entries in their old order.

    Raises:
        DataError: it is damaged, or of a kind that we do not have.
    """
    model = parsed_model(content, origin)
    old = [*model.pieces]
    ends = [index for index, piece in enumerate(old) if piece.piece == EOS]
    unknown = [index for index, piece in enumerate(old) if piece.type == _UNKNOWN]
    if len(ends) != 1 or len(unknown) != 1:
        raise DataError(
            f"{origin}: there is no entry {EOS}, or none for unknown characters, which each vocabulary of Marian has",
            hint="only vocabularies that Marian can use can be imported",
        )
    controls = {piece.piece: index for index, piece in enumerate(old) if piece.type == _CONTROL}
    unk, pad, start, _ = SPECIAL_PIECES
    if start in controls:  # a token like any other: a decoder of Marian starts with zeros
        old[controls[start]].piece = _THEIR_START
    first = [unknown[0], controls.get(pad, _NO_ROW), _NO_ROW, ends[0]]
    rows = [*first, *(index for index in range(len(old)) if index not in first)]
    del model.pieces[:]
    for name in SPECIAL_PIECES:
        model.pieces.add(piece=name, score=0.0, type=_UNKNOWN if name == unk else _CONTROL)
    model.pieces.extend(old[row] for row in rows[len(first) :])
    for name, index in (("unk", 0), ("pad", 1), ("bos", 2), ("eos", 3)):
        setattr(model.trainer_spec, f"{name}_id", index)
    model.trainer_spec.vocab_size = len(rows)
    return OurVocabulary(library_parts(model.SerializeToString(), origin), rows)


def _yaml_vocabularies(folder: ModelFolder, names: tuple[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """The ids of the entries of both sides; one object twice if it is one file."""
    for name in names:
        if not name.endswith(_YAML_ENDINGS):
            raise DataError(
                f"{folder.path / name}: a vocabulary of another kind than .spm, .yml and .json",
                hint="only models with SentencePiece can be imported",
            )
    found = {}
    for name in names:
        content = folder.bytes(name, max_bytes=MAX_TOKENIZER_BYTES)
        found[name] = read_yaml_vocabulary(content, str(folder.path / name))
        try:
            ordered_entries(found[name])
        except DataError as error:
            raise DataError(f"{folder.path / name}: {error.message}", hint=error.hint) from error
    return found[names[0]], found[names[1]]


def _tokenizers_of_yaml(
    folder: ModelFolder, entries: tuple[dict[str, int], dict[str, int]], languages: Sequence[str]
) -> MarianTokenizers:
    """The tokenizers of a model whose text is cut before Marian reads it: by SentencePiece, as that of OPUS-MT, or into words."""
    files = _spm_files(folder)
    if files is None:
        if (hint := _hint_of_cutting({**entries[0], **entries[1]})) is None:
            return _word_tokenizers(folder, entries)
        raise DataError(
            f"{folder}: the vocabulary is a list of tokens, and nothing says how text is cut into them: there is no source.spm and no target.spm",
            hint=hint,
        )
    models = [
        read_sentencepiece(folder.bytes(name, max_bytes=MAX_TOKENIZER_BYTES), str(folder.path / name)) for name in files
    ]
    are_shared = entries[0] is entries[1]
    # Marian has no entry for the start, and most vocabularies have none for padding: one behind its own stands for them.
    with_added = [{**one, _ADDED: len(one)} for one in entries]
    if are_shared:
        with_added[1] = with_added[0]
    specials = [
        SpecialEntries(one[UNK], one.get(SPECIAL_PIECES[1], one[_ADDED]), one[_ADDED], one[EOS]) for one in with_added
    ]
    try:
        found = marian_tokenizers(
            (models[0], models[1]),
            (with_added[0], with_added[1]),
            (specials[0], specials[1]),
            languages=languages,
        )
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    rows = [
        [row if row < len(one) else _NO_ROW for row in side_rows]
        for one, side_rows in zip(entries, (found.source_rows, found.target_rows), strict=True)
    ]
    config = TokenizerConfig(kind="sentencepiece", shared=found.are_shared)
    return MarianTokenizers(found.source, found.target, rows[0], rows[1], config)


def _hint_of_cutting(entries: Iterable[str]) -> str | None:
    """What to do about a vocabulary of parts of words, without a model that cuts text into them; None: it has whole words."""
    shown = [*entries]
    if any(_SPACE in entry for entry in shown):
        return f"its entries are those of SentencePiece ({_SPACE} stands for a space): copy the model of SentencePiece beside it, as source.spm and target.spm"
    if any(entry.endswith("@@") for entry in shown):
        return (
            "its entries are those of subword-nmt (@@ stands behind a part of a word): such models cannot be imported"
        )
    return None


def _word_tokenizers(folder: ModelFolder, entries: tuple[dict[str, int], dict[str, int]]) -> MarianTokenizers:
    """The tokenizers of a model of whole words: Marian takes what stands between two spaces for a word, if it has it.

    Raises:
        DataError: an entry cannot be a word.
    """
    made = [_word_tokenizer(folder, one) for one in entries[: 1 if entries[0] is entries[1] else 2]]
    (source, source_rows), (target, target_rows) = made[0], made[-1]
    config = TokenizerConfig(kind="wordlevel", shared=source is target)
    return MarianTokenizers(source, target, source_rows, target_rows, config)


def _word_tokenizer(folder: ModelFolder, entries: Mapping[str, int]) -> tuple[Tokenizer, list[int]]:
    """The tokenizer of one vocabulary, and for each of its ids, that of Marian."""
    words = sorted((one for one in entries if one not in (EOS, UNK)), key=entries.__getitem__)
    wrong = next((one for one in words if not one or " " in one), None)
    if wrong is not None:
        raise DataError(
            f"{folder}: the vocabulary has the entry {wrong!r}, which cannot be a word between spaces",
            hint="give this entry another name, in the place of the same id, such as ##1",
        )
    layout = SpaceLayout()
    vocabulary = {word: index for index, word in enumerate((*SPECIALS, *(f" {one}" for one in words)))}
    tokenizer = Tokenizer(TokenizerParts(layout, {**layout.empty_model(), "vocab": vocabulary}))
    rows = [entries[UNK], _NO_ROW, _NO_ROW, entries[EOS], *map(entries.__getitem__, words)]
    return Tokenizer.from_json(tokenizer.to_json()), rows


# Weights.


def state_of(found: NpzModel, config: ModelConfig, tokenizers: MarianTokenizers, path: Path) -> dict[str, Tensor]:
    """The `state_dict` of our model.

    Raises:
        DataError: a tensor is missing, has another shape, or belongs to no part.
    """
    sizes = found.settings.get("dim-vocabs")
    if isinstance(sizes, list) and sizes and [*sizes] != [*tokenizers.sizes] and 0 not in sizes:
        raise DataError(
            f"{path}: its vocabularies have {sizes[0]} and {sizes[-1]} entries (dim-vocabs), but the files beside it {tokenizers.sizes[0]} and {tokenizers.sizes[1]}",
            hint="model and vocabularies must be of one training: copy all files of the model again",
        )
    arrays = checked_arrays(_in_common_form(found, tokenizers.sizes[1]), config, tokenizers.sizes, path)
    state = {}
    for part in marian_parts(config):
        if part.is_absent:
            if arrays.get(part.theirs, np.zeros(1)).any():
                raise DataError(
                    f"{path}: tensor {part.theirs} is not zero, but the model was exported without this bias",
                    hint=f"the model was trained further by Marian, which trains all biases: import the file alone, tfm import {for_shell(path)}",
                )
            continue
        array = arrays[part.theirs]
        if part.theirs == "decoder_ff_logit_out_b":
            array = with_our_rows(array.T, tokenizers.target_rows, _NEVER)[:, 0]
        elif part.kind == "table":
            is_source = part.theirs == "encoder_Wemb"
            rows = tokenizers.source_rows if is_source else tokenizers.target_rows
            array = with_our_rows(array, rows, 0.0)
        elif part.kind == "matrix":
            array = array.T
        else:
            array = array[0]
        state[part.ours] = torch.from_numpy(np.ascontiguousarray(array))
    table = "target_embedding.weight" if config.tie_embeddings == "none" else "output.weight"
    state[table][Tokenizer.sos_id] = 0.0  # a decoder of Marian starts with zeros
    return state


def _in_common_form(found: NpzModel, target_size: int) -> Arrays:
    """The arrays, with the forms of older versions and of rarer settings as those of the others."""
    arrays, settings = dict(found.arrays), found.settings
    is_output_tied = settings.get("tied-embeddings") or settings.get("tied-embeddings-all")
    if settings.get("tied-embeddings-src") and "Wemb" in arrays and not is_output_tied:
        arrays["encoder_Wemb"] = arrays["decoder_Wemb"] = arrays.pop("Wemb")
    if "decoder_ff_logit_out_W" in arrays:
        arrays["decoder_ff_logit_out_Wt"] = arrays.pop("decoder_ff_logit_out_W").T
    if settings.get("output-omit-bias"):
        arrays.setdefault("decoder_ff_logit_out_b", np.zeros((1, target_size), np.float32))
    return arrays


def with_our_rows(table: Any, rows: Sequence[int], missing: float) -> Any:
    """A table in the order of our ids; `missing` stands in each row that Marian does not have."""
    chosen = table[np.maximum(rows, 0)]
    chosen[np.array(rows) == _NO_ROW] = missing
    return chosen


# The shortlist.


def binary_shortlist(
    folder: ModelFolder, search: Mapping[str, Any], tokenizers: MarianTokenizers
) -> BinaryShortlist | None:
    """The shortlist that decoder.yml names, or the only lex.*.bin beside the model; None if there is none.

    Raises:
        MissingInputError: decoder.yml names one that is not there.
        DataError: it is damaged, or made for other vocabularies.
    """
    named = search.get("shortlist")
    names = [_name_in(str(named[0]))] if isinstance(named, list) and named else []
    names = names or sorted(one.name for one in folder.path.glob("lex*.bin"))
    if len(names) != 1 or not names[0].endswith(".bin"):  # one in text, or one for each direction
        return None
    content = folder.bytes(names[0], max_bytes=_MAX_SHORTLIST_BYTES)
    return read_binary_shortlist(content, folder.path / names[0], tokenizers.sizes)


def our_shortlist(found: BinaryShortlist, tokenizers: MarianTokenizers) -> bytes:
    """The shortlist as `tfm shortlist` writes it."""
    ours = {row: index for index, row in enumerate(tokenizers.target_rows) if row != _NO_ROW}
    lists = [
        [] if row == _NO_ROW else found.translations[found.starts[row] : found.starts[row + 1]].tolist()
        for row in tokenizers.source_rows
    ]
    translations = [ours[one] for each in lists for one in each[:MOST_BEST]]
    starts = np.cumsum([0, *(min(len(each), MOST_BEST) for each in lists)])
    # The entries of a vocabulary stand in the order of their frequency.
    by_frequency = [ours[row] for row in range(tokenizers.sizes[1])]
    both = tokenizers.source, tokenizers.target
    return shortlist_content(starts, np.array(translations, np.int64), np.array(by_frequency, np.int64), both)


def note_of_shortlist(shortlist: BinaryShortlist) -> str:
    """How a run uses the shortlist that came with its model, and what of it could not be kept."""
    sizes = f"frequent: {max(1, shortlist.frequent)}, best: {min(max(1, shortlist.best), MOST_BEST)}"
    num_lost = int(np.maximum(np.diff(shortlist.starts) - MOST_BEST, 0).sum())
    lost = f"; {num_lost:,} candidates of tokens that have more than {MOST_BEST} are left out" if num_lost else ""
    return (
        f'its shortlist is stored, and not used unless the search names it: --set "decoding.shortlist={{{sizes}}}"; '
        f"without it, all tokens are computed{lost}"
    )


# Search.


def search_of(search: Mapping[str, Any]) -> DecodingConfig:
    """The search of decoder.yml; Marian divides a score by length^normalize, and never writes an unknown token.

    A translation has at most max-length-factor tokens for each token of its source.
    """
    beam_size, exponent = search.get("beam-size", 12), search.get("normalize", 0.0)
    factor = search.get("max-length-factor", 3.0)
    found: dict[str, Any] = {
        "length_normalization": "average",
        "allow_unknown": search.get("allow-unk") is True,
    }
    if type(beam_size) is int and beam_size >= 1:
        found["beam_size"] = min(beam_size, MOST_HYPOTHESES)
    is_number = isinstance(exponent, int | float) and not math.isnan(exponent)
    found["length_penalty"] = min(max(float(exponent), 0.0), 10.0) if is_number else 0.0
    if isinstance(factor, int | float) and 0.0 < factor <= 1000.0:
        found["max_length_ratio"] = float(factor)
    return DecodingConfig.model_validate(found)


def _notes(search: Mapping[str, Any], config: ModelConfig, *, has_shortlist: bool) -> list[str]:
    notes = []
    if config.norm_placement == "pre" and not has_ssru(config):
        notes.append(
            "with pre-norm, Marian 1.12 leaves out the norm of earlier positions when it translates, though not when it trains; "
            "the run translates as the model was trained"
        )
    names = ("word-penalty", "output-sampling", *([] if has_shortlist else ["shortlist"]))
    for name in names:
        if search.get(name) not in (None, 0, 0.0, False, []):
            notes.append(f"{name} {search[name]!r} of decoder.yml is not used in the search")
    return notes


# The comparison.


def compare_with_files(found: NpzModel, tokenizers: MarianTokenizers, model: Transformer) -> list[str]:
    """Compare the log-probabilities of our model with those that numpy computes from the files, both in float64.

    Raises:
        DataError: they differ.
    """
    numbers = np.random.default_rng(0)
    sizes = tokenizers.sizes
    sides = []
    for rows in (tokenizers.source_rows, tokenizers.target_rows):
        ordinary = np.array([row for row in rows[4:] if row != _NO_ROW] or [rows[0]])
        lengths = numbers.integers(3, 30, _NUM_COMPARED)
        sides.append([numbers.choice(ordinary, length).tolist() for length in lengths])
    end = tokenizers.source_rows[Tokenizer.eos_id]
    sources, targets = [[*ids, end] for ids in sides[0]], sides[1]
    arrays = {name: array.astype(np.float64) for name, array in _in_common_form(found, sizes[1]).items()}
    exact = copy.deepcopy(model).double()
    expected = MarianModel(arrays, found.settings).log_probs(sources, targets)
    ours_of = [
        {row: index for index, row in enumerate(rows) if row != _NO_ROW}
        for rows in (tokenizers.source_rows, tokenizers.target_rows)
    ]
    known = torch.tensor([ours_of[1][row] for row in range(sizes[1])])
    largest, num_tokens = 0.0, 0
    with torch.inference_mode():
        for source, target, theirs in zip(sources, targets, expected, strict=True):
            source_ids = torch.tensor([[ours_of[0][row] for row in source]])
            before = [Tokenizer.sos_id, *(ours_of[1][row] for row in target)][: len(target)]
            logits = exact(source_ids, None, torch.tensor([before]))[0]
            ours = logits.log_softmax(-1)[:, known].numpy()
            differences = np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))
            largest = max(largest, float(differences.max()))
            num_tokens += len(target)
    if not largest < _MAX_DIFFERENCE:
        raise DataError(
            f"the imported model computes something else than its files: log-probabilities differ by a share of {largest:.2g}",
            hint="nothing was written; report this with the settings of the model",
        )
    return [
        f"log-probabilities of all {sizes[1]:,} tokens at {num_tokens} places, computed from the files in numpy, in float64: they differ by a share of at most {largest:.1e}"
    ]
