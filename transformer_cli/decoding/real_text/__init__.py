"""Real text: lines with a form of their own, whose protected spans come back unchanged."""
