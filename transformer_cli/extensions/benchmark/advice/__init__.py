"""Suggested changes of settings, and the trials that show whether they help."""
