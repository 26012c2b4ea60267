"""Tensors only: no text, no files."""
