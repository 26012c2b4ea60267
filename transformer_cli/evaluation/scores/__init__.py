"""Metrics: each computes statistics of a sentence, and a score from the sum of the statistics of many sentences."""
