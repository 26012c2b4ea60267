"""The library, which splits the whole text and has no cache of words, is the oracle of every id."""

import re
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as HuggingFaceTokenizer

from transformer_cli.config import TokenizerConfig
from transformer_cli.text import tokenizer as tokenizer_module
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

LATIN = [
    "L'acqua dell'isola è blu, e l'isola è bella.",
    "Don't! It's John's well-known (4) cat: 3.50",
]
JAPANESE = [
    "日本語のテキスト。",
    "猫が水を飲む Tokyo 2024 年 l'isola",
    "ภาษา ไทย",
    "Кот пьёт воду, ёж.",
]
SUBWORDS = {kind: TokenizerConfig(kind=kind, vocab_size=400, shared=False) for kind in ("bpe", "unigram")}
TRAINED = {
    "wordlevel": train_tokenizer(LATIN + JAPANESE, TokenizerConfig()),
    "wordlevel, spaced": train_tokenizer(["日本 語 の 猫", *LATIN], TokenizerConfig()),
    "bpe of bytes": train_tokenizer(LATIN, SUBWORDS["bpe"]),
    "unigram of bytes": train_tokenizer(LATIN, SUBWORDS["unigram"]),
    "bpe with byte fallback": train_tokenizer(LATIN + JAPANESE, SUBWORDS["bpe"]),
    "unigram with byte fallback": train_tokenizer(LATIN + JAPANESE, SUBWORDS["unigram"]),
    "bpe that does not compose": train_tokenizer(LATIN + JAPANESE, SUBWORDS["bpe"], composes=False),
}
LETTERS = list("a\u017fK\u00e9\u00df\u0179\u01c6\u044f\u0451\u0400日ーไ한\u0301\u200d\u0149\u212a\u212b")
WORDS = [
    "cat",
    "l",
    "don",
    "t",
    "S",
    "LL",
    "re",
    "ve",
    "Re",
    "isola",
    "o'clock",
    "l'acqua",
    "don't",
]
WORDS += [
    "well-known",
    "it's-x",
    "a'b'c",
    "-x",
    "x-",
    "'tis",
    "ROCK'N'ROLL",
    "12.",
    "10:30",
    "...",
    "?!",
]
MARKS = [*".,;:!?)('\u2019\u2018“”\"-/\u2013$€3", ".)", "[UNK]", "[EOS]"]
PARTS = st.sampled_from([*LETTERS, *WORDS, *MARKS, " ", "  ", "\t", "\u00a0", "\n"])
TEXTS = st.lists(st.tuples(PARTS, st.sampled_from([" ", " ", ""])).map("".join), max_size=10)


ENGINES = {kind: HuggingFaceTokenizer.from_str(one.to_json()) for kind, one in TRAINED.items()}
for engine in ENGINES.values():
    engine.encode_special_tokens = True


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(TEXTS.map("".join), st.sampled_from(list(TRAINED)))
@example("states' legislation. in 1990. 12 and 'x", "bpe of bytes")
@example("12. ", "wordlevel")
@example("a ' 's", "bpe with byte fallback")
def test_the_ids_of_joined_words_are_those_of_the_whole_text(text: str, kind: str) -> None:
    expected = ENGINES[kind].encode(text).ids
    for _ in range(2):  # the second time all parts are in the cache
        assert TRAINED[kind].encode(text) == expected


@pytest.mark.long
@pytest.mark.parametrize("kind", TRAINED)
@pytest.mark.parametrize("pattern", ["{}", "x{}y", "{}'s", "l'{}", "l'{}.", "{}-{}!)"])
def test_every_letter_that_is_taken_for_plain_is_encoded_as_the_library_does(kind: str, pattern: str) -> None:
    letters = [chr(code) for code in range(0x530) if re.fullmatch(tokenizer_module._LETTERS, chr(code))]
    assert len(letters) > 600
    assert all(unicodedata.is_normalized("NFC", letter) for letter in letters)
    for first in range(0, len(letters), 40):
        text = " ".join(pattern.format(*[letter] * 2) for letter in letters[first : first + 40])
        assert TRAINED[kind].encode(text) == ENGINES[kind].encode(text).ids


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS.map("".join), max_size=8), st.sampled_from(list(TRAINED)), st.booleans())
@example(["", "states' laws", "12. ", "x x", "states' laws", "L'acqua"], "bpe of bytes", True)
@example(["x", "' 's x"], "wordlevel", False)
def test_a_column_has_the_ids_of_each_text_and_the_end_symbol_if_asked(
    texts: list[str], kind: str, with_end: bool
) -> None:
    tokenizer, end = TRAINED[kind], [Tokenizer.eos_id] * with_end
    alone = [ENGINES[kind].encode(text).ids + end for text in texts]
    for _ in range(2):  # the second time all words are in the cache
        found = tokenizer.encode_column(pa.array(texts, pa.string()), with_end=with_end)
        assert found.ids.tolist() == [index for ids in alone for index in ids]
        assert found.lengths.tolist() == [len(ids) for ids in alone]


def test_a_part_of_a_column_has_the_ids_of_its_texts() -> None:
    tokenizer, texts = TRAINED["bpe of bytes"], [*LATIN, "", "states' laws", "x"]
    for start, length in ((0, 2), (1, 3), (3, 2), (2, 0)):
        found = tokenizer.encode_column(pa.array(texts).slice(start, length))
        alone = [tokenizer.encode(text) for text in texts[start : start + length]]
        assert found.ids.tolist() == [index for ids in alone for index in ids]
        assert found.lengths.tolist() == [len(ids) for ids in alone]


def test_the_cache_is_bounded_and_a_full_one_gives_the_same_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokenizer_module, "MAX_CACHED_WORDS", 5)
    tokenizer = Tokenizer.from_json(TRAINED["bpe of bytes"].to_json())
    text = " ".join(f"w{number}x a' {number}b-c" for number in range(100))
    assert tokenizer.encode(text) == ENGINES["bpe of bytes"].encode(text).ids
    assert len(tokenizer._words) <= 5 * 5


def test_a_long_word_is_encoded_but_not_kept() -> None:
    tokenizer = Tokenizer.from_json(TRAINED["bpe of bytes"].to_json())
    before = len(tokenizer._words)
    word = "x" * (tokenizer_module.MAX_CACHED_CHARACTERS + 1)
    assert tokenizer.encode(f"{word} {word}") == ENGINES["bpe of bytes"].encode(f"{word} {word}").ids
    assert len(tokenizer._words) == before
