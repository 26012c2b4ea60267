"""The arguments of commands about runs and the models in them."""
