"""How good a model is: validation, scores, exact matches, and pictures of attention."""
