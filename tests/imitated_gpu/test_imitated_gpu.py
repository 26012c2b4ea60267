"""Every command that computes, on a device that is not the CPU: no tensor lies at the wrong place, and the results are the same."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..experiments import TINY, metrics_of
from .device import HERE, ROOT, answers_of, training_of

pytestmark = pytest.mark.imitated_gpu

DEVICES = ("cpu", "imitation")
WITHOUT_DROPOUT = TINY.replace("dropout: 0.1", "dropout: 0.0")

TRAININGS = {
    "plain": [],
    "bfloat16": ["runtime.precision=bfloat16"],
    "float16": ["runtime.precision=float16", "training.optimizer=adamw"],
    "muon": ["training.optimizer=muon", "training.ema_decay=0.9", "training.average_last=2"],
    "adafactor": ["training.optimizer=adafactor", "model.positions=rotary", "model.num_kv_heads=1"],
    "plateau": ["training.schedule=plateau", "model.positions=learned", "model.qk_norm=true"],
    "sizes": ["training.batch_sentences=null", "training.accumulate=1", "training.batch_tokens=60"],
}
RANDOM_TRAININGS = {
    "regularised": [
        *("model.dropout=0.2", "training.r_drop=1.0", "training.word_dropout=0.1"),
        *("model.layer_dropout=0.2", "model.attention_dropout=0.1"),
    ],
}
SENTENCES = ["Where is the station?", "The red cars are in front of the station."]
TRANSLATE = ["translate", "--run", str(ROOT / "docs/run")]
SEARCHES = {
    "beam": [],
    "greedy": ["--beam-size", "1"],
    "bfloat16": ["--set", "runtime.precision=bfloat16"],
    "n-best": ["--n-best", "3", "--json"],
    "details": ["--json", "--details"],
    "alignment": ["--alignment"],
    "prefix": ["--prefix", "Dove"],
    "glossary": ["--glossary", "terms.tsv"],
    "protected": ["--protect"],
    "sampling": ["--set", "decoding.sampling.top_k=5"],
    "nucleus": ["--set", "decoding.sampling.top_p=0.9", "--n-best", "2"],
    "mbr": ["--set", "decoding.mbr.candidates=4"],
    "diverse": ["--set", "decoding.diversity.groups=2"],
    "limits": [
        *("--set", "decoding.no_repeat_ngram_size=2", "--set", "decoding.min_length=6"),
        *("--set", "decoding.coverage_penalty=0.2", "--set", "decoding.max_length=9"),
    ],
    "ensemble": ["--run", str(ROOT / "docs/run")],
}
OTHERS = {
    "next": ["next", "Where is the station?", "--run", str(ROOT / "docs/run"), "--top", "3"],
    "align": ["align", "--run", str(ROOT / "docs/run"), "--source", "s.en", "--target", "s.it"],
    "explain": ["explain", "Where is the station?", "--run", str(ROOT / "docs/run")],
    "validate": [
        *("validate", "--run", str(ROOT / "docs/run"), "--source", "s.en", "--reference", "s.it"),
        *("--scores", "bleu,chrf", "--json"),
    ],
}


COMMANDS = (
    {f"train {name}": training_of(name, changes) for name, changes in TRAININGS.items()}
    | {f"train {name}": training_of(name, changes) for name, changes in RANDOM_TRAININGS.items()}
    | {"go on": training_of("muon", [*TRAININGS["muon"], "training.max_steps=15"])}
    | {"fine-tune": training_of("fine", ["training.init_from=plain", "training.max_steps=2"])}
    | {f"search {name}": [*TRANSLATE, *SENTENCES, *options] for name, options in SEARCHES.items()}
    | OTHERS
)


@pytest.fixture(scope="module")
def answers(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each command says on each device, with the folder where it ran; and the library."""
    found: dict[str, Any] = {"library": library}
    for device in DEVICES:
        folder = tmp_path_factory.mktemp(device)
        (folder / "tiny.yaml").write_text(WITHOUT_DROPOUT)
        (folder / "terms.tsv").write_text("station\tferrovia\n")
        (folder / "s.en").write_text("Where is the station?\nGood morning.\n")
        (folder / "s.it").write_text("Dov'è la stazione?\nBuongiorno.\n")
        found[device] = {"folder": folder, **answers_of(device, library, folder, COMMANDS)}
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_the_same_on_both_devices(name: str, answers: dict[str, Any]) -> None:
    """But for rounding: the CPU has kernels of its own, and the other device takes the general ones, as a GPU does."""
    on_cpu, on_device = (answers[device][name] for device in DEVICES)
    assert on_device["code"] == 0, on_device["messages"]
    words, numbers = parts_of(on_device["output"])
    expected_words, expected_numbers = parts_of(on_cpu["output"])
    assert words == expected_words
    assert numbers == pytest.approx(expected_numbers, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_has_the_same_losses_on_both_devices(name: str, answers: dict[str, Any]) -> None:
    losses = [losses_of(answers[device]["folder"] / "runs" / name) for device in DEVICES]
    assert len(losses[0]) >= 8
    is_rounded = "runtime.precision" in " ".join(TRAININGS[name])
    assert losses[1] == pytest.approx(losses[0], rel=0.03 if is_rounded else 1e-4)


def test_with_random_regularisation_a_training_learns_on_the_device(
    answers: dict[str, Any],
) -> None:
    losses = losses_of(answers["imitation"]["folder"] / "runs/regularised")
    assert losses[-1] < losses[0]


def test_the_device_notices_a_tensor_at_the_wrong_place(
    answers: dict[str, Any],
) -> None:
    """So the commands above would have failed."""
    code = (
        "import sys, torch; from pathlib import Path; from commands_on_device import register\n"
        "register(Path(sys.argv[1]))\n"
        "table = torch.nn.Embedding(3, 2).to('imitation')\n"
        "assert table(torch.tensor([1, 2], device='imitation')).device.type == 'imitation'\n"
        "table(torch.tensor([1, 2]))"
    )
    command = [sys.executable, "-c", code, str(answers["library"])]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    assert "tensors of the device and of the CPU" in done.stderr


def parts_of(output: str) -> tuple[list[str], list[float]]:
    """The text of an output between its numbers, and the numbers."""
    # `tfm explain` lists modules, and the fused attention, which the CPU does not take, has none for its dropout.
    output = "".join(line for line in output.splitlines(True) if "attention.dropout" not in line)
    number = r"-?\d+\.\d+(?:e-?\d+)?"
    return re.split(number, output), [float(one) for one in re.findall(number, output)]


def losses_of(run: Path) -> list[float]:
    return [line["loss"] for line in metrics_of(run) if "loss" in line]
