"""Sentence patterns with two or more clauses."""
