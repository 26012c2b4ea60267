"""`train(config, data=...)`: data sets of the library `datasets` become a run like any other, which goes on without them."""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from transformer_cli import Config, load_config, train
from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.data.sources.given import named_splits
from transformer_cli.process.errors import ConfigError, DataError

pytestmark = pytest.mark.long  # the whole file, so that the fast tests need no `datasets`, which takes half a second

PAIRS = [(f"the cat number {i} sleeps", f"il gatto numero {i} dorme") for i in range(40)]
SETTINGS = [
    "name=given",
    "training.max_steps=3",
    "training.warmup_steps=1",
    "model.d_model=16",
    "model.num_heads=2",
    "model.d_ff=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "runtime.device=cpu",
    "runtime.threads=1",
    "tokenizer.vocab_size=300",
    "training.schedule=constant",
    "validation.num_samples=0",
]


def of(pairs: list[tuple[str, str]], source: str = "en", target: str = "it") -> datasets.Dataset:
    return datasets.Dataset.from_dict({source: [pair[0] for pair in pairs], target: [pair[1] for pair in pairs]})


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    return load_config("en-it.yaml", SETTINGS)


def test_a_data_set_with_splits_is_trained_on_and_the_run_goes_on_with_it_and_without_it(
    config: Config,
) -> None:
    given = datasets.DatasetDict(train=of(PAIRS[:30]), validation=of(PAIRS[30:35]), test=of(PAIRS[35:]))
    first = train(config, data=given)
    assert first.step == 3
    assert first.example == PAIRS[30][0]
    lines = (first.folder / "given/train.jsonl").read_text().splitlines()
    assert [tuple(json.loads(line).values()) for line in lines] == PAIRS[:30]
    longer = config.model_copy(update={"training": config.training.model_copy(update={"max_steps": 5})})
    assert train(longer, data=given).step == 5
    alone = load_config(str(first.folder / "config.yaml"), ["training.max_steps=6"])
    assert train(alone).step == 6
    assert alone.data.source == "files"


def test_other_data_are_refused_and_change_nothing_until_the_change_is_accepted(
    config: Config,
) -> None:
    run = train(config, data={"train": of(PAIRS[:30]), "dev": of(PAIRS[30:])})
    kept = (run.folder / "given/train.jsonl").read_bytes()
    other = {"train": of(PAIRS[:29]), "dev": of(PAIRS[30:])}
    with pytest.raises(DataError, match=r"differs from the data .*\n.*train: was") as refusal:
        train(config, data=other)
    assert "accept_data_change=True" in str(refusal.value.hint)
    assert (run.folder / "given/train.jsonl").read_bytes() == kept
    assert not list(run.folder.glob("given/*.partial"))
    longer = config.model_copy(update={"training": config.training.model_copy(update={"max_steps": 4})})
    assert train(longer, data=other, accept_data_change=True).step == 4
    assert len((run.folder / "given/train.jsonl").read_text().splitlines()) == 29


def test_one_data_set_gives_its_validation_pairs_by_the_same_hash_as_a_file(config: Config, tmp_path: Path) -> None:
    settings = config.model_dump(mode="json") | {"name": "of-a-file"}
    path = tmp_path / "all.jsonl"
    path.write_text("".join(json.dumps({"en": s, "it": t}) + "\n" for s, t in PAIRS))
    settings["data"] = {"source": "files", "corpora": [{"path": str(path)}]}
    of_file = train(Config.model_validate(settings))
    stream = of(PAIRS).to_iterable_dataset(num_shards=3)
    of_stream = train(config, data=stream)
    for name in ("validation.jsonl", "report.json"):
        one, other = ((run.folder / "data" / name).read_text() for run in (of_file, of_stream))
        assert one.replace("all.jsonl", "") == other.replace("all.jsonl", ""), name
    both = [Checkpoints(run.folder).newest_valid() for run in (of_file, of_stream)]
    weights = [one.folder / "model.safetensors" for one in both if one is not None]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_the_translation_column_of_the_hub_and_the_languages_are_found(config: Config) -> None:
    rows = [{"id": i, "translation": {"it": t, "en": s}} for i, (s, t) in enumerate(PAIRS)]
    features = datasets.Features({"id": datasets.Value("int64"), "translation": datasets.Translation(["it", "en"])})
    given = datasets.Dataset.from_list(rows, features=features)
    run = train(config, data=given, languages=("it", "en"))
    stored = load_config(str(run.folder / "config.yaml"))
    assert (stored.data.source_language, stored.data.target_language) == ("it", "en")
    [first, *_] = (run.folder / "given/all.jsonl").read_text().splitlines()
    assert json.loads(first) == {"source": PAIRS[0][1], "target": PAIRS[0][0]}
    with pytest.raises(DataError, match="no language de, found") as refusal:
        train(config, data=given, languages=("de", "en"), from_scratch=True)
    assert "languages=(" in str(refusal.value.hint)


def test_what_is_no_corpus_is_refused_before_a_run_appears(config: Config, tmp_path: Path) -> None:
    rows = of(PAIRS)
    wrong: list[tuple[Any, type[Exception], str]] = [
        (PAIRS, TypeError, "list is no Dataset"),
        ({"train": PAIRS}, TypeError, r"data\['train'\]: list"),
        ({"training": rows}, DataError, "no split of this name; found training"),
        ({"train": rows, "dev": rows, "valid": rows}, DataError, "a second validation split"),
        ({"test": rows}, DataError, "no split train, found test"),
    ]
    for data, kind, says in wrong:
        with pytest.raises(kind, match=says):
            train(config, data=data)
    with pytest.raises(ConfigError, match="the task copy"):
        train(load_config("copy.yaml"), data=rows)
    three = rows.add_column("note", ["x"] * len(rows)).rename_column("it", "Italian")
    with pytest.raises(DataError, match="found en, Italian, note"):
        train(config, data=three)
    with pytest.raises(DataError, match="row 1: field it holds a number"):
        train(config, data=datasets.Dataset.from_dict({"en": ["a"], "it": [1]}))
    assert not (tmp_path / "runs/given/checkpoints").exists()


def test_a_data_set_without_validation_pairs_is_read_as_a_whole() -> None:
    rows = of(PAIRS)
    assert [*named_splits({"train": rows, "test": rows})] == ["test", "all"]
    assert [*named_splits({"train": rows, "val": rows})] == ["train", "validation"]


def test_columns_of_other_languages_are_not_taken_for_those_of_the_config(config: Config) -> None:
    expected = "columns are named fr and de, but the languages are"
    with pytest.raises(DataError, match=expected) as refused:
        train(config, data=of(PAIRS, "fr", "de"))
    assert "languages=('fr', 'de')" in str(refused.value.hint)


@pytest.mark.parametrize("languages", ["de", ("de",), ("de", "en", "it")])
def test_languages_are_two_codes(config: Config, languages: object) -> None:
    with pytest.raises(TypeError, match="two codes"):
        train(config, data=of(PAIRS), languages=languages)  # type: ignore[arg-type]
