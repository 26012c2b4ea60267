"""What is known about a translation beside its text: alignments, probabilities, and words in place of [UNK]."""
