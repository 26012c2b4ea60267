"""The commands of lessons."""
