"""The check of each exercise, by its name."""

from collections.abc import Callable
from typing import Any

from transformer_cli.extensions.lessons.exercises.checks.attention_check import check_attention
from transformer_cli.extensions.lessons.exercises.checks.beam_search_check import check_beam_search
from transformer_cli.extensions.lessons.exercises.checks.bleu_check import check_bleu
from transformer_cli.extensions.lessons.exercises.checks.causal_mask_check import check_causal_mask
from transformer_cli.extensions.lessons.exercises.checks.greedy_search_check import (
    check_greedy_search,
)
from transformer_cli.extensions.lessons.exercises.checks.heads_check import check_heads
from transformer_cli.extensions.lessons.exercises.checks.label_smoothing_check import (
    check_label_smoothing,
)
from transformer_cli.extensions.lessons.exercises.checks.sinusoids_check import check_sinusoids
from transformer_cli.extensions.lessons.exercises.checks.warmup_check import check_warmup

CHECKS: dict[str, Callable[[Any], None]] = {
    "causal_mask": check_causal_mask,
    "scaled_attention": check_attention,
    "heads": check_heads,
    "sinusoids": check_sinusoids,
    "label_smoothing": check_label_smoothing,
    "warmup": check_warmup,
    "greedy_search": check_greedy_search,
    "beam_search": check_beam_search,
    "bleu": check_bleu,
}
"""Each takes the module of a learner, and raises WrongAnswer."""
