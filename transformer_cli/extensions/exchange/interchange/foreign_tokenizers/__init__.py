"""Tokenizers of other programs, as tokenizers of ours, as pure functions."""
