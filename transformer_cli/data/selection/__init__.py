"""Which sentence pairs are kept, and for which split."""
