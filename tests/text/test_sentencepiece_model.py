import io
import math
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, sentencepiece_model_pb2

from transformer_cli.config import TokenizerConfig
from transformer_cli.process.errors import ConfigError, DataError, UsageError
from transformer_cli.text.added_entries import with_tags
from transformer_cli.text.sampling import LatticeSampling, MergeDropout, WordSampler
from transformer_cli.text.sentencepiece_model import character_coverage
from transformer_cli.text.tokenizer import (
    Tokenizer,
    tokenizer_files,
    tokenizer_names,
    train_tokenizer,
)

TEXTS = [
    "The cat sleeps on the chair, and the dog sleeps on the floor.",
    "Il gatto dorme sulla sedia, e il cane dorme sul pavimento.",
    "Dov'è la stazione? L'acqua è già nella città.",
    "I don't know, it's 10:30.",
    "日本語です。猫が寝ています。",
] * 8
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"algorithm": "bpe"},
    "unigram with bytes and symbols": {
        "byte_fallback": True,
        "vocab_size": 420,
        "user_symbols": ("<x>", "cat d"),
    },
    "bpe with bytes, as it is": {
        "algorithm": "bpe",
        "byte_fallback": True,
        "normalization": "identity",
    },
}


def learned(kind: str, tags: tuple[str, ...] = ()) -> Tokenizer:
    return train_tokenizer(TEXTS, TokenizerConfig(kind="sentencepiece", **KINDS[kind]), tags=tags)


TOKENIZERS = {kind: learned(kind, tags=("<2it>", "<2de>")) for kind in KINDS}
LIBRARY = {kind: SentencePieceProcessor(model_proto=one.to_file()) for kind, one in TOKENIZERS.items()}
every_kind = pytest.mark.parametrize("kind", KINDS)
SAMPLES = [
    "The cat sleeps.",
    "  a  \ufb01ne  cat <x> ",
    "",
    "   ",
    "\u732b\u304c \u0192 \U0001f600",
    "[EOS] </s> <2it> <unk>",
    "cat d cat  d",
    "a\ttab and\u00a0a space",
]


