"""Every override of a trained run has an effect on the command that takes it, or is refused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from transformer_cli.acceleration.prepared_transformer import PreparedTransformer
from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import Snapshot
from transformer_cli.commands.align import align_command
from transformer_cli.commands.info import info_command
from transformer_cli.commands.likelihood import likelihood_command
from transformer_cli.commands.next import next_command
from transformer_cli.commands.translate import translate_command
from transformer_cli.commands.validate import validate_command
from transformer_cli.config import DecodingConfig, FilesData, SequencesData, to_yaml
from transformer_cli.config.loading import (
    OVERRIDABLE,
    Command,
    commands_that_take,
    overridable_setting,
)
from transformer_cli.config.refusal import setting_paths
from transformer_cli.config.schema import SCORES_BY_DEFAULT
from transformer_cli.extensions.lessons.commands.explain import explain_command
from transformer_cli.extensions.serving.batcher import Job
from transformer_cli.extensions.serving.served_runs import load_served_runs
from transformer_cli.model import Transformer
from transformer_cli.process.errors import ConfigError, TfmError, UsageError

from ..decoding.small_translators import WORDS, config_of, random_model, tokenizer_of_words

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("few_samples")]

BEAM = DecodingConfig(beam_size=4, length_penalty=0.6, repair=False)
# The translations of the first three lines depend on how lengths count.
SPANS = [(1, 7), (1, 8), (5, 8), (0, 6), (0, 1), (0, 2), (1, 3), (2, 5), (6, 8), (7, 8)]
LINES = [" ".join(WORDS[first:last]) for first, last in SPANS]
LINES.append(f"- {WORDS[0]} {WORDS[2]}")  # an item of a list
LINES.append(f"... {WORDS[3]} {WORDS[1]}")  # marks before the text
LINES.append(f"{WORDS[0].capitalize()}. {WORDS[1].capitalize()}.")  # two sentences

# For each setting that a trained run may change: a value that differs from the one in the run's config.
VALUES = {
    "decoding.engine": "ctranslate2",
    "decoding.beam_size": "1",
    "decoding.length_penalty": "9",
    "decoding.num_best": "2",
    "decoding.length_normalization": "average",
    "decoding.coverage_penalty": "2.0",
    "decoding.max_length": "1",
    "decoding.max_length_ratio": "0.3",
    "decoding.min_length": "9",
    "decoding.min_length_ratio": "1.5",
    "decoding.no_repeat_ngram_size": "1",
    "decoding.mbr": "{candidates: 4}",
    "decoding.mbr.candidates": "4",
    "decoding.rescore": "{models: [{run: text, kind: right-to-left, weight: 50.0}]}",
    "decoding.rescore.models": "[{run: text, kind: right-to-left, weight: 50.0}]",
    "decoding.rescore.candidates": "4",
    "decoding.diversity": "{groups: 4}",
    "decoding.diversity.groups": "4",
    "decoding.diversity.strength": "2.0",
    "decoding.sampling": "{temperature: 2.0}",
    "decoding.sampling.temperature": "2.0",
    "decoding.sampling.top_k": "3",
    "decoding.sampling.top_p": "0.9",
    "decoding.sampling.min_p": "0.1",
    "decoding.sampling.seed": "2",
    "decoding.allow_unknown": "false",
    "decoding.split_sentences": "false",
    "decoding.keep_layout": "false",
    "decoding.keep_text": "false",
    "decoding.repair": "true",
    "decoding.shortlist": "{frequent: 5}",
    "decoding.shortlist.frequent": "5",
    "decoding.shortlist.best": "2",
    "decoding.known_spellings": "false",
    "decoding.batch_tokens": "5",
    "runtime.precision": "bfloat16",
    "runtime.threads": "2",
    "runtime.device": "cuda",
    "runtime.workers": "2",
    "runtime.compile": "true",
    "runtime.cuda_graphs": "true",
    "runtime.sharding": "full",
    "runtime.stuck_after_seconds": "100",
    "data.root": "other",
    "validation.max_sentences": "3",
    "validation.scores": "[ter]",
    "validation.beam_size": "3",
    "validation.num_samples": "1",
    "validation.sequence_lengths": "[2]",
}
SETTINGS = [
    path
    for path in setting_paths({"source": "files"})
    if path.startswith(("decoding.", "runtime.", "validation.")) or path == "data.root"
]
# The benchmark takes long, and has tests of its own.
COMMANDS = tuple(command for command in get_args(Command) if command != "benchmark --decode")
# Commands that give the settings to the same translator.
ALIKE = ("translate", "serve", "validate", "validate --source")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the untrained runs `text` and `task`, and the corpus of `text` twice."""
    folder = tmp_path_factory.mktemp("runs")
    for root, last in ((".", len(LINES)), ("other", 9)):
        (folder / root).mkdir(exist_ok=True)
        rows = "".join(f"{line}\t{line[::-1]}\n" for line in LINES[:last])
        (folder / root / "dev.tsv").write_text(rows)
    corpora = [{"path": "train.tsv", "split": "train"}, {"path": "dev.tsv", "split": "validation"}]
    text = FilesData.model_validate({"source": "files", "corpora": corpora, "test_share": 0.0})
    task = SequencesData(source="sequences", num_pairs=10, max_length=5)
    tokenizer = tokenizer_of_words()
    for name, data in (("text", text), ("task", task)):
        model = random_model(tokenizer).float()
        config = config_of(model, BEAM, data)
        run = folder / "runs" / name
        run.mkdir(parents=True)
        (run / "config.yaml").write_text(to_yaml(config))
        files = portable_files(config, tokenizer, tokenizer)
        Checkpoints(run).save(Snapshot(1, model.state_dict(), {}, {}, files))
    (folder / "source.txt").write_text("".join(f"{line}\n" for line in LINES))
    return folder


