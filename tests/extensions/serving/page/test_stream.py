"""The stream of a text: its lines, and the places in both texts."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from transformer_cli.extensions.serving.sentences import placed_sentences

from ....decoding.small_translators import WORDS
from ..served_translators import LINES, served, small_runs, small_translator

TRANSLATOR = small_translator()
TEXT = f"{LINES[3].capitalize()}.  {LINES[2].capitalize()}.\r\n\n  - {LINES[5]} | 42\n\t{LINES[1].upper()}!\n"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with served(small_runs(TRANSLATOR, small_translator("it", "en"))) as (client, _):
        yield client


def stream(client: TestClient, text: str, **values: Any) -> list[dict[str, Any]]:
    sent = {"q": text, "source": "en", "target": "it", **values}
    answer = client.post("/translate_stream", json=sent)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_the_lines_are_a_beginning_the_sentences_and_an_end(client: TestClient) -> None:
    start, *sentences, end = stream(client, TEXT)
    assert start == {"type": "start", "source": "en", "target": "it", "numSentences": 4}
    assert [line["index"] for line in sentences] == [0, 1, 2, 3]
    assert {line["type"] for line in sentences} == {"sentence"}
    assert end["type"] == "end"


def test_places_are_those_of_both_texts(client: TestClient) -> None:
    _, *sentences, end = stream(client, TEXT)
    for line in sentences:
        source, target = line["source"], line["target"]
        assert TEXT[source["start"] : source["end"]] == source["text"]
        assert end["translatedText"][target["start"] : target["end"]] == target["text"]
        for text in (source, target):
            assert [text["text"][start:stop] for start, stop in text["words"]] == text["text"].split()
    built = "".join(line["before"] + line["target"]["text"] for line in sentences)
    assert built + end["after"] == end["translatedText"]


def test_each_sentence_is_translated_as_a_line_of_its_own(client: TestClient) -> None:
    _, *sentences, _ = stream(client, TEXT)
    expected = TRANSLATOR.translate([line["source"]["text"] for line in sentences])
    assert [line["target"]["text"] for line in sentences] == [each.text for each in expected]


def test_each_word_has_a_probability_and_links_are_between_words(client: TestClient) -> None:
    _, *sentences, _ = stream(client, TEXT)
    for line in sentences:
        target = line["target"]
        assert 0.0 <= line["confidence"] <= 1.0
        if "probabilities" in target:
            assert len(target["probabilities"]) == len(target["words"])
            assert all(0.0 <= each <= 1.0 for each in target["probabilities"])
        for source_word, target_word in line["links"]:
            assert source_word < len(line["source"]["words"])
            assert target_word < len(target["words"])
    assert any(line["links"] for line in sentences)


@pytest.mark.long
def test_confidence_is_the_geometric_mean_of_the_probabilities_of_tokens(
    client: TestClient,
) -> None:
    _, sentence, _ = stream(client, LINES[6])
    [explained] = TRANSLATOR.translate([LINES[6]], with_details=True)
    assert explained.details is not None
    [part] = explained.details.parts
    expected = float(part.explanation.token_log_probs.mean())
    assert sentence["confidence"] == pytest.approx(2.718281828**expected, abs=1e-4)
    assert sentence["links"] == [list(link) for link in explained.details.links]


def test_a_text_without_sentences_comes_back(client: TestClient) -> None:
    start, end = stream(client, "\n 42 | 17\n")
    assert start["numSentences"] == 0
    assert end["translatedText"] == "\n 42 | 17\n"


def test_a_text_in_the_target_language_comes_back(client: TestClient) -> None:
    text = "Questa è sicuramente una frase italiana."
    start, end = stream(client, text, source="auto")
    assert start["detectedLanguage"]["language"] == "it"
    assert end["translatedText"] == text


def test_errors_before_the_first_line_have_a_status(client: TestClient) -> None:
    for changed in ({"q": ""}, {"target": "zz"}, {"q": "x" * 5001}, {"q": ["a"]}):
        sent = {"q": "uno", "source": "en", "target": "it", **changed}
        assert client.post("/translate_stream", json=sent).status_code == 400


@pytest.mark.long
def test_a_second_stream_comes_from_the_cache() -> None:
    with served(small_runs(TRANSLATOR)) as (client, service):
        first = stream(client, TEXT)
        [batcher] = service.runs.batchers.values()
        num_batches = batcher.counts.num_batches
        assert stream(client, TEXT) == first
        assert batcher.counts.num_batches == num_batches
        assert service.num_active == 0


@given(st.lists(st.sampled_from([*WORDS, " ", "  ", ". ", "! ", "\n", "\n\n", "\t", "- ", " | ", "7", "\r\n", "É"])))
def test_sentences_and_what_stands_between_them_are_the_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    placed = placed_sentences(TRANSLATOR, text)
    assert "".join(each.before + each.text for each in placed.sentences) + placed.after == text
    assert all(text[each.start : each.end] == each.text for each in placed.sentences)
