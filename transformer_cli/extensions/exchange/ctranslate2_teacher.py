"""A folder of CTranslate2 that translates lines, with the tokenizer that lies in it: a teacher that is no run of tfm."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer_cli.extensions.exchange.model_folder import ModelFolder
from transformer_cli.extensions.exchange.tokenizer_json import (
    SHARED_FILE,
    SOURCE_FILE,
    TARGET_FILE,
)
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.tokenizer_file import tokenizer_errors_explained

_SHARED_SPM = ("sentencepiece.model", "sentencepiece.bpe.model", "spm.model")
_SOURCE_SPM, _TARGET_SPM = ("source.spm", *_SHARED_SPM), ("target.spm", *_SHARED_SPM)
_SPACE = "\u2581"
_USUAL_BEAM = 4
_BATCH_TOKENS = 2048
_MOST_READ, _MOST_WRITTEN = 1024, 256
"""Tokens of a source and of a translation; the defaults of CTranslate2."""
_POSITIONS = re.compile(r"No position encodings are defined for positions >= (\d+)")

logger = logging.getLogger(__name__)


class CTranslate2Teacher:
    """Translates lines with a model in the format of CTranslate2.

    The folder holds `model.bin`, `config.json`, and a tokenizer: `tokenizer.json` (or one for each side), or a SentencePiece model:
    `sentencepiece.model`, or `source.spm`, with or without a `target.spm`. So `tfm export` writes them.
    """

    def __init__(self, folder: Path, num_threads: int = 0) -> None:
        """
        Raises:
            UsageError: the library is not installed.
            MissingInputError: the folder has no tokenizer that is known, or no config.json.
            DataError: the model or its tokenizer cannot be read.
        """
        require_extra("ctranslate2", ("ctranslate2",), purpose="a teacher in the format of CTranslate2")
        import ctranslate2

        config = ModelFolder(folder).json("config.json")
        end = config.get("eos_token", "</s>")
        self._end: list[str] = [] if config.get("add_source_eos") else [end]
        self._special = {end, *(config.get(f"{name}_token") for name in ("bos", "unk"))}
        self._most = _MOST_READ
        problem = f"{folder}: its tokenizer cannot be read"
        with _refused(problem), tokenizer_errors_explained(problem):
            self._pieces, self._text = self._tokenizer(folder)
        with _refused(f"{folder}: CTranslate2 cannot read the model"):
            self._translator: Any = ctranslate2.Translator(str(folder), device="cpu", intra_threads=num_threads)
        self.name = f"{folder.name} (CTranslate2 {ctranslate2.__version__})"

    def translate(self, lines: Sequence[str], num_best: int) -> list[list[tuple[float, str]]]:
        """The score and the text of the n best translations of each line; a blank line has a blank one.

        Of a line with more tokens than CTranslate2 reads, or than the model has positions for, the beginning is translated; a warning
        says so.
        """
        filled = [number for number, line in enumerate(lines) if line.strip()]
        results = self._results([self._pieces(lines[number]) for number in filled], num_best)
        found = [[(0.0, "")]] * len(lines)
        for number, result in zip(filled, results, strict=True):
            texts = map(self._text, result.hypotheses)
            found[number] = list(zip(result.scores, texts, strict=True))
        return found

    def _results(self, sources: Sequence[Sequence[str]], num_best: int) -> list[Any]:
        longest = self._most - 1  # the model may add an end
        num_long = sum(len(tokens) > longest for tokens in sources)
        try:
            found: list[Any] = self._translator.translate_batch(
                [[*tokens[: longest - 1], tokens[-1]] if len(tokens) > longest else tokens for tokens in sources],
                beam_size=max(_USUAL_BEAM, num_best),
                num_hypotheses=num_best,
                return_scores=True,
                max_input_length=0,
                max_decoding_length=min(_MOST_WRITTEN, longest),
                max_batch_size=_BATCH_TOKENS,
                batch_type="tokens",
            )
        except RuntimeError as error:
            known = _POSITIONS.search(str(error))
            if known is None or not 2 < int(known[1]) < self._most:
                raise
            self._most = int(known[1])
            return self._results(sources, num_best)
        if num_long:
            logger.warning(
                "%s: %d lines have more than %d tokens; only their beginnings are translated",
                self.name,
                num_long,
                longest,
            )
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

        source_processor, target_processor = (
            SentencePieceProcessor(model_file=str(path or models[0])) for path in models
        )

        def text_of_pieces(tokens: list[str]) -> str:
            kept = [token for token in tokens if token not in self._special]
            # It makes characters of pieces that stand for bytes, and leaves a piece that it does not have as it is.
            return str(target_processor.decode_pieces(kept)).replace(_SPACE, " ").strip()

        return lambda line: [*source_processor.encode(line, out_type=str), *self._end], text_of_pieces


def _first_file(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


@contextmanager
def _refused(problem: str) -> Iterator[None]:
    """Turn what a library says of a file that it cannot read into a DataError."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise DataError(f"{problem}: {on_one_line(str(error), 300)}", hint="copy the whole folder again") from error
