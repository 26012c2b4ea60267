"""Two scores from the n-gram counts of BLEU: BLEU as in the papers on Multi30k, and the ratio of lengths."""

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from sacrebleu.metrics.base import Score, Signature
from sacrebleu.metrics.bleu import BLEU

from transformer_cli.process.errors import UsageError


class LengthRatio(BLEU):
    """The tokens of the hypotheses / the tokens of the references, as in the text that sacrebleu prints after BLEU.

    Of several references of a sentence, the one with the most similar length counts.
    """

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Any:
        num_tokens, num_reference_tokens = map(float, stats[:2])
        ratio = num_tokens / num_reference_tokens if num_reference_tokens else 0.0
        return Score("length_ratio", ratio)

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
