"""Entries that are added to a vocabulary: which they are, and that the old ones stay."""

from collections import Counter
from itertools import pairwise

import pytest

from transformer_cli.config import TokenizerConfig
from transformer_cli.text import Tokenizer, train_tokenizer
from transformer_cli.text.added_entries import is_extension, with_added_entries, with_tags

OLD = ["the cat sleeps", "a dog eats the fish", "the cat eats", "dogs sleep all day"] * 5
NEW = ["the zebra grazes"] * 9 + ["zebras graze at dawn"] * 6 + ["the okapi, too"] * 3 + ["once"]
JAPANESE = ["猫が寝る", "犬が魚を食べる", "猫は食べる"] * 5
NEW_JAPANESE = ["縞馬が草を食べる"] * 7 + ["縞馬は寝る"] * 4
KINDS = {
    "wordlevel": TokenizerConfig(),
    "bpe": TokenizerConfig(kind="bpe", vocab_size=290),
    "unigram": TokenizerConfig(kind="unigram", vocab_size=290),
}
TEXTS = {"bytes": (OLD, NEW), "characters": (JAPANESE, NEW_JAPANESE)}

each_kind = pytest.mark.parametrize("kind", KINDS)
each_text = pytest.mark.parametrize("layout", TEXTS)


def pair(kind: str, layout: str = "bytes", num_added: int = 6) -> tuple[Tokenizer, Tokenizer]:
    old_texts, new_texts = TEXTS[layout]
    known = train_tokenizer(old_texts, KINDS[kind])
    return known, with_added_entries(known, new_texts, num_added)


@each_kind
@each_text
def test_old_entries_keep_their_ids_and_the_file_can_be_read_again(kind: str, layout: str) -> None:
    known, extended = pair(kind, layout)
    assert is_extension(extended, of=known)
    assert not is_extension(known, of=extended)
    assert 0 < extended.vocab_size - known.vocab_size <= 6
    again = Tokenizer.from_json(extended.to_json())
    assert again.entries == extended.entries
    for text in [*OLD, *NEW, *JAPANESE, *NEW_JAPANESE]:
        assert again.encode(text) == extended.encode(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@each_text
def test_new_and_old_texts_come_back_exactly_in_fewer_tokens(kind: str, layout: str) -> None:
    known, extended = pair(kind, layout)
    for text in [*OLD, *NEW, *JAPANESE, *NEW_JAPANESE]:
        assert extended.decode(extended.encode(text)) == text
    new = TEXTS[layout][1]
    lengths = [sum(len(one.encode(text)) for text in new) for one in (known, extended)]
    assert lengths[1] < lengths[0]


def test_words_are_added_by_frequency_and_then_by_spelling() -> None:
    known, extended = pair("wordlevel", num_added=4)
    added = extended.entries[known.vocab_size :]
    assert added == [" grazes", " zebra", " at", " dawn"]
    assert pair("wordlevel", num_added=100)[1].unknown_words("the zebra grazes once") == []


def test_rarer_words_than_min_frequency_are_left_out() -> None:
    known = train_tokenizer(OLD, KINDS["wordlevel"])
    extended = with_added_entries(known, NEW, 100, min_frequency=4)
    assert " okapi" not in extended.entries
    assert " dawn" in extended.entries


def by_brute_force(known: Tokenizer, texts: list[str], num_added: int) -> list[tuple[str, str]]:
    """The same merges, where every pair is counted again after each merge."""
    words = Counter(word for text in texts for word in known.words(text))
    cut = {word: known.pieces(word) for word in words}
    entries, merges = set(known.entries), []
    while len(merges) < num_added:
        counts: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for one in pairwise(cut[word]):
                counts[one] += count
        allowed = {one: n for one, n in counts.items() if n > 1 and "".join(one) not in entries}
        if not allowed:
            break
        best = min(allowed, key=lambda one: (-allowed[one], one))
        merges.append(best)
        entries.add("".join(best))
        cut = {word: joined(pieces, best) for word, pieces in cut.items()}
    return merges


def joined(pieces: list[str], merge: tuple[str, str]) -> list[str]:
    result, rest = [], list(pieces)
    while rest:
        is_pair = tuple(rest[:2]) == merge
        result.append("".join(rest[: 1 + is_pair]))
        rest = rest[1 + is_pair :]
    return result


@pytest.mark.parametrize("num_added", [1, 3, 8, 1000])
def test_further_merges_are_those_that_brute_force_finds(num_added: int) -> None:
    known, extended = pair("bpe", num_added=num_added)
    merges = extended.parts.model["merges"][len(known.parts.model["merges"]) :]
    assert [tuple(merge) for merge in merges] == by_brute_force(known, NEW, num_added)


def test_the_old_merges_decide_first() -> None:
    """A text is cut as before, and then the new merges join pieces of this cut."""
    known, extended = pair("bpe", num_added=1000)
    merges = [tuple(one) for one in extended.parts.model["merges"][len(known.parts.model["merges"]) :]]
    for text in [*OLD, *NEW]:
        for word in known.words(text):
            pieces = known.pieces(word)
            for merge in merges:
                pieces = joined(pieces, merge)
            assert extended.pieces(word) == pieces


def test_a_frequent_word_becomes_one_unigram() -> None:
    known, extended = pair("unigram")
    added = extended.entries[known.vocab_size :]
    assert all(len(known.pieces(word)) > 1 for word in added)
    assert all(extended.pieces(word) == [word] for word in added)
    assert len(added) == len(set(added)) == 6


@each_kind
def test_known_texts_add_nothing(kind: str) -> None:
    known = train_tokenizer(["a b c"] * 3, KINDS[kind])
    assert with_added_entries(known, ["a", "b c"], 10).entries == known.entries


def test_the_same_texts_in_another_order_add_the_same_entries() -> None:
    for kind, config in KINDS.items():
        known = train_tokenizer(OLD, config)
        one, other = (with_added_entries(known, texts, 5) for texts in (NEW, NEW[::-1]))
        assert one.to_json() == other.to_json(), kind


@each_kind
@each_text
def test_a_tag_is_an_entry_that_no_text_is_cut_into(kind: str, layout: str) -> None:
    known = train_tokenizer(TEXTS[layout][0], KINDS[kind])
    tagged = with_tags(known, ["<BT>", "<2it>"])
    assert tagged.entries == [*known.entries, "<BT>", "<2it>"]
    assert tagged.id_of("<BT>") == known.vocab_size
    again = Tokenizer.from_json(tagged.to_json())
    texts = [
        *OLD,
        *JAPANESE,
        "<BT>",
        "<BT> the cat",
        "the <BT>",
        "a<BT>b",
        "«<BT>»",
        "<2it>the cat",
    ]
    for text in texts:
        assert again.encode(text) == known.encode(text)
    ids = again.encode("the cat")
    assert again.decode([again.id_of("<BT>"), *ids]) == again.decode(ids), "a tag is not shown"
    assert again.id_of("<BT>") in again.tag_ids, "so the search never writes it"


def test_tags_that_are_there_are_not_added_again() -> None:
    once = with_tags(train_tokenizer(OLD, KINDS["bpe"]), ["<BT>"])
    assert with_tags(once, ["<BT>"]) is once
