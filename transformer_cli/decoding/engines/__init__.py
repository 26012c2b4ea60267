"""Engines: each file runs trained models with one library, behind the interface of `decoding/engine.py`."""
