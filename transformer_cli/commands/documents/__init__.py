"""`tfm translate` for documents: files in which not everything is text."""
