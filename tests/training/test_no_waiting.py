"""Within an update the CPU never waits for a GPU: shown on the meta device, whose tensors have no values.

The code takes the same branches there as on a GPU: all that is not a CPU. Autocast does not know the meta device, so
matrix products are in float32 here; the gradient scale of float16 is tested all the same.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim import optimizer as optimizer_module

from transformer_cli.acceleration import accelerate
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.data.updates import Batch
from transformer_cli.model.layers import WordDropout
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.training import optimizers
from transformer_cli.training.callbacks import Meter
from transformer_cli.training.loop import UpdateRunner, build_objective
from transformer_cli.training.optimizers import MovingAverage, Optimizer

pytestmark = pytest.mark.long

META = torch.device("meta")
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2}
MODELS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "rotary": {"positions": "rotary", "norm": "rmsnorm", "activation": "swiglu"},
    "learned": {"positions": "learned", "norm": "std_layernorm", "norm_placement": "post"},
    "few key heads": {"num_kv_heads": 1, "qk_norm": True, "tie_embeddings": "all"},
    "layer dropout": {"layer_dropout": 0.5},
}
TRAININGS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "R-Drop, moving average": {"r_drop": 1.0, "ema_decay": 0.9, "clip_norm": None},
    "SimCut": {"simcut": {}},
    "smoothed over others": {"smoothed_over": "others", "optimizer": "adamw"},
    "Muon": {"optimizer": "muon"},
}


def batch(num_source_tokens: int) -> Batch:
    """Seven pairs of at most 6 and 5 tokens; whether there is padding, the count tells."""
    ids = [torch.empty(7, length, dtype=torch.int64, device=META) for length in (6, 5, 5)]
    mask = torch.empty(7, 6, dtype=torch.bool, device=META)
    return Batch(ids[0], mask, ids[1], ids[2], num_source_tokens, 31, pad_id=1)


def update(
    monkeypatch: pytest.MonkeyPatch,
    *,
    model_settings: dict[str, Any] | None = None,
    precision: torch.dtype = torch.float32,
    spoil: Callable[[Transformer], object] = lambda model: None,
    **settings: Any,
) -> None:
    """One update of two micro-batches, one of them without padding, as the loop does it."""
    # At the start of a run, a fused kernel is tried out and its result is read.
    monkeypatch.setattr(optimizers, "_divides_gradients", lambda one, _: isinstance(one, torch.optim.Adam))
    monkeypatch.setattr(optimizers, "_heeds_found_inf", lambda kind, device: kind is not torch.optim.Adafactor)
    monkeypatch.setattr(optimizer_module, "_get_fused_kernels_supported_devices", lambda: ["meta"])
    training = TrainingConfig.model_validate({"max_steps": 1, "batch_sentences": 7} | settings)
    config = ModelConfig.model_validate(SIZES | (model_settings or {}))
    model = accelerate(Transformer(config, 19, 19), META).to(META)
    model.source_word_dropout = model.target_word_dropout = WordDropout(0.1, 4)
    spoil(model)
    optimizer = Optimizer(model, training, precision)
    decay, meter = training.ema_decay, Meter(META)
    average = None if decay is None else MovingAverage(model, decay)
    report = UpdateRunner(Machine(META, torch.float32)).run(
        model.train(),
        optimizer,
        build_objective(training, 19, META),
        [batch(42), batch(30)],
        seed=3,
        clip_norm=training.clip_norm,
    )
    if average is not None:
        average.update(1, report.is_finite)
    meter.add(report)
    assert all(p.grad is not None and p.grad.is_meta for p in model.parameters())
    assert all(one.is_meta for one in meter.sums.values())


@pytest.mark.parametrize("model", MODELS)
def test_no_model_makes_the_cpu_wait(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    update(monkeypatch, model_settings=MODELS[model])


@pytest.mark.heavy
@pytest.mark.parametrize("precision", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("training", TRAININGS)
def test_no_objective_and_no_optimizer_but_adafactor_makes_the_cpu_wait(
    monkeypatch: pytest.MonkeyPatch, training: str, precision: torch.dtype
) -> None:
    update(monkeypatch, precision=precision, **TRAININGS[training])


def test_adafactor_waits_as_its_documentation_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="meta tensors"):
        update(monkeypatch, optimizer="adafactor")


def read_a_value(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    inputs[0].sum().item()


def test_the_test_notices_a_value_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="meta tensors"):
        update(monkeypatch, spoil=lambda model: model.output.register_forward_pre_hook(read_a_value))
