"""Checks a learner's beam search where it must find the best of all targets, which brute force finds too."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right
from transformer_cli.extensions.lessons.exercises.checks.random_model import RandomModel

BOS_ID, EOS_ID, NUM_TOKENS, MAX_LENGTH = 0, 1, 4, 5


class _Hypothesis(NamedTuple):
    ids: tuple[int, ...]
    """With EOS, if it is finished."""
    total: float
    last: float
    """The log-probability of the last token."""

    @property
    def is_finished(self) -> bool:
        return self.ids[-1:] == (EOS_ID,)


@dataclass(frozen=True)
class Case:
    """One model, and the options with which it is searched."""

    seed: int
    beam_size: int
    alpha: float
    has_end: bool = True

    def model(self) -> RandomModel:
        return RandomModel(
            "beam_search", self.seed, NUM_TOKENS, BOS_ID, EOS_ID, MAX_LENGTH, has_end=self.has_end
        )

    def score(self, one: _Hypothesis) -> float:
        return one.total / self.penalty(one)

    def penalty(self, one: _Hypothesis) -> float:
        return float(((5 + len(one.ids)) / 6) ** self.alpha)


# Found by trying seeds: beam search finds what brute force finds, and each known mistake gives something else.
CASES = (
    Case(770, 3, 1.0), Case(3249, 3, 1.0), Case(3035, 3, 1.0), Case(1413, 3, 2.0),
    Case(3, 2, 0.6, has_end=False),
)  # fmt: skip

Score = Callable[[Case, _Hypothesis], float]


def check_beam_search(learner: Any) -> None:
    """Check `beam_search`.

    Raises:
        WrongAnswer: a translation is wrong.
    """
    found = [
        learner.beam_search(case.model(), BOS_ID, EOS_ID, case.beam_size, MAX_LENGTH, case.alpha)
        for case in CASES
    ]
    require_right("beam_search", found, [best_by_brute_force(case) for case in CASES], mistakes())


def best_by_brute_force(case: Case) -> list[int]:
    """The best of all finished targets; of all targets of the maximal length, if no target ends."""
    model = case.model()

    def grown(one: _Hypothesis) -> Iterator[_Hypothesis]:
        if one.is_finished or len(one.ids) == MAX_LENGTH:
            yield one
            return
        for longer in _continuations(model, one):
            yield from grown(longer)

    every = [one for one in grown(_Hypothesis((), 0.0, 0.0)) if one.is_finished or not case.has_end]
    return _without_end(max(every, key=case.score))


class Form(NamedTuple):
    """A form of the search; the defaults are right."""

    beam_size: int | None = None
    """Another beam size than that of the case."""
    order: Score = lambda case, one: one.total
    """What decides which continuations are kept."""
    score: Score = Case.score
    """What decides which hypothesis is the translation."""
    keeps_finished: bool = True
    """Whether finished hypotheses are remembered."""
    takes_first: bool = False
    """Whether the first finished hypothesis is the translation."""
    finished_take_slots: bool = False
    """Whether finished hypotheses stay in the beam: another common form, which is right, too."""


def search(case: Case, form: Form) -> list[int]:
    """The translation that a form of beam search finds."""
    model, width = case.model(), form.beam_size or case.beam_size
    beam: list[_Hypothesis] = [_Hypothesis((), 0.0, 0.0)]
    finished: list[_Hypothesis] = []
    for _ in range(MAX_LENGTH):
        candidates = [
            longer
            for one in beam
            for longer in ([one] if one.is_finished else _continuations(model, one))
        ]
        candidates.sort(key=functools.partial(form.order, case), reverse=True)
        kept = candidates[:width]
        finished += [one for one in kept if one.is_finished and one not in finished]
        if form.takes_first and finished:
            return _without_end(finished[0])
        beam = kept if form.finished_take_slots else [one for one in kept if not one.is_finished]
        if all(one.is_finished for one in beam):
            break
    open_ones = [one for one in beam if not one.is_finished]
    candidates = (finished or open_ones) if form.keeps_finished else open_ones
    best = max(candidates, key=functools.partial(form.score, case), default=None)
    return _without_end(best) if best else []


def _continuations(model: RandomModel, one: _Hypothesis) -> list[_Hypothesis]:
    log_probs = model([BOS_ID, *one.ids]).tolist()
    return [
        _Hypothesis((*one.ids, token), one.total + log_prob, log_prob)
        for token, log_prob in enumerate(log_probs)
    ]


def _without_end(one: _Hypothesis) -> list[int]:
    return [token for token in one.ids if token != EOS_ID]


def mistakes() -> list[Mistake]:
    """The known mistakes."""

    def results(**wrong: Any) -> list[list[int]]:
        return [search(case, Form(**wrong)) for case in CASES]

    every = results()
    return [
        Mistake(
            "finished hypotheses are dropped: the result is the best of those that are still open at the end",
            "remember each kept continuation that ends with EOS in a list of its own; choose the translation from it",
            results(keeps_finished=False),
        ),
        Mistake(
            "there is no length normalisation: the largest total wins, and short translations have larger totals",
            "compare total / ((5 + length) / 6) ** alpha",
            results(score=lambda case, one: one.total),
        ),
        Mistake(
            "the total is multiplied by the length penalty, but it must be divided by it",
            "totals are negative: dividing by a number above 1 makes a long hypothesis better",
            results(score=lambda case, one: one.total * case.penalty(one)),
        ),
        Mistake(
            "the total is divided by the length, but ((5 + length) / 6)^alpha is wanted",
            "the formula is equation 14 of Wu et al. 2016",
            results(score=lambda case, one: one.total / len(one.ids)),
        ),
        Mistake(
            "the result is that of greedy search: only one hypothesis is continued",
            "keep beam_size continuations in each step, not the best one alone",
            results(beam_size=1),
        ),
        Mistake(
            "the search stops at the first finished hypothesis, but a better one may finish later",
            "go on until no hypothesis is open, or for max_length steps",
            results(takes_first=True),
        ),
        Mistake(
            "the totals are not added up: a continuation is judged by its last token alone",
            "total of the continuation = total of the hypothesis + log-probability of the token",
            results(order=lambda case, one: one.last, score=lambda case, one: one.last / case.penalty(one)),
        ),
        Mistake(
            "the result contains EOS, but EOS is no part of the translation",
            "return the ids before EOS",
            [[*ids, EOS_ID] if case.has_end else ids for ids, case in zip(every, CASES, strict=True)],
        ),
        Mistake(
            "the result contains BOS, but BOS is no part of the translation",
            "return the ids behind BOS",
            [[BOS_ID, *ids] for ids in every],
        ),
    ]  # fmt: skip
