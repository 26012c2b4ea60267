"""The metrics of a server: valid lines of Prometheus' text format, and right counts."""

import re

import pytest

from .served_translators import LINES, served, small_runs, small_translator

LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"{}]*"(,[a-z]+="[^"{}]*")*\})? -?[0-9.e+-]+')
GOOD = {"q": LINES[3], "source": "en", "target": "it"}


@pytest.mark.long
def test_metrics_count_requests_sentences_and_the_cache() -> None:
    with served(small_runs(small_translator())) as (client, _):
        for _ in range(3):
            assert client.post("/translate", json=GOOD).status_code == 200
        client.post("/translate", json={})
        client.get("/no/such/path")
        client.get("/v2/glossaries/secret-name")
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert [line for line in lines if not line.startswith("#") and not LINE.fullmatch(line)] == []
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    expected = {
        'tfm_requests_total{path="/translate",status="200"}': "3",
        'tfm_requests_total{path="/translate",status="400"}': "1",
        'tfm_requests_total{path="other",status="404"}': "1",
        'tfm_requests_total{path="/v2/glossaries/",status="404"}': "1",
        'tfm_request_seconds_count{path="/translate"}': "4",
        'tfm_request_seconds_bucket{path="/translate",le="+Inf"}': "4",
        "tfm_cache_hits_total": "2",
        "tfm_cache_misses_total": "1",
        'tfm_sentences_total{run="run-0"}': "1",
        "tfm_characters_total": str(3 * len(LINES[3])),
        "tfm_requests_active": "0",
        "tfm_ready": "1",
    }
    assert {name: values.get(name) for name in expected} == expected
    assert "secret-name" not in answer.text


def test_each_metric_has_a_meaning_and_a_type_once() -> None:
    with served(small_runs(small_translator())) as (client, _):
        text = client.get("/metrics").text
    typed = re.findall(r"# TYPE (\S+) (counter|gauge|histogram)", text)
    names = [name for name, _ in typed]
    assert len(names) == len(set(names))
    assert names == re.findall(r"# HELP (\S+) ", text)
    assert all(name.endswith("_total") for name, kind in typed if kind == "counter")
