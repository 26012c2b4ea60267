"""Corpora that no disk holds: pairs that are read, cleaned and encoded while the model trains."""
