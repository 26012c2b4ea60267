import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as HuggingFaceTokenizer

from transformer_cli.config import TokenizerConfig
from transformer_cli.process.errors import DataError
from transformer_cli.text import tokenizer_file
from transformer_cli.text.normalization import SplitPatterns
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

TEXTS = ["L'acqua dell'isola è blu, e l'isola è bella.", "Il gatto dorme (10:30)."]
KINDS = {
    "wordlevel": TokenizerConfig(),
    "bpe": TokenizerConfig(kind="bpe", vocab_size=290),
    "unigram": TokenizerConfig(kind="unigram", vocab_size=300),
}
TOKENIZERS = {kind: train_tokenizer(TEXTS, config) for kind, config in KINDS.items()}
Parts = dict[str, Any]


def parts_of(kind: str) -> Parts:
    return json.loads(TOKENIZERS[kind].to_json())


@pytest.mark.parametrize("kind", KINDS)
def test_a_written_tokenizer_reads_back_the_same(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    reloaded = Tokenizer.from_json(tokenizer.to_json())
    assert reloaded.to_json() == tokenizer.to_json()
    for text in TEXTS:
        assert reloaded.encode(text) == tokenizer.encode(text)
    assert reloaded.vocab_size == tokenizer.vocab_size


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_is_what_the_library_itself_would_write(kind: str) -> None:
    ours = parts_of(kind)
    theirs = json.loads(HuggingFaceTokenizer.from_str(TOKENIZERS[kind].to_json()).to_str())
    assert ours == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_the_library_itself_encodes_and_decodes_the_same(kind: str) -> None:
    engine = HuggingFaceTokenizer.from_str(TOKENIZERS[kind].to_json())
    engine.encode_special_tokens = True
    for text in TEXTS:
        ids = engine.encode(text).ids
        assert ids == TOKENIZERS[kind].encode(text)
        assert engine.decode(ids) == text


def swap(vocabulary: Parts, piece: str, index: int) -> None:
    vocabulary[piece] = index


Change = Callable[[Parts], object]
# Name of a change -> the kind of tokenizer, the change, and the expected message.
REFUSED: dict[str, tuple[str, Change, str]] = {
    "another pattern": ("wordlevel", lambda p: p["pre_tokenizer"]["pattern"].update(Regex="(a+)+b"), "pre_tokenizer"),
    "another normaliser": ("bpe", lambda p: p.update(normalizer={"type": "NFKC"}), "normalizer"),
    "another decoder": (
        "bpe",
        lambda p: p.update(decoder={"type": "Replace", "pattern": {"Regex": "(a+)+b"}, "content": ""}),
        "decoder",
    ),
    "a post-processor": ("bpe", lambda p: p.update(post_processor={"type": "TemplateProcessing"}), "post_processor"),
    "truncation": ("bpe", lambda p: p.update(truncation={"max_length": 3}), "truncation"),
    "an unknown part": ("bpe", lambda p: p.update(auto_map={"AutoTokenizer": "x.py"}), "auto_map"),
    "a missing part": ("bpe", lambda p: p.pop("decoder"), "decoder is missing"),
    "an added token": ("bpe", lambda p: p["added_tokens"].append({"id": 4, "content": "<s>"}), "added_tokens"),
    "a special that matches in text": ("bpe", lambda p: p["added_tokens"][0].update(special=False), "added_tokens"),
    "true for 1": ("bpe", lambda p: p["added_tokens"][1].update(id=True), "added_tokens"),
    "an unknown model": ("bpe", lambda p: p["model"].update(type="WordPiece"), "WordPiece"),
    "no model": ("bpe", lambda p: p.pop("model"), "no model"),
    "a model that is a list": ("bpe", lambda p: p.update(model=[]), "no model"),
    "dropout": ("bpe", lambda p: p["model"].update(dropout=0.5), "dropout"),
    "no vocabulary": ("bpe", lambda p: p["model"].pop("vocab"), "vocab is missing"),
    "a vocabulary of another kind": ("bpe", lambda p: p["model"].update(vocab=[["a", 1.0]]), "vocab"),
    "an id gap": ("wordlevel", lambda p: p["model"]["vocab"].update(x=10**6), "without gaps"),
    "an id twice": ("wordlevel", lambda p: p["model"]["vocab"].update(x=5), "without gaps"),
    "a negative id": ("wordlevel", lambda p: p["model"]["vocab"].update(x=-1), "without gaps"),
    "an id that is text": ("wordlevel", lambda p: p["model"]["vocab"].update(x="7"), "whole number"),
    "an id that is true": ("wordlevel", lambda p: p["model"]["vocab"].update({"[PAD]": True}), "whole number"),
    "specials elsewhere": (
        "wordlevel",
        lambda p: p["model"]["vocab"].update({"[UNK]": 1, "[PAD]": 0}),
        "first entries",
    ),
    "half a surrogate pair": (
        "wordlevel",
        lambda p: p["model"]["vocab"].update({"\ud800": len(p["model"]["vocab"])}),
        "piece of text",
    ),
    "an empty piece": (
        "wordlevel",
        lambda p: p["model"]["vocab"].update({"": len(p["model"]["vocab"])}),
        "piece of text",
    ),
    "a merge of unknown pieces": ("bpe", lambda p: p["model"]["merges"].append(["q", "qq"]), "merges"),
    "a merge of three": ("bpe", lambda p: p["model"]["merges"].append(["a", "b", "c"]), "merges"),
    "a merge in one text": ("bpe", lambda p: p["model"]["merges"].append("a b"), "merges"),
    "merges without end": ("bpe", lambda p: p["model"].update(merges=p["model"]["merges"] * 1000), "merges"),
    "a score that is text": ("unigram", lambda p: p["model"]["vocab"][9].__setitem__(1, "-1"), "score"),
    "an infinite score": ("unigram", lambda p: p["model"]["vocab"][9].__setitem__(1, 1e999), "finite|number"),
    "a piece twice": ("unigram", lambda p: p["model"]["vocab"].append(["e", -1.0]), "twice"),
    "a score alone": ("unigram", lambda p: p["model"]["vocab"].append([-1.0]), "score"),
    "byte fallback": ("unigram", lambda p: p["model"].update(byte_fallback=True), "byte_fallback"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_tfm_did_not_write_is_refused(case: str) -> None:
    kind, change, message = REFUSED[case]
    parts = parts_of(kind)
    change(parts)
    with pytest.raises(DataError, match=message) as refusal:
        Tokenizer.from_json(json.dumps(parts))
    assert len(refusal.value.message) < 300
    assert refusal.value.hint


def test_of_a_long_value_eighty_characters_are_shown() -> None:
    parts = parts_of("bpe")
    parts["model"]["type"] = "x" * 500
    with pytest.raises(DataError, match=r"a model of type \"x{78}\u2026, only"):
        Tokenizer.from_json(json.dumps(parts))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_file_that_falls_back_to_bytes_has_a_token_for_each_byte(kind: str) -> None:
    japanese = train_tokenizer(["\u732b\u306f\u673a\u306e\u4e0a"] * 3, TokenizerConfig(kind=kind, vocab_size=290))
    text = japanese.to_json()
    assert Tokenizer.from_json(text).to_json() == text
    with pytest.raises(DataError, match="a token for each byte"):
        Tokenizer.from_json(text.replace('"<0xC3>"', '"<0xc3>"'))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "[" * 100_000, '{"model": NaN}', '{"model": {}}'])
def test_what_is_no_tokenizer_at_all_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="tokenizer refused"):
        Tokenizer.from_json(text)


