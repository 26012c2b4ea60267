"""The command for learners: the exercises."""
