"""Sentence patterns with one clause, one file for each verb or structure."""
