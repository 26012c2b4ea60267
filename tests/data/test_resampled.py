"""Training pairs with other subwords in each epoch."""

from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from transformer_cli.config import Config, NoiseConfig, TokenizerConfig, load_config
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.order import EpochOrder, UpdateSize
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.data.updates import (
    AnyPosition,
    PairNoise,
    Position,
    ResampledPairs,
    StoredUpdates,
    Updates,
    training_pairs,
)
from transformer_cli.process.errors import ConfigError
from transformer_cli.text.added_entries import with_tags
from transformer_cli.text.tokenizer import train_tokenizer

from .test_updates import content

SETTINGS = {
    "bpe": ["tokenizer.kind=bpe", "training.bpe_dropout=0.2"],
    "unigram": ["tokenizer.kind=unigram", "training.unigram_alpha=0.2"],
}


@pytest.fixture(scope="module", params=SETTINGS)
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    folder = tmp_path_factory.mktemp("data")
    lines = [f"the {a} {b} sees a {c}\tla {a} vede un {c} {b}\n" for a in WORDS for b in WORDS for c in WORDS]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "a.yaml").write_text(CONFIG, encoding="utf-8")
    config = load_config(folder / "a.yaml", [f"data.root={folder}", *SETTINGS[request.param]])
    return prepare_data(config, folder / "prepared")


WORDS = ["lowest", "newer", "widest", "house", "running", "water", "lowlands"]
CONFIG = """\
name: a
data: {source: files, corpora: [{path: pairs.tsv, weight: 1.5}], validation_share: 0.1, test_share: 0.0}
tokenizer: {vocab_size: 330}
model: {d_model: 16, num_heads: 2, d_ff: 16, max_length: 40}
training: {max_steps: 10, batch_tokens: 120}
"""


def opened(
    prepared: PreparedData, *, seed: int | None = None, max_length: int | None = None
) -> tuple[ResampledPairs, EpochOrder]:
    config: Config = prepared.config
    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    if max_length is not None:
        model = config.model.model_copy(update={"max_length": max_length})
        config = config.model_copy(update={"model": model})
    pairs, order = training_pairs(prepared.train, prepared.tokenizers, config)
    assert isinstance(pairs, ResampledPairs)
    return pairs, order


def epoch_of(pairs: ResampledPairs, order: EpochOrder, epoch: int) -> dict[int, tuple[list[int], list[int]]]:
    """Visit -> the ids of both sides."""
    found = {}
    for batch in order.batches(epoch):
        for visit, pair in zip(batch.tolist(), pairs.pairs(epoch, batch), strict=True):
            assert visit not in found, "no visit comes twice"
            found[visit] = (list(map(int, pair.source_ids)), list(map(int, pair.target_ids)))
    return found


