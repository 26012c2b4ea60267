"""Token ids on disk, the order in which they are seen, and padded batches prepared ahead of time."""
