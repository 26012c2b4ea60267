"""Markup languages: which characters are text, which are markup, and which are neither."""
