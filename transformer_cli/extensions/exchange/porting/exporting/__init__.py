"""Exports: a run in the format of another program, written, checked with that program, and described."""
