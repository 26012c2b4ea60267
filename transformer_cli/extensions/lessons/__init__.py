"""Lessons: pictures, explanations, ablations and exercises."""
