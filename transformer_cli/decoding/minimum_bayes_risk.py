"""Minimum Bayes risk decoding: sorts candidates by their mean similarity to all candidates, best first; how far translations agree with samples."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import SamplingConfig
from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds
from transformer_cli.decoding.translator import Translator

# Those of sacrebleu: the longest n-grams of characters, and how much more recall weighs than precision.
CHAR_ORDER = 6
BETA = 2

Pairwise = Callable[[Sequence[str]], NDArray[np.float64]]
"""N texts to the (N, N) utilities of text i against the reference j."""
Utility = Callable[[str, Sequence[str]], NDArray[np.float64]]
"""A source and N texts to (N, N): entry (i, j) says how good text i is if text j is the reference."""


def by_expected_utility(
    candidates: Sequence[Hypothesis],
    decode: Callable[[TokenIds], str],
    pairwise: Pairwise | None = None,
) -> list[Hypothesis]:
    """The candidates by expected utility, the largest first; of equals, the first one stays first.

    Args:
        candidates: hypotheses of one source, from a beam or drawn at random.
        decode: token ids to text.
        pairwise: N texts to the (N, N) utilities of text i against the reference j; None: `chrf_matrix`.

    Returns:
        One candidate for each different text, the first one.

    Source: Kumar and Byrne 2004; with candidates drawn from the model, Eikema and Aziz 2020.
    """
    texts = [decode(candidate.ids) for candidate in candidates]
    order = np.argsort(-expected_utilities(texts, pairwise), kind="stable").tolist()
    chosen: dict[str, Hypothesis] = {}
    for index in order:
        chosen.setdefault(texts[index], candidates[index])
    return [*chosen.values()]


def expected_utilities(texts: Sequence[str], pairwise: Pairwise | None = None) -> NDArray[np.float64]:
    """(N,): the mean utility of each text against all N texts as references, itself included: chrF, 0 to 100, if `pairwise` is None.

    A text that stands there twice counts twice. So for samples, the mean estimates the expectation under the model.
    """
    counts = Counter(texts)
    utilities = (pairwise or chrf_matrix)([*counts])  # of the different texts
    weights = np.array([*counts.values()]) / max(1, len(texts))
    text_utilities = dict(zip(counts, utilities @ weights, strict=True))
    return np.array([text_utilities[text] for text in texts])


def chrf_matrix(texts: Sequence[str]) -> NDArray[np.float64]:
    """(N, N), 0 to 100: entry (i, j) is the chrF that sacrebleu gives text i against the reference j.

    The n-grams of each text are counted once. For 16 texts, 256 calls of sacrebleu take about 20 times as long.

    Source: Popović 2015; with the effective order of sacrebleu.
    """
    from sacrebleu.metrics.helpers import extract_all_char_ngrams

    ngrams = [extract_all_char_ngrams(text, CHAR_ORDER) for text in texts]
    shape = len(texts), len(texts)
    precision, recall, num_orders = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for order in range(CHAR_ORDER):
        counts = _count_matrix([text_ngrams[order] for text_ngrams in ngrams])
        totals = counts.sum(1)
        matches = np.array([np.minimum(row, counts).sum(1) for row in counts]).reshape(shape)
        # An order counts only if both texts are long enough for it.
        is_effective = (totals[:, None] > 0) & (totals[None, :] > 0)
        precision += matches / np.maximum(1, totals)[:, None]
        recall += matches / np.maximum(1, totals)[None, :]
        num_orders += is_effective
    precision /= np.maximum(1, num_orders)
    recall /= np.maximum(1, num_orders)
    weighted = BETA**2 * precision + recall
    is_similar = weighted > 0
    product = 100.0 * (1 + BETA**2) * precision * recall
    return np.divide(product, weighted, out=np.zeros(shape), where=is_similar)


def _count_matrix(counters: Sequence[Counter[str]]) -> NDArray[np.int64]:
    """(N, G): how often each of the G different n-grams stands in each of N texts."""
    places = {ngram: place for place, ngram in enumerate(dict.fromkeys(_all_keys(counters)))}
    counts = np.zeros((len(counters), len(places)), dtype=np.int64)
    for row, counter in zip(counts, counters, strict=True):
        for ngram, count in counter.items():
            row[places[ngram]] = count
    return counts


def _all_keys(counters: Sequence[Counter[str]]) -> list[str]:
    return [ngram for counter in counters for ngram in counter]


_SAMPLES_TO_AGREE_WITH = SamplingConfig(top_p=0.95)


def agreements_of(translator: "Translator", best: Mapping[Request, Hypothesis]) -> dict[Request, float]:
    """How far each translation agrees with samples, as the calibration does it; nothing if it uses no samples."""
    num_samples, quality = translator.num_samples, translator.pipeline.quality
    if num_samples is None:
        num_samples = 0 if quality is None else quality.num_samples
    if not num_samples or not best:
        return {}
    decode = translator.pipeline.target_tokenizer.decode
    texts = [decode(hypothesis.ids) for hypothesis in best.values()]
    return dict(zip(best, agreements(translator, [*best], texts, num_samples), strict=True))


def agreements(
    translator: "Translator", parts: Sequence[Request], texts: Sequence[str], num_samples: int
) -> list[float]:
    """The mean chrF of a text for each part against samples of the model for the same part, 0 to 1.

    The samples of a part are always the same.

    Source: Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine Translation", section 3.2, where dropout
        makes the samples differ.
    """
    options = translator.decoding.model_copy(
        update={
            "num_best": num_samples,
            "sampling": _SAMPLES_TO_AGREE_WITH,
            "coverage_penalty": 0.0,
            "diversity": None,
            "mbr": None,
        }
    )
    # Samples keep no terms of a glossary.
    plain = [part._replace(terms=(), seed=0) for part in parts]
    decode = translator.pipeline.target_tokenizer.decode
    part_samples = translator.search_with(plain, options)
    return [
        float(chrf_matrix([text, *(decode(each.ids) for each in samples)])[0, 1:].mean()) / 100 if samples else 0.0
        for text, samples in zip(texts, part_samples, strict=True)
    ]
