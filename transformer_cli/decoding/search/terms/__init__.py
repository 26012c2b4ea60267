"""Constrained search: the terms that every hypothesis contains, and how a search keeps track of them."""
