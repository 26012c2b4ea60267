"""CUDA graphs: the forward and backward pass of a batch, recorded once for each shape, then started as a whole (`runtime.cuda_graphs`)."""
