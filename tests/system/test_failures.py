"""Every failure gives one message on standard error, one hint and its exit code (group G)."""

import errno
import gzip
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from transformer_cli.process import errors

from ..experiments import TINY, forge, metrics_of, newest_checkpoint, write_tiny
from ..launcher import Finished, Launcher, Tfm

pytestmark = pytest.mark.kills

CORPUS = """
data:
  source: files
  corpora: [{split: train, source_path: a.en, target_path: a.it},
            {split: validation, source_path: dev.en, target_path: dev.it}]
"""
TRAIN = ["train", "--config", "tiny.yaml"]


class Failure(NamedTuple):
    """A command that must fail, and the expected exit code and message."""

    exit_code: int
    arguments: list[str]
    says: str
    prepare: Callable[[Path], object] = lambda folder: write_tiny(folder)
    faults: Sequence[Sequence[Any]] = ()


def with_corpus(**files: str | bytes) -> Callable[[Path], object]:
    """Two text files as the corpus; the test replaces the content of some of them."""

    def prepare(folder: Path) -> None:
        texts: dict[str, str | bytes] = {
            "a.en": "".join(f"w{i} w{i % 7}\n" for i in range(40)),
            "a.it": "".join(f"p{i} p{i % 7}\n" for i in range(40)),
            "dev.en": "w1\nw2\n",
            "dev.it": "p1\np2\n",
        } | {name.replace("_", "."): text for name, text in files.items()}
        for name, text in texts.items():
            (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        before, _, after = TINY.partition("data: {")
        write_tiny(folder, before + CORPUS + after.partition("}\n")[2])

    return prepare


def with_table(name: str, content: bytes) -> Callable[[Path], object]:
    """One file with both sides as the training corpus."""

    def prepare(folder: Path) -> None:
        with_corpus()(folder)
        (folder / name).write_bytes(content)
        text = (folder / "tiny.yaml").read_text()
        write_tiny(folder, text.replace("source_path: a.en, target_path: a.it", f"path: {name}"))

    return prepare


def with_pipe(folder: Path) -> None:
    with_corpus()(folder)
    (folder / "a.en").unlink()
    os.mkfifo(folder / "a.en")


def with_folder(folder: Path) -> None:
    with_corpus()(folder)
    (folder / "a.en").unlink()
    (folder / "a.en").mkdir()


def without_validation(folder: Path) -> None:
    with_corpus()(folder)
    text = (folder / "tiny.yaml").read_text()
    write_tiny(folder, re.sub(r",\s*{split: validation[^}]*}", "", text))


def without_source(folder: Path) -> None:
    with_corpus()(folder)
    (folder / "a.en").unlink()


def with_setting(old: str, new: str) -> Callable[[Path], object]:
    assert old in TINY
    return lambda folder: write_tiny(folder, TINY.replace(old, new))


def with_file_as_runs(folder: Path) -> None:
    write_tiny(folder)
    (folder / "runs").write_text("a file, not a folder")


def with_damaged_run(folder: Path) -> None:
    """Every checkpoint of a trained run has a flipped bit."""
    shutil.copytree(folder.parent / "trained", folder, symlinks=True, dirs_exist_ok=True)
    for weights in (folder / "runs/tiny/checkpoints").glob("step-*/model.safetensors"):
        data = bytearray(weights.read_bytes())
        data[-5] ^= 1
        weights.write_bytes(data)


def with_trained_run(folder: Path) -> None:
    shutil.copytree(folder.parent / "trained", folder, symlinks=True, dirs_exist_ok=True)


def without_tokenizers(folder: Path) -> None:
    with_trained_run(folder)
    for file in (folder / "runs/tiny/checkpoints").glob("step-*/tokenizer.source.json"):
        file.unlink()


def with_forged(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """A trained run whose newest checkpoint has another file, and a manifest that agrees."""

    def prepare(folder: Path) -> None:
        with_trained_run(folder)
        checkpoint = newest_checkpoint(folder / "runs/tiny")
        forge(checkpoint, name, change((checkpoint / name).read_bytes()))

    return prepare


def with_larger_vocabulary(tokenizer: bytes) -> bytes:
    fields = json.loads(tokenizer)
    fields["model"]["vocab"]["one-more"] = len(fields["model"]["vocab"])
    return json.dumps(fields).encode()


def with_swapped_tokenizers(folder: Path) -> None:
    """The vocabularies have the same size, so that the shapes of the model do not reveal the swap."""
    shutil.copytree(folder.parent / "trained-on-files", folder, symlinks=True, dirs_exist_ok=True)
    checkpoint = newest_checkpoint(folder / "runs/tiny")
    source, target = (checkpoint / f"tokenizer.{side}.json" for side in ("source", "target"))
    ours, theirs = source.read_bytes(), target.read_bytes()
    assert len(ours) == len(theirs)
    assert ours != theirs
    source.write_bytes(theirs)
    target.write_bytes(ours)


def with_other_data(folder: Path) -> None:
    """A run whose corpus file has changed since it was trained."""
    shutil.copytree(folder.parent / "trained-on-files", folder, symlinks=True, dirs_exist_ok=True)
    with (folder / "a.en").open("a") as file:
        file.write("w1\n")
    with (folder / "a.it").open("a") as file:
        file.write("p1\n")


CHECKPOINT = ["--run", "runs/tiny/checkpoints/step-00000013", "x"]
# Only a command that computes reaches this fault; its exit code would be 70.
NO_FORWARD = [("at", "translation", 1, "raise", "RuntimeError", "the model was asked")]

FAILURES = {
    "an unknown command": Failure(2, ["trian"], "did you mean tfm train?"),
    "an unknown option": Failure(
        2, [*TRAIN, "--epochs", "3"], "--epochs: there is no such option.*training.max_epochs=3"
    ),
    "a missing argument": Failure(2, ["train"], "train: missing option .--config."),
    "a bad choice": Failure(2, ["validate", "--split", "dev"], "--split: 'dev' is not one of 'validation', 'test'"),
    "a beam of nothing": Failure(
        2, ["translate", "-b", "0", "x"], "--beam-size: should be greater than or equal to 1, found '0'"
    ),
    "two inputs": Failure(2, ["translate", "x", "--input", "y"], "either sentences or --input"),
    "a source without reference": Failure(2, ["validate", "--source", "x"], "give both --source and --reference"),
    "a run and a config": Failure(2, ["info", "--run", "x", "--config", "y"], "either --run or"),
    "scores of training text": Failure(2, ["validate", "--split", "train"], "train", with_trained_run),
    "settings of a run": Failure(2, ["info", "--set", "seed=1"], "goes with --config"),
    "unequal line counts": Failure(65, TRAIN, r"a\.en has 40.*a\.it has 39|40.*39", with_corpus(a_it="p\n" * 39)),
    "unequal held-out counts": Failure(65, TRAIN, "2.*1|1.*2", with_corpus(dev_it="p1\n")),
    "an empty corpus": Failure(65, TRAIN, r"a\.en", with_corpus(a_en="", a_it="")),
    "no validation split": Failure(65, TRAIN, "no validation pairs", without_validation),
    "an empty validation file": Failure(65, TRAIN, r"dev\.en|no validation pairs", with_corpus(dev_en="", dev_it="")),
    "only blank lines": Failure(65, TRAIN, "empty", with_corpus(a_en="\n" * 40)),
    "everything dropped": Failure(65, TRAIN, "equal", with_corpus(a_it="".join(f"w{i} w{i % 7}\n" for i in range(40)))),
    "bytes that are no text": Failure(65, TRAIN, r"a\.it:3", with_corpus(a_it=b"p\np\n\xff\xfe\n" + b"p\n" * 37)),
    "no test split": Failure(65, ["data", "--config", "tiny.yaml", "--split", "test"], "no test", with_corpus()),
    "lines one more on one side": Failure(65, TRAIN, "a.en has 41 lines, .*a.it has 40", with_corpus(a_en="w\n" * 41)),
    "UTF-16 text": Failure(65, TRAIN, r"a\.en: UTF-16.*iconv", with_corpus(a_en="uno\ndue\n".encode("utf-16"))),
    "one sentence again and again": Failure(
        65, TRAIN, "lost 39 of its 40 pairs.*drop_duplicates", with_corpus(a_en="w\n" * 40, a_it="p\n" * 40)
    ),
    "more than half dropped": Failure(
        65, TRAIN, "lost 30 of its 40 pairs.*drop_empty +30", with_corpus(a_en="w\n" * 10 + "\n" * 30)
    ),
    "a corpus cut short": Failure(
        65,
        TRAIN,
        r"a\.csv\.gz: cut short",
        with_table("a.csv.gz", gzip.compress(b"".join(b"w%d,p%d\n" % (n, n) for n in range(50)))[:-5]),
    ),
    "a corpus that is not compressed": Failure(
        65, TRAIN, r"its name ends in \.gz", with_table("a.tsv.gz", b"w1\tp1\n")
    ),
    "a corpus of an unknown kind": Failure(
        65, TRAIN, r"a\.doc: its name does not tell its format", with_table("a.doc", b"w1\tp1\n")
    ),
    "a spreadsheet in its own format": Failure(
        65, TRAIN, "of a spreadsheet .*tfm data import", with_table("a.csv", b"PK\x03\x04" + bytes(50))
    ),
    "a tab too many": Failure(
        65, TRAIN, r"a\.tsv:2: 3 columns, where the first row has 2", with_table("a.tsv", b"w1\tp1\nw2\tp2\tx\n")
    ),
    "a line that is no JSON": Failure(
        65, TRAIN, r"a\.jsonl:2: not a JSON object", with_table("a.jsonl", b'{"en": "a", "it": "b"}\n{\n')
    ),
    "one column": Failure(65, TRAIN, r"a\.csv: one column only", with_table("a.csv", b"w1\nw2\n")),
    "a pipe as a corpus": Failure(65, TRAIN, r"a\.en: a pipe or device", with_pipe),
    "a folder as a text": Failure(65, TRAIN, r"a\.en: a folder, where a file is expected", with_folder),
    "data that changed under a run": Failure(65, TRAIN, r"a\.en.*--accept-data-change", with_other_data),
    "a tokenizer of another size": Failure(
        65,
        ["translate", *CHECKPOINT],
        "instead of",
        with_forged("tokenizer.target.json", with_larger_vocabulary),
        NO_FORWARD,
    ),
    "swapped tokenizers": Failure(
        65,
        ["translate", "--run", "runs/tiny/checkpoints/step-00000001", "x"],
        r"tokenizer\.source\.json",
        with_swapped_tokenizers,
        NO_FORWARD,
    ),
    "a pickle as weights": Failure(
        65,
        ["translate", *CHECKPOINT],
        r"model\.safetensors",
        with_forged("model.safetensors", lambda _: pickle.dumps([1] * 99)),
        NO_FORWARD,
    ),
    "weights that are cut short": Failure(
        65,
        ["translate", *CHECKPOINT],
        r"model\.safetensors",
        with_forged("model.safetensors", lambda data: data[:-9]),
        NO_FORWARD,
    ),
    "a tokenizer that is none": Failure(
        65, ["translate", *CHECKPOINT], "tokenizer", with_forged("tokenizer.source.json", lambda _: b"{}"), NO_FORWARD
    ),
    "no such config": Failure(66, ["train", "--config", "en-ti.yaml"], "en-ti.yaml: no such config"),
    "no such corpus": Failure(66, TRAIN, r"a\.en", without_source),
    "no run to validate": Failure(66, ["validate"], "no run under runs/"),
    "no run to show": Failure(66, ["info"], "no run under runs/"),
    "no such run": Failure(66, ["translate", "--run", "tyni", "x"], "tyni: no such run", with_trained_run),
    "no such input": Failure(66, ["translate", "--input", "x.txt"], r"x\.txt: no such file", with_trained_run),
    "no such reference": Failure(66, ["validate", "--source", "a", "--reference", "b"], "a", with_trained_run),
    "steps that are not finite": Failure(
        69,
        [*TRAIN, "--set", "training.max_skipped_in_a_row=2"],
        "step 2: the last 2 updates",
        faults=[("poison", 1, 99)],
    ),
    "an internal error": Failure(
        70, TRAIN, "two and two are five", faults=[("at", "step", 2, "raise", "RuntimeError", "two and two are five")]
    ),
    "runs is a file": Failure(73, TRAIN, "runs", with_file_as_runs),
    "no folder for the output": Failure(73, ["translate", "x", "--output", "no/out"], "no/out", with_trained_run),
    "output below a file": Failure(
        73, ["translate", "x", "--output", "tiny.yaml/out"], "tiny.yaml/out", with_trained_run
    ),
    "output is a folder": Failure(73, ["translate", "x", "--output", "runs"], "runs", with_trained_run),
    "a damaged run to train": Failure(74, TRAIN, "no checkpoint is valid", with_damaged_run),
    "a damaged run to translate": Failure(74, ["translate", "x"], "no checkpoint is valid", with_damaged_run),
    "checkpoints without a file": Failure(
        74, ["translate", "--run", "tiny", "x"], "tokenizer.source.json", without_tokenizers
    ),
    "a disk that fails": Failure(74, TRAIN, "Input/output error", faults=[("at", "flush", 3, "fail", "EIO")]),
    "no memory even for one sentence": Failure(
        75,
        TRAIN,
        "out of memory, even with a single sentence.*lower training.batch_tokens",
        faults=[("little_memory", 0)],
    ),
    "a full disk": Failure(75, TRAIN, "free", faults=[("at", "step", 6, "fill_disk")]),
    "a wrong key": Failure(
        78,
        TRAIN,
        r"tiny.yaml:10: training.warmup_step is not a setting; did you mean training.warmup_steps\?",
        with_setting("warmup_steps", "warmup_step"),
    ),
    "a wrong value": Failure(
        78, TRAIN, "tiny.yaml:4: model.dropout: .* found 1.5", with_setting("dropout: 0.1", "dropout: 1.5")
    ),
    "a wrong kind": Failure(
        78, TRAIN, "tiny.yaml:6: training.max_steps: .* found 'many'", with_setting("max_steps: 13", "max_steps: many")
    ),
    "a key given twice": Failure(
        78, TRAIN, "tiny.yaml:3: seed is given twice", with_setting("seed: 3", "seed: 3\nseed: 4")
    ),
    "no YAML": Failure(78, TRAIN, "tiny.yaml", with_setting("name: tiny", "name: [tiny")),
    "an empty config": Failure(78, TRAIN, "a config is a mapping", lambda folder: write_tiny(folder, "")),
    "a name that is a path": Failure(78, TRAIN, "name: ", with_setting("name: tiny", "name: ../tiny")),
    "settings that do not fit": Failure(78, TRAIN, "num_heads", with_setting("num_heads: 2", "num_heads: 3")),
    "a bad override": Failure(78, [*TRAIN, "--set", "training.max_step=3"], "training.max_step is not"),
    "an override without a value": Failure(78, [*TRAIN, "--set", "training.max_steps"], "not of the form"),
    "a device that is not here": Failure(78, [*TRAIN, "--set", "runtime.device=mps"], "finds no such device"),
    "an override of nothing": Failure(
        78, [*TRAIN, "--set", "training.max_steps="], "no value after the =.*training.max_steps=null"
    ),
    "a run of other settings": Failure(
        78, [*TRAIN, "--set", "model.d_model=32"], "model.d_model: was 16, now 32.*--from-scratch", with_trained_run
    ),
    "an alias": Failure(78, TRAIN, "tiny.yaml:2: anchors", with_setting("seed: 3", "seed: &a 3")),
    "a tag": Failure(78, TRAIN, "tiny.yaml:2: tags", with_setting("seed: 3", "seed: !!python/name:os.system 3")),
    "a tab for an indent": Failure(78, TRAIN, "tiny.yaml:6", with_setting("  max_steps", "\tmax_steps")),
    "a config of megabytes": Failure(
        78, TRAIN, "more than 1,000,000 bytes", lambda folder: write_tiny(folder, "#" * 10**7)
    ),
    "a config nested too deeply": Failure(78, TRAIN, "nested deeper", with_setting("seed: 3", "seed: " + "[" * 99)),
    "a program in a config": Failure(
        78, TRAIN, "_target_ is not a setting", with_setting("seed: 3", "_target_: os.system")
    ),
    "a number that is text": Failure(
        78,
        TRAIN,
        "tiny.yaml:6: training.max_steps: .* found '1_000'",
        with_setting("max_steps: 13", "max_steps: 1_000"),
    ),
    "a model changed for translating": Failure(
        78, ["translate", "--set", "model.d_model=8", "x"], "cannot be changed", with_trained_run
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _trained(launcher: Launcher, memory_folder: Path, finished_tiny: Path) -> None:
    """A trained run that some of the failures need."""
    shutil.copytree(finished_tiny, memory_folder / "trained", symlinks=True)
    on_files = memory_folder / "trained-on-files"
    on_files.mkdir()
    with_corpus()(on_files)
    finished = Tfm(launcher, on_files)(*TRAIN, "--set", "training.max_steps=1")
    assert finished.exit_code == 0, finished.talk


def assert_is_one_clear_message(finished: Finished) -> None:
    assert finished.out == b""
    assert "Traceback" not in finished.talk
    assert 'File "' not in finished.talk
    if finished.exit_code == 2 and finished.talk.startswith("Usage: "):
        assert re.search(r"^Try 'tfm.* -h' for help\.$", finished.talk, re.MULTILINE)
        assert len(re.findall(r"^Error: ", finished.talk, re.MULTILINE)) == 1
        return
    assert len(re.findall(r"^tfm: ", finished.talk, re.MULTILINE)) == 1
    assert len(re.findall(r"^  hint: \S", finished.talk, re.MULTILINE)) == 1
    assert re.search(r"^  hint: .*\n\Z", finished.talk, re.MULTILINE), "the hint comes last"


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_gives_one_message_a_hint_and_its_exit_code(tfm: Tfm, name: str) -> None:
    failure = FAILURES[name]
    failure.prepare(tfm.folder)
    finished = tfm(*failure.arguments, faults=failure.faults)
    assert finished.exit_code == failure.exit_code, finished.talk
    assert re.search(failure.says, finished.talk, re.DOTALL), finished.talk
    assert_is_one_clear_message(finished)


def test_every_kind_of_error_is_among_the_failures() -> None:
    """G6: every exit code has a case here."""
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type)}
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.TfmError)}
    assert codes <= {failure.exit_code for failure in FAILURES.values()}


