"""torch.compile on batches of many shapes: few compilations, and the numbers of plain layers."""

import itertools
import re
from typing import Any

import pytest
import torch

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.accelerate import (
    MOST_CASES,
    compilation_errors_explained,
    compile_layers,
    num_compiled_graphs,
)
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model.layers import DecoderLayer
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.loop import build_objective

CPU = pytest.param("cpu", marks=pytest.mark.slow)
CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
BACKENDS = {"cpu": "eager", "cuda": "inductor"}
PAD, SOS, EOS = 1, 2, 3
# Sentences, and tokens of the longest source and target.
SHAPES = [(5, 9, 7), (3, 4, 12), (8, 13, 5), (2, 6, 6), (11, 3, 8), (6, 17, 15), (4, 10, 10), (7, 5, 4)]


def counters() -> Any:
    """What torch._dynamo counts; its import takes seconds."""
    from torch._dynamo.utils import counters

    return counters


def batch(num_pairs: int, source: int, target: int, *, is_padded: bool, device: str) -> Batch:
    def tokens(count: int, row: int) -> list[int]:
        return [4 + row % 5] * (count - 1 - (is_padded and row > 0)) + [EOS]

    pairs = [TokenPair(tokens(source, row), tokens(target, row)) for row in range(num_pairs)]
    return collate(pairs, sos_id=SOS, pad_id=PAD).to(device)


def model_of(num_layers: int, device: str = "cpu") -> Transformer:
    torch.manual_seed(0)
    settings = {"d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.0}
    layers = {"encoder_layers": num_layers, "decoder_layers": num_layers}
    model = Transformer(ModelConfig.model_validate(settings | layers), 9, 9)
    return accelerate(model, torch.device(device)).to(device).train()


def loss_and_gradient(model: Transformer, one: Batch, device: str) -> tuple[torch.Tensor, ...]:
    model.zero_grad()
    training = TrainingConfig(max_steps=1, batch_sentences=4)
    objective = build_objective(training, 9, torch.device(device))
    loss = objective(model, one).objective
    loss.backward()
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return loss.detach(), torch.cat(gradients)


@pytest.mark.filterwarnings("ignore")  # of PyTorch itself
@pytest.mark.parametrize("device", [CPU, CUDA])
def test_new_shapes_are_not_compiled_again_and_give_the_numbers_of_plain_layers(
    device: str,
) -> None:
    numbers = []
    for num_layers in (1, 3):
        torch.compiler.reset()
        counters().clear()
        plain, compiled = (model_of(num_layers, device) for _ in range(2))
        compile_layers(compiled, backend=BACKENDS[device])
        for count, (shape, is_padded) in enumerate(itertools.product(SHAPES, (False, True))):
            if count == 4:
                numbers.append(counters()["stats"]["unique_graphs"])
            one = batch(*shape, is_padded=is_padded, device=device)
            for ours, theirs in zip(
                *(loss_and_gradient(model, one, device) for model in (compiled, plain)),
                strict=True,
            ):
                torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
        assert counters()["stats"]["unique_graphs"] == numbers[-1], "after four shapes, none is new"
        assert not counters()["graph_break"]
    assert numbers[0] == numbers[1] <= 8, "layers of one kind share what is compiled"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of PyTorch itself
def test_no_length_of_a_source_compiles_the_twins_for_gpus_again() -> None:
    """The rows of a mask begin at multiples of 8; for sources of 8, 16 and 24 tokens, nothing lies between them."""
    torch.compiler.reset()
    counters().clear()
    model, numbers = accelerate(model_of(2), torch.device("meta")), list[int]()
    compile_layers(model, backend="eager")
    shapes = [*SHAPES, (4, 8, 9), (3, 16, 5), (7, 24, 16), (5, 31, 30)]
    for shape, is_padded in itertools.product(shapes, (False, True)):
        one = batch(*shape, is_padded=is_padded, device="cpu")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model.decoder_output(one.source_ids, one.padding_mask, one.decoder_input_ids)
        numbers.append(counters()["stats"]["unique_graphs"])
    # Each kind of layer without a mask, with one, and once more when the length of its rows changes for the first time.
    assert numbers[3] == numbers[-1] <= 6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of PyTorch itself
def test_every_case_of_a_frozen_and_validated_model_is_compiled() -> None:
    """PyTorch's limit of eight cases for each kind of layer is too low for them."""
    torch.compiler.reset()
    counters().clear()
    model = model_of(2)
    for layers in (model.encoder.layers, model.decoder.layers):
        layers[0].requires_grad_(False)
    compile_layers(model, backend="eager")
    batches = [
        batch(*shape, is_padded=is_padded, device="cpu")
        for shape in [*SHAPES, (1, 9, 7), (5, 1, 7), (5, 9, 1)]
        for is_padded in (False, True)
    ]
    for _ in range(2):
        num_graphs = num_compiled_graphs()
        for one in batches:
            loss_and_gradient(model.train(), one, "cpu")
            with torch.inference_mode():
                model.eval()(one.source_ids, one.padding_mask, one.decoder_input_ids)
    assert num_compiled_graphs() == num_graphs > 16
    cases = torch._dynamo.eval_frame._debug_get_cache_entry_list(DecoderLayer.forward.__code__)
    assert 8 < len(cases) < MOST_CASES


@pytest.mark.long
def test_a_failed_compilation_is_an_error_of_the_config() -> None:
    from torch._dynamo.exc import TorchDynamoException

    reason = "InvalidCxxCompiler: No working C++ compiler found"
    with (
        pytest.raises(ConfigError, match=rf"runtime\.compile: .* has failed: {re.escape(reason)}") as raised,
        compilation_errors_explained(),
    ):
        raise TorchDynamoException(f"{reason}\n\nSet TORCHDYNAMO_VERBOSE=1")
    assert "runtime.compile=false" in str(raised.value.hint)
    with pytest.raises(TorchDynamoException), compilation_errors_explained():
        raise TorchDynamoException("CUDA out of memory")
    with pytest.raises(KeyError), compilation_errors_explained():
        raise KeyError("another error")
