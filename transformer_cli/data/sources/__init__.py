"""Sources of sentence pairs: local files, the Hugging Face hub, synthetic tasks, the built-in corpus."""

from transformer_cli.data.sources.corpus import has_split as has_split
from transformer_cli.data.sources.corpus import read_pairs as read_pairs
