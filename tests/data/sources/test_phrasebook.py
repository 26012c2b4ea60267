"""The built-in corpus: the pairs that its grammar generated, unchanged, for every run."""

import hashlib
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config, SplitName
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import fingerprint, prepare_data
from transformer_cli.data.sources.corpus import NUM_TRAINING_PAIRS, read_pairs, read_phrasebook
from transformer_cli.process.errors import ConfigError, DataError

SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
EVERYDAY = Path(__file__).parents[3] / "benchmarks" / "everyday_sentences.py"


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[SentencePair]]:
    return {split: list(read_phrasebook(split)) for split in SPLITS}


def config(num_pairs: int = NUM_TRAINING_PAIRS, seed: int = 1) -> Config:
    data = {"source": "phrasebook", "num_pairs": num_pairs}
    training = {"max_steps": 1, "batch_sentences": 2}
    return Config.model_validate({"name": "a", "seed": seed, "data": data, "training": training})


# The digests were written by the grammar that generated the pairs, with num_pairs=60000 and seed=1.
@pytest.mark.long
@pytest.mark.parametrize(
    ("split", "num_pairs", "digest"),
    [
        ("train", 60_000, "e180a2033da3e25b1c044316ec6f3113a128fc8ff07a170d90dd3e639935cbc6"),
        ("validation", 1_000, "59d581a0b6e86264eccf390d9bf3ec795dd765c84652163bd892ab17d4e04cc1"),
        ("test", 1_200, "1f600c3644a067eb1345b5147357d56bc5e3fa2a3b1825a6332e8749078a9d98"),
    ],
)
def test_the_pairs_are_those_that_the_grammar_generated(
    pairs: dict[str, list[SentencePair]], split: str, num_pairs: int, digest: str
) -> None:
    text = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs[split])
    assert len(pairs[split]) == num_pairs
    assert hashlib.sha256(text.encode()).hexdigest() == digest


# The numbers and digests were written by the grammar as well: its stream of pairs did not depend on their number.
@pytest.mark.long
@pytest.mark.parametrize(
    ("num_pairs", "digest"),
    [
        (1, "4dae882df838cd627155ae382429f1d7cb60319e74722a13feab8a2bcce61cef"),
        (90, "b0d09c0c52fa8d34e3015712997ddd7ce6d495f3229b7cb5a5eb72d95df60a0b"),
        (4_000, "60591e42bf1952062f974ccedf541696189fc9422cf3232949a76b28f148fdc4"),
        (20_000, "6874a68b1bf1801a7199f744cd0266abce0f389fd2f9ef6561f68b7401eed117"),
        (59_999, "4acbfa51790d02348084e83f4a009e86de1a6e5de240f69d7409cd9c2720140d"),
    ],
)
def test_fewer_training_pairs_are_those_that_the_grammar_generated(num_pairs: int, digest: str) -> None:
    found = list(read_pairs(config(num_pairs).data, "train", seed=1))
    text = "".join(f"{pair.source}\t{pair.target}\n" for pair in found)
    assert hashlib.sha256(text.encode()).hexdigest() == digest


@pytest.mark.parametrize(
    ("num_pairs", "digest"),
    [
        (4_000, "ba88bc1b6787e6b7e80b6141beb383096618d069b1e25478128f6b828b542af9"),
        (60_000, "9d753fa1a532a73b4ba862284f594e00991755db6a65c43d9c65a26ca177455e"),
    ],
)
def test_runs_with_seed_1_have_the_fingerprint_that_they_had_with_the_grammar(num_pairs: int, digest: str) -> None:
    assert fingerprint(config(num_pairs))["phrasebook"] == digest


def test_the_seed_of_a_run_changes_neither_pairs_nor_fingerprint() -> None:
    for split in SPLITS:
        found = [list(read_pairs(config(50).data, split, seed=seed)) for seed in (1, 2)]
        assert found[0] == found[1]
    assert fingerprint(config(50)) == fingerprint(config(50, seed=2))


@pytest.mark.long
def test_no_english_sentence_occurs_twice_and_no_sentence_is_in_two_splits(
    pairs: dict[str, list[SentencePair]],
) -> None:
    every = [pair.source for split in SPLITS for pair in pairs[split]]
    assert len(set(every)) == len(every)
    train, validation, test = ({pair.target for pair in pairs[split]} for split in SPLITS)
    assert not train & validation
    assert not train & test
    assert not validation & test


def test_no_split_has_one_of_the_everyday_sentences(pairs: dict[str, list[SentencePair]]) -> None:
    spec = spec_from_file_location("everyday_sentences", EVERYDAY)
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    everyday = {sentence.lower() for sentence in script.everyday_sentences()}
    assert len(everyday) == 100
    assert not everyday & {pair.source.lower() for split in SPLITS for pair in pairs[split]}


def test_more_training_pairs_than_there_are_are_refused_with_what_to_do(tmp_path: Path) -> None:
    many = config(NUM_TRAINING_PAIRS + 1)
    uses: list[Any] = [
        lambda: list(read_pairs(many.data, "train", seed=1)),
        lambda: prepare_data(many, tmp_path / "data"),
    ]
    for use in uses:
        with pytest.raises(ConfigError, match=r"data\.num_pairs: .* 60,000 .* found 60,001") as caught:
            use()
        assert "set data.num_pairs to 60000 or less" in str(caught.value.hint)
    assert not (tmp_path / "data").exists()


def test_a_model_that_was_trained_on_more_pairs_is_validated_on_the_same_held_out_pairs(
    pairs: dict[str, list[SentencePair]],
) -> None:
    many = config(100_000)
    assert list(read_pairs(many.data, "test", seed=1)) == pairs["test"]
    assert "phrasebook" not in fingerprint(many, split="test")


@pytest.mark.long
def test_a_run_whose_pairs_the_grammar_generated_with_another_seed_is_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    prepare_data(config(20), tmp_path / "data")
    seal = tmp_path / "data" / "fingerprint.json"
    generated = hashlib.sha256(b"4abe7e7fb529cfab68626bc59048d267b696c85092a7a6170d8de46d08d6415a 20 2")
    text, count = re.subn(r'("phrasebook": )"\w+"', rf'\1"{generated.hexdigest()}"', seal.read_text())
    assert count == 1
    seal.write_text(text)
    run = config(20, seed=2)
    with pytest.raises(DataError, match="phrasebook: was ") as caught:
        prepare_data(run, tmp_path / "data", has_begun=True)
    assert "an earlier version of tfm generated" in str(caught.value.hint)
    assert "--accept-data-change" in str(caught.value.hint)
    accepted = prepare_data(run, tmp_path / "data", has_begun=True, accept_change=True)
    assert len(accepted.train) == 20


def test_another_number_of_pairs_is_no_other_version(tmp_path: Path) -> None:
    prepare_data(config(20), tmp_path / "data")
    with pytest.raises(DataError, match=r"data\.num_pairs: was 20, now 30") as caught:
        prepare_data(config(30), tmp_path / "data", has_begun=True)
    assert "undo the change" in str(caught.value.hint)
