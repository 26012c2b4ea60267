"""Parallel corpora before training: fetched, converted to plain pairs of lines, checked and cleaned."""
