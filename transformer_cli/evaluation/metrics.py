"""Scores of translations against references, by name, each with its signature and its confidence interval."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple

import jiwer
import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric, Signature
from sacrebleu.metrics.base import Score as SacrebleuScore
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from transformer_cli import __version__
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.text.languages import (
    UNKNOWN_LANGUAGE,
    guess_language,
    name_of_language,
    plain_code,
)
from transformer_cli.text.normalization import UNK

logger = logging.getLogger(__name__)

# Scores that are a share: errors per unit (CER, WER), exact matches per line, and unknown words per word.
#
# They are subclasses of sacrebleu's Metric, so its statistics, references and signatures work for them, too.


_OWN = {"library": "transformer-cli", "version": __version__}

Count = tuple[int, int]
"""Two numbers of a sentence: what is counted, and the number of units that there are."""


class _WrittenSignature(Signature):
    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self.info |= args["signature"]


class SummedMetric(Metric):
    """A metric whose signature is written by hand, and whose score follows from the sums of the statistics of sentences."""

    _SIGNATURE_TYPE = _WrittenSignature

    def __init__(self, name: str, **signature: str) -> None:
        Metric.__init__(self)
        self.name = name
        self.signature = signature

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> SacrebleuScore:
        return self._compute_score_from_stats([sum(numbers) for numbers in zip(*stats, strict=True)])

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": list(refs)}


class CorpusShare(SummedMetric):
    """A count of the whole corpus per 100 units of the whole corpus.

    If there is no unit, the share is 0 if nothing was counted, else 100.
    """

    def __init__(self, name: str, counts: Callable[[str, list[str]], Count], **signature: str) -> None:
        """A metric.

        Args:
            name: as the score is shown.
            counts: the counts of a sentence, from its hypothesis and its references.
            signature: how the share is counted, for the signature of the score.
        """
        super().__init__(name, case="mixed", **signature)
        self.counts = counts

    def _compute_score_from_stats(self, stats: Sequence[float]) -> SacrebleuScore:
        count, num_units = stats
        return SacrebleuScore(self.name, 100.0 * (count / num_units if num_units else float(count > 0)))

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[int]:
        return list(self.counts(hypothesis, ref_kwargs["references"]))


def character_error_rate() -> CorpusShare:
    """CER: edits of characters per 100 characters of the references."""
    return _error_rate("CER", "character", jiwer.process_characters)


def word_error_rate() -> CorpusShare:
    """WER: edits of words per 100 words of the references."""
    return _error_rate("WER", "word", jiwer.process_words)


def exact_match() -> CorpusShare:
    """The percentage of lines that are equal to a reference; runs of white space count as one space."""

    def counts(hypothesis: str, references: list[str]) -> Count:
        return int(hypothesis.split() in [text.split() for text in references]), 1

    return CorpusShare("exact_match", counts, space="collapsed", **_OWN)


def unknown_words() -> CorpusShare:
    """[UNK] per 100 words of the hypotheses: words that a model without subwords cannot write."""

    def counts(hypothesis: str, references: list[str]) -> Count:
        return hypothesis.count(UNK), len(hypothesis.split())

    return CorpusShare("unknown", counts, unit="word", token=UNK, **_OWN)


def _error_rate(name: str, unit: str, process: Callable[..., Any]) -> CorpusShare:
    """Errors of the whole corpus per 100 units (words or characters) of its references.

    If a reference is empty, every unit of its hypothesis counts as an insertion: new versions of jiwer do the
    same, old ones refuse an empty reference. Of several references of a sentence, the one with the lowest rate counts.
    """

    def against(hypothesis: str, reference: str) -> Count:
        if not reference.strip():
            surplus = process([hypothesis], [hypothesis]).hits if hypothesis.strip() else 0
            return surplus, 0
        found = process([reference], [hypothesis])
        missed = found.substitutions + found.deletions
        return missed + found.insertions, missed + found.hits

    def counts(hypothesis: str, references: list[str]) -> Count:
        return min((against(hypothesis, text) for text in references), key=_rate)

    version = metadata.version("jiwer")
    return CorpusShare(name, counts, unit=unit, library="jiwer", version=version)


def _rate(count: Count) -> float:
    errors, num_units = count
    return errors / num_units if num_units else float(errors)


# A score of a corpus that is the mean of the scores of its sentences, as COMET is.


class MeanOfSegments(SummedMetric):
    """The mean of numbers that another program has computed, one for each sentence.

    The statistics of a sentence are its number and a 1. So intervals, p-values and groups of sentences work as for all
    other scores.
    """

    def _compute_score_from_stats(self, stats: Sequence[float]) -> SacrebleuScore:
        total, num_sentences = stats
        return SacrebleuScore(self.name, total / num_sentences)

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        raise NotImplementedError("the numbers of the sentences are given")


# Two scores from the n-gram counts of BLEU: BLEU as in the papers on Multi30k, and the ratio of lengths.


class LengthRatio(BLEU):
    """The tokens of the hypotheses / the tokens of the references, as in the text that sacrebleu prints after BLEU.

    Of several references of a sentence, the one with the most similar length counts.
    """

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Any:
        num_tokens, num_reference_tokens = map(float, stats[:2])
        ratio = num_tokens / num_reference_tokens if num_reference_tokens else 0.0
        return SacrebleuScore("length_ratio", ratio)

    def get_signature(self) -> Signature:
        """The signature of BLEU without the smoothing of its precisions."""
        signature = super().get_signature()
        for name in ("smooth", "eff"):
            signature.update(name, None)
        return signature


class MosesBleu(BLEU):
    """BLEU of lower-cased text in tokens of the Moses tokenizer.

    Papers on Multi30k compute this BLEU (Wu et al. 2021, and the repositories that they build on). It is higher
    than the cased BLEU of sacrebleu, so the two must never be compared.

    Args:
        language: of the references; the tokenizer knows the abbreviations of some languages.

    Raises:
        UsageError: the package sacremoses is missing.
    """

    def __init__(self, language: str) -> None:
        super().__init__(lowercase=True, tokenize="none", force=True)  # force: tokens on purpose
        self._tokenize = _moses_tokenizer(language)
        version = metadata.version("sacremoses")
        self.tokenizer_signature = f"moses-{language}-sacremoses-{version}"

    def _preprocess_segment(self, sent: str) -> str:
        # The abbreviations that end in a full stop are recognised by their case, so the text is split first.
        return self._tokenize(sent).lower()


def _moses_tokenizer(language: str) -> Callable[[str], str]:
    try:
        from sacremoses import MosesTokenizer
    except ImportError as error:
        raise UsageError(
            "bleu_lc_moses needs the package sacremoses, which is not installed",
            hint='in the folder of this project: pip install ".[scores]"',
        ) from error
    tokenizer = MosesTokenizer(language)
    return lambda text: tokenizer.tokenize(text, return_str=True)


# Bootstrap resampling: confidence intervals, and a test whether the difference of two systems is significant.
#
# The numbers are those of sacrebleu with its own seed. The functions of sacrebleu hold all
# samples in memory at once, which takes 1.4 GB for chrF of 20,000 sentences; this module holds one sample at a time.
#
# Source: Koehn 2004, "Statistical significance tests for machine translation evaluation".


NUM_SAMPLES = 1000
SEED = 12345
"""Both as in sacrebleu, so that its command prints the same interval and the same p-value."""
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A 95 % confidence interval: `mean` plus and minus `half_width`, in units of the score."""

    mean: float
    """Of the scores of all samples."""
    half_width: float


