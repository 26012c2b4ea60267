"""The command `tfm serve`."""
