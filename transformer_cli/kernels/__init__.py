"""Kernels in C for translation on a CPU, compiled when the package is installed; without them PyTorch computes the same."""
