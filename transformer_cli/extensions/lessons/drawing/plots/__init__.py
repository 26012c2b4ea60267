"""Curves of trainings: the figures in the metrics.jsonl of one run or several, as pictures, a page or a table."""
