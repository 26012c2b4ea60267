"""Callbacks: what is called while a model is trained, from alarms and records to a caller's own code."""

from transformer_cli.training.callbacks.callback import Callback as Callback
from transformer_cli.training.callbacks.callback import Callbacks as Callbacks