@pytest.mark.long
def test_each_pair_keeps_its_text_and_gets_other_subwords_in_each_epoch(
    prepared: PreparedData,
) -> None:
    pairs, order = opened(prepared)
    first, second = (epoch_of(pairs, order, epoch) for epoch in (0, 1))
    num_pairs = len(prepared.train)
    assert {visit % num_pairs for visit in first} == set(range(num_pairs))
    assert len(first) == -(-3 * num_pairs // 2)
    for visit, sides in first.items():
        for ids, ordinary, tokenizer in zip(sides, prepared.train[visit % num_pairs], prepared.tokenizers, strict=True):
            assert tokenizer.decode(ids) == tokenizer.decode(ordinary.tolist())
            assert ids[-1] == tokenizer.eos_id
    common = first.keys() & second.keys()
    assert sum(first[visit] != second[visit] for visit in common) > 0.9 * len(common)
    repeated = [visit for visit in first if visit >= num_pairs]
    assert sum(first[visit] != first[visit - num_pairs] for visit in repeated) > 0.9 * len(repeated)


@pytest.mark.long
def test_the_ids_depend_on_seed_epoch_and_visit_only(prepared: PreparedData) -> None:
    pairs, order = opened(prepared)
    whole = epoch_of(pairs, order, 1)
    again, _ = opened(prepared)
    for visit in islice(whole, 0, None, 7):
        [pair] = again.pairs(1, np.array([visit]))
        assert whole[visit] == (list(pair.source_ids), list(pair.target_ids))
    others = epoch_of(*opened(prepared, seed=9), 1)
    common = whole.keys() & others.keys()
    assert sum(whole[visit] != others[visit] for visit in common) > 0.9 * len(common)


@pytest.mark.long
def test_sampled_batches_hold_the_budget(prepared: PreparedData) -> None:
    pairs, order = opened(prepared)
    num_full = 0
    for batch in order.batches(0):
        longest = max(len(side) for pair in pairs.pairs(0, batch) for side in pair)
        assert len(batch) * longest <= 120 or len(batch) == 1
        num_full += len(batch) * longest > 90
    assert num_full > 10, "the limit is reached"


@pytest.mark.long
def test_a_pair_that_would_be_too_long_keeps_its_ordinary_ids(prepared: PreparedData) -> None:
    longest = max(len(side) for index in range(len(prepared.train)) for side in prepared.train[index])
    pairs, order = opened(prepared, max_length=longest)
    unlimited, _ = opened(prepared)
    num_kept = 0
    for visit, sides in epoch_of(pairs, order, 0).items():
        assert max(map(len, sides)) <= longest
        [free] = unlimited.pairs(0, np.array([visit]))
        if max(map(len, free)) > longest:
            num_kept += 1
            ordinary = prepared.train[visit % len(prepared.train)]
            assert sides == tuple(list(map(int, ids)) for ids in ordinary)
    assert num_kept


@pytest.mark.heavy
@pytest.mark.parametrize("max_kept", [0, 50, 10_000])
def test_a_stream_resumes_anywhere(prepared: PreparedData, max_kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_cli.data.updates.MAX_KEPT_PAIRS", max_kept)
    size = UpdateSize(target_tokens=2500)

    def stream(position: AnyPosition = Position()) -> Updates:  # noqa: B008 - immutable
        return Updates(StoredUpdates(*opened(prepared), size), position)

    with stream() as whole:
        positions, expected = [whole.position], []
        while whole.position.epoch < 2:
            expected.append(content(next(whole)))
            positions.append(whole.position)
    for step in range(0, len(expected) - 2, 2):
        with stream(positions[step]) as resumed:
            assert [content(next(resumed)) for _ in range(2)] == expected[step : step + 2]


@pytest.mark.long
def test_the_number_of_updates_is_known_without_sampling_the_corpus(prepared: PreparedData, tmp_path: Path) -> None:
    pairs, order = opened(prepared)
    with Updates(StoredUpdates(pairs, order, UpdateSize(2))) as stream:
        expected = stream.num_updates
        counted = 0
        while stream.position.epoch == 0:
            next(stream)
            counted += 1
    assert counted == expected
    assert 1.05 < order.growth() < 3.0


@pytest.mark.parametrize(
    ("kind", "option", "right"),
    [
        ("wordlevel", "bpe_dropout", "bpe"),
        ("unigram", "bpe_dropout", "bpe"),
        ("wordlevel", "unigram_alpha", "unigram"),
        ("bpe", "unigram_alpha", "unigram"),
    ],
)
def test_sampling_that_does_not_fit_the_tokenizer_is_refused(
    kind: str, option: str, right: str, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(CONFIG, encoding="utf-8")
    options = [f"tokenizer.kind={kind}", f"training.{option}=0.1"]
    with pytest.raises(ConfigError) as refused:
        load_config(tmp_path / "a.yaml", options)
    said = f"training.{option} is for tokenizer.kind: {right}, and for the {right} of sentencepiece, but the kind is {kind}"
    assert said in str(refused.value)
    assert f"set tokenizer.kind: {right}" in str(refused.value)


def test_noise_on_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CONFIG, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(tmp_path / "a.yaml", ["training.noise.typos=0.1"])
    assert "training.noise makes words that a vocabulary of whole words does not have" in str(refused.value)
    assert "set tokenizer.kind: bpe, unigram or sentencepiece" in str(refused.value)


def with_settings(prepared: PreparedData, **training: object) -> Config:
    changed = prepared.config.training.model_copy(update=training)
    return prepared.config.model_copy(update={"training": changed})


@pytest.mark.long
def test_noise_changes_the_texts_of_pairs_as_drawn_and_keeps_their_ends(
    prepared: PreparedData,
) -> None:
    noise = NoiseConfig(capitals=0.3, typos=0.3)
    config = with_settings(prepared, noise=noise, bpe_dropout=None, unigram_alpha=None)
    pairs, order = training_pairs(prepared.train, prepared.tokenizers, config)
    assert isinstance(pairs, ResampledPairs)
    first, second = (epoch_of(pairs, order, epoch) for epoch in (0, 1))
    num_pairs, num_changed, num_capitals = len(prepared.train), 0, 0
    source_tokenizer, target_tokenizer = prepared.tokenizers
    for visit, (source_ids, target_ids) in first.items():
        ordinary = [ids.tolist() for ids in prepared.train[visit % num_pairs]]
        source, target = map(source_tokenizer.decode, (source_ids, ordinary[0]))
        assert source_ids[-1] == source_tokenizer.eos_id
        assert source_ids == [*source_tokenizer.encode(source), source_tokenizer.eos_id]
        is_in_capitals = source.isupper()
        old_target = target_tokenizer.decode(ordinary[1])
        new_target = target_tokenizer.decode(target_ids)
        assert new_target == (old_target.upper() if is_in_capitals else old_target)
        num_changed += source != target
        num_capitals += is_in_capitals
    assert num_capitals / len(first) == pytest.approx(0.3, abs=0.06)
    assert num_changed > 0.5 * len(first)
    common = first.keys() & second.keys()
    assert sum(first[visit] != second[visit] for visit in common) > 0.5 * len(common)


@pytest.mark.long
def test_noise_leaves_the_random_numbers_of_the_subwords_alone(prepared: PreparedData) -> None:
    rare = with_settings(prepared, noise=NoiseConfig(capitals=1e-9))
    noisy, order = training_pairs(prepared.train, prepared.tokenizers, rare)
    assert isinstance(noisy, ResampledPairs)
    assert epoch_of(noisy, order, 0) == epoch_of(*opened(prepared), 0)


def test_noise_keeps_the_tags_of_the_corpus_and_of_the_target_language() -> None:
    config = TokenizerConfig(kind="bpe", vocab_size=300)
    tokenizer = train_tokenizer(["the lowest house"] * 3, config, tags=["<2it>"])
    tokenizer = with_tags(tokenizer, ["<BT>"])
    tags, end = [tokenizer.id_of("<BT>"), tokenizer.tag_id("<2it>")], tokenizer.eos_id
    assert tags[0] == tokenizer.vocab_size - 1
    noise = PairNoise((tokenizer, tokenizer), NoiseConfig(capitals=1 - 2**-40))
    pair = TokenPair(
        np.array([*tags, *tokenizer.encode("the house"), end]),
        np.array([*tokenizer.encode("la casa"), end]),
    )
    source_ids, target_ids = noise.changed(pair, Random(1))
    assert list(source_ids) == [*tags, *tokenizer.encode("THE HOUSE"), end]
    assert list(target_ids) == [*tokenizer.encode("LA CASA"), end]
