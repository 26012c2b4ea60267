"""The exercises in their order: their names, their functions, and where the answers are."""

from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from transformer_cli.process.errors import UsageError

FINALE = "finale"
MAX_SECONDS = 20.0
"""For the check of one exercise; a right solution takes less than a second."""
SOLUTIONS = Path(__file__).parent / "solutions"


class WrongAnswer(Exception):
    """A function of the learner gives a wrong result.

    Args:
        message: the misconception, or what was found and what was expected.
        hint: what to change; None: the first step of the exercise.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Exercise(NamedTuple):
    """One exercise: a file with functions to write."""

    number: int
    name: str
    functions: tuple[str, ...]
    """The functions of the file, in their order."""
    paper: str
    """The section of "Attention Is All You Need"."""
    answered_by: str
    """The file of this package that does the same work in training and translating."""
    place_of_check: str
    """The function that checks it, as `module:name`; PyTorch is imported only when an exercise is checked."""
    first_step: str
    """A hint for a learner who has not begun, or whose mistake is not a known one."""

    def load_check(self) -> Callable[[Any], None]:
        """The check, which takes the module of a learner, and raises WrongAnswer."""
        return resolve_name(f"transformer_cli.extensions.lessons.exercises.{self.place_of_check}")

    @property
    def file_name(self) -> str:
        return f"{self.number:02d}_{self.name}.py"

    @property
    def solution_file(self) -> Path:
        return SOLUTIONS / f"{self.name}.py"


EXERCISES = (
    Exercise(
        1,
        "causal_mask",
        ("causal_mask",),
        "3.2.3",
        "model/layers.py",
        "model_checks:check_causal_mask",
        "write the mask for T = 3 on paper first; torch.ones, torch.tril, or a comparison of two torch.arange can build it",
    ),
    Exercise(
        2,
        "scaled_attention",
        ("attention",),
        "3.2.1",
        "model/layers.py",
        "model_checks:check_attention",
        "four steps: scores = queries @ keys.transpose(-2, -1), the scale, the mask (masked_fill with -inf), "
        "the softmax over the last axis; then weights @ values",
    ),
    Exercise(
        3,
        "heads",
        ("split_heads", "join_heads"),
        "3.2.2",
        "model/layers.py",
        "model_checks:check_heads",
        "cut the last axis into two axes (unflatten, or view), then exchange two axes (transpose); join_heads undoes both in the opposite order",
    ),
    Exercise(
        4,
        "sinusoids",
        ("sinusoids",),
        "3.5",
        "model/layers.py",
        "model_checks:check_sinusoids",
        "make the angles first, one column for each pair (T, D/2); then write their sines into the columns 0, 2, 4, ... and their cosines into 1, 3, 5, ...",
    ),
    Exercise(
        5,
        "label_smoothing",
        ("smoothed_loss",),
        "5.4",
        "model/loss.py",
        "training_checks:check_label_smoothing",
        "compute log_softmax once; the loss of a token is (1 - epsilon) times the loss of the true token, plus "
        "epsilon times the mean loss of all V tokens",
    ),
    Exercise(
        6,
        "warmup",
        ("learning_rate",),
        "5.3",
        "training/optimizers.py",
        "training_checks:check_warmup",
        "the smaller one of two curves is taken; draw both for warmup_steps = 10: which one is smaller before step 10?",
    ),
    Exercise(
        7,
        "greedy_search",
        ("greedy_search",),
        "3",
        "decoding/search/single_path.py",
        "search_checks:check_greedy_search",
        "a loop of at most max_length steps; each step asks the model with [bos_id, *ids], and appends one id or ends",
    ),
    Exercise(
        8,
        "beam_search",
        ("beam_search",),
        "6.1",
        "decoding/search/beam.py",
        "search_checks:check_beam_search",
        "keep two lists of pairs (ids, total): the open and the finished hypotheses; the docstring has the steps",
    ),
    Exercise(
        9,
        "bleu",
        ("corpus_bleu",),
        "6.1",
        "evaluation/metrics.py",
        "training_checks:check_bleu",
        "collections.Counter counts n-grams, and the & of two counters takes the smaller count of each",
    ),
)


def exercises_named(names: Sequence[str]) -> tuple[Exercise, ...]:
    """The exercises with these names, or with these numbers or file names; all for no name.

    Raises:
        UsageError: no exercise has one of the names.
    """
    return tuple(exercise_named(name) for name in names) if names else EXERCISES


def exercise_named(name: str) -> Exercise:
    """The exercise with this name, number or file name.

    Raises:
        UsageError: there is none.
    """
    wanted = Path(name).name.removesuffix(".py")
    for one in EXERCISES:
        if wanted in (one.name, *one.functions, str(one.number), one.file_name.removesuffix(".py")):
            return one
    raise UsageError(
        f"{name}: no exercise has this name",
        hint=f"the exercises are {', '.join(one.name for one in EXERCISES)}",
    )