def test_a_key_given_twice_is_refused() -> None:
    text = TOKENIZERS["wordlevel"].to_json().replace('"[PAD]": 1', '"[PAD]": 1, "[PAD]": 1')
    with pytest.raises(DataError, match="twice"):
        Tokenizer.from_json(text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_off_anywhere_is_refused(kind: str) -> None:
    text = TOKENIZERS[kind].to_json()
    for length in range(0, len(text) - 2, max(1, len(text) // 50)):
        with pytest.raises(DataError):
            Tokenizer.from_json(text[:length])


def test_a_huge_file_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_file, "MAX_CHARACTERS", 100)
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(DataError, match="are more than the 100 allowed"):
        Tokenizer.from_json(" " * 101)


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_file, "MAX_ENTRIES", 5)
    with pytest.raises(DataError, match="entries are more than"):
        Tokenizer.from_json(TOKENIZERS["wordlevel"].to_json())


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(list(KINDS)),
    st.floats(0, 1, exclude_max=True),
    st.binary(min_size=1, max_size=3),
)
def test_bytes_changed_at_random_are_refused_or_give_a_working_tokenizer(
    kind: str, place: float, replacement: bytes
) -> None:
    content = TOKENIZERS[kind].to_json().encode()
    start = int(place * len(content))
    changed = content[:start] + replacement + content[start + len(replacement) :]
    try:
        tokenizer = Tokenizer.from_json(changed.decode("utf-8", "replace"))
    except DataError:
        return
    assert tokenizer.decode(tokenizer.encode(TEXTS[0]))


def test_the_patterns_are_spelled_as_in_the_checkpoints_that_exist() -> None:
    """A tokenizer.json with another spelling of the same pattern is refused, so no release may change them."""
    patterns = SplitPatterns.of(has_spaced_words=False), SplitPatterns.of(has_spaced_words=True)
    spelled = json.dumps([asdict(one) for one in patterns], sort_keys=True)
    assert (
        hashlib.sha256(spelled.encode()).hexdigest()
        == "3d249eafec2553b5258f286a420b6a6d0fc77d102fcfea79e6f2602efb43bb8b"
    )
