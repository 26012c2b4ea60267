"""BLEU: how many n-grams of the translations are in the references.

Paper: section 6.1 reports it; Papineni et al. 2002 define it. In tfm: `evaluation/metrics.py`.
"""

import math
from collections import Counter


def corpus_bleu(hypotheses: list[list[str]], references: list[list[str]]) -> float:
    """BLEU of a corpus, with n-grams of 1 to 4 words, one reference for each sentence, and no smoothing.

        BLEU = 100 * BP * exp(mean over n = 1, ..., 4 of log p_n)
        p_n  = (matched n-grams of all sentences) / (n-grams of all hypotheses)
        BP   = 1 if c > r, else exp(1 - r / c)

    An n-gram of a hypothesis matches at most as often as it occurs in the reference of this sentence (clipping).
    The counts are added over all sentences before they are divided. c and r are the numbers of words of all hypotheses
    and of all references. If any p_n is 0, BLEU is 0.

    Args:
        hypotheses: the translations, each a list of words.
        references: for each translation, the words of its reference.

    Returns:
        BLEU, 0 to 100.
    """
    log_precisions = []
    for n in range(1, 5):
        matched = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            hypothesis_ngrams, reference_ngrams = _ngrams(hypothesis, n), _ngrams(reference, n)
            matched += (hypothesis_ngrams & reference_ngrams).total()
            total += hypothesis_ngrams.total()
        if matched == 0:
            return 0.0
        log_precisions.append(math.log(matched / total))
    num_words, num_reference_words = sum(map(len, hypotheses)), sum(map(len, references))
    brevity_penalty = min(1.0, math.exp(1 - num_reference_words / num_words))
    return 100 * brevity_penalty * math.exp(sum(log_precisions) / 4)


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
