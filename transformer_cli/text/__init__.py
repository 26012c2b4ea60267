"""Raw text to token ids, and back: normalisation, cutting into words, tokenizers."""
