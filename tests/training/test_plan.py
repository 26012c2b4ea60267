"""The plan of a run: its numbers, and warnings before the first step."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.config import Config, load_config, shipped_configs
from transformer_cli.config.loading import check_settings, parse_yaml
from transformer_cli.data.order import epoch_order
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.updates import StoredUpdates, Updates
from transformer_cli.process.device import Machine
from transformer_cli.training.advice import (
    Announcer,
    Plan,
    Vocabulary,
    one_or_two_digits,
    warnings,
)
from transformer_cli.training.callbacks import TrainingReport
from transformer_cli.training.optimizers import learning_rate

# Pairs, tokens per sentence of the longer side, entries of a vocabulary, validation sentences: as measured
# (/shared corpora, built-in corpus), or as their publishers say (opus_books, IWSLT, WMT).
SIZES = {
    "annotated-multi30k-de-en": (29_000, 12, 8_000, 1_014),
    "en-it": (60_000, 8, 1_700, 600),
    "europarl-en-it": (53_849, 14, 6_000, 1_500),
    "everyday": (274_000, 11, 6_000, 2_000),
    "everyday-further": (250_000, 11, 6_000, 2_000),
    "everyday-phrases": (299_000, 11, 6_000, 2_000),
    "iwslt14-de-en": (160_000, 24, 10_000, 7_283),
    "manythings-en-fr": (161_759, 9, 8_000, 2_000),
    "multi30k-en-de": (29_000, 14, 6_000, 1_014),
    "multi30k-en-de-diversified": (29_000, 14, 6_000, 1_014),
    "multi30k-en-de-diversified-tiny": (29_000, 14, 6_000, 1_014),
    "multi30k-en-de-fr": (58_000, 14, 8_000, 2_028),
    "multi30k-en-de-r-drop": (29_000, 14, 6_000, 1_014),
    "multi30k-en-de-tiny": (29_000, 14, 10_000, 1_014),
    "multi30k-en-de-wordlevel": (29_000, 12, 8_000, 1_014),
    "multi30k-en-fr": (29_000, 15, 6_000, 1_014),
    "opus-books-en-it": (29_000, 27, 22_463, 1_600),
    "student-en-it": (30_000, 11, 2_000, 600),
    "student-multi30k-en-de": (58_000, 14, 6_000, 1_014),
    "student-tatoeba-en-it": (76_665, 9, 4_000, 1_000),
    "tatoeba-en-it": (15_018, 9, 4_000, 1_000),
    "tatoeba-en-it-both": (30_036, 9, 4_000, 2_000),
    "tatoeba-en-it-both-first": (15_018, 9, 4_000, 1_000),
    "wmt14-en-de-base": (4_500_000, 30, 37_000, 3_000),
    "wmt14-en-de-big": (4_500_000, 30, 37_000, 3_000),
}


def plan(config: Config, size: tuple[int, int, int, int]) -> Plan:
    """The plan for a corpus of this size, reckoned as a reader would on paper."""
    num_pairs, length, vocab_size, num_validation = size
    training = config.training
    cells = num_pairs * (length + 1) * 1.1
    batches = num_pairs / (training.batch_sentences or 1)
    if training.batch_tokens:
        batches = cells / training.batch_tokens
    per_epoch = max(1, round(batches / training.accumulate))
    limits = [training.max_steps, (training.max_epochs or 0) * per_epoch]
    limit = config.validation.max_sentences or num_validation
    vocabularies = [Vocabulary(side, vocab_size, num_pairs * length) for side in ("source", "target")]
    if config.tokenizer.shared:
        vocabularies = [Vocabulary("shared", vocab_size, 2 * num_pairs * length)]
    return Plan(
        num_pairs=num_pairs,
        num_target_tokens=num_pairs * (length + 1),
        updates_per_epoch=per_epoch,
        num_steps=min(limit for limit in limits if limit),
        num_validation_sentences=min(limit, num_validation),
        vocabularies=tuple(vocabularies),
    )


def size_of_exercise(config: Config) -> tuple[int, int, int, int]:
    data: Any = config.data
    num_held_out = min(1000, data.num_pairs)
    return data.num_pairs, data.max_length, data.num_symbols + 4, num_held_out


@pytest.mark.parametrize("name", shipped_configs())
def test_a_shipped_config_is_not_warned_of(name: str) -> None:
    config = load_config(name)
    is_exercise = config.data.source == "sequences"
    size = size_of_exercise(config) if is_exercise else SIZES[config.name]
    assert warnings(plan(config, size), config) == []


# The hand-written config of earlier READMEs, with 3,583 pairs: 380 updates, a warm-up of 500.
HAND_WRITTEN: dict[str, Any] = {
    "name": "mine",
    "data": {"source": "files", "corpora": [{"path": "phrases.csv"}], "validation_share": 0.05, "test_share": 0.05},
    "tokenizer": {"kind": "bpe", "vocab_size": 4000},
    "model": {"preset": "small", "dropout": 0.2},
    "training": {"max_epochs": 20, "batch_tokens": 2048, "learning_rate": 1e-3, "warmup_steps": 500},
}
SPREADSHEET = Plan(3225, 32_000, 19, 380, 179, (Vocabulary("source", 4000, 30_000), Vocabulary("target", 4000, 32_000)))


def config_with(**training: Any) -> Config:
    settings = {**HAND_WRITTEN, "training": {**HAND_WRITTEN["training"], **training}}
    return check_settings(settings, "mine.yaml")


def test_the_plan_of_whole_epochs_names_their_number_and_their_mean_size() -> None:
    """The first of three epochs has 8 updates, the others have 9."""
    plan = replace(SPREADSHEET, updates_per_epoch=8, num_steps=26)
    [of_epochs, *_] = plan.lines(config_with(max_epochs=3, max_steps=None))
    assert of_epochs.endswith("3.0 epochs of 9 updates")
    [of_steps, *_] = plan.lines(config_with(max_steps=26))
    assert of_steps.endswith("3.2 epochs of 8 updates")


def test_reversed_pairs_have_a_line_of_their_own_and_leave_updates_for_the_wanted_direction() -> None:
    config = config_with(max_steps=1000)
    config = config.model_copy(update={"data": config.data.model_copy(update={"reversed_epochs": 10})})
    plan = replace(SPREADSHEET, updates_per_epoch=80, num_steps=1000, are_epochs_alike=False)
    [first, *_] = plan.lines(config)
    assert first.endswith(
        "80 of them in the first epoch; epochs that read each pair the other way round, too: 10; then 5.0 of half as many updates"
    )
    assert not [line for line in warnings(plan, config) if "reversed" in line]
    [told] = [line for line in warnings(replace(plan, num_steps=800), config) if "reversed" in line]
    assert told == (
        "data.reversed_epochs: 10 takes about 800 of the 800 updates, so 0 are left for the wanted direction alone; 6 would leave 40%"
    )
    [told] = [line for line in warnings(replace(plan, num_steps=900), config) if "reversed" in line]
    assert "takes about 800 of the 900 updates, so 100 are left" in told


def test_a_run_of_a_few_updates_is_a_trial_and_hears_nothing_about_intervals() -> None:
    for num_steps, named in ((20, []), (21, ["training.validate_every", "training.save_every"])):
        plan = replace(SPREADSHEET, num_steps=num_steps)
        told = [line.split(" is ")[0] for line in warnings(plan, config_with())]
        assert [name for name in told if name.endswith("_every")] == named


def test_the_hand_written_config_is_warned_of_with_numbers_and_values_that_fit() -> None:
    told = warnings(SPREADSHEET, config_with())
    assert [line.split(" is ")[0].split(" has ")[0] for line in told] == [
        "training.warmup_steps",
        "training.validate_every",
        "training.save_every",
        "the source vocabulary",
        "the target vocabulary",
    ]
    assert "500 and the run has 380 updates" in told[0]
    assert "set training.warmup_steps to about 40" in told[0]
    assert "no validation and no sample before the end" in told[1]
    assert "set training.validate_every to about 40" in told[1]
    assert "set tokenizer.vocab_size to about 1,000" in told[3]


def test_a_batch_that_holds_a_single_pair_is_warned_of() -> None:
    intervals = {"warmup_steps": 40, "validate_every": 40, "save_every": 40, "init_from": "general"}
    alone = replace(SPREADSHEET, updates_per_epoch=SPREADSHEET.num_pairs)
    [warning] = warnings(alone, config_with(**intervals, batch_tokens=5))
    assert "training.batch_tokens is 5, and most sentence pairs are longer" in warning
    pairs = replace(SPREADSHEET, updates_per_epoch=SPREADSHEET.num_pairs // 2)
    assert warnings(pairs, config_with(**intervals, batch_tokens=30)) == []


def test_an_update_that_is_smaller_than_a_batch_is_warned_of_until_the_named_value_is_set() -> None:
    intervals = {"warmup_steps": 40, "validate_every": 40, "save_every": 40, "init_from": "general"}
    of_batch = 32_000 / 19
    assert warnings(SPREADSHEET, config_with(**intervals, update_tokens=round(of_batch))) == []
    [warning] = warnings(SPREADSHEET, config_with(**intervals, update_tokens=400))
    assert "training.update_tokens is 400, but a single batch has about 1,684 target tokens" in warning
    assert "set training.batch_tokens to about 500" in warning
    fitting = config_with(**intervals, update_tokens=400, batch_tokens=500)
    smaller = replace(SPREADSHEET, updates_per_epoch=round(19 * 2048 / 500))
    assert warnings(smaller, fitting) == []


def test_fine_tuning_is_not_told_to_change_the_vocabulary_of_another_run() -> None:
    settings = {"warmup_steps": 40, "validate_every": 40, "save_every": 40}
    assert len(warnings(SPREADSHEET, config_with(**settings))) == 2
    assert warnings(SPREADSHEET, config_with(**settings, init_from="general")) == []


def test_the_values_that_a_warning_names_end_the_warning() -> None:
    config = config_with(warmup_steps=40, validate_every=40, save_every=40)
    vocabularies = (Vocabulary("source", 1000, 40_000), Vocabulary("target", 1000, 40_000))
    tokenizer = config.tokenizer.model_copy(update={"vocab_size": 1000})
    fitting = replace(SPREADSHEET, vocabularies=vocabularies)
    assert warnings(fitting, config.model_copy(update={"tokenizer": tokenizer})) == []


BY_HAND = """
name: mine
data:
  source: files
  source_language: en
  target_language: it
  corpora:
    - {path: phrases.csv, source_field: English, target_field: Italian}
  validation_share: 0.05
  test_share: 0.05
