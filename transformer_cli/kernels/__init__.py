"""Kernels in C for translation and the losses of training on a CPU, compiled when the package is installed; without them PyTorch computes the same."""
