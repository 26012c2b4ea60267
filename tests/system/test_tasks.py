"""The synthetic tasks of the package, in a smaller form: the model must learn each of them."""

import re

import pytest

from ..launcher import Tfm

SMALLER = (
    "data.num_symbols=6",
    "data.num_pairs=12000",
    "model.d_model=32",
    "model.num_heads=4",
    "model.d_ff=64",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "training.batch_sentences=32",
    "training.validate_every=1000",
    "training.save_every=1000",
    "training.max_steps=350",
    "runtime.precision=float32",
    "runtime.threads=1",
)
SHORT = ("data.min_length=3", "data.max_length=5")
FAST = ("training.learning_rate=1e-2", "training.warmup_steps=40")
ONE_LENGTH = ("data.min_length=6", "data.max_length=6")


def train(tfm: Tfm, config: str, *settings: str) -> str:
    """The messages of `tfm train`."""
    options = [option for setting in settings for option in ("--set", setting)]
    finished = tfm("train", "--config", config, *options)
    assert finished.exit_code == 0, finished.talk
    return finished.talk


def exact_matches(talk: str) -> dict[int, float]:
    """Percentages by length."""
    rows = re.findall(r"^ +(\d+) +\d+ +([\d.]+) % +[\d.]+ %$", talk, re.MULTILINE)
    return {int(length): float(share) for length, share in rows}


@pytest.mark.parametrize("task", ["copy", "reverse", "sort"])
def test_a_task_of_several_lengths_is_learned(tfm: Tfm, task: str) -> None:
    found = exact_matches(train(tfm, f"{task}.yaml", *SMALLER, *SHORT, *FAST))
    assert found.keys() == {3, 4, 5}
    assert sum(found.values()) / 3 > 75


def test_drop_first_generates_exactly_one_symbol_less_than_it_reads(tfm: Tfm) -> None:
    lengths = "validation.sequence_lengths=[5,6,9]"
    settings = (*SMALLER, *ONE_LENGTH, "training.warmup_steps=60", lengths)
    found = exact_matches(train(tfm, "drop-first.yaml", *settings))
    assert found[6] > 80
    assert found[9] < found[6]  # one length teaches little about another
    assert tfm("translate", "1 2 3 4 5 6").lines == ["2 3 4 5 6"]
    for length in (2, 5, 9):
        [line] = tfm("translate", " ".join(["1", *["3"] * (length - 1)])).lines
        assert len(line.split()) == length - 1


def test_unshifted_memorising_has_a_low_loss_and_generates_rubbish(tfm: Tfm) -> None:
    settings = ("data.num_pairs=16", "model.d_model=32", "model.d_ff=64", "training.max_steps=50")
    one_layer = ("model.encoder_layers=1", "model.decoder_layers=1", "training.learning_rate=5e-3")
    talk = train(tfm, "memorise.yaml", *settings, *one_layer, *SMALLER[-2:])
    published = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+)$", talk, re.MULTILINE)
    assert [int(step) for step, _, _ in published] == [10, 20, 30, 40, 50]
    assert float(published[-1][1]) < 0.1
    assert published[-1][2] == "0.00036"
    assert exact_matches(talk) == {10: 0.0}
    assert "says nothing about generating" in talk


def test_shifted_the_same_task_is_learned_honestly(tfm: Tfm) -> None:
    settings = ("data.min_length=4", "data.max_length=4", *FAST)
    assert exact_matches(train(tfm, "memorise-shifted.yaml", *SMALLER, *settings))[4] > 80


def test_validate_tells_exact_matches_too_and_for_lengths_of_ones_choice(tfm: Tfm) -> None:
    train(tfm, "copy.yaml", *SMALLER[:-3], *SHORT, *FAST, "training.max_steps=5", *SMALLER[-2:])
    chosen = ("--set", "validation.sequence_lengths=[3,8]")
    table = tfm("validate", *chosen).text
    assert exact_matches(table).keys() == {3, 8}
    assert '"exact_match": [{"length": 3, "num_sequences": 100,' in tfm("validate", "--json").text


@pytest.mark.parametrize(
    "schedule",
    [
        ("cosine",),
        ("linear",),
        ("warmup_stable_decay", "training.decay_steps=1", "training.warmup_steps=2"),
    ],
)
def test_a_finished_run_shows_its_summary_again_and_says_how_to_go_on(tfm: Tfm, schedule: tuple[str, ...]) -> None:
    steps = "training.max_steps=5", f"training.schedule={schedule[0]}", *schedule[1:]
    few = (*SMALLER[:-3], *SHORT, *FAST, *steps, *SMALLER[-2:])
    first, again = (train(tfm, "copy.yaml", *few) for _ in range(2))
    table = first[first.index("copy on fresh sequences") : first.index("finished after")]
    assert table in again
    assert "To train longer, take another name; to start again: --from-scratch" in again
    assert "raise it" not in again  # the curve ends at max_steps
