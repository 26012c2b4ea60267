"""POST /explain: the JSON of the explainer, and its limits."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from transformer_cli.config import PhrasebookData, TokenizerConfig
from transformer_cli.extensions.lessons.explaining.explainer import Explainer
from transformer_cli.extensions.serving.batcher import Batcher, Job, WorkKind
from transformer_cli.text.tokenizer import train_tokenizer

from ....decoding.small_translators import WORDS, translator
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


class Busy:
    """The thread of a batcher is busy inside the block, until so many further calls wait for it."""

    def __init__(self, batcher: Batcher, num_calls: int) -> None:
        self._batcher, self._num_calls = batcher, num_calls
        self._begun = threading.Event()
        self._kind = WorkKind("busy", "busy", self._compute, len, 100)
        self._thread = threading.Thread(target=batcher.results, args=(self._kind, {"a": "a"}, Job(60.0)))

    def _compute(self, items: Any) -> Any:
        num_before = self._batcher.counts.num_asked
        self._begun.set()
        while self._batcher.counts.num_asked < num_before + self._num_calls:
            pass
        return items

    def __enter__(self) -> None:
        self._thread.start()
        assert self._begun.wait(60.0)

    def __exit__(self, *_: object) -> None:
        self._thread.join()


@pytest.mark.long
def test_both_directions_of_a_run_explain_the_same_line_at_the_same_time() -> None:
    """They share a batcher, which computes equal work once."""
    data = PhrasebookData(both_directions=True)
    tokenizer = train_tokenizer([" ".join(WORDS), *WORDS], TokenizerConfig(), tags=["<2it>", "<2en>"])
    runs = small_runs(translator(tokenizer, data=data, beam_size=2))
    directions = list(runs.directions.values())
    try:
        with ThreadPoolExecutor(2) as threads, Busy(directions[0].shared.batcher, 2):
            asked = [threads.submit(each.explained, Job(60.0), LINES[3], 4, {}) for each in directions]
        found = [each.result()["sentences"][0]["source"] for each in asked]
        alone = [each.explained(Job(60.0), LINES[3], 4, {})["sentences"][0]["source"] for each in directions]
        assert found == alone
        assert found[0] != found[1]
    finally:
        runs.close()


def test_one_client_without_attention_takes_it_from_no_other() -> None:
    runs = small_runs(TRANSLATOR)
    [direction] = runs.directions.values()
    with served(runs) as (client, _), ThreadPoolExecutor(3) as threads:
        with Busy(direction.shared.batcher, 3):
            bodies = [{**GOOD, "attention": wished} for wished in (False, True, False)]
            asked = [threads.submit(client.post, "/explain", json=body) for body in bodies]
        answers = [each.result() for each in asked]
        assert [each.status_code for each in answers] == [200, 200, 200]
        assert ["attention" in each.json()["sentences"][0] for each in answers] == [False, True, False]


def test_settings_that_cannot_be_explained_are_refused() -> None:
    with served(small_runs(small_translator(mbr={}))) as (client, _):
        answer = client.post("/explain", json=GOOD)
        assert answer.status_code == 400
        assert "mbr" in answer.json()["error"]
