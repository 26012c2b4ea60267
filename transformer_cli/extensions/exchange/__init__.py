"""Models of other programs: imports, exports, and model cards."""
