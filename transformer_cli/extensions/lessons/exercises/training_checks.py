"""Checks of a learner's functions of training: the smoothed loss and the learning rate; and of BLEU."""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.extensions.lessons.exercises.answers import (
    Mistake,
    require_gradient,
    require_right,
)
from transformer_cli.extensions.lessons.exercises.catalogue import WrongAnswer


class _LossCase(NamedTuple):
    logits: Tensor
    target_ids: Tensor
    pad_id: int
    epsilon: float

    @property
    def is_real(self) -> Tensor:
        return self.target_ids != self.pad_id

    def labels(self, truth_weight: float, other_weight: float) -> Tensor:
        """(B, T, V): `truth_weight` for the true token, `other_weight` for the others."""
        is_true = F.one_hot(self.target_ids, self.logits.size(-1)).bool()
        return torch.where(is_true, truth_weight, other_weight)

    def losses(self, labels: Tensor | None = None) -> Tensor:
        """(B, T): the cross-entropy of every position, padding included."""
        num_tokens = self.logits.size(-1)
        if labels is None:
            share = self.epsilon / num_tokens
            labels = self.labels(1 - self.epsilon + share, share)
        return -(labels * self.logits.log_softmax(-1)).sum(-1)

    def mean(self, labels: Tensor) -> Tensor:
        return self.losses(labels)[self.is_real].mean()


def check_label_smoothing(learner: Any) -> None:
    """Check `smoothed_loss`.

    Raises:
        WrongAnswer: the loss is wrong.
    """
    cases = _loss_cases()
    found = [learner.smoothed_loss(case.logits.clone(), case.target_ids.clone(), *case[2:]) for case in cases]
    expected = [
        F.cross_entropy(
            case.logits.flatten(0, 1),
            case.target_ids.flatten(),
            ignore_index=case.pad_id,
            label_smoothing=case.epsilon,
        )
        for case in cases
    ]
    require_right("smoothed_loss", found, expected, [*_mistakes_of_labels(cases), *_mistakes_of_mean(cases)])
    first = cases[0]
    require_gradient("smoothed_loss", learner.smoothed_loss(first.logits.requires_grad_(), *first[1:]))


def _loss_cases() -> list[_LossCase]:
    logits = 2 * torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(13))
    first = torch.tensor([[4, 2, 6, 1, 3], [5, 3, 0, 0, 0], [1, 0, 0, 0, 0]])
    second = torch.tensor([[0, 2, 6, 1, 3], [5, 2, 1, 3, 3], [6, 3, 3, 3, 3]])
    return [_LossCase(logits, first, 0, 0.1), _LossCase(logits.flip(0), second, 3, 0.3)]


def _losses(cases: list[_LossCase], loss: Callable[[_LossCase, int], Tensor]) -> list[Tensor]:
    return [loss(case, case.logits.size(-1)) for case in cases]


def _mistakes_of_labels(cases: list[_LossCase]) -> list[Mistake]:
    results = functools.partial(_losses, cases)
    return [
        Mistake(
            "the labels are not smoothed",
            "the true token gets 1 - epsilon + epsilon / V, each other token epsilon / V",
            results(lambda case, num: case.mean(case.labels(1.0, 0.0))),
        ),
        Mistake(
            "the true token has the wrong share, 1 - epsilon: it must also get its part of epsilon, epsilon / V",
            "the shares of a label have the sum 1",
            results(lambda case, num: case.mean(case.labels(1 - case.epsilon, case.epsilon / num))),
        ),
        Mistake(
            "epsilon is spread over the V - 1 other tokens, but here all V tokens get a part, the true one included",
            "the true token gets 1 - epsilon + epsilon / V, each other token epsilon / V",
            results(lambda case, num: case.mean(case.labels(1 - case.epsilon, case.epsilon / (num - 1)))),
        ),
        Mistake(
            "the true token has the wrong share: epsilon and 1 - epsilon are exchanged",
            "the true token gets 1 - epsilon + epsilon / V",
            results(
                lambda case, num: case.mean(
                    case.labels(case.epsilon + (1 - case.epsilon) / num, (1 - case.epsilon) / num)
                )
            ),
        ),
    ]


