"""The commands that move runs between this program and others."""