def test_a_run_that_another_process_holds_gives_one_message_too(tfm: Tfm) -> None:
    write_tiny(tfm.folder)
    pause = tfm.folder / "pause"
    holder = tfm.start(*TRAIN, faults=[("at", "step", 2, "pause", str(pause))])
    holder.wait_until(pause.exists)
    finished = tfm(*TRAIN)
    pause.unlink()
    assert holder.wait().exit_code == 0
    assert finished.exit_code == 75
    assert str(holder.pid) in finished.talk
    assert_is_one_clear_message(finished)


def test_memory_for_few_sentences_is_enough_and_told_once(tfm: Tfm) -> None:
    """D10: without dropout, a run that splits its batches gives the same result, up to rounding."""
    write_tiny(tfm.folder, TINY.replace("dropout: 0.1", "dropout: 0.0"))
    losses = {}
    for name, faults in (("roomy", []), ("tight", [("little_memory", 3)])):
        finished = tfm(*TRAIN, "--set", f"name={name}", faults=faults)
        assert finished.exit_code == 0, finished.talk
        told = finished.talk.count("out of memory, so its batches were cut in parts")
        assert told == (name == "tight")
        losses[name] = [line["loss"] for line in metrics_of(tfm.folder / "runs" / name) if "loss" in line]
        if name == "tight":
            assert "updates whose batches were cut in parts: 13" in finished.talk
    assert losses["tight"] == pytest.approx(losses["roomy"], rel=1e-4)


