"""Engines: each file runs trained models with one library, behind the interface of `decoding/engine.py`."""

from transformer_cli.decoding.engines.ensemble import EnsembleEngine as EnsembleEngine
from transformer_cli.decoding.engines.pytorch import PyTorchEngine as PyTorchEngine
