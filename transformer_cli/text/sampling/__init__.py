"""Subword regularisation: words are cut into subwords at random, so a model sees several segmentations of a word."""