tokenizer: {kind: bpe, vocab_size: 2000, shared: true}
model: {preset: small, dropout: 0.3, tie_embeddings: all}
training:
  max_epochs: 40
  batch_tokens: 1024
  learning_rate: 1e-3
  warmup_steps: 200
  validate_every: 200
  save_every: 200
validation: {max_sentences: 500}
"""


@pytest.mark.parametrize("num_pairs", [1_000, 3_583, 30_000, 160_000])
def test_the_config_that_the_readme_shows_fits_spreadsheets_of_any_size(num_pairs: int) -> None:
    config = check_settings(parse_yaml(BY_HAND, "mine.yaml"), "mine.yaml")
    size = round(0.9 * num_pairs), 10, 2000, round(0.05 * num_pairs)
    assert warnings(plan(config, size), config) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"warmup_steps": 300}, "the learning rate rises in 79% of them"),
        ({"warmup_steps": 285}, None),
        ({"validate_every": 380, "save_every": 50}, "training.validate_every is 380"),
        ({"validate_every": 379, "save_every": 1000}, None),
        ({"patience": 10}, "training.patience is 10 and the run has 10 validations"),
        ({"patience": 9}, None),
        ({"schedule": "plateau", "plateau_patience": 10}, "the learning rate cannot fall"),
        ({"schedule": "plateau", "plateau_patience": 9}, None),
        (
            {"average_last": 11},
            "10 saves: the average has only 10 checkpoints; lower training.average_last, or set training.save_every to 34 or less",
        ),
        ({"average_last": 11, "save_every": 34}, None),
        ({"average_last": 2, "save_every": 400}, "1 save: there is no average; set training.save_every to"),
        ({"average_last": 11, "average_of": "best"}, "set training.validate_every to 34 or less"),
        ({"average_last": 10}, None),
        ({"ema_decay": 1e-4}, "training.ema_decay=0.9999 here"),
        ({"ema_decay": 0.499}, "training.ema_decay is 0.499"),
        ({"ema_decay": 0.5}, None),
        ({"num_validation_sentences": 19}, "validation uses 19 sentences"),
        ({"num_validation_sentences": 20}, None),
        ({"updates_per_epoch": 4}, "an epoch has only 4 updates"),
        ({"updates_per_epoch": 5}, None),
        ({"vocabularies": (Vocabulary("shared", 1000, 7399),)}, "an entry occurs 10.0 times"),
        ({"vocabularies": (Vocabulary("shared", 1000, 7400),)}, "only 1,000 entries for the shared"),
        ({"vocabularies": (Vocabulary("shared", 4000, 74_000),)}, None),
    ],
)
def test_each_limit_is_where_it_is_said_to_be(changes: dict[str, Any], told: str | None) -> None:
    of_plan = {key: changes.pop(key) for key in list(changes) if key in Plan.__slots__}
    fitting = {"warmup_steps": 40, "validate_every": 40, "save_every": 40}
    config = config_with(**fitting | changes)
    fits = {"vocabularies": (Vocabulary("shared", 4000, 62_000),)}
    found = warnings(replace(SPREADSHEET, **fits | of_plan), config)
    assert len(found) == (told is not None)
    assert told is None or told in found[0]


@pytest.mark.parametrize(
    ("number", "told"), [(0.2, 1), (1.4, 1), (7, 7), (84, 80), (847, 800), (999, 1000), (1234, 1200), (98_765, 99_000)]
)
def test_advice_names_round_numbers_of_at_least_one(number: float, told: int) -> None:
    assert one_or_two_digits(number) == told


@pytest.mark.long
def test_the_plan_counts_what_training_will_do(tmp_path: Path) -> None:
    config = load_config("copy.yaml", ["data.num_pairs=500", "training.max_steps=90"])
    data = prepare_data(config, tmp_path / "data")
    order = epoch_order(data.train.lengths, data.train.corpus_sizes, config)
    one = Plan.of(config, data, order, 200, 90)
    updates = Updates(StoredUpdates(data.train, order))
    assert one.updates_per_epoch == updates.num_updates
    with updates:
        batches = [batch for _ in range(one.updates_per_epoch) for batch in next(updates)]
    assert one.num_target_tokens == sum(batch.num_target_tokens for batch in batches)
    assert one.num_pairs == 500
    assert "plan: 500 training pairs, 90 updates" in one.lines(config)[0]
    assert "0.002 after 200 updates" not in one.lines(config)[1], "it is not reached"


class Told(Announcer):
    """An announcer without a corpus, for its estimate of time."""

    def __init__(self, max_minutes: float | None = None, device: str = "cpu") -> None:
        machine = Machine(torch.device(device), torch.float32)
        super().__init__(config_with(max_minutes=max_minutes), None, machine)  # type: ignore[arg-type]
        self.on_start(0, None)
        self.num_steps = 1000


def report(step: int, tokens_per_second: float) -> TrainingReport:
    return TrainingReport(step, 0, 1.0, 1.0, 1e-3, 1.0, tokens_per_second, 1.0, 0, 100)


def test_a_limit_of_time_is_told_with_the_time_that_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    announcer = Told(max_minutes=5.5)
    caplog.set_level("INFO")
    for step in range(1, 21):
        announcer.on_step(step, type("Report", (), {"num_target_tokens": 50})())
    announcer.on_report(report(20, 100.0))
    assert caplog.messages == [
        "about 8 minutes left for 980 updates, at the speed of the last 20; validations take further time; "
        "training.max_minutes=5.5 may stop it before"
    ]


def test_the_time_left_is_told_once_from_the_speed_of_the_first_steps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """50 tokens a step at 100 tokens a second: 0.5 s a step, so 980 steps take 490 s."""
    announcer = Told()
    caplog.set_level("INFO")
    for step in range(1, 101):
        announcer.on_step(step, type("Report", (), {"num_target_tokens": 50})())
        if step % 10 == 0 and step != 10:
            announcer.on_report(report(step, 100.0))
    assert caplog.messages == [
        "about 8 minutes left for 980 updates, at the speed of the last 20; validations take further time"
    ]


def test_on_a_gpu_the_time_left_does_not_count_what_is_compiled_in_the_first_updates(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first 50 updates take 100 s, the next ones 0.5 s each: 900 updates take 450 s."""
    announcer = Told(device="cuda")
    caplog.set_level("INFO")
    for step in range(1, 101):
        announcer.on_step(step, type("Report", (), {"num_target_tokens": 50})())
        if step % 50 == 0:
            announcer.on_report(report(step, 25.0 if step == 50 else 100.0))
    assert caplog.messages == [
        "about 8 minutes left for 900 updates, at the speed of the last 50; validations take further time"
    ]


