"""The queue of a server: the sentences of many requests in batches, each sentence computed once."""
