"""The checks of the exercises: each compares a learner's functions with an independent result, and names mistakes."""
