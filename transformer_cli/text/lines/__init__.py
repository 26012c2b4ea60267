"""The layout of a line: the parts around its text, such as indentation, list marks and columns."""
