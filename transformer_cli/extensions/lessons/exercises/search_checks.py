"""Checks of a learner's searches: greedy search on given paths, beam search where it finds what brute force finds."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right
from transformer_cli.extensions.lessons.exercises.catalogue import WrongAnswer


@dataclass(frozen=True)
class RandomModel:
    """`next_log_probs` of the exercises: it refuses beginnings for which no correct search asks."""

    function: str
    """The function that is checked, for messages."""
    seed: int
    num_tokens: int
    bos_id: int
    eos_id: int
    max_length: int
    favoured: Sequence[int] = ()
    """The tokens that are most probable at step 1, 2, ..."""
    has_end: bool = True
    """False: EOS has the probability 0."""
    _known: dict[tuple[int, ...], Tensor] = field(default_factory=dict)

    def __call__(self, ids: Any) -> Tensor:
        """(V,): the log-probability of each token to be the next one.

        Raises:
            WrongAnswer: no correct search asks for this beginning.
        """
        beginning = self._checked(ids)
        if beginning not in self._known:
            self._known[beginning] = self._log_probs(beginning)
        return self._known[beginning].clone()

    def _checked(self, ids: Any) -> tuple[int, ...]:
        given = tuple(int(one) for one in ids)
        if not given or given[0] != self.bos_id:
            raise WrongAnswer(
                f"{self.function}: the model is asked with {list(given)}, but the list must begin with bos_id ({self.bos_id}) "
                "and hold all ids so far",
                "next_log_probs([bos_id, *ids])",
            )
        if self.eos_id in given[1:]:
            raise WrongAnswer(
                f"{self.function}: EOS is forgotten: the model is asked what follows {list(given)}, but the target "
                f"ends at EOS ({self.eos_id})",
                "a target with EOS is finished; do not continue it",
            )
        if len(given) > self.max_length:
            raise WrongAnswer(
                f"{self.function}: max_length is forgotten: the model is asked for token {len(given)}, but max_length is {self.max_length}",
                "ask the model at most max_length times in a row",
            )
        return given

    def _log_probs(self, beginning: tuple[int, ...]) -> Tensor:
        number = self.seed
        for token in beginning:
            number = (number * 31 + token + 1) % 2**31
        logits = 1.5 * torch.randn(self.num_tokens, generator=torch.Generator().manual_seed(number))
        step = len(beginning) - 1
        if step < len(self.favoured):
            logits[self.favoured[step]] = logits.max() + 1
        if not self.has_end:
            logits[self.eos_id] = -torch.inf
        return logits.log_softmax(-1)


GREEDY_BOS_ID, GREEDY_EOS_ID, GREEDY_NUM_TOKENS, GREEDY_MAX_LENGTH = 1, 2, 8, 6
# The most probable tokens: EOS in the middle, never, at once, and directly behind the limit.
PATHS = (
    (5, 3, 3, 7, GREEDY_EOS_ID),
    (4, 6, 4, 5, 3, 7),
    (GREEDY_EOS_ID,),
    (3, 4, 5, 6, 7, 3, GREEDY_EOS_ID),
)
ANSWERS: tuple[list[int], ...] = ([5, 3, 3, 7], [4, 6, 4, 5, 3, 7], [], [3, 4, 5, 6, 7, 3])


def check_greedy_search(learner: Any) -> None:
    """Check `greedy_search`.

    Raises:
        WrongAnswer: a translation is wrong.
    """
    models = [
        RandomModel(
            "greedy_search",
            seed,
            GREEDY_NUM_TOKENS,
            GREEDY_BOS_ID,
            GREEDY_EOS_ID,
            GREEDY_MAX_LENGTH,
            path,
        )
        for seed, path in enumerate(PATHS)
    ]
    found = [learner.greedy_search(model, GREEDY_BOS_ID, GREEDY_EOS_ID, GREEDY_MAX_LENGTH) for model in models]
    require_right("greedy_search", found, ANSWERS, _mistakes_of_greedy_search(models))


def _mistakes_of_greedy_search(models: list[RandomModel]) -> list[Mistake]:
    with_end = [list(path[:GREEDY_MAX_LENGTH]) for path in PATHS]
    return [
        Mistake(
            "the result contains EOS, but EOS is a sign for the search and no part of the translation",
            "end the loop before EOS is appended",
            with_end,
        ),
        Mistake(
            "the result contains BOS, but BOS is no part of the translation",
            "return the list without its first id",
            [[GREEDY_BOS_ID, *answer] for answer in ANSWERS],
        ),
        Mistake(
            "the result contains BOS and EOS, but they are no part of the translation",
            "return only the ids between them",
            [[GREEDY_BOS_ID, *path] for path in with_end],
        ),
        Mistake(
            "the least probable token is taken, but the most probable one is wanted",
            "argmax, not argmin; log-probabilities are negative, and the largest one is nearest to 0",
            [_least_probable(model) for model in models],
        ),
        Mistake(
            "the search stops one token too early, after max_length - 1 tokens",
            "the result may have max_length tokens",
            [answer[: GREEDY_MAX_LENGTH - 1] for answer in ANSWERS],
        ),
        Mistake(
            "the first token is missing",
            "the first token that the model predicts already belongs to the translation",
            [answer[1:] for answer in ANSWERS],
        ),
    ]


def _least_probable(model: RandomModel) -> list[int]:
    ids: list[int] = []
    while len(ids) < GREEDY_MAX_LENGTH:
        token = int(model([GREEDY_BOS_ID, *ids]).argmin())
        if token == GREEDY_EOS_ID:
            break
        ids.append(token)
    return ids


BEAM_BOS_ID, BEAM_EOS_ID, BEAM_NUM_TOKENS, BEAM_MAX_LENGTH = 0, 1, 4, 5


class _Hypothesis(NamedTuple):
    ids: tuple[int, ...]
    """With EOS, if it is finished."""
    total: float
    last: float
    """The log-probability of the last token."""

    @property
    def is_finished(self) -> bool:
        return self.ids[-1:] == (BEAM_EOS_ID,)


@dataclass(frozen=True)
class BeamCase:
    """One model, and the options with which it is searched."""

    seed: int
    beam_size: int
    alpha: float
    has_end: bool = True

    def model(self) -> RandomModel:
        return RandomModel(
            "beam_search",
            self.seed,
            BEAM_NUM_TOKENS,
            BEAM_BOS_ID,
            BEAM_EOS_ID,
            BEAM_MAX_LENGTH,
            has_end=self.has_end,
        )

    def score(self, one: _Hypothesis) -> float:
        return one.total / self.penalty(one)

    def penalty(self, one: _Hypothesis) -> float:
        return float(((5 + len(one.ids)) / 6) ** self.alpha)


# Found by trying seeds: beam search finds what brute force finds, and each known mistake gives something else.
BEAM_CASES = (
    BeamCase(770, 3, 1.0),
    BeamCase(3249, 3, 1.0),
    BeamCase(3035, 3, 1.0),
    BeamCase(1413, 3, 2.0),
    BeamCase(3, 2, 0.6, has_end=False),
)

BeamScore = Callable[[BeamCase, _Hypothesis], float]


def check_beam_search(learner: Any) -> None:
    """Check `beam_search`.

    Raises:
        WrongAnswer: a translation is wrong.
    """
    found = [
        learner.beam_search(case.model(), BEAM_BOS_ID, BEAM_EOS_ID, case.beam_size, BEAM_MAX_LENGTH, case.alpha)
        for case in BEAM_CASES
    ]
    require_right(
        "beam_search",
        found,
        [best_by_brute_force(case) for case in BEAM_CASES],
        mistakes_of_beam_search(),
    )


def best_by_brute_force(case: BeamCase) -> list[int]:
    """The best of all finished targets; of all targets of the maximal length, if no target ends."""
    model = case.model()

    def grown(one: _Hypothesis) -> Iterator[_Hypothesis]:
        if one.is_finished or len(one.ids) == BEAM_MAX_LENGTH:
            yield one
            return
        for longer in _continuations(model, one):
            yield from grown(longer)

    every = [one for one in grown(_Hypothesis((), 0.0, 0.0)) if one.is_finished or not case.has_end]
    return _without_end(max(every, key=case.score))


class BeamForm(NamedTuple):
    """A form of the search; the defaults are right."""

    beam_size: int | None = None
    """Another beam size than that of the case."""
    order: BeamScore = lambda case, one: one.total
    """What decides which continuations are kept."""
    score: BeamScore = BeamCase.score
    """What decides which hypothesis is the translation."""
    keeps_finished: bool = True
    """Whether finished hypotheses are remembered."""
    takes_first: bool = False
    """Whether the first finished hypothesis is the translation."""
    finished_take_slots: bool = False
    """Whether finished hypotheses stay in the beam: another common form, which is right, too."""


def searched(case: BeamCase, form: BeamForm) -> list[int]:
    """The translation that a form of beam search finds."""
    model, width = case.model(), form.beam_size or case.beam_size
    beam: list[_Hypothesis] = [_Hypothesis((), 0.0, 0.0)]
    finished: list[_Hypothesis] = []
    for _ in range(BEAM_MAX_LENGTH):
        candidates = [longer for one in beam for longer in ([one] if one.is_finished else _continuations(model, one))]
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
    log_probs = model([BEAM_BOS_ID, *one.ids]).tolist()
    return [_Hypothesis((*one.ids, token), one.total + log_prob, log_prob) for token, log_prob in enumerate(log_probs)]


def _without_end(one: _Hypothesis) -> list[int]:
    return [token for token in one.ids if token != BEAM_EOS_ID]


def mistakes_of_beam_search() -> list[Mistake]:
    """The known mistakes."""

    def results(**wrong: Any) -> list[list[int]]:
        return [searched(case, BeamForm(**wrong)) for case in BEAM_CASES]

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
            [[*ids, BEAM_EOS_ID] if case.has_end else ids for ids, case in zip(every, BEAM_CASES, strict=True)],
        ),
        Mistake(
            "the result contains BOS, but BOS is no part of the translation",
            "return the ids behind BOS",
            [[BEAM_BOS_ID, *ids] for ids in every],
        ),
    ]
