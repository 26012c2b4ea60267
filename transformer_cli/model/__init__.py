"""The Transformer as PyTorch modules; they know tensors only, no text and no files."""
