"""Exercises: functions of the Transformer to write, and checks that name the mistake."""
