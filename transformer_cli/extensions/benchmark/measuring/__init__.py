"""Measurements for both training and translating: times, memory, FLOP, and matrix products."""