def test_a_damaged_run_is_left_alone_until_from_scratch(tfm: Tfm) -> None:
    with_damaged_run(tfm.folder)
    folder = tfm.folder / "runs/tiny/checkpoints"
    before = {path: path.read_bytes() for path in folder.glob("step-*/*")}
    assert "--from-scratch" in tfm(*TRAIN).talk
    assert {path: path.read_bytes() for path in folder.glob("step-*/*")} == before
    again = tfm(*TRAIN, "--from-scratch")
    assert again.exit_code == 0, again.talk


def test_an_internal_error_asks_for_a_report(tfm: Tfm) -> None:
    fault = ("at", "step", 2, "raise", "RuntimeError", "two and two are five")
    finished = tfm(*TRAIN[:2], write_tiny(tfm.folder), faults=[fault])
    assert finished.exit_code == 70
    assert "please report it: RuntimeError: two and two are five" in finished.talk
    assert_is_one_clear_message(finished)
    assert "Traceback" in (tfm.folder / "runs/tiny/train.log").read_text(), "the log has it"


def test_debug_shows_the_traceback_too(tfm: Tfm) -> None:
    finished = tfm("train", "--config", "nothing.yaml", "--debug")
    assert finished.exit_code == 66
    assert "Traceback (most recent call last)" in finished.talk
    assert "\ntfm: nothing.yaml: no such config" in finished.talk