@pytest.mark.parametrize("num_pairs", [1, 4, 8, 20, 60])
@pytest.mark.parametrize("limit", [None, 6, 200])
def test_the_advice_for_a_handful_of_pairs_is_never_refused(num_pairs: int, limit: int | None) -> None:
    settings = {**HAND_WRITTEN, "validation": {"max_sentences": limit}}
    settings["training"] = {**HAND_WRITTEN["training"], "batch_tokens": 64}
    config = check_settings(settings, "mine.yaml")
    few = Plan(num_pairs, 8 * num_pairs, 1, 380, min(6, num_pairs), (Vocabulary("shared", 280, 20 * num_pairs),))
    told = warnings(few, config)
    sizes = {
        key: int(found[1].replace(",", ""))
        for line in told
        for key in ("vocab_size", "batch_tokens")
        if (found := re.search(rf"set \S+{key} to about ([\d,]+)", line))
    }
    assert sizes.get("vocab_size", 280) >= 260
    assert sizes.get("batch_tokens", 64) >= 64
    assert any("add more pairs" in line for line in told)
    assert any("validation.max_sentences to 200" in line for line in told) == (limit == 6 <= num_pairs)
    assert not any(re.search(r"\b1 (sentences|updates)", line) for line in told)


def test_a_limit_is_not_blamed_where_the_corpus_has_no_more_sentences() -> None:
    settings = {**HAND_WRITTEN, "validation": {"max_sentences": 6}}
    config = check_settings(settings, "mine.yaml")
    few = replace(SPREADSHEET, num_pairs=30, num_validation_sentences=6)
    for num_held_out, advice in ((6, "add more pairs"), (60, "validation.max_sentences to 200")):
        told = warnings(replace(few, num_held_out=num_held_out), config)
        (line,) = [line for line in told if line.startswith("validation uses")]
        assert advice in line


