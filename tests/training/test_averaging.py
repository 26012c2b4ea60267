"""Which checkpoints the average at the end of a run is made of."""

from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Retention
from transformer_cli.config import TrainingConfig
from transformer_cli.training.averaging import checkpoints_to_average

from ..checkpoint.snapshots import snapshot

SCORES = {10: 3.0, 15: 9.0, 20: 1.0, 25: 2.0}
LAST_STEP = 25


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"average_of": "last"}, [25, 20, 10]),  # 15 is no multiple of save_every, and not the end
        ({"average_of": "last", "average_last": 2}, [25, 20]),
        ({"average_of": "last", "save_every": 5}, [25, 20, 15]),
        ({"average_of": "best"}, [15, 10, 25]),
        ({"average_of": "best", "average_last": 9}, [15, 10, 25, 20]),
    ],
)
def test_an_average_is_of_the_last_regular_checkpoints_or_of_the_best(
    tmp_path: Path, settings: dict[str, Any], steps: list[int]
) -> None:
    checkpoints = Checkpoints(tmp_path, Retention(keep_last=9, metric="bleu"))
    for step, score in SCORES.items():
        checkpoints.save(snapshot(step), score)
    values = {"max_steps": LAST_STEP, "batch_tokens": 100, "save_every": 10, "average_last": 3, **settings}
    chosen = checkpoints_to_average(checkpoints.folder, TrainingConfig.model_validate(values), LAST_STEP)
    assert [one.step for one in chosen] == steps


def test_a_damaged_checkpoint_is_replaced_by_the_next_one(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, Retention(keep_last=9, metric="bleu"))
    for step, score in SCORES.items():
        damaged = checkpoints.save(snapshot(step), score) / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    training = TrainingConfig(max_steps=LAST_STEP, batch_tokens=100, save_every=5, average_last=3)
    assert [one.step for one in checkpoints_to_average(checkpoints.folder, training, LAST_STEP)] == [20, 15, 10]
