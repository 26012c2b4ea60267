"""The arguments of commands that read corpora and other pairs of texts."""
