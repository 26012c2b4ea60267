"""Whole words: where a word ends in a text and in token ids, so that a term is never a part of a longer word."""

from transformer_cli.text.whole_words.word_sequence import word_sequence as word_sequence
