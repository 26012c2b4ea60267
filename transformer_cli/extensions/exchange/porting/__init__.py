"""Runs made from the models of other programs, and the other way round: each conversion is verified."""
