"""Vocabulary extension: further entries for a tokenizer whose old entries keep their ids."""
