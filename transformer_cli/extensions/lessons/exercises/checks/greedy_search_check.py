"""Checks a learner's greedy search with models whose most probable tokens are given."""

from typing import Any

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right
from transformer_cli.extensions.lessons.exercises.checks.random_model import RandomModel

BOS_ID, EOS_ID, NUM_TOKENS, MAX_LENGTH = 1, 2, 8, 6
# The most probable tokens: EOS in the middle, never, at once, and directly behind the limit.
PATHS = ((5, 3, 3, 7, EOS_ID), (4, 6, 4, 5, 3, 7), (EOS_ID,), (3, 4, 5, 6, 7, 3, EOS_ID))
ANSWERS: tuple[list[int], ...] = ([5, 3, 3, 7], [4, 6, 4, 5, 3, 7], [], [3, 4, 5, 6, 7, 3])


def check_greedy_search(learner: Any) -> None:
    """Check `greedy_search`.

    Raises:
        WrongAnswer: a translation is wrong.
    """
    models = [
        RandomModel("greedy_search", seed, NUM_TOKENS, BOS_ID, EOS_ID, MAX_LENGTH, path)
        for seed, path in enumerate(PATHS)
    ]
    found = [learner.greedy_search(model, BOS_ID, EOS_ID, MAX_LENGTH) for model in models]
    require_right("greedy_search", found, ANSWERS, _mistakes(models))


def _mistakes(models: list[RandomModel]) -> list[Mistake]:
    with_end = [list(path[:MAX_LENGTH]) for path in PATHS]
    return [
        Mistake(
            "the result contains EOS, but EOS is a sign for the search and no part of the translation",
            "end the loop before EOS is appended",
            with_end,
        ),
        Mistake(
            "the result contains BOS, but BOS is no part of the translation",
            "return the list without its first id",
            [[BOS_ID, *answer] for answer in ANSWERS],
        ),
        Mistake(
            "the result contains BOS and EOS, but they are no part of the translation",
            "return only the ids between them",
            [[BOS_ID, *path] for path in with_end],
        ),
        Mistake(
            "the least probable token is taken, but the most probable one is wanted",
            "argmax, not argmin; log-probabilities are negative, and the largest one is nearest to 0",
            [_least_probable(model) for model in models],
        ),
        Mistake(
            "the search stops one token too early, after max_length - 1 tokens",
            "the result may have max_length tokens",
            [answer[: MAX_LENGTH - 1] for answer in ANSWERS],
        ),
        Mistake(
            "the first token is missing",
            "the first token that the model predicts already belongs to the translation",
            [answer[1:] for answer in ANSWERS],
        ),
    ]


def _least_probable(model: RandomModel) -> list[int]:
    ids: list[int] = []
    while len(ids) < MAX_LENGTH:
        token = int(model([BOS_ID, *ids]).argmin())
        if token == EOS_ID:
            break
        ids.append(token)
    return ids
