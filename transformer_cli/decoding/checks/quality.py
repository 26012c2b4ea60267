"""How far a translation can be trusted: what `tfm calibrate` has learned about the translations of one run.

A run without a calibration says nothing about the quality of its translations.
"""

import json
import logging
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint.run_folder import CALIBRATION_FILE
from transformer_cli.decoding.translation import Estimate, PartDetails, Translation
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import for_shell
from transformer_cli.text.seen_words import SeenWords

logger = logging.getLogger(__name__)

FORMAT = 3
_OLDER_FORMATS = (1, 2)
FEATURES = ("mean_log_prob", "agreement", "reverse")
"""Each is larger for a translation that is more likely to be good."""
_LEAST_LOG_PROB = -10.0  # nats
_NUM_PERCENTILES, _DIGITS = 101, 4
_SHORTEST = 1  # percentile
_ROW_OF_MARKS = re.compile(r"[^\w\s]{2,}")


class QualityPromise(NamedTuple):
    """What is promised of the translations that are marked green."""

    metric: str
    """The score of a sentence, such as chrf."""
    below: float
    """A translation with a lower score is bad."""
    share: float
    """At most this share of the green translations is bad..."""
    certainty: float
    """...with this probability over the choice of the sentences of the calibration."""

    def __str__(self) -> str:
        return (
            f"of the translations marked green, at most {100 * self.share:g} % are below {self.metric} "
            f"{self.below:g}, with {100 * self.certainty:g} % certainty, if the text is like that of the calibration"
        )


