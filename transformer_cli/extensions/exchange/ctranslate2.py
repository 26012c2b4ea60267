"""The export format `ctranslate2`: a folder for the CTranslate2 library, with a tokenizer for each side.

The check reads such a folder with `ctranslate2` and `tokenizers` or `sentencepiece`, as its README says.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as HuggingFaceTokenizer
from torch import Tensor

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, DecodingConfig, ShortlistConfig
from transformer_cli.decoding.shortlist import load_shortlist, shortlist_path
from transformer_cli.extensions.exchange.ctranslate2_engine import VOCABULARY_MAP
from transformer_cli.extensions.exchange.ctranslate2_models import (
    BuiltIn,
    TokenNames,
    ctranslate2_files,
    read_weights,
    unsupported_settings,
)
from transformer_cli.extensions.exchange.export_format import (
    Decoded,
    ExportFormat,
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
    quoted,
    unsaid_of_beam,
)
from transformer_cli.extensions.exchange.position_tables import MIN_POSITIONS
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import (
    is_sentencepiece,
    sentencepiece_bytes,
)
from transformer_cli.extensions.exchange.tokenizer_json import (
    SHARED_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    tokenizer_json_with_end,
)
from transformer_cli.process.errors import MissingInputError
from transformer_cli.process.imports import require_extra
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import EOS, PAD, SOS, TAG
from transformer_cli.text.tokenizer_file import SPACE

MODEL_FILE = "model.bin"
"""The weights."""
_USAGE = """\
```python
import ctranslate2  # pip install ctranslate2 tokenizers
from tokenizers import Tokenizer

folder = {name}
source = Tokenizer.from_file(f"{{folder}}/{files[0]}")
target = Tokenizer.from_file(f"{{folder}}/{files[1]}")
translator = ctranslate2.Translator(folder)
tokens = source.encode("{tag}Good morning.").tokens  # the tokenizer appends [EOS]
[result] = translator.translate_batch([tokens], {search})
ids = [target.token_to_id(token) for token in result.hypotheses[0]]
print(target.decode(ids))
```
"""
_USAGE_OF_SENTENCEPIECE = """\
```python
import ctranslate2  # pip install ctranslate2 sentencepiece
from sentencepiece import SentencePieceProcessor

folder = {name}
source = SentencePieceProcessor(model_file=f"{{folder}}/{file}")
translator = ctranslate2.Translator(folder)
tokens = [*{tags}, *source.encode("Good morning.", out_type=str), "[EOS]"]
[result] = translator.translate_batch([tokens], {search})
{print}
```
"""
_JOINED = 'print("".join(result.hypotheses[0]).replace("\u2581", " ").strip())'
_DECODED = """\
target = SentencePieceProcessor(model_file=f"{{folder}}/{file}")  # some pieces stand for bytes
print(target.decode(result.hypotheses[0]))"""
SOURCE_SPM, TARGET_SPM = "source.spm", "target.spm"

logger = logging.getLogger(__name__)

MAX_BATCH = 32


class CTranslate2Format(ExportFormat):
    """A folder for CTranslate2."""

    name = "ctranslate2"
    modules = ("ctranslate2",)
    quantizations = ("int8",)
    library = "ctranslate2"

    def obstacles(self, config: Config) -> list[Obstacle]:
        reason = "CTranslate2 has no such layer"
        return [Obstacle(setting, reason) for setting in unsupported_settings(config.model)]

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        source, target = trained.tokenizers
        names = TokenNames.from_entries(source, target)
        files = ctranslate2_files(
            trained.model,
            target,
            names,
            quantization=quantization,
            built_in=BuiltIn(min_positions=MIN_POSITIONS),
        )
        if is_sentencepiece(source):
            require_extra("export", ("sentencepiece", "google.protobuf"), purpose="tfm export of this run")
            files[SOURCE_SPM] = sentencepiece_bytes(source)
            if target.parts.layout.has_byte_fallback:
                files[TARGET_SPM] = sentencepiece_bytes(target)
        else:
            tokenizers = {SOURCE_FILE: source, TARGET_FILE: target}
            if source is target:
                tokenizers = {SHARED_FILE: source}
            for name, tokenizer in tokenizers.items():
                files[name] = tokenizer_json_with_end(tokenizer).encode()
        if (made := shortlist_path(trained.folder)).is_file():
            settings = trained.config.decoding.shortlist or ShortlistConfig()
            shortlist = load_shortlist(made, settings, (source, target))
            if all(len(name.split()) == 1 for name in (*names.source, *names.target)):
                files[VOCABULARY_MAP] = shortlist.vocabulary_map(names.source, names.target)
            else:
                logger.warning(
                    "%s: not exported, because %s separates tokens by spaces, and some of these contain one",
                    made,
                    VOCABULARY_MAP,
                )
        add_to_folder(path, files)

    def open(self, path: Path) -> OtherEngine:
        if (path / SOURCE_SPM).is_file():
            return CTranslate2WithSentencePiece(path)
        return CTranslate2WithTokenizers(path)

    def stored_tensors(self, path: Path) -> dict[str, Tensor] | None:
        file = path / MODEL_FILE
        try:
            return read_weights(file.read_bytes(), str(file))
        except FileNotFoundError:
            raise MissingInputError(f"{file}: no such file", hint="copy the whole folder") from None

    def unsaid_search(self, decoding: DecodingConfig) -> list[str]:
        return unsaid_of_beam(decoding, "CTranslate2")

    def usage(self, trained: TrainedModel, name: str) -> str:
        source, target = trained.tokenizers
        banned = [[target.entries[index]] for index in (target.pad_id, target.sos_id)]
        banned += [[target.entries[index]] for index in target.tag_ids]
        decoding = trained.config.decoding
        search = (
            f"beam_size={decoding.beam_size}, length_penalty={decoding.length_penalty}, disable_unk=True, "
            f"suppress_sequences={banned!r}"
        )
        tags = source.special_tokens[4:]
        tag = tags[0] if tags else ""
        if is_sentencepiece(source):
            has_bytes = target.parts.layout.has_byte_fallback
            shown = _DECODED.format(file=TARGET_SPM) if has_bytes else _JOINED
            return _USAGE_OF_SENTENCEPIECE.format(
                name=quoted(name), file=SOURCE_SPM, tags=[*tags[:1]], search=search, print=shown
            )
        files = (SHARED_FILE, SHARED_FILE) if source is target else (SOURCE_FILE, TARGET_FILE)
        return _USAGE.format(name=quoted(name), files=files, tag=tag, search=search)


class CTranslate2Folder:
    """The vocabularies of a folder, and its model."""

    def __init__(self, folder: Path) -> None:
        import ctranslate2

        shared = folder / "shared_vocabulary.json"
        paths = [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
        self.source, self.target = (
            json.loads((shared if shared.is_file() else path).read_text(encoding="utf-8")) for path in paths
        )
        self._source_ids, self._target_ids = (
            {entry: index for index, entry in enumerate(entries)} for entries in (self.source, self.target)
        )
        self.translator: Any = ctranslate2.Translator(str(folder), device="cpu")
        self.name = f"CTranslate2 {ctranslate2.__version__}"

    def source_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        """As CTranslate2 looks them up."""
        return tuple(self._source_ids.get(token, Tokenizer.unk_id) for token in tokens)

    def target_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        return tuple(self._target_ids[token] for token in tokens)

    def translations(self, sources: Sequence[Sequence[str]], limits: Sequence[int], **options: Any) -> list[list[str]]:
        """Greedy translations, with [EOS]."""
        results = self.translator.translate_batch(
            sources,
            beam_size=1,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=max(limits),
            min_decoding_length=0,
            max_batch_size=MAX_BATCH,
            **options,
        )
        pairs = zip(results, limits, strict=True)
        return [result.hypotheses[0][:limit] for result, limit in pairs]

    @property
    def bans(self) -> dict[str, Any]:
        """The options that keep special tokens out of translations."""
        tags = [entry for entry in self.target[4:] if TAG.fullmatch(entry)]
        return {"disable_unk": True, "suppress_sequences": [[PAD], [SOS], *([tag] for tag in tags)]}


class CTranslate2WithTokenizers:
    """An `OtherEngine`: `ctranslate2` and `tokenizers`."""

    def __init__(self, folder: Path) -> None:
        paths = [folder / SHARED_FILE] * 2
        if not paths[0].is_file():
            paths = [folder / SOURCE_FILE, folder / TARGET_FILE]
        self._source, self._target = (HuggingFaceTokenizer.from_file(str(path)) for path in paths)
        self._model = CTranslate2Folder(folder)

    def describe(self) -> str:
        return self._model.name

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        encoded = [one.tokens for one in self._source.encode_batch(list(sources))]
        found = []
        written = self._model.translations(encoded, limits, **self._model.bans)
        for source, target in zip(encoded, written, strict=True):
            ids = self._model.target_ids(target)
            text = self._target.decode(list(ids))
            found.append(Decoded(self._model.source_ids(source), ids, text))
        return found


class CTranslate2WithSentencePiece:
    """An `OtherEngine`: `ctranslate2` and `sentencepiece`."""

    def __init__(self, folder: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        self._source: Any = SentencePieceProcessor(model_file=str(folder / SOURCE_SPM))
        has_bytes = (folder / TARGET_SPM).is_file()
        self._target: Any = SentencePieceProcessor(model_file=str(folder / TARGET_SPM)) if has_bytes else None
        self._model = CTranslate2Folder(folder)

    def describe(self) -> str:
        return self._model.name

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        encoded = []
        for text in sources:
            tag = TAG.match(text)
            tags, rest = ([tag[0]], text[tag.end() :]) if tag else ([], text)
            encoded.append([*tags, *self._source.encode(rest, out_type=str), EOS])
        found = []
        written = self._model.translations(encoded, limits, **self._model.bans)
        for source, target in zip(encoded, written, strict=True):
            pieces = [piece for piece in target if piece != EOS]
            if self._target is not None:
                text = str(self._target.decode(pieces))
            else:  # the SentencePiece model of an imported target lacks the pieces of the source, which a shared vocabulary has
                text = "".join(pieces).replace(SPACE, " ").removeprefix(" ").removesuffix(" ")
            ids = self._model.target_ids(target)
            found.append(Decoded(self._model.source_ids(source), ids, text))
        return found