def test_a_schedule_that_max_epochs_cuts_off_is_warned_of() -> None:
    """The best part of such a schedule is its end, with a low learning rate."""
    rest = {"warmup_steps": 40, "validate_every": 40, "save_every": 40, "init_from": "general"}
    config = config_with(**rest, schedule="cosine", max_steps=4000)
    [warning] = warnings(SPREADSHEET, config)
    assert "cosine, which lowers the learning rate until training.max_steps (4,000)" in warning
    last = learning_rate(380, config.training, d_model=config.model.d_model)
    assert f"after about 380 updates, where it is still {last:.2g}" in warning
    assert last > 0.9 * config.training.peak_learning_rate
    assert warning.endswith("set training.max_steps to about 380")
    stable = {"schedule": "warmup_stable_decay", "max_steps": 4000, "decay_steps": 400}
    assert len(warnings(SPREADSHEET, config_with(**rest, **stable))) == 1
    # One that comes near its end, one without an end, and a run that max_steps ends.
    assert warnings(SPREADSHEET, config_with(**rest, schedule="cosine", max_steps=400)) == []
    assert warnings(SPREADSHEET, config_with(**rest, max_steps=4000)) == []
    whole = replace(SPREADSHEET, num_steps=4000)
    assert warnings(whole, config_with(**rest, schedule="linear", max_steps=4000)) == []
