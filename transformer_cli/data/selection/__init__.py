"""Selection of sentence pairs: cleaning, and held-out pairs that must not be in the training split."""

from transformer_cli.data.selection.cleaning import clean as clean
from transformer_cli.data.selection.held_out import held_out_pairs as held_out_pairs
