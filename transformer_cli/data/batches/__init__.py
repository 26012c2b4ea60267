"""Token ids on disk, the order of pairs in each epoch, and padded batches made by a thread."""
