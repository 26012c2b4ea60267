"""Text lines to padded batches of token ids."""
