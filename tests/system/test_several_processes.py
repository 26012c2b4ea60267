"""Several processes train one model as one process does (B14, C10, C12)."""

import signal
import time
from pathlib import Path

import pytest

from ..experiments import SPEEDS, TINY, essence, metrics_of, newest_checkpoint, state_of, write_tiny
from ..launcher import Launcher, Tfm
from ..ranks import assert_close, free_port, run_ranks

pytestmark = pytest.mark.kills

ONE_EACH = TINY.replace("accumulate: 2", "accumulate: 1")
STREAMED = TINY.replace(
    "data: {source: sequences, num_pairs: 70, num_symbols: 10, min_length: 3, max_length: 6}",
    """data:
  source: files
  streaming: true
  both_directions: true
  corpora:
    - {path: train.tsv, split: train, tag: <BT>}
    - {path: held-out.tsv, split: validation}
tokenizer: {shared: true}""",
)
FIGURES = ("objective", "loss", "perplexity", "gradient_norm")


@pytest.fixture(scope="module")
def alone(finished_tiny: Path) -> Path:
    """A run of one process, which accumulates two micro-batches in each update."""
    return finished_tiny / "runs/tiny"


def assert_same_reports(run: Path, other: Path) -> None:
    """But for rounding, and for speeds; the figures of all directions together stand for those of each."""
    for ours, theirs in zip(metrics_of(run), metrics_of(other), strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours.keys() - {*SPEEDS, "directions"}:
            about = pytest.approx(theirs[name], rel=1e-5) if name in FIGURES else theirs[name]
            assert ours[name] == about, name


def test_two_processes_train_as_one_that_accumulates_twice_as_many_batches(tfm: Tfm, alone: Path) -> None:
    """With dropout, and with an update at the end of each epoch that has one batch only."""
    write_tiny(tfm.folder, ONE_EACH)
    main, other = run_ranks(tfm, "train", "--config", "tiny.yaml")
    assert (main.exit_code, other.exit_code) == (0, 0), main.talk + other.talk
    run = tfm.folder / "runs/tiny"
    assert_close(run, alone)
    assert_same_reports(run, alone)
    assert other.talk == ""
    assert "finished after 13 steps" in main.talk
    assert "updates of about 74 target tokens" in main.talk
    assert state_of(run)["progress"]["num_micro_batches"] == 2


def write_streamed(folder: Path, text: str) -> None:
    write_tiny(folder, text)
    for name, numbers in (("train", range(35)), ("held-out", range(50, 56))):
        lines = [f"{' '.join(str(n * 37))}\t{' '.join(str(n * 37)[::-1])} .\n" for n in numbers]
        (folder / f"{name}.tsv").write_text("".join(lines))


@pytest.mark.parametrize(("num_parts", "length"), [(1, 5), (2, 2 + 2 * 5)])
def test_two_processes_train_on_a_stream_as_one_does(
    tfm: Tfm, launcher: Launcher, memory_folder: Path, num_parts: int, length: int
) -> None:
    """Two stop at a signal in the second epoch, one goes on; with tags and both directions."""
    lone = Tfm(launcher, memory_folder / f"streamed-{num_parts}")
    lone.folder.mkdir()
    streamed = STREAMED.replace("streaming: true", f"streaming: true\n  stream_parts: {num_parts}")
    write_streamed(lone.folder, streamed)
    finished = lone("train", "--config", "tiny.yaml")
    assert finished.exit_code == 0, finished.talk
    write_streamed(tfm.folder, streamed.replace("accumulate: 2", "accumulate: 1"))
    stop = {1: [("at", "step", 7, "signal", "SIGTERM")]}
    main, other = run_ranks(tfm, "train", "--config", "tiny.yaml", faults=stop)
    assert (main.exit_code, other.exit_code) == (143, 143), main.talk + other.talk
    resumed = tfm("train", "--config", "tiny.yaml")
    assert resumed.exit_code == 0, resumed.talk
    run, expected = tfm.folder / "runs/tiny", lone.folder / "runs/tiny"
    position = state_of(run)["progress"]["position"]
    assert len(position) == length, "a buffer, and a place in the corpus, for each part"
    assert_close(run, expected)
    assert_same_reports(run, expected)


def test_a_signal_to_one_rank_stops_all_at_the_same_step_and_they_resume_on_another_number(
    tfm: Tfm, alone: Path
) -> None:
    """SIGTERM to the rank that does not write; then one process goes on with what two have begun."""
    write_tiny(tfm.folder, ONE_EACH)
    stop = {1: [("at", "step", 5, "signal", "SIGTERM")]}
    main, other = run_ranks(tfm, "train", "--config", "tiny.yaml", faults=stop)
    assert (main.exit_code, other.exit_code) == (143, 143), main.talk + other.talk
    assert "stopped and saved at step 5, because rank 1 received SIGTERM\n" in main.talk
    assert other.talk == ""
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000005"
    refused = run_ranks(tfm, "train", "--config", "tiny.yaml", size=3)
    assert [rank.exit_code for rank in refused] == [78, 78, 78]
    assert "of this run: 2, which 3 processes cannot share out" in refused[0].talk
    resumed = tfm("train", "--config", "tiny.yaml")
    assert resumed.exit_code == 0, resumed.talk
    assert_close(tfm.folder / "runs/tiny", alone)
    assert_same_reports(tfm.folder / "runs/tiny", alone)


def test_a_signal_that_torchrun_passes_on_as_well_saves_all_the_same(tfm: Tfm) -> None:
    """A service manager signals torchrun and its processes; each process gets the signal twice."""
    write_tiny(tfm.folder, ONE_EACH)
    twice = ("at", "step", 5, "signal", "SIGTERM", 2)
    started_by = {"TORCHELASTIC_RUN_ID": "none"}
    main, other = run_ranks(
        tfm,
        "train",
        "--config",
        "tiny.yaml",
        faults={0: [twice], 1: [twice]},
        environment=started_by,
    )
    assert (main.exit_code, other.exit_code) == (143, 143), main.talk + other.talk
    assert "a second signal, 5 seconds later or more, ends the run at once" in main.talk
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000005"


def test_a_resumed_run_of_two_processes_equals_the_uninterrupted_one_bit_for_bit(
    tfm: Tfm, launcher: Launcher, memory_folder: Path
) -> None:
    """SIGUSR1 to one rank saves; kill -9 of either costs no more than the work since the last save."""
    whole = Tfm(launcher, memory_folder / "whole")
    whole.folder.mkdir()
    for one in (whole, tfm):
        write_tiny(one.folder, ONE_EACH)
    assert [rank.exit_code for rank in run_ranks(whole, "train", "--config", "tiny.yaml")] == [0, 0]
    for killed, survivor in ((1, 0), (0, 1)):
        ask = [("at", "step", 2, "signal", "SIGUSR1")]
        faults = {killed: [*ask, ("at", "step", 3, "signal", "SIGKILL")]}
        ranks = run_ranks(tfm, "train", "--config", "tiny.yaml", faults=faults)
        assert ranks[killed].exit_code == -signal.SIGKILL
        assert ranks[survivor].exit_code == 75, ranks[survivor].talk
        assert f"rank {killed} " in ranks[survivor].talk
        assert "goes on from the last checkpoint" in ranks[survivor].talk
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000004"
    assert [rank.exit_code for rank in run_ranks(tfm, "train", "--config", "tiny.yaml")] == [0, 0]
    ends = [essence(one.folder / "runs/tiny") for one in (tfm, whole)]
    for end in ends:
        del end["checkpoints"]
    assert ends[0] == ends[1]


def test_memory_that_is_too_small_and_a_gradient_that_is_not_finite_are_dealt_with_by_all(
    tfm: Tfm, launcher: Launcher, memory_folder: Path
) -> None:
    """One rank cuts its batch in halves, the other waits; one has NaN in its gradient, both skip the update."""
    sound = Tfm(launcher, memory_folder / "sound")
    sound.folder.mkdir()
    for one in (sound, tfm):
        write_tiny(one.folder, ONE_EACH.replace("dropout: 0.1", "dropout: 0.0"))
    poison = ["poison", 5, 5]
    assert sound("train", "--config", "tiny.yaml", "--set", "training.accumulate=2", faults=[poison]).exit_code == 0
    faults = {1: [poison, ["at", "forward", 3, "raise", "MemoryError", "out of memory"]]}
    main, other = run_ranks(tfm, "train", "--config", "tiny.yaml", faults=faults)
    assert (main.exit_code, other.exit_code) == (0, 0), main.talk + other.talk
    assert "step 3: out of memory, so its batches were cut in parts" in main.talk
    assert metrics_of(tfm.folder / "runs/tiny")[-2]["num_skipped"] == 1
    assert_close(tfm.folder / "runs/tiny", sound.folder / "runs/tiny", within=1e-5)


def test_a_signal_to_one_rank_during_a_validation_stops_it_for_all(tfm: Tfm, alone: Path) -> None:
    write_tiny(tfm.folder, ONE_EACH.replace("beam_size: 2}", "beam_size: 2, batch_tokens: 1}"))
    stop = {1: [("at", "batch", 2, "signal", "SIGTERM")]}
    main, other = run_ranks(tfm, "train", "--config", "tiny.yaml", faults=stop)
    assert (main.exit_code, other.exit_code) == (143, 143), main.talk + other.talk
    assert "step 4  validation: stopped; the resumed run repeats it" in main.talk
    assert [rank.exit_code for rank in run_ranks(tfm, "train", "--config", "tiny.yaml")] == [0, 0]
    assert_same_reports(tfm.folder / "runs/tiny", alone)


def test_a_time_limit_ends_all_at_the_same_step_and_the_same_command_goes_on(tfm: Tfm, alone: Path) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    command = ("train", "--config", "tiny.yaml", "--set", "training.max_minutes=0.0001")
    for step in range(1, 3):
        main, other = run_ranks(tfm, *command)
        assert (main.exit_code, other.exit_code) == (0, 0), main.talk + other.talk
        assert f"stopped by training.max_minutes=0.0001 after {step} step" in main.talk
        assert "the same command continues it" in main.talk
    main, _ = run_ranks(tfm, "train", "--config", "tiny.yaml")
    assert "finished after 13 steps" in main.talk
    assert_close(tfm.folder / "runs/tiny", alone)


@pytest.mark.filterwarnings("ignore")
def test_a_sharded_model_trains_as_a_whole_one_and_each_goes_on_with_the_checkpoints_of_the_other(
    tfm: Tfm, alone: Path
) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    sharded = ("train", "--config", "tiny.yaml", "--set", "runtime.sharding=full")
    lone = tfm(*sharded)
    assert lone.exit_code == 78
    assert "runtime.sharding: full shares the model" in lone.talk
    stop = {0: [("at", "step", 5, "signal", "SIGTERM")]}
    assert [rank.exit_code for rank in run_ranks(tfm, *sharded, faults=stop)] == [143, 143]
    stop_later = [("at", "step", 2, "signal", "SIGTERM")]
    whole = tfm("train", "--config", "tiny.yaml", faults=stop_later)
    assert whole.exit_code == 143, whole.talk
    main, other = run_ranks(tfm, *sharded)
    assert (main.exit_code, other.exit_code) == (0, 0), main.talk + other.talk
    assert_close(tfm.folder / "runs/tiny", alone, within=1e-5)
    assert_same_reports(tfm.folder / "runs/tiny", alone)


OPTIONS = {
    "sharded, with averages": (
        ("training.ema_decay=0.9", "training.average_last=2"),
        ("runtime.sharding=full",),
    ),
    "sharded, with updates of three batches": (
        ("training.update_tokens=110",),
        ("runtime.sharding=full",),
    ),
    "fine-tuned": (("training.init_from=../alone/runs/tiny", "training.frozen=[encoder]"), ()),
    "sampled": (
        ("training.update_tokens=70", "training.word_dropout=0.1", "training.r_drop=1.0", "model.layer_dropout=0.2"),
        (),
    ),
    "cut": (("training.simcut={probability: 0.3}",), ()),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIONS)
def test_two_processes_train_as_one_with_other_options_too(
    tfm: Tfm, launcher: Launcher, memory_folder: Path, alone: Path, name: str
) -> None:
    """One process and two of them; these are stopped and go on."""
    settings, of_two = OPTIONS[name]
    one = Tfm(launcher, memory_folder / name.replace(" ", "-"))
    one.folder.mkdir()
    given = [part for setting in settings for part in ("--set", setting.replace("../alone", str(alone.parent.parent)))]
    command = ("train", "--config", "tiny.yaml", *given)
    write_tiny(one.folder, ONE_EACH if "update_tokens" in str(settings) else TINY)
    finished = one(*command)
    assert finished.exit_code == 0, finished.talk
    write_tiny(tfm.folder, ONE_EACH)
    more = [part for setting in of_two for part in ("--set", setting)]
    stop = {1: [("at", "step", 3, "signal", "SIGTERM")]}
    assert [rank.exit_code for rank in run_ranks(tfm, *command, *more, faults=stop)] == [143, 143]
    main, other = run_ranks(tfm, *command, *more)
    assert (main.exit_code, other.exit_code) == (0, 0), main.talk + other.talk
    assert_close(tfm.folder / "runs/tiny", one.folder / "runs/tiny", within=1e-5)
    assert_same_reports(tfm.folder / "runs/tiny", one.folder / "runs/tiny")


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (("training.learning_rate=0.5",), "training.learning_rate: 0.005 in rank 0, 0.5 in rank 1"),
        (("training.max_steps=5",), "training.max_steps: 13 in rank 0, 5 in rank 1"),
        (("training.clip_norm=null",), "training.clip_norm: 0.5 in rank 0, absent in rank 1"),
        (("model.d_model=64", "seed=9"), "seed: 3 in rank 0, 9 in rank 1"),
        (("name=other",), "name: tiny in rank 0, other in rank 1"),
    ],
)
def test_different_settings_of_two_processes_are_refused_by_name(
    settings: tuple[str, ...], shown: str, tfm: Tfm
) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    further = {1: [part for one in settings for part in ("--set", one)]}
    finished = run_ranks(tfm, "train", "--config", "tiny.yaml", further=further)
    for one in finished:
        assert one.exit_code == 78, one.talk
        assert "the processes were started with different settings" in one.talk
        assert shown in one.talk
        assert "start all processes with the same command" in one.talk
    assert not (tfm.folder / "runs/tiny/checkpoints").exists()


def test_settings_of_one_machine_may_differ(tfm: Tfm, alone: Path) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    further = {1: ("--set", "runtime.threads=2", "--set", "runtime.workers=2")}
    main, other = run_ranks(tfm, "train", "--config", "tiny.yaml", further=further)
    assert (main.exit_code, other.exit_code) == (0, 0), main.talk + other.talk
    assert_close(tfm.folder / "runs/tiny", alone)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_waits_for_the_others_at_the_start_ends_at_the_first_signal(rank: int, tfm: Tfm) -> None:
    """Rank 0 waits for rank 1; rank 1 for the store of rank 0."""
    write_tiny(tfm.folder, ONE_EACH)
    here = {"WORLD_SIZE": "2", "RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
    place = here | {"MASTER_PORT": str(free_port())}
    waits = ("each", "connection", "note", str(tfm.folder / "connects"), "now")
    process = tfm.start("train", "--config", "tiny.yaml", environment=place, faults=[waits])
    process.wait_until((tfm.folder / "connects").exists)
    time.sleep(0.5)  # it is inside the connection now
    process.send(signal.SIGTERM)
    started_at = time.monotonic()
    assert process.wait().exit_code == 143
    assert time.monotonic() - started_at < 20
