"""The changes of a config with which a run may continue (C6)."""

import json
from typing import Any, cast

import pytest
from pydantic import BaseModel

from transformer_cli.config import Config
from transformer_cli.config.loading import check_settings
from transformer_cli.config.refusal import setting_paths
from transformer_cli.data.updates import Position, StreamPosition
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.config_changes import HARMLESS, accept_changes, refuse_passed_limits
from transformer_cli.training.loop import Progress

SETTINGS = {
    "name": "this",
    "data": {"source": "files", "corpora": [{"path": "a.tsv"}]},
    "training": {"max_steps": 10, "batch_tokens": 100},
}
PATHS = [
    path
    for path in setting_paths(SETTINGS["data"])
    if (path not in ("name", "data.source") and "." in path) or path == "seed"
]


def config(**changes: Any) -> Config:
    settings = json.loads(json.dumps(SETTINGS))
    for path, value in changes.items():
        *parents, name = path.split("__")
        section = settings
        for parent in parents:
            section = section.setdefault(parent, {})
        section[name] = value
    return check_settings(settings, "test")


def altered(before: Config, path: str) -> Config:
    """The same config with another value of one setting; any other value will do."""
    *parents, name = path.split(".")
    section: Any = before
    sections = [before]
    for parent in parents:
        section = getattr(section, parent)
        sections.append(section)
    value = getattr(section, name)
    if isinstance(value, tuple):
        new: Any = (*value, 1)
    else:
        new = 1 if value is None else 2 * value if isinstance(value, str) else value + 1
    changed: BaseModel = section.model_copy(update={name: new})
    for parent, owner in zip(reversed(parents), reversed(sections[:-1]), strict=True):
        changed = owner.model_copy(update={parent: changed})
    return cast(Config, changed)


def leaf_paths() -> list[str]:
    before, leaves = config(), []
    for path in PATHS:
        value: Any = before
        *parents, last = path.split(".")
        for name in parents:
            value = getattr(value, name)
        if value is None:  # a section that is absent by default counts as one value
            continue
        value = getattr(value, last)
        if not isinstance(value, BaseModel) and path != "data.corpora":
            leaves.append(path)
    return leaves


def named_in(before: Config, path: str) -> str:
    """The name that a message gives a setting: of a list, that of the item which `altered` adds."""
    value: Any = before
    for name in path.split("."):
        value = getattr(value, name)
    return f"{path}.{len(value)}" if isinstance(value, tuple) else path


def is_harmless(path: str) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in HARMLESS)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("path", leaf_paths())
def test_each_setting_is_either_harmless_or_refused_with_both_values(path: str) -> None:
    before = config()
    now = altered(before, path)
    name = named_in(before, path)
    if is_harmless(path):
        (change,) = accept_changes(before, now)
        assert change.startswith(f"{name}: was ")
        return
    with pytest.raises(ConfigError) as refused:
        accept_changes(before, now)
    assert refused.value.exit_code == 78
    lines = refused.value.message.splitlines()
    assert lines[0] == "runs/this: this run was started with other settings:"
    assert lines[1].startswith(f"    {name}: was ")
    assert ", now " in lines[1]
    assert "--from-scratch" in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        "seed",
        "training.learning_rate",
        "training.batch_tokens",
        "training.accumulate",
        "training.label_smoothing",
        "training.clip_norm",
        "training.optimizer",
        "training.schedule",
        "training.warmup_steps",
        "training.best_metric",
        "model.d_model",
        "model.dropout",
        "tokenizer.kind",
        "tokenizer.vocab_size",
        "data.validation_share",
        "data.cleaning.drop_empty",
    ],
)
def test_settings_that_shape_the_model_are_not_harmless(path: str) -> None:
    assert path in leaf_paths()
    assert not is_harmless(path)


def test_a_changed_item_of_a_list_is_named_by_its_index() -> None:
    before, now = (config(training__betas=[0.9, beta]) for beta in (0.98, 0.99))
    with pytest.raises(ConfigError) as refused:
        accept_changes(before, now)
    assert refused.value.message.splitlines()[1:] == ["    training.betas.1: was 0.98, now 0.99"]


def test_without_a_change_nothing_is_reported() -> None:
    assert accept_changes(config(), config()) == []


