"""Layers compiled by torch.compile, for batches of any shape."""

from transformer_cli.model import Transformer


def compile_layers(model: Transformer, *, backend: str = "inductor") -> None:
    """Compile each layer of a model in place, when it is first used; its parameters keep their names.

    Sizes stay variables in the compiled code (`dynamic`), because nearly every batch has a shape of its own. So each
    kind of layer is compiled a few times: with and without padding in the source, in training and without gradients,
    and for a size of 1. All layers of one kind share the code.

    Args:
        model: on its device.
        backend: what torch.compile makes of the captured graphs.
    """
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(dynamic=True, backend=backend)
