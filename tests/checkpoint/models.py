"""A tiny trained run, made of the real parts."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import Retention, Snapshot
from transformer_cli.config import Config
from transformer_cli.config.loading import check_settings
from transformer_cli.model.transformer import Transformer
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

SIZES = {
    "d_model": 8,
    "num_heads": 2,
    "d_ff": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "max_length": 16,
}


class Parts(NamedTuple):
    config: Config
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    model: Transformer


@cache
def parts(*, is_shared: bool = False, tie: str = "target-output", positions: str = "sinusoidal") -> Parts:
    config = check_settings(
        {
            "name": "tiny",
            "data": {"source": "phrasebook"},
            "tokenizer": {"shared": is_shared},
            "model": {**SIZES, "tie_embeddings": tie, "positions": positions},
            "training": {"max_steps": 9, "batch_tokens": 99},
        },
        "test",
    )
    source = train_tokenizer(["the red cars are here .", "a small house"], config.tokenizer)
    target = train_tokenizer(["le macchine rosse sono qui .", "una casa"], config.tokenizer)
    target = source if is_shared else target
    torch.manual_seed(1)
    model = Transformer(config.model, source.vocab_size, target.vocab_size).eval()
    return Parts(config, source, target, model)


def save(run: Path, made_of: Parts, *steps: int, **changes: object) -> list[Path]:
    """Save the same model at several steps; an earlier step gets a better score."""
    retention = Retention(keep_last=9, metric="bleu")
    checkpoints = Checkpoints(run, retention)
    config, source, target, model = made_of
    fields = {
        "model": model.state_dict(),
        "optimizer": {f"{name}.exp_avg": torch.zeros_like(p) for name, p in model.named_parameters()},
        "state": {},
        "files": portable_files(config, source, target),
    } | changes
    return [checkpoints.save(Snapshot(step=step, **fields), -step) for step in steps]  # type: ignore[arg-type]


def logits(model: Transformer) -> torch.Tensor:
    ids = torch.tensor([[4, 5, 6, 3]])
    with torch.no_grad():
        return model(ids, torch.ones_like(ids, dtype=torch.bool), ids)
