"""Real text: lines keep their layout, and their protected spans come back unchanged."""
