"""The parts of `tfm translate`: its options, its prompt, and the form of its output."""
