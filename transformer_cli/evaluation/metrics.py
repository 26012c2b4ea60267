"""BLEU, chrF, TER, CER and WER of translations against references, each with its signature."""

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, NamedTuple

import jiwer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from transformer_cli.errors import DataError

Lines = Sequence[str]

# Languages that put no spaces between words: for these BLEU needs another tokenizer.
_BLEU_TOKENIZERS = {
    "zh": "zh",
    "ja": "char",
    "th": "char",
    "lo": "char",
    "km": "char",
    "my": "char",
}


class Score(NamedTuple):
    """A score and its signature."""

    name: str
    """BLEU, chrF, TER, CER or WER."""
    value: float
    """BLEU and chrF: from 0 to 100, higher is better. TER, CER and WER: errors per 100 words or characters of
    the reference, lower is better; more than 100 if there are more errors than words or characters."""
    signature: str
    """The tokenizer, the library, its version and its settings. Scores with different signatures must not be
    compared."""


def score_corpus(
    hypotheses: Lines,
    references: Lines,
    names: Sequence[str],
    *,
    target_language: str | None = None,
) -> list[Score]:
    """Score translations against references; both are the text as it is, not tokenised.

    BLEU, chrF and TER are the numbers that the command `sacrebleu` prints with its defaults. Languages
    without spaces between words are the exception: the signature names the tokenizer.

    Args:
        hypotheses: the translations, a line of text each.
        references: one for each hypothesis.
        names: names out of bleu, chrf, ter, cer, wer, in upper or lower case.
        target_language: a code such as it, zh or pt-BR.

    Returns:
        One score for each name, in the order of `names`.

    Raises:
        DataError: the numbers of lines differ, or there are no lines.
    """
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations cannot be scored against {len(references)} references",
            hint="line N of the translations must belong to line N of the references",
        )
    if not references:
        raise DataError("no sentence to score")
    language = (target_language or "").replace("_", "-").partition("-")[0].lower()
    return [_score(name, hypotheses, references, language) for name in names]


def _score(name: str, hypotheses: Lines, references: Lines, language: str) -> Score:
    texts = hypotheses, references
    match name.lower():
        case "bleu":
            tokenizer = _BLEU_TOKENIZERS.get(language, "13a")
            return _sacrebleu("BLEU", BLEU(tokenize=tokenizer), *texts)
        case "chrf":
            return _sacrebleu("chrF", CHRF(), *texts)
        case "ter":
            is_asian = language in ("zh", "ja")
            return _sacrebleu("TER", TER(normalized=is_asian, asian_support=is_asian), *texts)
        case "cer":
            return _error_rate("CER", "character", jiwer.process_characters, *texts)
        case "wer":
            return _error_rate("WER", "word", jiwer.process_words, *texts)
    raise KeyError(name)


def _sacrebleu(name: str, metric: Any, hypotheses: Lines, references: Lines) -> Score:
    # A list with one list of references: sacrebleu would read each string of a flat list as a list.
    value = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Score(name, float(value), metric.get_signature().format())


def _error_rate(
    name: str, unit: str, process: Callable[..., Any], hypotheses: Lines, references: Lines
) -> Score:
    """Errors of the whole corpus per 100 units (words or characters) of its references.

    If a reference is empty, every unit of its hypothesis counts as an insertion: new versions of jiwer do the
    same, old ones refuse an empty reference. If all references are empty, the rate is 0 if all hypotheses are
    empty too, else 100.
    """
    num_errors = num_units = 0
    pairs = list(zip(references, hypotheses, strict=True))
    real = [pair for pair in pairs if pair[0].strip()]
    surplus = [text for reference, text in pairs if text.strip() and not reference.strip()]
    if real:
        counts = process([reference for reference, _ in real], [text for _, text in real])
        num_errors = counts.substitutions + counts.deletions + counts.insertions
        num_units = counts.hits + counts.substitutions + counts.deletions
    if surplus:
        num_errors += process(surplus, surplus).hits
    rate = num_errors / num_units if num_units else float(num_errors > 0)
    signature = f"nrefs:1|case:mixed|unit:{unit}|library:jiwer|version:{metadata.version('jiwer')}"
    return Score(name, 100.0 * rate, signature)
