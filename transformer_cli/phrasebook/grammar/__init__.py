"""Phrases and clauses, built in both languages at once from the words that a draw chooses."""
