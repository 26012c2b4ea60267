"""POST /alternatives and POST /likely_words: what they answer, and what they refuse."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from transformer_cli.extensions.serving.application import ServerOptions, build_application
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.request_values import ApiKeys
from transformer_cli.extensions.serving.service import TranslationService

from ..served_translators import served, small_runs, small_translator

ASKED = {"q": "uno due tre", "source": "en", "target": "it"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with served(small_runs(small_translator(max_length=6, beam_size=4))) as (client, _):
        yield client


def answer(client: TestClient, path: str, **changes: Any) -> Any:
    found = client.post(path, json={**ASKED, **changes})
    assert found.status_code == 200, found.text
    return found.json()


def test_the_best_alternative_is_the_translation(client: TestClient) -> None:
    translated = answer(client, "/translate")["translatedText"]
    found = answer(client, "/alternatives", alternatives=3)
    assert found["source"] == {"text": "uno due tre", "words": [[0, 3], [4, 7], [8, 11]]}
    assert found["alternatives"][0]["text"] == translated
    for one in found["alternatives"]:
        words = [one["text"][start:end] for start, end in one["words"]]
        assert words == one["text"].split()
        assert len(one["probabilities"]) == len(words)
        assert all(0 <= source < 3 and 0 <= target < len(words) for source, target in one["links"])
    assert len(answer(client, "/alternatives")["alternatives"]) == 1


def test_a_likely_word_leads_to_a_translation_that_begins_with_it(client: TestClient) -> None:
    words = answer(client, "/likely_words", prefix="uno")["words"]
    assert 1 < len(words) <= 6
    for word in words:
        found = answer(client, "/alternatives", prefix=word["prefix"])["alternatives"]
        assert f"{found[0]['text']} ".startswith(word["prefix"] + " ")


def test_forms_are_read_as_well(client: TestClient) -> None:
    found = client.post("/likely_words", data={**ASKED, "prefix": "uno"})
    assert found.json() == answer(client, "/likely_words", prefix="uno")


@pytest.mark.parametrize("path", ["/alternatives", "/likely_words"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "missing q"),
        ({"source": None}, "missing source"),
        ({"target": "zz"}, "zz is not supported"),
        ({"q": "uno\ndue"}, "one line"),
        ({"prefix": "uno\ndue"}, "one line"),
        ({"prefix": "zzz"}, "not in the vocabulary"),
        ({"prefix": 5}, "prefix must be a string"),
        ({"q": "uno " * 2000}, "exceeds text limit"),
        ({"q": "\ud800"}, "not valid Unicode"),
    ],
)
def test_a_wrong_request_is_refused(client: TestClient, path: str, changes: dict[str, Any], message: str) -> None:
    body = {name: value for name, value in {**ASKED, **changes}.items() if value is not None}
    found = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert found.status_code == 400
    assert message in found.json()["error"]


def test_more_alternatives_than_the_limit_are_refused(client: TestClient) -> None:
    found = client.post("/alternatives", json={**ASKED, "alternatives": 8})
    assert (found.status_code, "exceeds the limit (7)" in found.text) == (400, True)


def test_keys_are_asked_for_and_a_server_that_loads_says_so() -> None:
    options = ServerOptions(limits=Limits(), keys=ApiKeys(["secret"]))
    service = TranslationService(options.limits)
    try:
        with TestClient(build_application(service, options)) as client:
            assert client.post("/alternatives", json=ASKED).status_code == 400
            headers = {"Authorization": "Bearer secret"}
            found = client.post("/likely_words", json=ASKED, headers=headers)
            assert (found.status_code, "Retry-After" in found.headers) == (503, True)
    finally:
        service.close()
