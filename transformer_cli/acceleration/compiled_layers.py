"""Layers compiled by torch.compile, for batches of any shape."""

from collections.abc import Iterator
from contextlib import contextmanager

from transformer_cli.model import Transformer
from transformer_cli.process.errors import ConfigError, is_out_of_memory

MOST_CASES = 64
"""How many cases of a kind of layer are compiled; further ones would run uncompiled. PyTorch's own limit is 8."""


def compile_layers(model: Transformer, *, backend: str = "inductor") -> None:
    """Compile each layer of a model in place, when it is first used; its parameters keep their names.

    Sizes stay variables in the compiled code (`dynamic`), because nearly every batch has a shape of its own. So each
    kind of layer is compiled once for each case: with and without padding in the source, in training and without gradients,
    frozen and not, and for a size of 1. All layers of one kind share the code.

    Args:
        model: on its device; the thread that calls this trains it.
        backend: what torch.compile makes of the captured graphs.
    """
    from torch._dynamo import config

    config.recompile_limit = max(config.recompile_limit, MOST_CASES)  # of this thread
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(dynamic=True, backend=backend)


def num_compiled_graphs() -> int:
    """How many graphs torch.compile has captured in this process."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


@contextmanager
def compilation_errors_explained() -> Iterator[None]:
    """In the block, compiled layers and losses are used.

    Raises:
        ConfigError: torch.compile has failed.
    """
    from torch._dynamo.exc import TorchDynamoException

    try:
        yield
    except TorchDynamoException as error:
        if is_out_of_memory(error):
            raise
        reason = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
        raise ConfigError(
            f"runtime.compile: torch.compile has failed: {reason[:300]}",
            hint="torch.compile needs a C compiler such as gcc, and on a GPU one that Triton serves; or --set runtime.compile=false",
        ) from error
