from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.encoded import (
    EncodedCorpus,
    TokenPair,
    encode_pairs,
    encode_short_pairs,
    write_encoded,
)
from transformer_cli.data.pairs import SentencePair, rows_of_pairs
from transformer_cli.text.tokenizer import SequenceFormat, train_tokenizer

from .encoded_pairs import encoded_pairs
from .pair_list import PairList

IDS = st.lists(st.integers(0, 70_000), max_size=6)
CHUNKS = st.lists(st.lists(st.builds(TokenPair, IDS, IDS), max_size=5), min_size=1, max_size=4)


def as_lists(pair: TokenPair) -> tuple[list[int], list[int]]:
    return [int(index) for index in pair.source_ids], [int(index) for index in pair.target_ids]


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(CHUNKS)
def test_what_is_written_comes_back(tmp_path_factory: pytest.TempPathFactory, chunks: list[list[TokenPair]]) -> None:
    path = tmp_path_factory.mktemp("ids") / "train.arrow"
    write_encoded(path, (encoded_pairs(chunk, [0] * len(chunk)) for chunk in chunks), vocab_size=70_001)
    corpus = EncodedCorpus.open(path)
    expected = [pair for chunk in chunks for pair in chunk]
    assert [as_lists(corpus[index]) for index in range(len(corpus))] == [as_lists(pair) for pair in expected]
    # The list in memory is the oracle of lengths, in any order and with repetitions.
    indices = np.random.default_rng(1).integers(0, max(1, len(expected)), 2 * len(expected))
    for ours, theirs in zip(corpus.lengths(indices), PairList(expected).lengths(indices), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_ids_take_two_bytes_if_the_vocabulary_is_small_enough(tmp_path: Path) -> None:
    pairs = [TokenPair([65_535], [1])]
    for vocab_size, dtype in ((65_536, np.uint16), (65_537, np.uint32)):
        path = tmp_path / f"{vocab_size}.arrow"
        write_encoded(path, [encoded_pairs(pairs, [0])], vocab_size=vocab_size)
        source_ids = EncodedCorpus.open(path)[0].source_ids
        assert isinstance(source_ids, np.ndarray)
        assert (source_ids.dtype, source_ids.tolist()) == (dtype, [65_535])


def test_pairs_are_counted_for_each_corpus_also_for_an_empty_one(tmp_path: Path) -> None:
    pairs = [TokenPair([1], [2])] * 3
    write_encoded(
        tmp_path / "a",
        [encoded_pairs(pairs, [0, 0, 2]), encoded_pairs(pairs[:1], [2])],
        vocab_size=9,
    )
    corpus = EncodedCorpus.open(tmp_path / "a", num_corpora=4)
    assert corpus.corpus_sizes == [2, 0, 2, 0]
    assert len(corpus) == 4


def test_mixed_corpora_are_refused(tmp_path: Path) -> None:
    """Weights of corpora need each corpus stored in one piece."""
    pairs = [TokenPair([1], [2])] * 2
    with pytest.raises(ValueError, match="mixed"):
        write_encoded(tmp_path / "a", [encoded_pairs(pairs, [1, 0])], vocab_size=9)
    with pytest.raises(ValueError, match="mixed"):
        write_encoded(
            tmp_path / "b",
            [encoded_pairs(pairs, [1, 1]), encoded_pairs(pairs, [0, 1])],
            vocab_size=9,
        )


def test_ids_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    write_encoded(tmp_path / "a", [encoded_pairs([TokenPair([1, 2], [3])], [0])], vocab_size=9)
    source_ids = EncodedCorpus.open(tmp_path / "a")[0].source_ids
    assert isinstance(source_ids, np.ndarray)
    assert not source_ids.flags.owndata
    assert not source_ids.flags.writeable


def test_both_sides_end_with_the_end_symbol_unless_there_is_none() -> None:
    source, target = (train_tokenizer([text], TokenizerConfig()) for text in ("a b", "c d e"))
    pairs = [SentencePair("a b", "e"), SentencePair("b", "c d", 3)]
    ended = encode_pairs(rows_of_pairs(pairs), source, target, SequenceFormat())
    bare = encode_pairs(rows_of_pairs(pairs), source, target, SequenceFormat(has_end=False))
    assert ended.corpora.tolist() == [0, 3]
    for side, tokenizer in ((0, source), (1, target)):
        alone = [tokenizer.encode(pair[side]) for pair in pairs]
        assert bare[side].ids.tolist() == list(chain.from_iterable(alone))
        assert ended[side].ids.tolist() == list(chain(*([*ids, tokenizer.eos_id] for ids in alone)))
        assert bare[side].lengths.tolist() == [len(ids) for ids in alone]


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(CHUNKS, st.integers(0, 5))
def test_a_batch_is_gathered_as_if_its_pairs_were_padded_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[TokenPair]], seed: int
) -> None:
    path = tmp_path_factory.mktemp("ids") / "train.arrow"
    write_encoded(path, (encoded_pairs(c, [0] * len(c)) for c in chunks), vocab_size=70_001)
    pairs = [pair for chunk in chunks for pair in chunk]
    if not pairs:
        return
    indices = np.random.default_rng(seed).integers(0, len(pairs), 7)
    for ours, theirs in zip(
        EncodedCorpus.open(path).padded(indices, 1), PairList(pairs).padded(indices, 1), strict=True
    ):
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


def test_pairs_with_too_many_ids_are_left_out() -> None:
    tokenizer = train_tokenizer(["a b c"], TokenizerConfig())
    pairs = [SentencePair("a b", "a"), SentencePair("a b c", "a"), SentencePair("a", "c" * 20_000)]
    pairs += [SentencePair("b", "b c")]
    encoded, is_kept = encode_short_pairs(rows_of_pairs(pairs), (tokenizer, tokenizer), SequenceFormat(), 3)
    assert is_kept.tolist() == [True, False, False, True]
    expected = encode_pairs(rows_of_pairs([pairs[0], pairs[3]]), tokenizer, tokenizer, SequenceFormat())
    assert encoded.target.ids.tolist() == expected.target.ids.tolist()
    assert encoded.source.lengths.tolist() == [3, 2]
