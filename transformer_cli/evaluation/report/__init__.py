"""The report of a validation as one web page: scores, curves, sentences; without scripts, and without a network."""
