"""The check of CTranslate2 folders: `ctranslate2` with `tokenizers` or `sentencepiece`, used as their README says."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_cli.extensions.exchange.interchange.standard_tokenizers import (
    SHARED_FILE,
    SOURCE_FILE,
    TARGET_FILE,
)
from transformer_cli.extensions.exchange.porting.exporting.export_format import Decoded
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer_file import SPACE
from transformer_cli.text.words import EOS, PAD, SOS, TAG

SOURCE_SPM = "source.spm"
MAX_BATCH = 32


class Vocabularies:
    """The vocabularies of a folder, and its model."""

    def __init__(self, folder: Path) -> None:
        import ctranslate2

        shared = folder / "shared_vocabulary.json"
        paths = [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
        self.source, self.target = (
            json.loads((shared if shared.is_file() else path).read_text(encoding="utf-8"))
            for path in paths
        )
        self._source_ids, self._target_ids = (
            {entry: index for index, entry in enumerate(entries)}
            for entries in (self.source, self.target)
        )
        self.translator: Any = ctranslate2.Translator(str(folder), device="cpu")
        self.name = f"CTranslate2 {ctranslate2.__version__}"

    def source_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        """As CTranslate2 looks them up."""
        return tuple(self._source_ids.get(token, Tokenizer.unk_id) for token in tokens)

    def target_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        return tuple(self._target_ids[token] for token in tokens)

    def translations(
        self, sources: Sequence[Sequence[str]], limits: Sequence[int], **options: Any
    ) -> list[list[str]]:
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
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        paths = [folder / SHARED_FILE] * 2
        if not paths[0].is_file():
            paths = [folder / SOURCE_FILE, folder / TARGET_FILE]
        self._source, self._target = (HuggingFaceTokenizer.from_file(str(path)) for path in paths)
        self._model = Vocabularies(folder)

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
        self._model = Vocabularies(folder)

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
            # Not the SentencePiece model of the target: it lacks the pieces of the source, which a shared vocabulary has.
            text = "".join(piece for piece in target if piece != EOS).replace(SPACE, " ")
            text = text.removeprefix(" ").removesuffix(" ")
            ids = self._model.target_ids(target)
            found.append(Decoded(self._model.source_ids(source), ids, text))
        return found
