"""Benchmarks: how fast this machine trains and translates, what limits it, and what to change."""