@pytest.fixture
def folder(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the runs."""
    monkeypatch.chdir(runs)
    return runs


@pytest.fixture
def observed(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command; returns its output, the shapes that the encoder read, and the numbers of threads that it asked for."""
    shapes: list[tuple[int, ...]] = []
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)

    def spied(encode: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def spy(model: object, source_ids: torch.Tensor, *rest: Any) -> torch.Tensor:
            shapes.append(tuple(source_ids.shape))
            return encode(model, source_ids, *rest)

        return spy

    for model in (Transformer, PreparedTransformer):
        monkeypatch.setattr(model, "encode", spied(model.encode))

    def run(command: Command, run: str, *overrides: str) -> Any:
        shapes.clear()
        threads.clear()
        run_command(command, run, overrides, folder / "source.txt")
        return capfd.readouterr().out, list(shapes), list(threads)

    return run


def run_command(command: Command, run: str, overrides: Sequence[str], source: Path) -> None:
    """Run a command on a run, with its output on standard output."""
    shared: dict[str, Any] = {"run": run, "overrides": [*overrides], "as_json": True}
    match command:
        case "translate":
            translate_command(LINES, **shared)
        case "validate":
            validate_command(**shared)
        case "validate --source":
            validate_command(source=source, reference=source, **shared)
        case "likelihood":
            likelihood_command(source, source, **shared)
        case "align":
            align_command(source, source, **shared)
        case "next":
            next_command(LINES[-1], prefix=WORDS[0], top=5, **shared)
        case "serve":
            print(served(run, overrides))  # noqa: T201
        case "explain":
            explain_command(LINES[-1], run, overrides=[*overrides], as_json=True)


def served(run: str, overrides: Sequence[str]) -> list[tuple[str, float]]:
    """The translations that a server of a run gives, and their scores."""
    runs = load_served_runs([run], overrides, cache_bytes=0)
    try:
        [direction] = runs.directions.values()
        with direction.translator_for(Job(60.0)) as translator:
            return [(each.text, each.score) for each in translator.translate(LINES)]
    finally:
        runs.close()


def commands_to_try(number: int) -> list[Command]:
    """The commands that take a setting; of those that give it to the same translator, by turns one."""
    taking = commands_that_take(SETTINGS[number])
    alike = [command for command in ALIKE if command in taking]
    others = [command for command in COMMANDS if command in taking and command not in ALIKE]
    return [*(alike[number % len(alike)] for _ in alike[:1]), *others]


@pytest.fixture(scope="module")
def unchanged() -> dict[tuple[Command, str], Any]:
    """What the commands give for each run without an override, once they were asked."""
    return {}


@pytest.mark.heavy
@pytest.mark.parametrize(
    "number", [n for n, name in enumerate(SETTINGS) if commands_to_try(n)], ids=SETTINGS.__getitem__
)
def test_an_accepted_override_has_an_effect(
    observed: Callable[..., Any], unchanged: dict[tuple[Command, str], Any], number: int
) -> None:
    setting = SETTINGS[number]
    if setting == "decoding.engine":
        pytest.importorskip("ctranslate2")
    run = "task" if setting == "validation.sequence_lengths" else "text"
    for command in commands_to_try(number):
        fewer = ["validation.scores=[chrf]"] if command.startswith("validate") else []
        changes = [*fewer, f"{setting}={VALUES[setting]}"]
        if setting == "runtime.cuda_graphs" and torch.cuda.is_available():
            continue  # the same translations, faster
        is_for_a_gpu = setting in ("runtime.device", "runtime.cuda_graphs")
        if is_for_a_gpu and not torch.cuda.is_available():  # its value is looked at
            with pytest.raises(ConfigError, match="cuda"):
                observed(command, run, *changes)
            continue
        if setting.startswith("decoding.shortlist"):  # the runs have no file of it
            with pytest.raises(TfmError, match=r"shortlist\.npz"):
                observed(command, run, *changes)
            continue
        if setting == "decoding.rescore.candidates":  # the runs name no models
            with pytest.raises(ConfigError, match=r"decoding\.rescore\.models"):
                observed(command, run, *changes)
            continue
        if (command, run) not in unchanged:
            unchanged[command, run] = observed(command, run, *fewer)
        assert observed(command, run, *changes) != unchanged[command, run], command


def test_every_other_override_is_refused_with_what_the_command_takes() -> None:
    for setting in SETTINGS:
        for command in {*COMMANDS} - {*commands_that_take(setting)}:
            with pytest.raises(ConfigError) as refused:
                overridable_setting(f"{setting}={VALUES[setting]}", command)
            assert refused.value.message.startswith(f"--set {setting}={VALUES[setting]}: this setting ")
            assert f"tfm {command} takes" in str(refused.value.hint)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_refuses_what_it_does_not_take(observed: Callable[..., Any], command: Command) -> None:
    with pytest.raises(ConfigError, match=r"--set runtime\.workers=2: this setting ") as refused:
        observed(command, "text", "runtime.workers=2")
    assert f"tfm {command} takes" in str(refused.value.hint)


def test_each_setting_that_a_run_may_change_works_on_some_command() -> None:
    taken = [name for name in SETTINGS if any(name.startswith(known) for known in OVERRIDABLE)]
    assert {*SETTINGS} - {*taken} == {
        "runtime.compile",
        "runtime.sharding",
        "runtime.stuck_after_seconds",
        "runtime.workers",
        "validation.beam_size",
    }


@pytest.mark.parametrize(
    ("command", "override", "hint"),
    [
        ("translate", "validation.scores=[bleu]", "it has one on tfm validate"),
        (
            "next",
            "decoding.beam_size=2",
            "it has one on tfm translate, tfm serve, tfm validate and tfm explain; ",
        ),
        ("validate", "decoding.num_best=2", "it has one on tfm translate"),
        ("validate", "validation.beam_size=2", "tfm validate takes decoding.beam_size instead"),
        ("validate --source", "data.root=.", "it has one on tfm validate"),
        ("translate", "decoding={beam_size: 2}", "tfm translate takes decoding.*, "),
        ("translate", "training.max_steps=3", "tfm translate takes decoding.*, "),
    ],
)
def test_a_refusal_says_where_the_setting_works(
    observed: Callable[..., Any], command: Command, override: str, hint: str
) -> None:
    with pytest.raises(ConfigError, match="--set ") as refused:
        observed(command, "text", override)
    assert hint in str(refused.value.hint)


def test_without_overrides_everything_is_scored_and_an_override_narrows_it(
    observed: Callable[..., Any], folder: Path
) -> None:
    config = folder / "runs/text/config.yaml"
    config.write_text(config.read_text().replace("validation:\n", "validation:\n  max_sentences: 2\n"))

    def figures(*overrides: str) -> tuple[int, list[str]]:
        report = json.loads(observed("validate", "text", *overrides)[0])
        return report["num_sentences"], [score["name"].lower() for score in report["scores"]]

    assert figures() == (len(LINES), list(SCORES_BY_DEFAULT))
    narrow = "validation.max_sentences=3", "validation.scores=[wer, cer]"
    assert figures(*narrow) == (3, ["wer", "cer"])
    assert figures("validation.max_sentences=null") == (len(LINES), list(SCORES_BY_DEFAULT))
    assert figures("validation.scores=[]") == (len(LINES), [])


def test_more_translations_than_hypotheses_are_refused_with_a_hint_at_the_beam(
    observed: Callable[..., Any],
) -> None:
    with pytest.raises(ConfigError, match="above beam_size") as refused:
        observed("translate", "text", "decoding.num_best=3", "decoding.beam_size=1")
    assert "raise decoding.beam_size to 3" in str(refused.value.hint)


def test_info_of_a_run_takes_no_override(folder: Path) -> None:
    with pytest.raises(UsageError, match="--set goes with --config"):
        info_command("text", overrides=["decoding.beam_size=1"])
