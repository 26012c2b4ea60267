"""A server with de-en and en-it also translates de-it, through both models, for every interface."""

import json
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from transformer_cli.config import Direction

from ...decoding.stub_translators import stub_translator
from .served_translators import served, small_runs, small_translator

DE_IT = {"source": "de", "target": "it"}


def hotels(text: str) -> list[str]:
    return [text.replace("train", "hotel")]


def capitals(text: str) -> list[str]:
    return [text.upper(), "the garden sleeps"]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    runs = small_runs(
        stub_translator(hotels, languages=("de", "en")),
        stub_translator(capitals, languages=("en", "it"), beam_size=2),
    )
    with served(runs) as (client, _):
        yield client


def test_the_chain_is_a_direction_like_others(client: TestClient) -> None:
    targets = {each["code"]: each["targets"] for each in client.get("/languages").json()}
    assert targets["de"] == ["en", "it", "de"]
    assert targets["en"] == ["it", "en"]
    pairs = client.get("/MTRestService/ListSupportedLanguagePairs").json()
    assert pairs == ["de-en", "en-it", "de-it"]


def test_a_text_goes_through_both_models_and_the_pivot_is_told(client: TestClient) -> None:
    answer = client.post("/translate", json={"q": "the train waits.\nthe house burns.", "details": True, **DE_IT})
    assert answer.json() == {
        "translatedText": "THE HOTEL WAITS.\nTHE HOUSE BURNS.",
        "pivot": "the hotel waits.\nthe house burns.",
    }
    one = client.post("/translate", json={"q": "the train waits.", "source": "en", "target": "it", "details": True})
    assert "pivot" not in one.json()


def test_markup_and_files_go_through_both(client: TestClient) -> None:
    values = {"q": "<p>the <b>train</b> waits.</p>", "format": "html", **DE_IT}
    assert client.post("/translate", json=values).json() == {"translatedText": "<p>THE <b>HOTEL</b> WAITS.</p>"}
    po = b'msgid "the train waits."\nmsgstr ""\n'
    answer = client.post("/translate_file", data=DE_IT, files={"file": ("a.po", po)}).json()
    path = answer["translatedFileUrl"].split("/", 3)[3]
    assert client.get(f"/{path}").text == 'msgid "the train waits."\nmsgstr "THE HOTEL WAITS."\n'


def test_the_page_gets_sentences_with_links_through_the_pivot(client: TestClient) -> None:
    answer = client.post("/translate_stream", json={"q": "the train waits.", **DE_IT})
    [_, sentence, _] = [json.loads(line) for line in answer.text.splitlines()]
    assert sentence["pivot"] == "the hotel waits."
    assert sentence["target"]["text"] == "THE HOTEL WAITS."
    assert sentence["links"] == [[0, 0], [1, 1], [2, 2]]


def test_choices_are_those_of_the_second_model(client: TestClient) -> None:
    values = {"q": "the train waits.", "alternatives": 1, **DE_IT}
    found = client.post("/alternatives", json=values).json()
    assert [each["text"] for each in found["alternatives"]] == ["THE HOTEL WAITS.", "the garden sleeps"]
    assert found["source"]["text"] == "the train waits."


def test_what_one_model_does_inside_is_not_shown_for_two(client: TestClient) -> None:
    answer = client.post("/explain", json={"q": "the train waits.", **DE_IT})
    assert answer.status_code == 400
    assert "goes through two models" in answer.json()["error"]


def test_a_glossary_is_refused_for_two_models() -> None:
    runs = small_runs(small_translator("de", "en"), small_translator("en", "it"))
    with served(runs) as (client, _):
        made = client.post(
            "/v2/glossaries",
            json={
                "name": "a",
                "source_lang": "de",
                "target_lang": "it",
                "entries": "uno\tdue",
                "entries_format": "tsv",
            },
        )
        if made.status_code == 201:
            values = {
                "text": ["uno"],
                "source_lang": "DE",
                "target_lang": "IT",
                "glossary_id": made.json()["glossary_id"],
            }
            answer = client.post("/v2/translate", json=values)
            assert answer.status_code == 400
            assert "two models" in answer.json()["message"]
        else:
            assert made.status_code == 400


def test_a_direct_model_is_preferred_and_nothing_leads_back() -> None:
    names = [("de", "en"), ("en", "it"), ("de", "it"), ("it", "en")]
    runs = small_runs(*(small_translator(*each) for each in names))
    assert runs.directions[Direction("de", "it")].before is None
    assert Direction("en", "en") not in runs.directions
    assert set(runs.batchers) == {"run-0", "run-1", "run-2", "run-3"}
    runs.close()
