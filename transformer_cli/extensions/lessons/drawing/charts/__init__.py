"""Curves, bars and cells, with the values that functions of the package compute."""