@dataclass(frozen=True, slots=True)
class Quality:
    """The estimate of one direction of a run: the sum of its features, each with a weight, as a probability."""

    weights: Mapping[str, float]
    """Of each feature; none is negative."""
    bias: float
    least_confidence: float
    """99 % of the calibration sentences are translated with at least this confidence (`Translation.least_confidence`)."""
    most_pieces: float
    """99 % of the calibration sentences have at most so many tokens for each of their words."""
    threshold: float | None
    """A translation with at least this probability is green; None: no threshold keeps the promise."""
    promise: QualityPromise
    conditions: Mapping[str, Any]
    """The checkpoint, the decoding settings and the text of the calibration."""
    num_samples: int = 0
    """With how many samples each translation is compared."""
    least_log_prob: float = -math.inf
    """A translation with a less probable token is not green: one wrong name or number changes nothing else."""
    unseen_words_are_green: bool = False
    """Whether a translation of words that training has not seen can be green: those of the calibration keep the promise."""
    reverse: str | None = None
    """The run of the reverse direction that the estimate reads; None: none."""
    finds_omissions: bool = False
    """Whether a translation that has nothing for words of its source has a doubt, as in the calibration; calibrations of earlier versions did not look for them."""
    words: SeenWords | None = None
    """The words of the calibration text, for a run that has not recorded what its training has seen; else None."""
    statistics: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The percentiles, 0 to 100, of each of the `STATISTICS` of the calibration text; if empty, no drift is found."""

    def probability(self, translation: Translation) -> float | None:
        """The estimated probability that a translation is good, 0 to 1; None without details, and for a blank line."""
        features = features_of(translation)
        if features is None:
            return None
        terms = (self.weights[name] * features[name] for name in FEATURES)
        return 1 / (1 + math.exp(-max(-500.0, self.bias + math.fsum(terms))))

    def warning_about(self, beam_size: int) -> str:
        """Why the promise may not count for a search; empty if nothing speaks against it."""
        measured = self.conditions.get("beam_size")
        if measured == beam_size:
            return ""
        return (
            f"the calibration was made with decoding.beam_size {measured}, but this translates with {beam_size}: the promise "
            "may not hold"
        )

    def estimate(self, translation: Translation) -> Estimate | None:
        """The probability, and whether the promise counts; None for what needs no translation, such as a blank line or a number.

        A text that stays as it is, because the model cannot translate it, has the probability 0.
        """
        probability = self.probability(translation)
        if probability is None:
            is_left = translation.is_untranslated or translation.is_partly_copied
            return Estimate(0.0, is_green=False) if is_left else None
        is_likely = self.threshold is not None and probability >= self.threshold
        return Estimate(probability, is_likely and self.can_be_green(translation))

    def can_be_green(self, translation: Translation) -> bool:
        """Whether nothing but its estimate can speak against a translation: see `can_be_green`, `is_too_short` and `least_log_prob`."""
        has_sure_tokens = least_log_prob_of(translation) >= self.least_log_prob
        return has_sure_tokens and can_be_green(translation) and not self.is_too_short(translation)

    def is_too_short(self, translation: Translation) -> bool:
        """Whether a sentence of a line has fewer tokens than 99 % of the lines of the calibration, which says nothing about it then.

        A model that has read hardly any line of one word writes *Ciao euro.* for *Hello.*, and no token is improbable enough to be noticed.
        """
        if not (lengths := self.statistics.get("length")) or translation.details is None:
            return False
        found = (len(part.source_ids) for part in translation.details.parts if len(part.target_ids))
        return min(found, default=0) < lengths[_SHORTEST]

    def why_not_green(self, translation: Translation) -> str:
        """What keeps a translation with an estimate from being green, in words; empty if it is green, or has no estimate."""
        estimate = translation.estimate
        if estimate is None or estimate.is_green:
            return ""
        if translation.doubts:
            return "it has doubts"
        if translation.is_untranslated or translation.is_partly_copied:
            return "text of it stays in its own language"
        if translation.is_in_pieces:
            return "it was made in pieces around protected spans"
        if self.is_too_short(translation):
            return "it has a sentence that is shorter than 99 % of the lines of the calibration, and the promise of green is made only for lines like those"
        if least_log_prob_of(translation) < self.least_log_prob:
            least = math.exp(self.least_log_prob)
            return (
                f"one of its tokens has a probability below {least:.2g}, and 97 % of the calibration have no such token"
            )
        if self.threshold is None:
            return "no threshold keeps the promise"
        return f"its probability is below {self.threshold:.3f}"


def can_be_green(translation: Translation) -> bool:
    """Whether nothing else speaks against a translation: a doubt, a text that stays as it is, or pieces around spans."""
    return not (
        translation.doubts or translation.is_untranslated or translation.is_partly_copied or translation.is_in_pieces
    )


def features_of(translation: Translation) -> dict[str, float] | None:
    """The features of a translation with details, by their names in `FEATURES`; None if it has no tokens.

    - mean_log_prob: the mean log-probability of the tokens of its worst part, in nats (Fomicheva et al. 2020, section 3.1);
    - agreement: the mean chrF against samples of the model, 0 to 1, of its worst part; 0 without samples (Fomicheva et al. 2020,
      section 3.2, compare samples of dropout);
    - reverse: the mean log-probability of the tokens of the source, by a model of the reverse direction that reads the translation;
      0 without such a model (Li and Jurafsky 2016 choose translations by it).
    """
    parts = _translated_parts(translation)
    if not parts:
        return None
    return {
        "mean_log_prob": min(float(part.explanation.token_log_probs.mean()) for part in parts),
        "agreement": min(part.agreement or 0.0 for part in parts),
        "reverse": max(_LEAST_LOG_PROB, translation.reverse_log_prob or 0.0),
    }


def least_log_prob_of(translation: Translation) -> float:
    """The log-probability of the least probable token of a translation with details, in nats, not below -10; minus infinity without tokens."""
    parts = _translated_parts(translation)
    least = min((float(part.explanation.token_log_probs.min()) for part in parts), default=-math.inf)
    return max(_LEAST_LOG_PROB, least) if parts else least


def _translated_parts(translation: Translation) -> list[PartDetails]:
    return [part for part in translation.details.parts if len(part.target_ids)] if translation.details else []


def read_quality(run: Path) -> dict[str, Quality]:
    """Direction, such as en-it -> the calibration of a run folder; empty if it has none.

    Raises:
        DataError: the file is damaged.
    """
    path = run / CALIBRATION_FILE
    if not path.is_file():
        return {}
    try:
        facts = json.loads(path.read_bytes())
        if facts["format"] in _OLDER_FORMATS:
            logger.warning("%s: an older calibration, which is not used; %s", path, _how_to_make_again(run))
            return {}
        if facts["format"] != FORMAT:
            raise DataError(f"{path}: format {facts['format']} is not known here", hint=_how_to_make_again(run))
        return {name: _quality(each) for name, each in facts["directions"].items()}
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}", hint=_how_to_make_again(run)) from error
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DataError(f"{path}: not a calibration, or damaged", hint=_how_to_make_again(run)) from error


def _how_to_make_again(run: Path) -> str:
    return f"make it again: tfm calibrate --run {for_shell(run)}"


def quality_json(directions: Mapping[str, Quality]) -> bytes:
    """The content of the file."""
    facts = {
        name: asdict(replace(each, words=None))
        | {
            "promise": each.promise._asdict(),
            "words": None if each.words is None else each.words.to_text(),
        }
        for name, each in directions.items()
    }
    text = json.dumps({"format": FORMAT, "directions": facts}, ensure_ascii=False, indent=1)
    return f"{text}\n".encode()


def _quality(facts: Mapping[str, Any]) -> Quality:
    conditions, promise = dict(facts["conditions"]), facts["promise"]
    int(conditions.get("sentences", 0))
    statistics = {name: tuple(map(_number, numbers)) for name, numbers in facts["statistics"].items()}
    if any(numbers and len(numbers) != _NUM_PERCENTILES for numbers in statistics.values()):
        raise ValueError(f"{_NUM_PERCENTILES} percentiles are expected")
    num_samples = int(facts["num_samples"])
    if num_samples < 0:
        raise ValueError("a number of samples is expected")
    share, certainty = _number(promise["share"]), _number(promise["certainty"])
    if not 0.0 < share < 1.0 or not 0.0 < certainty < 1.0:
        raise ValueError("a share and a certainty between 0 and 1 are expected")
    return Quality(
        weights={name: _number(facts["weights"][name]) for name in FEATURES},
        bias=_number(facts["bias"]),
        least_confidence=_number(facts["least_confidence"]),
        most_pieces=_number(facts["most_pieces"]),
        threshold=None if facts["threshold"] is None else _number(facts["threshold"]),
        promise=QualityPromise(str(promise["metric"]), _number(promise["below"]), share, certainty),
        conditions=conditions,
        num_samples=num_samples,
        unseen_words_are_green=bool(facts["unseen_words_are_green"]),
        reverse=None if (reverse := facts["reverse"]) is None else str(reverse),
        words=None if (words := facts["words"]) is None else SeenWords.from_text(words),
        least_log_prob=_number(facts["least_log_prob"]),
        finds_omissions=bool(facts.get("finds_omissions", False)),
        statistics=statistics,
    )


def _number(value: Any) -> float:
    if not math.isfinite(number := float(value)):
        raise ValueError("a finite number is expected")
    return number


def pieces_per_word(text: str, ids: Sequence[int]) -> float:
    """How many tokens a model reads for each word of a text: more than usual if it does not know the words.

    In a row of marks such as !!!!, each behind the first counts as a word.
    """
    num_marks = sum(len(row) - 1 for row in _ROW_OF_MARKS.findall(text))
    return len(ids) / max(1, len(text.split()) + num_marks)


# Drift: whether a text is like that of a calibration, of which alone something is promised.


STATISTICS = {
    "length": "source tokens in a line",
    "pieces_per_word": "source tokens for each word",
    "mean_log_prob": "mean log-probability of the tokens of a translation",
}
"""What is compared, with words for messages."""
FEWEST_LINES = 30
"""With fewer lines, nothing is said."""
_LEAST_DISTANCE = 0.15
_LOG_OF_ERROR = math.log(2 * len(STATISTICS) / 0.001)


def statistics_of(translation: Translation) -> dict[str, float] | None:
    """The `STATISTICS` of a line whose translation has details; None if no model has translated it."""
    parts = _translated_parts(translation)
    if not parts:
        return None
    num_source = sum(len(part.source_ids) for part in parts)
    log_probs = [float(each) for part in parts for each in part.explanation.token_log_probs]
    return {
        "length": float(num_source),
        "pieces_per_word": num_source / max(1, len(translation.source.split())),
        "mean_log_prob": math.fsum(log_probs) / len(log_probs),
    }


def percentiles(values: Sequence[float]) -> tuple[float, ...]:
    """The 101 percentiles of values, from the smallest to the largest one."""
    ordered, last = sorted(values), len(values) - 1
    return tuple(round(ordered[round(last * percent / 100)], _DIGITS) for percent in range(_NUM_PERCENTILES))


def largest_distance(text: Sequence[float], known: Sequence[float]) -> float:
    """The largest difference of two cumulative distributions, 0 to 1: the statistic of Kolmogorov and Smirnov.

    Args:
        text: values, in any order.
        known: values or percentiles of the other text, in rising order.
    """
    ordered = sorted(text)

    def distance(find: Callable[[Sequence[float], float], int], value: float) -> float:
        return abs(find(ordered, value) / len(ordered) - find(known, value) / len(known))

    places = {*ordered, *known}
    return max(max(distance(bisect_right, one), distance(bisect_left, one)) for one in places)


class Drift:
    """Looks at the lines of a text, and says at its end whether they are like those of a calibration.

    For each of the `STATISTICS` the test of Kolmogorov and Smirnov compares both texts; the chance that a text like that of the
    calibration is called different is at most 0.1 %. Distances below 0.15 do not count, however long the text is.
    """

    def __init__(self, quality: Quality) -> None:
        self._quality = quality
        self._values: dict[str, list[float]] = {name: [] for name in STATISTICS}

    def add(self, translations: Iterable[Translation]) -> None:
        """Look at the next lines; their translations have details."""
        for translation in translations:
            for name, value in (statistics_of(translation) or {}).items():
                self._values[name].append(value)

    def differences(self) -> dict[str, float]:
        """The statistics in which the text is another one, each with the largest distance."""
        num_known = int(self._quality.conditions.get("sentences", 0))
        num_lines = len(self._values["length"])
        if num_lines < FEWEST_LINES or not num_known:
            return {}
        # Asymptotic form for two samples; each statistic has its part of the allowed error.
        least = math.sqrt(_LOG_OF_ERROR / 2 * (num_lines + num_known) / (num_lines * num_known))
        found = {
            name: largest_distance([round(one, _DIGITS) for one in values], self._quality.statistics[name])
            for name, values in self._values.items()
            if self._quality.statistics.get(name)
        }
        return {name: one for name, one in found.items() if one > max(least, _LEAST_DISTANCE)}

    def report(self) -> None:
        """Warn if the text is not like that of the calibration."""
        found = self.differences()
        if not found:
            return
        details = "; ".join(
            f"{STATISTICS[name]}: {percentiles(self._values[name])[50]:.2f} in the middle, in the calibration "
            f"{self._quality.statistics[name][50]:.2f}"
            for name in found
        )
        logger.warning(
            "this text is not like that of the calibration (%s), so nothing is promised about it; calibrate with text of its kind: "
            "tfm calibrate --source FILE --reference FILE",
            details,
        )
