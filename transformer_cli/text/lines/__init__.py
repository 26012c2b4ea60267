"""The form of a line: what stands around its text, such as indentation, list marks and columns."""
