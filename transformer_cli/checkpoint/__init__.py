"""The files of a run on disk: the layout of its folder, its checkpoints, and a model loaded from them."""
