"""A model as ONNX graphs, for onnxruntime and transformers.js."""
