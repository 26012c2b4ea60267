"""Train a neural machine translator from a parallel corpus, and translate with it."""

__version__ = "0.1.0"
