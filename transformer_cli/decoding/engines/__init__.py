"""Engines: each file runs trained models with one library, behind the interface of `decoding/engine.py`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer_cli.decoding.engines.ensemble import EnsembleEngine as EnsembleEngine
    from transformer_cli.decoding.engines.pytorch import PyTorchEngine as PyTorchEngine

# Imported when asked for: an engine of another library must not wait for PyTorch.
_MODULES = {
    "EnsembleEngine": "ensemble",
    "PyTorchEngine": "pytorch",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
