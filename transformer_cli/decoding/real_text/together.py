"""Batches for many jobs: each job asks for translations, and one call translates the texts of all waiting jobs."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple

from transformer_cli.decoding.text_pipeline import Translation


class PlacedText(NamedTuple):
    """A text to translate, and its place in the input: a line, or a part of one."""

    text: str
    prefix: str = ""
    """The words with which its translation begins; empty: any."""
    line: int = 0
    """The number of its line, from 0."""
    part: int = 0
    """The number of its first part in its line; other texts of the line have other numbers."""


TranslateTexts = Callable[[Sequence[PlacedText]], list[Translation]]
Job = Generator[list[PlacedText], list[Translation], Translation]
"""Yields texts, receives their translations, and returns a translation at its end. It may yield several times."""


def finish_together(jobs: Iterable[Job], translate: TranslateTexts) -> list[Translation]:
    """The result of each job, in order.

    In each round the texts of all unfinished jobs are translated in one call, so that batches are full.

    Args:
        jobs: not started.
        translate: gives one translation per text, in order.
    """
    results: dict[int, Translation] = {}
    waiting: list[tuple[int, Job, list[PlacedText]]] = []
    for index, job in enumerate(jobs):
        _advance(index, job, None, results, waiting)
    while waiting:
        translations = iter(translate([text for _, _, texts in waiting for text in texts]))
        round_of_jobs, waiting = waiting, []
        for index, job, texts in round_of_jobs:
            answers = [next(translations) for _ in texts]
            _advance(index, job, answers, results, waiting)
    return [results[index] for index in range(len(results))]


def _advance(
    index: int,
    job: Job,
    answers: list[Translation] | None,
    results: dict[int, Translation],
    waiting: list[tuple[int, Job, list[PlacedText]]],
) -> None:
    try:
        texts = next(job) if answers is None else job.send(answers)
    except StopIteration as finished:
        results[index] = finished.value
    else:
        waiting.append((index, job, texts))
