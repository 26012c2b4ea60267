"""Word alignment: tokens to words, attention weights to links."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.details import linked_words, pharaoh, word_spans, words_at
from transformer_cli.decoding.translation import Link

texts = st.text(alphabet="ab \t\u00a0\u2003\x1c.", max_size=20)


@given(text=texts)
def test_the_words_are_those_of_str_split(text: str) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == text.split()


@given(text=texts, data=st.data())
def test_a_token_has_the_words_of_its_characters(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    words = word_spans(text)
    characters = range(start, max(end, start + 1))
    expected = [
        number
        for number, (first, last) in enumerate(words)
        if any(first <= character < last for character in characters)
    ]
    assert [*words_at([(start, end)], words)[0]] == expected


def test_each_target_word_is_linked_with_the_source_word_of_the_largest_sum() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        weights = generator.random((6, 7), dtype=np.float32)
        source = [range(0), *(range(word, word + 1) for word in (0, 0, 1, 2, 2)), range(0)]
        target = [*(range(word, word + 1) for word in (0, 1, 1, 2)), range(2, 4), range(0)]
        in_source, in_target = np.zeros((3, 7)), np.zeros((4, 6))
        for places, matrix in ((source, in_source), (target, in_target)):
            for token, words in enumerate(places):
                matrix[list(words), token] = 1
        of_words = in_target @ weights @ in_source.T  # (target words, source words)
        expected = [Link(int(row.argmax()), number) for number, row in enumerate(of_words)]
        assert linked_words(weights, source, target) == expected


def test_a_source_without_words_has_no_links() -> None:
    assert linked_words(np.ones((1, 2), np.float32), [range(0)] * 2, [range(1)]) == []


def test_pharaoh_pairs_are_sorted_by_the_source_word() -> None:
    assert pharaoh([Link(1, 0), Link(0, 2), Link(0, 1)]) == "0-1 0-2 1-0"
    assert pharaoh([]) == ""
