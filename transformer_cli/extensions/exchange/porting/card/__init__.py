"""Model cards: what a run is, what it was trained on, how well it translates, and where it fails."""
