"""Text to token ids and back: normalisation, splitting into words, tokenizers, padding."""