def _mistakes_of_mean(cases: list[_LossCase]) -> list[Mistake]:
    results = functools.partial(_losses, cases)
    per_token = "divide the sum over all real tokens of the batch by their number, once"
    return [
        Mistake(
            "padding is a part of the loss: the positions with pad_id are added and counted as tokens",
            "is_real = target_ids != pad_id; use losses[is_real]",
            results(lambda case, num: case.losses().mean()),
        ),
        Mistake(
            "padding is counted: the sum is divided by B * T, but it must be divided by the number of real tokens",
            "divide by (target_ids != pad_id).sum()",
            results(lambda case, num: case.losses()[case.is_real].sum() / case.target_ids.numel()),
        ),
        Mistake(
            "padding is added to the sum, although it is not counted",
            "use the losses of real tokens only: losses[target_ids != pad_id]",
            results(lambda case, num: case.losses().sum() / case.is_real.sum()),
        ),
        Mistake(
            "the mean is per sentence, and then over sentences, so a token of a short sentence weighs more",
            per_token,
            results(lambda case, num: ((case.losses() * case.is_real).sum(1) / case.is_real.sum(1)).mean()),
        ),
        Mistake(
            "the mean is per sentence of the batch: the sum is divided by B, but it must be divided by the number of real tokens",
            per_token,
            results(lambda case, num: case.losses()[case.is_real].sum() / len(case.logits)),
        ),
        Mistake(
            "the result is the sum, not the mean",
            per_token,
            results(lambda case, num: case.losses()[case.is_real].sum()),
        ),
        Mistake(
            "the sign is wrong: a loss is minus a log-probability",
            "log-probabilities are negative, so the loss is positive",
            results(lambda case, num: -case.losses()[case.is_real].mean()),
        ),
    ]


# step, d_model, warmup_steps
RATE_CASES = (
    (1, 512, 4000),
    (2, 512, 4000),
    (4000, 512, 4000),
    (4001, 512, 4000),
    (16000, 512, 4000),
    (50, 128, 100),
    (400, 128, 100),
)


def check_warmup(learner: Any) -> None:
    """Check `learning_rate`.

    Raises:
        WrongAnswer: the rate is wrong.
    """
    rates = [learner.learning_rate(step, 512, 4000) for step in range(1, 11)]
    for step, (rate, after) in enumerate(itertools.pairwise(rates), start=1):
        if isinstance(rate, int | float) and rate == after:
            raise WrongAnswer(
                f"learning_rate: the rate of updates {step} and {step + 1} is the same: it must change with every update, "
                "not with every epoch",
                "compute it from `step` itself, without rounding and without a number of epochs",
            )
    found = [learner.learning_rate(*case) for case in RATE_CASES]
    require_right("learning_rate", found, _rates(_right_rate), _mistakes_of_warmup(), RATE_CASES)


def _right_rate(step: int, d_model: int, warmup_steps: int) -> float:
    peak = 1 / math.sqrt(d_model * warmup_steps)
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(warmup_steps / step)


def _rates(rate: Callable[[int, int, int], float]) -> list[float]:
    return [float(rate(*case)) for case in RATE_CASES]


