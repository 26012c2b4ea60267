"""Checks a learner's BLEU against sacrebleu."""

import math
from collections import Counter
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right
from transformer_cli.extensions.lessons.exercises.outcomes import WrongAnswer

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
CASES: tuple[tuple[Words, Words], ...] = (
    (SHORT, REFERENCES),
    (LONG, REFERENCES),
    (REFERENCES, REFERENCES),
)


def check_bleu(learner: Any) -> None:
    """Check `corpus_bleu`.

    Raises:
        WrongAnswer: a score is wrong.
    """
    found = [learner.corpus_bleu(*([*map(list, side)] for side in case)) for case in CASES]
    require_right("corpus_bleu", found, [_by_sacrebleu(*case) for case in CASES], _mistakes())
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


class _Options(NamedTuple):
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


def _bleu(hypotheses: Words, references: Words, options: _Options) -> float:
    precisions = []
    for n in range(1, options.max_n + 1):
        matched = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = (_counts(words, n, options) for words in (hypothesis, reference))
            matched += sum(
                min(k, theirs[one]) if options.clips else k
                for one, k in ours.items()
                if theirs[one]
            )
            total += (ours if options.of == "hypotheses" else theirs).total()
        precisions.append(matched / total if total else 0.0)
    if options.mean == "arithmetic":
        mean = sum(precisions) / len(precisions)
    elif min(precisions) == 0.0:
        return 0.0
    else:
        mean = math.exp(sum(map(math.log, precisions)) / len(precisions))
    return 100 * mean * _brevity(hypotheses, references, options.brevity)


def _counts(words: list[str], n: int, options: _Options) -> Counter[tuple[str, ...]]:
    ngrams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return Counter(set(ngrams) if options.distinct else ngrams)


def _brevity(hypotheses: Words, references: Words, which: str) -> float:
    ours, theirs = (sum(map(len, side)) for side in (hypotheses, references))
    if which == "none":
        return 1.0
    return min(1.0, math.exp(1 - (theirs / ours if which == "short" else ours / theirs)))


def _mean_of_sentences(hypotheses: Words, references: Words) -> float:
    scores = [
        _bleu([one], [other], _Options()) for one, other in zip(hypotheses, references, strict=True)
    ]
    return sum(scores) / len(scores)


def _mistakes() -> list[Mistake]:
    def results(**wrong: Any) -> list[float]:
        return [_bleu(*case, _Options(**wrong)) for case in CASES]

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
            [_mean_of_sentences(*case) for case in CASES],
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
            [_bleu(*case, _Options()) / 100 for case in CASES],
        ),
    ]  # fmt: skip