@pytest.mark.long
@every_kind
@settings(max_examples=60, deadline=None)
@given(text=st.one_of(st.sampled_from(SAMPLES), st.text(max_size=30)))
def test_the_ids_are_those_of_the_library(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.encode(text) == LIBRARY[kind].encode(text)


@every_kind
def test_a_column_of_texts_has_the_ids_of_each_text(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    found = tokenizer.encode_column(pa.array(SAMPLES), with_end=True)
    ends = found.starts + found.lengths
    lists = [found.ids[a:b].tolist() for a, b in zip(found.starts, ends, strict=True)]
    assert lists == [[*LIBRARY[kind].encode(text), tokenizer.eos_id] for text in SAMPLES]


@pytest.mark.long
@every_kind
@settings(max_examples=60, deadline=None)
@given(text=st.one_of(st.sampled_from(SAMPLES), st.text(max_size=30)))
def test_a_text_is_joined_as_the_library_joins_it(kind: str, text: str) -> None:
    ids = LIBRARY[kind].encode(text)
    if TOKENIZERS[kind].unk_id not in ids:
        assert TOKENIZERS[kind].decode(ids) == LIBRARY[kind].decode(ids)


@pytest.mark.long
@every_kind
@settings(max_examples=60, deadline=None)
@given(text=st.one_of(st.sampled_from(SAMPLES), st.text(max_size=30)))
def test_spans_follow_each_other_in_the_text(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    spans = tokenizer.spans(text)
    assert len(spans) == len(tokenizer.encode(text))
    places = [place for span in spans for place in span]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    assert max(places, default=0) <= len(text)


def test_a_span_is_the_text_of_its_token() -> None:
    text = "The cat \u0192 sleeps."
    kind = "bpe with bytes, as it is"
    tokens = TOKENIZERS[kind].tokens(TOKENIZERS[kind].encode(text))
    spans = TOKENIZERS[kind].spans(text)
    found = dict(zip(tokens, (text[start:end].strip() for start, end in spans), strict=True))
    assert found["The"] == "The"
    assert found["sleeps"] == "sleeps"
    assert found["<0xC6>"] == found["<0x92>"] == "\u0192"


@every_kind
def test_the_first_entries_are_ours_and_the_tags(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.entries[:6] == ["[UNK]", "[PAD]", "[SOS]", "[EOS]", "<2it>", "<2de>"]
    assert tokenizer.tag_id("<2de>") == 5
    pieces = [LIBRARY[kind].id_to_piece(index) for index in range(6)]
    assert pieces == ["<unk>", "<pad>", "<s>", "</s>", "<2it>", "<2de>"]


def loaded(files: dict[str, bytes]) -> tuple[Tokenizer, Tokenizer]:
    found = [Tokenizer.from_file(name, files[name]) for name in tokenizer_names(files)]
    return found[0], found[-1]


@pytest.mark.long
@every_kind
def test_the_file_reads_back_as_the_same_tokenizer(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    for both in ((tokenizer, tokenizer), (tokenizer, learned("unigram"))):
        files = tokenizer_files(both)
        assert all(name.endswith(".spm") for name in files)
        again = loaded(files)
        assert [one.to_file() for one in again] == [one.to_file() for one in both]
        assert (again[0] is again[1]) == (both[0] is both[1])


@every_kind
def test_the_same_texts_give_the_same_model(kind: str) -> None:
    assert learned(kind, tags=("<2it>", "<2de>")).to_file() == TOKENIZERS[kind].to_file()


def test_a_symbol_of_the_user_is_one_entry_wherever_it_stands() -> None:
    tokenizer = TOKENIZERS["unigram with bytes and symbols"]
    for text in ("a<x>b", "<x>", "the <x>."):
        assert tokenizer.id_of("<x>") in tokenizer.encode(text)
    assert tokenizer.decode(tokenizer.encode("a<x>b")) == "a<x>b"
    assert tokenizer.id_of("<x>") not in tokenizer.tag_ids


def test_bytes_stand_for_a_character_that_is_not_in_the_vocabulary() -> None:
    tokenizer = TOKENIZERS["unigram with bytes and symbols"]
    assert tokenizer.unk_id not in tokenizer.encode("\U0001f600")
    assert tokenizer.decode(tokenizer.encode("\U0001f600")) == "\U0001f600"
    assert tokenizer.byte_pieces is not None
    assert TOKENIZERS["unigram"].unk_id in TOKENIZERS["unigram"].encode("\U0001f600")


def test_the_tag_of_a_corpus_becomes_an_entry_that_no_text_has() -> None:
    old = TOKENIZERS["unigram"]
    tokenizer = with_tags(old, ["<BT>"])
    assert tokenizer.entries == [*old.entries, "<BT>"]
    assert tokenizer.tag_ids[-1] == old.vocab_size
    assert tokenizer.encode("<BT> cat") == old.encode("<BT> cat")
    assert with_tags(tokenizer, ["<BT>"]) is tokenizer


# Subword sampling.


def sampler_of(kind: str) -> WordSampler:
    parts = TOKENIZERS[kind].parts
    chosen = MergeDropout(parts, 0.3) if parts.layout.kind == "BPE" else LatticeSampling(parts, 0.3)
    return WordSampler(TOKENIZERS[kind], chosen)


@every_kind
def test_sampled_ids_are_ids_of_the_same_text(kind: str) -> None:
    tokenizer, sampler, numbers = TOKENIZERS[kind], sampler_of(kind), Random(1)
    for text in TEXTS[:5] * 10:
        ids = tokenizer.encode(text)
        found = sampler.sample([*ids, tokenizer.eos_id], numbers).tolist()
        assert tokenizer.decode(found) == tokenizer.decode(ids)
        assert found[-1] == tokenizer.eos_id


def test_no_sample_cuts_a_symbol_of_the_user() -> None:
    kind = "unigram with bytes and symbols"
    tokenizer, sampler, numbers = TOKENIZERS[kind], sampler_of(kind), Random(1)
    ids = tokenizer.encode("The cat dog is at <x>.")
    for _ in range(50):
        found = sampler.sample(ids, numbers).tolist()
        assert tokenizer.id_of("<x>") in found
        assert tokenizer.id_of("cat\u2581d") in found


@pytest.mark.long
def test_samples_are_drawn_as_the_library_draws_them() -> None:
    kind = "unigram"  # of BPE, the library leaves out each merge once; ours are those of the paper
    tokenizer, sampler, numbers = TOKENIZERS[kind], sampler_of(kind), Random(1)
    num_draws, word = 4000, "sleeps"
    ids = tokenizer.encode(word)
    ours = Counter(tuple(sampler.sample(ids, numbers).tolist()) for _ in range(num_draws))
    of_library = LIBRARY[kind].encode([word] * num_draws, enable_sampling=True, alpha=0.3, nbest_size=-1, num_threads=1)
    theirs = Counter(map(tuple, of_library))
    assert len(theirs) > 1
    differences = [abs(ours[way] - theirs[way]) / num_draws for way in ours | theirs]
    assert max(differences) < 4.0 / num_draws**0.5


# What is refused.


def test_another_kind_has_no_settings_of_the_library() -> None:
    with pytest.raises(ValueError, match="byte_fallback has no effect with kind bpe"):
        TokenizerConfig(kind="bpe", byte_fallback=True)
    with pytest.raises(ValueError, match="user_symbols has an empty symbol, or one that stands"):
        TokenizerConfig(kind="sentencepiece", user_symbols=("a", "a"))


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for attempt in (lambda: learned("unigram"), lambda: Tokenizer.from_file("a.spm", b"")):
        with pytest.raises(UsageError, match="needs sentencepiece") as caught:
            attempt()
        assert 'pip install ".[sentencepiece]"' in (caught.value.hint or "")


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_too_small_a_vocabulary_is_refused(algorithm: Any) -> None:
    config = TokenizerConfig(kind="sentencepiece", algorithm=algorithm, vocab_size=20)
    with pytest.raises(ConfigError, match=r"vocab_size \(20\) is below the number of different"):
        train_tokenizer(TEXTS, config)


def test_of_a_small_alphabet_no_letter_is_unknown() -> None:
    texts = ["the cat sleeps and the dog runs to the house"] * 300 + ["Un'altra volta, cos\u00ec \u00e8."]
    tokenizer = train_tokenizer(texts, TokenizerConfig(kind="sentencepiece", vocab_size=200))
    assert tokenizer.decode(tokenizer.encode(texts[-1])) == texts[-1]


def test_of_a_large_alphabet_rare_characters_are_unknown() -> None:
    assert character_coverage(250, 1000) == 1.0
    assert character_coverage(251, 1000) == 0.9995
    assert character_coverage(3000, 8000) == 0.9995


def test_a_text_of_spaces_gives_no_vocabulary() -> None:
    with pytest.raises(DataError, match="SentencePiece can learn no vocabulary from this text"):
        train_tokenizer(["  ", ""], TokenizerConfig(kind="sentencepiece"))


def changed(change: Callable[[Any], object]) -> bytes:
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(TOKENIZERS["unigram"].to_file())
    change(model)
    return model.SerializeToString()


def of_marian() -> bytes:
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=written,
        vocab_size=100,
        minloglevel=2,
        hard_vocab_limit=False,
        bos_id=-1,
        eos_id=0,
        unk_id=1,
    )
    return written.getvalue()


def with_table(model: Any) -> None:
    model.normalizer_spec.precompiled_charsmap = b"\xff" * 100


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "cut off": (lambda: TOKENIZERS["unigram"].to_file()[:-7], "no model of SentencePiece, or cut"),
    "no file of it": (lambda: b"{}" * 40, "no model of SentencePiece|neither a unigram"),
    "empty": (lambda: b"", "first entries are not"),
    "other special tokens": (of_marian, "the first entries are not <unk> <pad> <s> </s>"),
    "a score that is no number": (
        lambda: changed(lambda model: setattr(model.pieces[9], "score", math.nan)),
        "not a finite number",
    ),
    "words": (
        lambda: changed(lambda model: setattr(model.trainer_spec, "model_type", 3)),
        "neither a unigram nor a BPE model",
    ),
    "a piece twice": (
        lambda: changed(lambda model: model.pieces.append(model.pieces[9])),
        "holds a piece twice",
    ),
    "one byte": (
        lambda: changed(lambda model: model.pieces.add(piece="<0x00>", score=0.0, type=6)),
        "entries for 1 of the 256 bytes",
    ),
    "spaces behind words": (
        lambda: changed(lambda model: setattr(model.trainer_spec, "treat_whitespace_as_suffix", True)),
        "spaces stand behind words",
    ),
    "no first space": (
        lambda: changed(lambda model: setattr(model.normalizer_spec, "add_dummy_prefix", False)),
        "without add_dummy_prefix",
    ),
    "a damaged table": (lambda: changed(with_table), "normalisation table .* is damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_tfm_cannot_have_written_is_refused(case: str) -> None:
    content, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        Tokenizer.from_file("tokenizer.spm", content())


def test_more_lines_than_needed_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_cli.text.sentencepiece_model.MAX_LINES", 3)
    texts = [f"{letter * 3} word" for letter in "abcdefg"]
    tokenizer = train_tokenizer(texts, TokenizerConfig(kind="sentencepiece", vocab_size=60))
    seen = {letter for letter in "abcdefg" if tokenizer.knows(letter)}
    assert {"a", "g"} <= seen | {"d"}
    assert len(seen - set("word")) <= 3


@pytest.mark.parametrize("kind", KINDS)
def test_marked_tokens_are_the_pieces_of_the_library_with_the_mark_of_a_space(kind: str) -> None:
    tokenizer = learned(kind)
    text = "The cat sleeps."
    library = SentencePieceProcessor(model_proto=tokenizer.to_file())
    assert tokenizer.marked_tokens(tokenizer.encode(text)) == library.encode(text, out_type=str)
    assert tokenizer.marked_tokens([tokenizer.eos_id]) == ["[EOS]"]
