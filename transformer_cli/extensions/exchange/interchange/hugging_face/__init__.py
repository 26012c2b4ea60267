"""Models and tokenizers in the formats of the library transformers of Hugging Face, as pure functions."""
