"""Public corpora by name: catalogues of them, downloads that go on where they stopped, and a lock file."""
