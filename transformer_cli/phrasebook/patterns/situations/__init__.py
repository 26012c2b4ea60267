"""Sentence patterns of everyday situations: travel, directions, small talk."""
