"""The parts of `tfm translate`: what a user wants, and how translations are written."""
