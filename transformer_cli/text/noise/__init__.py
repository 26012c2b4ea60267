"""Training noise: texts as people type them, with a translation that stays right."""
