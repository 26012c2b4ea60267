"""A folder of CTranslate2 that translates lines, with the tokenizer that lies in it: a teacher that is no run of tfm."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformer_cli.extensions.exchange.tokenizer_json import (
    SHARED_FILE,
    SOURCE_FILE,
    TARGET_FILE,
)
from transformer_cli.process.errors import MissingInputError
from transformer_cli.process.imports import require_extra

_SHARED_SPM = ("sentencepiece.model", "sentencepiece.bpe.model", "spm.model")
_SOURCE_SPM, _TARGET_SPM = ("source.spm", *_SHARED_SPM), ("target.spm", *_SHARED_SPM)
_SPACE = "\u2581"
_USUAL_BEAM = 4
_BATCH_TOKENS = 2048


class CTranslate2Teacher:
    """Translates lines with a model in the format of CTranslate2.

    The folder holds `model.bin`, `config.json`, and a tokenizer: `tokenizer.json` (or one for each side), or a SentencePiece model:
    `sentencepiece.model`, or `source.spm`, with or without a `target.spm`. So `tfm export` writes them.
    """

    def __init__(self, folder: Path, num_threads: int = 0) -> None:
        """
        Raises:
            UsageError: the library is not installed.
            MissingInputError: the folder has no tokenizer that is known.
        """
        require_extra("ctranslate2", ("ctranslate2",), purpose="a teacher in the format of CTranslate2")
        import ctranslate2

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        end = config.get("eos_token", "</s>")
        self._end: list[str] = [] if config.get("add_source_eos") else [end]
        self._special = {end, *(config.get(f"{name}_token") for name in ("bos", "unk"))}
        self._pieces, self._text = self._tokenizer(folder)
        self._translator: Any = ctranslate2.Translator(str(folder), device="cpu", intra_threads=num_threads)
        self.name = f"{folder.name} (CTranslate2 {ctranslate2.__version__})"

    def translate(
        self, lines: Sequence[str], num_best: int, beam_size: int | None = None
    ) -> list[list[tuple[float, str]]]:
        """The score and the text of the n best translations of each line; a blank line has a blank one.

        Args:
            lines: one sentence each.
            num_best: how many.
            beam_size: of the search; None: 4, or `num_best` if that is more.
        """
        filled = [number for number, line in enumerate(lines) if line.strip()]
        results = self._translator.translate_batch(
            [self._pieces(lines[number]) for number in filled],
            beam_size=beam_size or max(_USUAL_BEAM, num_best),
            num_hypotheses=num_best,
            return_scores=True,
            max_batch_size=_BATCH_TOKENS,
            batch_type="tokens",
        )
        found = [[(0.0, "")]] * len(lines)
        for number, result in zip(filled, results, strict=True):
            texts = map(self._text, result.hypotheses)
            found[number] = list(zip(result.scores, texts, strict=True))
        return found

    def _tokenizer(self, folder: Path) -> tuple[Callable[[str], list[str]], Callable[[list[str]], str]]:
        """What makes tokens of a source, and a text of the tokens of a translation."""
        shared, sides = folder / SHARED_FILE, (folder / SOURCE_FILE, folder / TARGET_FILE)
        if shared.is_file() or sides[0].is_file():
            from tokenizers import Tokenizer

            paths = (shared, shared) if shared.is_file() else sides
            source, target = (Tokenizer.from_file(str(path)) for path in paths)

            def text_of(tokens: list[str]) -> str:
                ids = [target.token_to_id(token) for token in tokens]
                text = target.decode([one for one in ids if one is not None])
                return str(text)

            # The tokenizer of `tfm export` adds the end by itself.
            return lambda line: list(source.encode(line).tokens), text_of
        models = [_first_file(folder, names) for names in (_SOURCE_SPM, _TARGET_SPM)]
        if models[0] is None:
            raise MissingInputError(
                f"{folder}: no tokenizer; {SHARED_FILE}, or one of {', '.join(_SOURCE_SPM)} is expected",
                hint="copy the tokenizer of the model into the folder",
            )
        require_extra("sentencepiece", ("sentencepiece",), purpose="this tokenizer")
        from sentencepiece import SentencePieceProcessor

        of_source, of_target = (SentencePieceProcessor(model_file=str(path or models[0])) for path in models)

        def text_of_pieces(tokens: list[str]) -> str:
            kept = [token for token in tokens if token not in self._special]
            # It makes characters of pieces that stand for bytes, and leaves a piece that it does not have as it is.
            return str(of_target.decode_pieces(kept)).replace(_SPACE, " ").strip()

        return lambda line: [*of_source.encode(line, out_type=str), *self._end], text_of_pieces


def _first_file(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)
