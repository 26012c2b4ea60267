"""Sources of sentence pairs: local files, the Hugging Face hub, synthetic tasks, the built-in corpus."""
