"""POST /explain: the JSON of the explainer, and its limits."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from transformer_cli.extensions.lessons.explaining.explainer import Explainer

from ..served_translators import LINES, served, small_runs, small_translator

TRANSLATOR = small_translator()
GOOD = {"q": LINES[3], "source": "en", "target": "it"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with served(small_runs(TRANSLATOR)) as (client, _):
        yield client


def test_the_json_is_that_of_the_explainer(client: TestClient) -> None:
    answer = client.post("/explain", json={**GOOD, "beam": 3, "nbest": 2, "topk": 4})
    explainer = Explainer.of(TRANSLATOR, num_alternatives=4)
    expected = explainer.explain(LINES[3], beam_size=3, num_best=2).to_json()
    found = answer.json()
    assert found["translation"] == expected["translation"]
    assert found["search"] == expected["search"]
    [sentence], [wanted] = found["sentences"], expected["sentences"]
    assert [one["text"] for one in sentence["hypotheses"]] == [one["text"] for one in wanted["hypotheses"]]
    assert len(sentence["hypotheses"][0]["tokens"][0]["alternatives"]) == 4
    assert sentence["attention"] == wanted["attention"]


@pytest.mark.long
def test_attention_is_left_out_if_wished_and_a_prefix_is_forced(client: TestClient) -> None:
    answer = client.post("/explain", json={**GOOD, "attention": False, "prefix": "sette"}).json()
    [sentence] = answer["sentences"]
    assert "attention" not in sentence
    assert answer["translation"].startswith("sette")


@pytest.mark.long
@pytest.mark.parametrize(
    "changed",
    [
        {"q": ""},
        {"q": "a\nb"},
        {"q": "a" * 1001},
        {"beam": 9},
        {"nbest": 1000},
        {"topk": 21},
        {"beam": "wide"},
        {"prefix": "unknownword"},
        {"prefix": ["sette"]},
        {"attention": "perhaps"},
        {"source": "it"},
    ],
)
def test_what_is_wrong_is_an_error_of_the_client(client: TestClient, changed: dict[str, Any]) -> None:
    answer = client.post("/explain", json={**GOOD, **changed})
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) == {"error"}


def test_settings_that_cannot_be_explained_are_refused() -> None:
    with served(small_runs(small_translator(mbr={}))) as (client, _):
        answer = client.post("/explain", json=GOOD)
        assert answer.status_code == 400
        assert "mbr" in answer.json()["error"]
