"""Alignment by places: the same links as by words, and none is missing."""

import numpy as np
import pytest

from transformer_cli.decoding.details import word_spans
from transformer_cli.decoding.given_pairs import PairAligner, TextAligner, _links, _Side

from .small_translators import WORDS, tokenizer_of_words, translator

PAIRS = [
    ("uno due tre", "quattro cinque"),
    ("uno", "sei sette otto due"),
    ("tre  otto\u00a0due uno sei", "uno due"),
    (" ".join(WORDS * 2), " ".join(WORDS[::-1])),
]


def aligner_of(kind):  # type: ignore[no-untyped-def]
    of_words = translator(tokenizer_of_words())
    return kind(of_words.pipeline, of_words.engine, of_words.decoding.batch_tokens)


@pytest.mark.parametrize("pair", PAIRS)
def test_each_word_of_the_target_has_the_link_of_the_word_alignment(pair: tuple[str, str]) -> None:
    [by_words] = aligner_of(PairAligner).align([pair])
    [by_place] = aligner_of(TextAligner).align([pair])
    sources, targets = map(word_spans, pair)
    expected = {(sources[link.source], targets[link.target]) for link in by_words.links}
    assert expected <= set(map(tuple, by_place))


@pytest.mark.parametrize("pair", PAIRS[:3])
def test_no_word_is_without_a_link(pair: tuple[str, str]) -> None:
    [links] = aligner_of(TextAligner).align([pair])
    assert {link.source for link in links} == set(word_spans(pair[0]))
    assert {link.target for link in links} == set(word_spans(pair[1]))


def test_a_placeholder_is_linked_with_itself_and_nothing_else() -> None:
    source, target = "uno {{0}}, due {x}", "{x} tre {{0}}. due"
    [links] = aligner_of(TextAligner).align([(source, target)])
    pairs = {(source[slice(*link.source)], target[slice(*link.target)]) for link in links}
    assert {("{{0}},", "{{0}}."), ("{x}", "{x}")} <= pairs
    assert not any((one == "{x}") != (other == "{x}") for one, other in pairs if "{x}" in one)


def test_control_characters_change_no_place() -> None:
    [links] = aligner_of(TextAligner).align([("\x01 uno\x02 due", "tre \x03 quattro")])
    assert {link.source for link in links} == {(2, 6), (7, 10)}
    assert {link.target for link in links} == {(0, 3), (6, 13)}


def test_no_word_is_linked_with_a_mark_alone_where_words_are_written() -> None:
    """Good morning. is Bonjour !, and a tag around one of both words belongs around the only word."""

    def links(source: str, target: str, weights: list[list[float]]) -> set[tuple[str, str]]:
        sides = [
            _Side((), words := word_spans(each), [range(n, n + 1) for n in range(len(words))])
            for each in (source, target)
        ]
        found = _links((source, target), *sides, np.array(weights, np.float32))
        return {(source[slice(*link.source)], target[slice(*link.target)]) for link in found}

    weights = [[0.7, 0.3], [0.2, 0.8]]
    assert links("Good morning.", "Bonjour !", weights) == {("Good", "Bonjour"), ("morning.", "Bonjour")}
    assert links("Good !", "Bonjour !", weights) == {("Good", "Bonjour"), ("!", "!")}
    assert links("Good morning.", "! !", weights) == {("Good", "!"), ("morning.", "!")}
