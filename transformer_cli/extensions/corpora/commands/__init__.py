"""The subcommands of `tfm data`: corpora before training."""
