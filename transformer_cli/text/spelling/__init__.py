"""Spelling: words and marks in the spelling that a vocabulary knows."""
