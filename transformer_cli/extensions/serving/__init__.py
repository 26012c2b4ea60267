"""A translation server: its interfaces, its queue and its page."""
