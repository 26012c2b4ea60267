"""The parts of `tfm ablate`: the question, the trainings side by side, and what came out."""
