"""Phrases and clauses, built in both languages at once from randomly chosen words."""
