"""Protected spans: the parts of a text that a translation must contain unchanged, such as URLs and numbers."""