def _mistakes_of_warmup() -> list[Mistake]:
    return [
        Mistake(
            "the rate never falls: after the warm-up it stays at its peak, but it must fall with step^(-0.5)",
            "min(step**-0.5, step * warmup_steps**-1.5)",
            _rates(lambda step, width, warmup: width**-0.5 * min(warmup**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "the rate rises for ever: the part that falls, step^(-0.5), is missing",
            "min(step**-0.5, step * warmup_steps**-1.5)",
            _rates(lambda step, width, warmup: width**-0.5 * step * warmup**-1.5),
        ),
        Mistake(
            "there is no warm-up: the rate falls from the first update on",
            "before warmup_steps, step * warmup_steps**-1.5 is the smaller one of the two",
            _rates(lambda step, width, warmup: width**-0.5 * step**-0.5),
        ),
        Mistake(
            "the larger one of the two curves is taken, but the smaller one is wanted (max instead of min)",
            "before warmup_steps, the curve that rises is the smaller one",
            _rates(lambda step, width, warmup: width**-0.5 * max(step**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "the factor d_model^(-0.5) is missing",
            "multiply by d_model**-0.5: a wider model gets a smaller rate",
            _rates(lambda step, width, warmup: min(step**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "a wider model gets a larger rate: the factor is d_model^0.5, but d_model^(-0.5) is wanted",
            "multiply by d_model**-0.5",
            _rates(lambda step, width, warmup: width**0.5 * min(step**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "the two curves do not meet at warmup_steps: the exponent of warmup_steps is -0.5, but -1.5 is wanted",
            "step * warmup_steps**-1.5",
            _rates(lambda step, width, warmup: width**-0.5 * min(step**-0.5, step * warmup**-0.5)),
        ),
        Mistake(
            "the rate is that of the next update: step counts from 1, so nothing is added to it",
            "use `step`, not step + 1",
            _rates(lambda step, width, warmup: _right_rate(step + 1, width, warmup)),
        ),
        Mistake(
            "the part that rises is that of the update after this one: step counts from 1, so nothing is added to it",
            "step * warmup_steps**-1.5",
            _rates(lambda step, width, warmup: width**-0.5 * min(step**-0.5, (step + 1) * warmup**-1.5)),
        ),
        Mistake(
            "the part that rises is that of the update before this one: step counts from 1, so nothing is taken from it",
            "step * warmup_steps**-1.5",
            _rates(lambda step, width, warmup: width**-0.5 * min(step**-0.5, (step - 1) * warmup**-1.5)),
        ),
        Mistake(
            "the part that falls is that of the next update: step counts from 1, so nothing is added to it",
            "step**-0.5",
            _rates(lambda step, width, warmup: width**-0.5 * min((step + 1) ** -0.5, step * warmup**-1.5)),
        ),
    ]


Words = list[list[str]]
REFERENCES = [
    line.split()
    for line in (
        "the cat sits on the old mat in front of the house",
        "she bought three red apples at the market on monday",
        "we would like a room for two nights please",
    )
]
SHORT = [
    line.split()
    for line in (
        "the cat sits on the mat the the",
        "she bought three red apples at market",
        "we would like a room room for two",
    )
]
LONG = [
    line.split()
    for line in (
        "the the cat sits on the old old mat in front of the the house of the house today",
        "yesterday she bought three red red apples at the big market on monday on monday",
        "we would like a room for two two nights please thank you",
    )
]
STRANGE = [line.split() for line in ("a cat on a mat", "she bought apples", "two nights please")]
BLEU_CASES: tuple[tuple[Words, Words], ...] = (
    (SHORT, REFERENCES),
    (LONG, REFERENCES),
    (REFERENCES, REFERENCES),
)


def check_bleu(learner: Any) -> None:
    """Check `corpus_bleu`.

    Raises:
        WrongAnswer: a score is wrong.
    """
    found = [learner.corpus_bleu(*([*map(list, side)] for side in case)) for case in BLEU_CASES]
    require_right("corpus_bleu", found, [_by_sacrebleu(*case) for case in BLEU_CASES], _mistakes_of_bleu())
    without_match = learner.corpus_bleu([*map(list, STRANGE)], [*map(list, REFERENCES)])
    if not isinstance(without_match, int | float) or without_match != 0:
        raise WrongAnswer(
            f"corpus_bleu: if no n-gram of 4 words matches, BLEU is 0, but the result is {without_match}",
            "without smoothing, log(0) is minus infinity; return 0.0 as soon as a precision is 0",
        )


def _by_sacrebleu(hypotheses: Words, references: Words) -> float:
    texts, wanted = ([" ".join(words) for words in side] for side in (hypotheses, references))
    bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    return float(bleu.corpus_score(texts, [wanted]).score)


class _BleuOptions(NamedTuple):
    """Known mistakes of BLEU; the defaults are right."""

    clips: bool = True
    brevity: str = "short"
    """Which hypotheses are punished: short, long, or none."""
    mean: str = "geometric"
    max_n: int = 4
    of: str = "hypotheses"
    """The n-grams by whose number the matches are divided."""
    distinct: bool = False
    """Whether each n-gram counts once."""


def _bleu(hypotheses: Words, references: Words, options: _BleuOptions) -> float:
    precisions = []
    for n in range(1, options.max_n + 1):
        matched = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = (_counts(words, n, options) for words in (hypothesis, reference))
            matched += sum(min(k, theirs[one]) if options.clips else k for one, k in ours.items() if theirs[one])
            total += (ours if options.of == "hypotheses" else theirs).total()
        precisions.append(matched / total if total else 0.0)
    if options.mean == "arithmetic":
        mean = sum(precisions) / len(precisions)
    elif min(precisions) == 0.0:
        return 0.0
    else:
        mean = math.exp(sum(map(math.log, precisions)) / len(precisions))
    return 100 * mean * _brevity(hypotheses, references, options.brevity)


def _counts(words: list[str], n: int, options: _BleuOptions) -> Counter[tuple[str, ...]]:
    ngrams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return Counter(set(ngrams) if options.distinct else ngrams)


def _brevity(hypotheses: Words, references: Words, which: str) -> float:
    ours, theirs = (sum(map(len, side)) for side in (hypotheses, references))
    if which == "none":
        return 1.0
    return min(1.0, math.exp(1 - (theirs / ours if which == "short" else ours / theirs)))


def _mean_of_sentences(hypotheses: Words, references: Words) -> float:
    scores = [_bleu([one], [other], _BleuOptions()) for one, other in zip(hypotheses, references, strict=True)]
    return sum(scores) / len(scores)


def _mistakes_of_bleu() -> list[Mistake]:
    def results(**wrong: Any) -> list[float]:
        return [_bleu(*case, _BleuOptions(**wrong)) for case in BLEU_CASES]

    return [
        Mistake(
            "the brevity penalty is missing: translations that leave words out are not punished",
            "multiply by exp(1 - r / c) where the hypotheses have fewer words than the references (c < r)",
            results(brevity="none"),
        ),
        Mistake(
            "the brevity penalty is the wrong way round: long translations are punished, and short ones are not",
            "c counts the words of the hypotheses, r those of the references",
            results(brevity="long"),
        ),
        Mistake(
            "the counts are not clipped: an n-gram that a translation repeats matches each time",
            "an n-gram matches at most as often as it occurs in the reference: min of the two counts",
            results(clips=False),
        ),
        Mistake(
            "each n-gram is counted once: repeated n-grams are lost in a set",
            "count with collections.Counter, not with set",
            results(distinct=True),
        ),
        Mistake(
            "the result is the mean of the sentences' BLEU, but the counts of all sentences must be added first",
            "add matched and total n-grams over the corpus; divide once for each n",
            [_mean_of_sentences(*case) for case in BLEU_CASES],
        ),
        Mistake(
            "the mean of the precisions is arithmetic, but the geometric one is wanted",
            "exp of the mean of the logarithms",
            results(mean="arithmetic"),
        ),
        Mistake(
            "only single words are compared, but n-grams of 1 to 4 words are wanted",
            "for n in range(1, 5)",
            results(max_n=1),
        ),
        Mistake(
            "n-grams of 1 to 3 words are compared, but those of 4 words are wanted, too",
            "range(1, 5) ends with 4",
            results(max_n=3),
        ),
        Mistake(
            "the matches are divided by the n-grams of the references (recall), but precision is wanted",
            "divide by the number of n-grams of the hypotheses",
            results(of="references"),
        ),
        Mistake(
            "the result is between 0 and 1, but it must be between 0 and 100",
            "multiply by 100",
            [_bleu(*case, _BleuOptions()) / 100 for case in BLEU_CASES],
        ),
    ]
