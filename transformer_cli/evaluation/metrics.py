"""Scores of translations against references, by name, each with its signature and its confidence interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from transformer_cli.evaluation.scores import resampling, shares
from transformer_cli.evaluation.scores.bleu_tokens import LengthRatio, MosesBleu
from transformer_cli.evaluation.scores.resampling import Interval
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import LANGUAGE_OF_NAME, primary_language

Lines = Sequence[str]

# Languages that put no spaces between words: for these BLEU needs another tokenizer.
_BLEU_TOKENIZERS = {
    **dict.fromkeys(("zh", "cmn", "yue", "wuu", "nan", "hak", "lzh"), "zh"),  # Chinese
    "ja": "char",
    "th": "char",
    **dict.fromkeys(("lo", "lao", "km", "khm", "my", "mya", "bur"), "char"),
}
UNSPACED_LANGUAGES = frozenset(_BLEU_TOKENIZERS)


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
    `decoding.keep_text` was on. Scores with different signatures must not be compared."""
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
        found = resampling.interval(self.resampled()) if with_interval else None
        signature = self.metric.get_signature().format()
        if self.conditions:
            signature = f"{signature}|{self.conditions}"
        return Score(self.name, self.value(), signature, found)

    def resampled(self) -> Any:
        """The scores of the samples of the bootstrap, as `resampling.resampled_scores` gives them."""
        return resampling.resampled_scores(self.metric, self.statistics)


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
        target_language: a code such as it, zh or pt-BR.
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
    metrics = [(name, metric_of(name, target_language)) for name in names]
    return [
        Measurement(
            _SHOWN[name.lower()], metric, metric._extract_corpus_statistics(hypotheses, several)
        )
        for name, metric in metrics
    ]


def num_digits(name: str) -> int:
    """How many digits of a score, by the name that is shown, stand behind the decimal point."""
    return {"length_ratio": 3, "COMET": 4}.get(name, 2)


def metric_of(name: str, target_language: str | None = None) -> Metric:
    """The metric of a score.

    Raises:
        UsageError: it needs a package that is not installed.
    """
    return _METRICS[name.lower()](language_code(target_language))


def language_code(language: str | None) -> str:
    """The code without its region, in lower case, of two letters if it is known: pt for pt-BR and por; empty for None."""
    primary = primary_language(language or "")
    return LANGUAGE_OF_NAME.get(primary, primary)


def _several(references: Lines | Sequence[Lines]) -> list[list[str]]:
    # A list with one list of references: sacrebleu would read each string of a flat list as a list.
    if all(isinstance(reference, str) for reference in references):
        return [[str(reference) for reference in references]]
    return [list(lines) for lines in references]


def _bleu_tokenizer(language: str) -> str:
    return _BLEU_TOKENIZERS.get(language, "13a")


def _ter(language: str) -> Metric:
    is_asian = language == "ja" or _bleu_tokenizer(language) == "zh"
    return TER(normalized=is_asian, asian_support=is_asian)


# Name -> the metric for a language.
_METRICS: dict[str, Callable[[str], Metric]] = {
    "bleu": lambda language: BLEU(tokenize=_bleu_tokenizer(language)),
    "chrf": lambda language: CHRF(),
    "chrf++": lambda language: CHRF(word_order=2),
    "ter": _ter,
    "cer": lambda language: shares.character_error_rate(),
    "wer": lambda language: shares.word_error_rate(),
    "exact_match": lambda language: shares.exact_match(),
    "unknown": lambda language: shares.unknown_words(),
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
