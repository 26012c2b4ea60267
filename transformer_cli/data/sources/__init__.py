"""Where sentence pairs come from: local files, the Hugging Face hub, synthetic tasks, the built-in corpus."""
