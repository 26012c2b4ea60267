"""The texts with which an exported model is checked: validation sentences of the run, given lines, or random words."""

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from transformer_cli.checkpoint import TrainedFiles
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.data.preparation import VALIDATION
from transformer_cli.data.text_file import read_validation_pairs
from transformer_cli.decoding import Request, TextPipeline
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer_file import SentencePieceLayout, is_hidden

NUM_CHECKED = 200
MAX_WORDS = 12


class CheckedText(NamedTuple):
    """A sentence as the other program gets it, and what our engine translates."""

    text: str
    """Normalised, with the tag of the target language directly before it if the model reads one."""
    request: Request


class CheckedTexts(NamedTuple):
    """Sentences, and where they come from."""

    texts: Sequence[CheckedText]
    origin: str
    """Such as "sentences of the validation split"."""


def checked_texts(
    files: TrainedFiles, pipeline: TextPipeline, lines: Sequence[str] | None
) -> CheckedTexts:
    """At most `NUM_CHECKED` different sentences.

    Args:
        files: of the run. Its folder holds the validation pairs; a checkpoint that was copied alone has none.
        pipeline: of the run, without a direction.
        lines: texts that the user gives; None: the validation pairs. Without these, random words of the vocabulary.

    Raises:
        DataError: no given line can be used.
    """
    num_directions = len(pipeline.data.directions)
    if lines is not None:
        given = ((line, number % num_directions) for number, line in enumerate(lines))
        chosen = _chosen(files, pipeline, given)
        if not chosen:
            raise DataError("--input has no sentence that the model can translate")
        return CheckedTexts(chosen, "given sentences")
    stored = _stored(files)
    if stored and (chosen := _chosen(files, pipeline, iter(stored))):
        return CheckedTexts(chosen, "sentences of the validation split")
    random_lines = _random_lines(files, num_directions)
    return CheckedTexts(_chosen(files, pipeline, random_lines), "texts of random words")


def _chosen(
    files: TrainedFiles, pipeline: TextPipeline, lines: Iterator[tuple[str, int]]
) -> list[CheckedText]:
    sentences = dict.fromkeys(
        sentence for line, number in lines for sentence in _sentences(files, pipeline, line, number)
    )
    return [*islice(sentences, NUM_CHECKED)]


def _sentences(
    files: TrainedFiles, pipeline: TextPipeline, line: str, direction: int
) -> Iterator[CheckedText]:
    """The sentences of a line; without those that are cut, and those in which a special token stands as text.

    Also without those in which an unknown run of characters happens to be a piece of the other language in the shared
    vocabulary of an imported model: only SentencePiece programs look it up there.
    """
    tokenizer = files.source_tokenizer
    of_other_side = _pieces_of_other_side(tokenizer)
    prepared = replace(pipeline, direction=direction).prepare(line)
    for text, request in zip(prepared.texts, prepared.parts, strict=True):
        if len(request.ids) == pipeline.max_length or tokenizer.eos_id == request.ids[0]:
            continue
        if any(special in text for special in tokenizer.special_tokens):
            continue
        if not of_other_side.isdisjoint(request.ids):
            continue
        tag = tokenizer.entries[request.ids[0]] if request.ids[0] in tokenizer.tag_ids else ""
        yield CheckedText(tag + text, request)


@functools.lru_cache(maxsize=2)
def _pieces_of_other_side(tokenizer: Tokenizer) -> frozenset[int]:
    if not isinstance(tokenizer.parts.layout, SentencePieceLayout):
        return frozenset()
    names = enumerate(name for name, _ in tokenizer.parts.model["vocab"])
    first = len(tokenizer.special_tokens)
    return frozenset(index for index, name in names if index >= first and is_hidden(name))


def _stored(files: TrainedFiles) -> list[tuple[str, int]]:
    """Source texts of the run's validation pairs, and their directions."""
    run = RunFolder.of_checkpoint(files.folder)
    if run is None:
        return []
    try:
        pairs = read_validation_pairs(run.data_folder / VALIDATION)
    except (OSError, ValueError, TypeError):
        return []  # an older run, or one whose data was deleted
    return [(pair.source, pair.direction) for pair in pairs]


def _random_lines(files: TrainedFiles, num_directions: int) -> Iterator[tuple[str, int]]:
    """Lines of 1 to `MAX_WORDS` random entries of the source vocabulary."""
    generator, tokenizer = random.Random(0), files.source_tokenizer
    ordinary = range(len(tokenizer.special_tokens), tokenizer.vocab_size)
    for number in range(2 * NUM_CHECKED):
        ids = generator.choices(ordinary, k=1 + number % MAX_WORDS)
        yield tokenizer.decode(ids), number % num_directions
