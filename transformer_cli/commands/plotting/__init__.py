"""`tfm plot`: the curves of runs."""
