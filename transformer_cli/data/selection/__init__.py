"""Selection of sentence pairs: cleaning, and the split that each pair belongs to."""
