"""Ablations: what breaks if one part of the model or of the training is changed."""
