"""What a run has recorded of its training, read back."""
