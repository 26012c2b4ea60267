"""`tfm draw`, and what it writes."""