def test_one_error_names_all_harmful_changes() -> None:
    now = config(seed=5, model__dropout=0.3, training__log_every=7)
    with pytest.raises(ConfigError) as refused:
        accept_changes(config(), now)
    assert "seed: was 1, now 5" in refused.value.message
    assert "model.dropout: was 0.1, now 0.3" in refused.value.message
    assert "log_every" not in refused.value.message


def test_a_longer_run_is_the_same_run_unless_its_rates_end_at_max_steps() -> None:
    accepted = {"inverse_sqrt": True, "plateau": True, "cosine": False, "linear": False}
    for schedule, is_accepted in accepted.items():
        short, long = (config(training__max_steps=steps, training__schedule=schedule) for steps in (10, 20))
        if is_accepted:
            assert accept_changes(short, long) == ["training.max_steps: was 10, now 20"]
        else:
            with pytest.raises(ConfigError, match=r"was 10, now 20 \(the learning rate of each past step"):
                accept_changes(short, long)


def test_a_run_may_be_made_longer_before_its_learning_rate_decays() -> None:
    """The point of warm-up-stable-decay: the rates of the updates done so far stay the same."""

    def wsd(max_steps: int, decay_steps: int = 20) -> Config:
        return config(
            training__max_steps=max_steps,
            training__decay_steps=decay_steps,
            training__warmup_steps=5,
            training__schedule="warmup_stable_decay",
        )

    for step in (1, 80):
        (change,) = accept_changes(wsd(100), wsd(200), step=step)
        assert change == "training.max_steps: was 100, now 200"
    assert len(accept_changes(wsd(200), wsd(100), step=80)) == 1
    assert len(accept_changes(wsd(200), wsd(150, 50), step=100)) == 2
    assert len(accept_changes(wsd(100, 20), wsd(100, 40), step=60)) == 1
    for before, now, step in (
        (wsd(100), wsd(200), 81),
        (wsd(200), wsd(100), 81),
        (wsd(100), wsd(100, 40), 61),
    ):
        with pytest.raises(ConfigError, match=r"may change up to step \d+, before the learning rate"):
            accept_changes(before, now, step=step)


def test_another_corpus_is_accepted_on_request_alone() -> None:
    now = config(data__corpora=[{"path": "b.tsv"}])
    with pytest.raises(ConfigError, match=r"data\.corpora"):
        accept_changes(config(), now)
    assert len(accept_changes(config(), now, accept_data_change=True)) == 1
    with pytest.raises(ConfigError, match="seed"):
        accept_changes(config(), config(seed=9), accept_data_change=True)


def test_the_list_of_harmless_settings_has_only_names_of_settings() -> None:
    known = {*setting_paths(SETTINGS["data"])}
    assert [path for path in HARMLESS if path not in known] == []


def test_values_are_shown_as_they_are_written_in_a_config() -> None:
    before, now = config(), config(model__attention_bias=False, model__final_norm=True)
    with pytest.raises(ConfigError) as refused:
        accept_changes(before, now)
    assert "model.attention_bias: was true, now false" in refused.value.message
    assert "model.final_norm: was absent, now true" in refused.value.message


A, B, C = ({"path": f"{name}.tsv"} for name in "abc")


def refusal_of(before: list[dict[str, Any]], now: list[dict[str, Any]], **other: Any) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        accept_changes(config(data__corpora=before), config(data__corpora=now, **other))
    return refused.value


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ([A], [B], ["data.corpora.0.path: was a.tsv, now b.tsv"]),
        ([A, B], [A, B | {"weight": 2}], ["data.corpora.1.weight (b.tsv): was 1.0, now 2.0"]),
        ([A, B], [C, A, B], ["data.corpora.0: c.tsv is new"]),
        ([A, B, C], [A, C], ["data.corpora.1: b.tsv is gone"]),
        ([A, B], [B, A], ["data.corpora: was in the order a.tsv, b.tsv; now b.tsv, a.tsv"]),
        (
            [A, B],
            [B | {"split": "train"}, C, A],
            [
                "data.corpora: was in the order a.tsv, b.tsv; now b.tsv, a.tsv",
                "data.corpora.0.split (b.tsv): was absent, now train",
                "data.corpora.1: c.tsv is new",
            ],
        ),
        (
            [{"source_path": "a.en", "target_path": "a.it"}],
            [A],
            ["data.corpora.0: a.en + a.it is gone", "data.corpora.0: a.tsv is new"],
        ),
    ],
)
def test_a_changed_list_of_corpora_is_told_by_what_differs(
    before: list[dict[str, Any]], now: list[dict[str, Any]], lines: list[str]
) -> None:
    assert refusal_of(before, now).message.splitlines()[1:] == [f"    {line}" for line in lines]


