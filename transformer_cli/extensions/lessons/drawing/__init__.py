"""Pictures of the program: each takes its values from the functions that training uses, and returns a Figure."""
