"""One sentence on its way through a trained model: pieces, shapes, attention, and the steps of the search."""