@pytest.mark.parametrize("kind", ["MemoryError", "RuntimeError"])
def test_out_of_memory_is_an_error_to_try_again(tfm: Tfm, kind: str) -> None:
    fault = (
        "at",
        "step",
        2,
        "raise",
        kind,
        "[enforce fail] DefaultCPUAllocator: can't allocate memory",
    )
    finished = tfm(*TRAIN[:2], write_tiny(tfm.folder), faults=[fault])
    assert finished.exit_code == 75
    assert_is_one_clear_message(finished)


def test_the_log_of_a_run_says_what_ended_it(tfm: Tfm) -> None:
    write_tiny(tfm.folder)
    tfm(*TRAIN, faults=[("at", "step", 2, "signal", "SIGTERM")])
    log = (tfm.folder / "runs/tiny/train.log").read_text()
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d stopped and saved at step 2$", log, re.MULTILINE)
    tfm(*TRAIN)
    log = (tfm.folder / "runs/tiny/train.log").read_text()
    assert "resuming runs/tiny at step 2" in log
    assert "step 12/13" in log
    assert log.count("pairs read") == 1


def test_a_full_disk_ends_the_run_and_keeps_what_was_saved(tfm: Tfm) -> None:
    """A4 through the command line: the hint says what to do, and doing it is enough."""
    write_tiny(tfm.folder)
    full = tfm(*TRAIN, faults=[("at", "step", 6, "fill_disk")])
    assert full.exit_code == 75, full.talk
    assert os.strerror(errno.EFBIG) in full.talk
    assert_is_one_clear_message(full)
    again = tfm(*TRAIN)
    assert again.exit_code == 0
    assert "resuming runs/tiny at step 4" in again.talk
