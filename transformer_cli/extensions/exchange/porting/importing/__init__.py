"""Imports: a model folder of another program becomes a run, with which all commands work."""
