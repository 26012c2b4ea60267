"""Warnings about the first pairs of a corpus: tokenised text, and languages that the config does not name."""

import logging
import re
from collections.abc import Sequence
from itertools import islice

import pytest

from transformer_cli.config import FilesData
from transformer_cli.data.sources.corpus import read_phrasebook
from transformer_cli.data.sources.watching import is_tokenised, watched

Rows = Sequence[tuple[str, str]]


def said_of(rows: Rows, place: str, caplog: pytest.LogCaptureFixture, languages: str = "en-it") -> list[str]:
    """The warnings; `place` differs from test to test, because each warning is given once."""
    source, target = languages.split("-")
    data = FilesData.model_validate(
        {"source": "files", "source_language": source, "target_language": target, "corpora": [{"path": place}]}
    )
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert list(watched(iter(rows), data, 0)) == list(rows)
    return [record.getMessage() for record in caplog.records]


PLAIN = [(pair.source, pair.target) for pair in islice(read_phrasebook("train"), 1200)]


@pytest.mark.parametrize(
    "text",
    [
        "I do n't know",
        "a well @-@ known man",
        "it &apos;s late",
        "l&apos; uomo",
        "yes , I know",
        "he sleeps .",
        "&quot; no &quot;",
        "彼 は 私 を 見 た 。",
    ],
)
def test_text_of_a_tokenizer_is_recognised(text: str) -> None:
    assert is_tokenised(text)


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "Bonjour, ça va ?",
        "Non ! Attendez : il arrive ; enfin…",
        "Il dort ...",
        "say &quot;no&quot;",
        "'s avonds, om tien uur.",
        "3 , 5",
        "彼は 私を見た。",
        "他说 iPhone 15 很好。",
        "",
    ],
)
def test_plain_text_of_any_language_is_no_text_of_a_tokenizer(text: str) -> None:
    assert is_tokenised(text) is (text == "3 , 5")


def test_a_tokenised_side_is_told_with_a_count_two_examples_and_a_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    apart = [(source.replace(".", " ."), target) for source, target in PLAIN[:300]]
    [said] = said_of(apart, "tokenised.tsv", caplog)
    count = sum(source.endswith(" .") for source, _ in apart)
    assert f"data.corpora.0 (tokenised.tsv): the source is tokenised in {count} of the first 300" in said
    first, second = [source for source, _ in apart if source.endswith(" .")][:2]
    assert f"such as {first!r} and {second!r}" in said
    assert "detokenise it" in said
    assert said_of(apart, "tokenised.tsv", caplog) == []  # once


def test_a_corpus_with_a_few_spaces_before_commas_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    few = [(f"{source[:-1]} , yes", target) for source, target in PLAIN[:30]]
    assert said_of([*few, *PLAIN], "few.tsv", caplog) == []


@pytest.mark.long
def test_swapped_sides_and_another_language_are_told(caplog: pytest.LogCaptureFixture) -> None:
    swapped = [(target, source) for source, target in PLAIN]
    [said] = said_of(swapped, "swapped.tsv", caplog)
    assert "the source looks like Italian (it) and the target like English (en)" in said
    assert "exchange source_path and target_path" in said
    [said] = said_of(PLAIN, "other.tsv", caplog, "en-de")
    assert "the target looks like Italian (it), such as" in said
    assert "the config says German (de)" in said
    assert "correct data.target_language" in said
    [said] = said_of(PLAIN, "script.tsv", caplog, "ru-it")
    assert "the source looks like English (en)" in said
    # A language of which nothing is known, a region, and a text that is too short for an opinion.
    assert said_of(PLAIN, "unknown.tsv", caplog, "qaa-it") == []
    assert said_of(PLAIN, "region.tsv", caplog, "en_GB-it") == []
    assert said_of(PLAIN[:1], "short.tsv", caplog, "de-fr") == []


@pytest.mark.parametrize("cut", [r"\1@@ ", r"▁\1"])
def test_text_that_is_cut_into_subwords_is_told_with_its_side(cut: str, caplog: pytest.LogCaptureFixture) -> None:
    rows = [(re.sub(r"\b(\w{3})(?=\w)", cut, source), target) for source, target in PLAIN[:300]]
    [said] = said_of(rows, f"{cut}.tsv", caplog)
    assert "the source is cut into subwords in" in said
    assert "@@ //g" in said
