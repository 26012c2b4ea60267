"""From a parallel corpus to padded batches of token ids."""