@pytest.mark.parametrize("is_gone", [True, False])
def test_corpora_that_only_one_of_two_configs_has_are_gone_or_new(is_gone: bool) -> None:
    built_in = check_settings(SETTINGS | {"data": {"source": "phrasebook", "num_pairs": 100}}, "test")
    pair = (config(), built_in) if is_gone else (built_in, config())
    with pytest.raises(ConfigError) as refused:
        accept_changes(*pair)
    assert f"data.corpora: is {'gone' if is_gone else 'new'}" in refused.value.message


def test_the_hint_names_the_option_for_changed_data_where_it_helps() -> None:
    assert "--accept-data-change" in str(refusal_of([A], [B]).hint)
    mixed = str(refusal_of([A], [B], seed=9).hint)
    assert "--accept-data-change is for the changes under data" in mixed
    with pytest.raises(ConfigError) as refused:
        accept_changes(config(), config(seed=9))
    assert "--accept-data-change" not in str(refused.value.hint)


def test_another_number_of_built_in_pairs_names_the_option_too() -> None:
    built_in = [
        check_settings(SETTINGS | {"data": {"source": "phrasebook", "num_pairs": number}}, "test")
        for number in (100, 200)
    ]
    with pytest.raises(ConfigError, match=r"data\.num_pairs: was 100, now 200") as refused:
        accept_changes(*built_in)
    assert "--accept-data-change" in str(refused.value.hint)


def test_a_copy_of_a_run_under_another_name_is_the_same_experiment() -> None:
    assert accept_changes(config(), config(name="other")) == ["name: was this, now other"]


def test_another_number_of_parts_of_a_stream_cannot_be_accepted() -> None:
    """The position in the data has a place in each part."""
    corpora = [A | {"split": "train"}, B | {"split": "validation"}]
    before, now = (config(data__corpora=corpora, data__streaming=True, data__stream_parts=number) for number in (2, 1))
    for is_accepted in (False, True):
        with pytest.raises(ConfigError, match=r"data\.stream_parts: was 2, now 1") as refused:
            accept_changes(before, now, accept_data_change=is_accepted)
        assert str(refused.value.hint).startswith("undo the change, give the new experiment")


@pytest.mark.parametrize(
    ("setting", "limit", "is_passed"),
    [
        ("max_steps", 11, True),
        ("max_steps", 12, False),
        ("max_epochs", 2, True),  # the third epoch has begun
        ("max_epochs", 3, False),
        ("patience", 4, True),
        ("patience", 5, False),
    ],
)
def test_a_new_limit_is_refused_if_more_is_done_already(setting: str, limit: int, *, is_passed: bool) -> None:
    progress = Progress(step=12, position=Position(2, 1), validations_without_best=5)
    before, now = config(), config(**{f"training__{setting}": limit})
    refuse_passed_limits(now, now, progress)  # the same limit again says nothing new
    if not is_passed:
        refuse_passed_limits(before, now, progress)
        return
    with pytest.raises(ConfigError, match=f"training.{setting}: {limit:,}, and "):
        refuse_passed_limits(before, now, progress)


@pytest.mark.parametrize("position", [Position(2, 0), StreamPosition(2, 0, ())])
def test_an_epoch_that_has_not_begun_passes_no_limit(position: Position | StreamPosition) -> None:
    progress = Progress(step=12, position=position)
    refuse_passed_limits(config(), config(training__max_epochs=2), progress)


def test_what_is_said_of_a_corpus_for_the_card_may_change() -> None:
    before = config()
    now = config(data__corpora=[{"path": "a.tsv", "license": "cc0-1.0", "origin": "the web"}])
    said = accept_changes(before, now, step=5)
    assert [line.split(":")[0] for line in said] == ["data.corpora.0.origin (a.tsv)", "data.corpora.0.license (a.tsv)"]
