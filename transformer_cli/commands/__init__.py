"""The subcommands of `tfm`: each puts lower layers together."""
