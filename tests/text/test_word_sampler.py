from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transformer_cli.config import TokenizerConfig
from transformer_cli.text import sampling, tokenizer_file
from transformer_cli.text.sampling import (
    LatticeSampling,
    MergeablePiece,
    MergeDropout,
    WordSampler,
)
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .test_tokenizer import ANY_TEXT, TEXTS

JAPANESE = ["これは日本語の文です。", "本を読む。", "犬が走る!", "猫 と 犬"]
CORPORA = {"bytes": TEXTS, "characters": JAPANESE}
TOKENIZERS = {
    (kind, corpus): train_tokenizer(texts, TokenizerConfig(kind=kind, vocab_size=330))
    for kind in ("bpe", "unigram")
    for corpus, texts in CORPORA.items()
}
EACH = st.sampled_from(sorted(TOKENIZERS))


def sampler_of(tokenizer: Tokenizer, strength: float) -> WordSampler:
    if tokenizer.parts.layout.kind == "BPE":
        return WordSampler(tokenizer, MergeDropout(tokenizer.parts, strength))
    return WordSampler(tokenizer, LatticeSampling(tokenizer.parts, strength))


# With these settings the ordinary ids come out.
PLAIN = {key: sampler_of(one, {"bpe": 0.0, "unigram": 1e5}[key[0]]) for key, one in TOKENIZERS.items()}
MIXED = {key: sampler_of(one, {"bpe": 0.5, "unigram": 0.1}[key[0]]) for key, one in TOKENIZERS.items()}


@pytest.mark.parametrize("key", TOKENIZERS)
def test_each_layout_is_among_the_cases(key: tuple[str, str]) -> None:
    layout = TOKENIZERS[key].parts.layout
    assert layout.has_byte_fallback == (key[1] == "characters")


@pytest.mark.long
@settings(max_examples=100)
@given(ANY_TEXT, EACH)
@example("l' acqua", ("bpe", "bytes"))
@example("l'acqua po' di' 's x", ("bpe", "bytes"))
@example("rock'n' roll ' a", ("unigram", "bytes"))
def test_without_sampling_the_ids_stay(text: str, key: tuple[str, str]) -> None:
    ids = [*TOKENIZERS[key].encode(text), Tokenizer.eos_id]
    if key[0] == "bpe":  # of equally probable ways, unigram sampling takes any
        assert PLAIN[key].sample(ids, Random(1)).tolist() == ids
    # Every word is known to the sampler: none is left out of the sampling.
    parts = PLAIN[key]._parts(np.asarray(ids, np.uint32))
    assert [part.fixed_ids for part in parts if part.fixed_ids] == [[Tokenizer.eos_id]]


@pytest.mark.long
@settings(max_examples=100)
@given(ANY_TEXT, EACH, st.integers(0, 2**32))
def test_sampled_ids_are_the_same_text(text: str, key: tuple[str, str], seed: int) -> None:
    tokenizer = TOKENIZERS[key]
    ids = [*tokenizer.encode(text), Tokenizer.eos_id]
    sampled = MIXED[key].sample(ids, Random(seed)).tolist()
    assert tokenizer.decode(sampled) == tokenizer.decode(ids)
    assert sampled[-1] == Tokenizer.eos_id
    assert sampled.count(Tokenizer.eos_id) == 1
    assert sampled == MIXED[key].sample(ids, Random(seed)).tolist()


@pytest.mark.parametrize("key", TOKENIZERS)
def test_other_random_numbers_give_other_ids(key: tuple[str, str]) -> None:
    text = CORPORA[key[1]][0]
    ids = TOKENIZERS[key].encode(text)
    assert len({tuple(MIXED[key].sample(ids, Random(seed)).tolist()) for seed in range(20)}) > 5


class Recorder(MergeDropout):
    """Remembers the words that it gets."""

    def sample(self, piece: MergeablePiece, numbers: Random) -> list[int]:
        self.words.append(piece.ids)
        return piece.ids

    words: list[list[int]]


@pytest.mark.heavy
@settings(max_examples=100)
@given(ANY_TEXT, st.sampled_from(sorted(CORPORA)))
@example("L'acqua dell'isola po' di John's l' isola, 10:30", "bytes")
def test_the_words_are_those_of_the_tokenizer(text: str, corpus: str) -> None:
    """Also where an apostrophe belongs to a word because another word follows."""
    tokenizer = TOKENIZERS["bpe", corpus]
    engine = tokenizer_file.build(tokenizer.parts)
    assert engine.normalizer is not None
    assert engine.pre_tokenizer is not None
    expected = engine.pre_tokenizer.pre_tokenize_str(engine.normalizer.normalize_str(text))
    recorder = Recorder(tokenizer.parts, 0.0)
    recorder.words = []
    WordSampler(tokenizer, recorder).sample(tokenizer.encode(text), Random(1))
    ids = [[token.id for token in engine.model.tokenize(word)] for word, _ in expected]
    assert recorder.words == ids


def test_a_full_table_of_words_is_emptied_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = TOKENIZERS["bpe", "bytes"]
    ids = tokenizer.encode(TEXTS[0])
    expected = sampler_of(tokenizer, 0.5).sample(ids, Random(1)).tolist()
    monkeypatch.setattr(sampling, "MAX_KNOWN_PARTS", 2)
    small = sampler_of(tokenizer, 0.5)
    assert small.sample(ids, Random(1)).tolist() == expected
    assert len(small._known) <= 2


def test_a_special_token_inside_a_text_stays() -> None:
    tokenizer = TOKENIZERS["bpe", "bytes"]
    ids = [
        *tokenizer.encode("isola"),
        Tokenizer.unk_id,
        *tokenizer.encode(" bella"),
        Tokenizer.eos_id,
    ]
    sampled = MIXED["bpe", "bytes"].sample(ids, Random(3)).tolist()
    assert sampled.count(Tokenizer.unk_id) == 1
    assert sampled[-1] == Tokenizer.eos_id
