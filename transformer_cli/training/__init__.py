"""Making the model better."""
