"""Alignment of the two sides: where line N of one side no longer belongs to line N of the other."""