def resampled_scores(metric: Metric, statistics: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """(NUM_SAMPLES,) scores of corpora that are drawn, with replacement, from the sentences of a corpus.

    Two systems on the same sentences get the same draws.

    Args:
        statistics: of each sentence, as the metric extracts them.
    """
    rng = np.random.default_rng(SEED)
    # float32, because sacrebleu adds up in float32.
    sentence_statistics = np.array(statistics, dtype=np.float32)
    scores = np.empty(NUM_SAMPLES)
    for number in range(NUM_SAMPLES):
        drawn = rng.choice(len(sentence_statistics), size=len(sentence_statistics), replace=True)
        scores[number] = metric._compute_score_from_stats(sentence_statistics[drawn].sum(0)).score
    return scores


def confidence_interval(scores: NDArray[np.float64]) -> Interval:
    """The interval of resampled scores: half of the distance between the 2.5 % and the 97.5 % quantile."""
    ordered = np.sort(scores)
    outside = len(ordered) // 40
    half_width = (ordered[len(ordered) - outside - 1] - ordered[outside]) / 2
    return Interval(float(scores.mean()), float(half_width))


def paired_p_value(scores: NDArray[np.float64], others: NDArray[np.float64], difference: float) -> float:
    """How often chance alone makes a difference as large as this one; below 0.05 is usually called significant.

    If the systems do not differ on any sample, it is 1; sacrebleu says 0.001.

    Args:
        scores: resampled scores of one system.
        others: those of the other system, of the same draws.
        difference: of the scores on the whole corpus.
    """
    sample_differences = np.abs(scores - others)
    if not sample_differences.any():
        return 1.0
    by_chance = sample_differences - sample_differences.mean()
    return float((np.sum(by_chance > abs(difference)) + 1) / (len(by_chance) + 1))


Lines = Sequence[str]

# Languages that put no spaces between words: for these BLEU needs another tokenizer.
_BLEU_TOKENIZERS = {
    **dict.fromkeys(("zh", "cmn", "yue", "wuu", "nan", "hak", "lzh"), "zh"),  # Chinese
    "ja": "char",
    "th": "char",
    **dict.fromkeys(("lo", "lao", "km", "khm", "my", "mya", "bur"), "char"),
    **dict.fromkeys(("bo", "bod", "tib", "dz", "dzo"), "char"),  # Tibetan and Dzongkha have spaces behind marks only
}
UNSPACED_LANGUAGES = frozenset(_BLEU_TOKENIZERS)
_NUM_READ = 1000
"""This many references tell the script."""


class Score(NamedTuple):
    """A score and its signature."""

    name: str
    """As it is shown; in lower case, it is the name in `validation.scores`."""
    value: float
    """BLEU, chrF, chrF++ and exact_match: from 0 to 100, higher is better. TER, CER and WER: errors per 100 words
    or characters of the reference, lower is better; more than 100 if there are more errors than words or characters.
    unknown: percentage of words. length_ratio: 1 for as many tokens as in the references. COMET: the mean over the
    sentences of what its model says, mostly 0 to 1, higher is better."""
    signature: str
    """The tokenizer, the library, its version and its settings; for translations that were made for the score, also whether
    `decoding.keep_text`, `repair` and `split_sentences` were on. Scores with different signatures must not be compared."""
    interval: Interval | None = None
    """None if it was not asked for, or for a mean of several directions."""

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        figures: dict[str, Any] = {
            "name": self.name,
            "value": self.value,
            "signature": self.signature,
        }
        if self.interval is not None:
            figures["interval"] = self.interval._asdict()
        return figures

    def line(self) -> str:
        """A row of a table for people: name, value, interval, signature."""
        digits = num_digits(self.name)
        spread = "" if self.interval is None else f"± {self.interval.half_width:.{digits}f}"
        return f"{self.name:<14}{self.value:>9.{digits}f}  {spread:<7} {self.signature}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A metric, and its statistics of each sentence of a corpus: they make the score of any part of the corpus."""

    name: str
    metric: Metric = field(compare=False)
    statistics: list[list[float]]
    conditions: str = ""
    """How the translations were made, for the signature; empty: not known here."""

    def value(self, rows: Sequence[int] | None = None) -> float:
        """The score of the sentences with these indices; None: of the whole corpus."""
        chosen = self.statistics if rows is None else [self.statistics[row] for row in rows]
        return float(self.metric._aggregate_and_compute(chosen).score)

    def score(self, *, with_interval: bool = False) -> Score:
        """The score of the whole corpus; an interval takes about 0.1 s for a thousand sentences."""
        found = confidence_interval(self.resampled()) if with_interval else None
        signature = self.metric.get_signature().format()
        if self.conditions:
            signature = f"{signature}|{self.conditions}"
        return Score(self.name, self.value(), signature, found)

    def resampled(self) -> Any:
        """The scores of the samples of the bootstrap, as `resampled_scores` gives them."""
        return resampled_scores(self.metric, self.statistics)


_MANY_TOKENISED = 100
"""As many lines as sacreBLEU warns of, in words about an option that only its own command has."""


def score_corpus(
    hypotheses: Lines,
    references: Lines | Sequence[Lines],
    names: Sequence[str],
    *,
    target_language: str | None = None,
    with_intervals: bool = False,
) -> list[Score]:
    """Score translations against references; both are the text as it is, not tokenised.

    BLEU, chrF, chrF++ and TER are the numbers that the command `sacrebleu` prints with its defaults. Languages
    without spaces between words are the exception: the signature names the tokenizer.

    Args:
        hypotheses: the translations, a line of text each.
        references: one for each hypothesis; or several such lists, for several references.
        names: names of `validation.scores`, such as bleu and chrf, in upper or lower case.
        target_language: a code such as it, zh or pt-BR; None: by the script of the references.
        with_intervals: compute 95 % confidence intervals too.

    Returns:
        One score for each name, in the order of `names`.

    Raises:
        DataError: the numbers of lines differ, or there are no lines.
        UsageError: a score needs a package that is not installed.
    """
    measured = measure_corpus(hypotheses, references, names, target_language=target_language)
    return [measurement.score(with_interval=with_intervals) for measurement in measured]


def measure_corpus(
    hypotheses: Lines,
    references: Lines | Sequence[Lines],
    names: Sequence[str],
    *,
    target_language: str | None = None,
) -> list[Measurement]:
    """The statistics of each sentence for each score; arguments and errors as in `score_corpus`."""
    several = _several(references)
    for lines in several:
        if len(hypotheses) != len(lines):
            raise DataError(
                f"{len(hypotheses)} translations cannot be scored against {len(lines)} references",
                hint="line N of the translations must belong to line N of the references",
            )
    if not hypotheses:
        raise DataError("no sentence to score")
    num_tokenised = sum(line.endswith(" .") for line in hypotheses)
    if num_tokenised >= _MANY_TOKENISED and "bleu" in map(str.lower, names):
        logger.warning(
            "%d translations end with a space and a full stop, as tokenised text does: BLEU is for text as people write it, so "
            "join the tokens first (sacremoses detokenize)",
            num_tokenised,
        )
    if not {"bleu", "ter", "length_ratio"}.isdisjoint(map(str.lower, names)):
        target_language = splitting_language(several[0], target_language)
    metrics = [(name, metric_of(name, target_language)) for name in names]
    return [
        Measurement(_SHOWN[name.lower()], metric, metric._extract_corpus_statistics(hypotheses, several))
        for name, metric in metrics
    ]


def splitting_language(references: Lines, named: str | None) -> str | None:
    """The language by whose rules BLEU and TER split text: the one that is named, else by the script of the references.

    Where words of a script have no spaces between them and the language would split at spaces, whole sentences
    are compared, and BLEU is 0.00: a warning says so once. So does one where text with spaces is split into characters,
    whose BLEU is far too high.
    """
    found, is_unspaced = guess_language(references[:_NUM_READ]), plain_code(named) in UNSPACED_LANGUAGES
    if named is not None and is_unspaced and found not in {UNKNOWN_LANGUAGE, *UNSPACED_LANGUAGES}:
        warn_of_characters(found, named)
    if found not in UNSPACED_LANGUAGES or is_unspaced:
        return named
    warn_of_script(found, named)
    return named or found


@cache
def warn_of_characters(found: str, named: str) -> None:
    logger.warning(
        "the references look like %s (%s), but %s is named, so BLEU compares characters and is far too high",
        name_of_language(found),
        found,
        named,
    )


@cache
def warn_of_script(found: str, named: str | None) -> None:
    if named is None:
        which = "BLEU and TER split" if _ter_splits(found) else "BLEU splits"
        outcome = f"as no language is named, {which} them as text in {name_of_language(found)} ({found})"
        if not _ter_splits(found):
            outcome += "; for TER, all that stands between two spaces is one word"
    else:
        outcome = f"for {named}, BLEU and TER still split them at spaces, so hardly anything can match"
    logger.warning("the references are in a script without spaces between words; %s", outcome)


def num_digits(name: str) -> int:
    """How many digits of a score, by the name that is shown, stand behind the decimal point."""
    return {"length_ratio": 3, "COMET": 4}.get(name, 2)


def metric_of(name: str, target_language: str | None = None) -> Metric:
    """The metric of a score.

    Raises:
        UsageError: it needs a package that is not installed.
    """
    return _METRICS[name.lower()](plain_code(target_language))


def _several(references: Lines | Sequence[Lines]) -> list[list[str]]:
    # A list with one list of references: sacrebleu would read each string of a flat list as a list.
    if all(isinstance(reference, str) for reference in references):
        return [[str(reference) for reference in references]]
    return [list(lines) for lines in references]


def _bleu_tokenizer(language: str) -> str:
    return _BLEU_TOKENIZERS.get(language, "13a")


def _ter_splits(language: str) -> bool:
    """Whether TER splits text of a language without spaces: sacrebleu does so for Chinese and Japanese."""
    return language == "ja" or _bleu_tokenizer(language) == "zh"


def _ter(language: str) -> Metric:
    is_asian = _ter_splits(language)
    return TER(normalized=is_asian, asian_support=is_asian)


# Name -> the metric for a language.
_METRICS: dict[str, Callable[[str], Metric]] = {
    "bleu": lambda language: BLEU(tokenize=_bleu_tokenizer(language), force=True),  # our own warning tells what to do
    "chrf": lambda language: CHRF(),
    "chrf++": lambda language: CHRF(word_order=2),
    "ter": _ter,
    "cer": lambda language: character_error_rate(),
    "wer": lambda language: word_error_rate(),
    "exact_match": lambda language: exact_match(),
    "unknown": lambda language: unknown_words(),
    "length_ratio": lambda language: LengthRatio(tokenize=_bleu_tokenizer(language), force=True),
    "bleu_lc_moses": lambda language: MosesBleu(language or "en"),
}
_SHOWN = {name: name for name in _METRICS} | {
    "bleu": "BLEU",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "ter": "TER",
    "cer": "CER",
    "wer": "WER",
    "bleu_lc_moses": "BLEU_lc_moses",
}
