"""A model and source text to translations."""
