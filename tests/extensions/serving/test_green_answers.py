"""A server whose run has a calibration says how far each translation can be trusted, if a client asks for details."""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.serving.served_runs import load_served_runs
from transformer_cli.process.errors import UsageError

from .served_translators import served, small_runs, small_translator

DOCS_RUN = Path(__file__).parents[3] / "docs" / "run"
GOOD, GUESS = "The dog is big.", "The government must not negotiate with the union."
PLAIN = {"source": "en", "target": "it"}
LANGUAGES: dict[str, Any] = {**PLAIN, "details": True}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    runs = load_served_runs([str(DOCS_RUN)], [], cache_bytes=1 << 20, protects_spans=True)
    with served(runs) as (client, _):
        yield client


@pytest.fixture(scope="module")
def probabilities() -> list[float]:
    """Those of the command line."""
    translator = replace(load_translator(DOCS_RUN), estimates=True, protects_spans=True)
    estimates = [each.estimate for each in translator.translate([GOOD, GUESS])]
    return [round(each.probability, 4) for each in estimates if each is not None]


def test_a_text_has_its_estimate_as_on_the_command_line(client: TestClient, probabilities: list[float]) -> None:
    one = client.post("/translate", json={"q": GOOD, **LANGUAGES}).json()
    assert one["translatedText"] == "Il cane è grande."
    assert one["green"] is True
    assert one["quality"] == pytest.approx(probabilities[0], abs=1e-3)
    both = client.post("/translate", json={"q": [GOOD, GUESS], **LANGUAGES}).json()
    assert both["green"] == [True, False]
    assert both["quality"] == pytest.approx(probabilities, abs=1e-3)


def test_an_answer_has_only_the_fields_of_its_interface_unless_details_are_asked_for(client: TestClient) -> None:
    """Clients in Go, Java and Kotlin refuse an answer with a field that they do not know, or of another type."""
    assert client.post("/translate", json={"q": GOOD, **PLAIN}).json() == {"translatedText": "Il cane è grande."}
    values = {"text": GOOD, "source_lang": "EN", "target_lang": "IT"}
    [translation] = client.post("/v2/translate", data=values).json()["translations"]
    assert set(translation) == {"detected_source_language", "text", "billed_characters"}
    query = {"srcLangCode": "en", "trgLangCode": "it", "input": GOOD}
    assert set(client.get("/MTRestService/TranslateJson", params=query).json()) == {"translation"}
    file = {"file": ("a.txt", GOOD.encode())}
    assert set(client.post("/translate_file", data=PLAIN, files=file).json()) == {"translatedFileUrl"}
    document = client.post("/v2/document", data={"target_lang": "IT"}, files=file).json()
    for _ in range(200):
        status = client.post(f"/v2/document/{document['document_id']}", data=document).json()
        if status["status"] == "done":
            break
        time.sleep(0.05)
    assert set(status) == {"document_id", "status", "billed_characters"}


def test_a_text_of_several_lines_is_as_good_as_its_worst_one(client: TestClient) -> None:
    both = client.post("/translate", json={"q": [GUESS, f"{GOOD}\n{GUESS}", "42"], **LANGUAGES})
    answer = both.json()
    assert answer["quality"][0] == answer["quality"][1]
    assert answer["green"] == [False, False, None]
    assert "green" not in client.post("/translate", json={"q": "42", **LANGUAGES}).json()


def test_a_server_whose_calibration_is_damaged_says_so_and_serves_without_green(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = shutil.copytree(DOCS_RUN, tmp_path / "run")
    (run / "calibration.json").write_text("{")
    runs = load_served_runs([str(run)], [], cache_bytes=1 << 20, protects_spans=True)
    assert f"{run}/calibration.json: not a calibration, or damaged" in caplog.text
    with served(runs) as (client, _):
        answer = client.post("/translate", json={"q": GOOD, **LANGUAGES})
    assert (answer.status_code, answer.json()) == (200, {"translatedText": "Il cane è grande."})


@pytest.mark.long
def test_two_runs_of_one_name_are_refused_by_what_was_typed() -> None:
    link = str(DOCS_RUN / "checkpoints" / "..")
    with pytest.raises(UsageError, match="both have the name docs") as refused:
        load_served_runs([str(DOCS_RUN), link], [], cache_bytes=0)
    assert f"--run {DOCS_RUN} and --run {link}" in refused.value.message
    assert "--port" in str(refused.value.hint)
    with pytest.raises(UsageError, match="given twice") as refused:
        load_served_runs([str(DOCS_RUN)] * 2, [], cache_bytes=0)
    assert refused.value.hint == "name each run once"


def test_markup_has_an_estimate_too(client: TestClient) -> None:
    values: dict[str, Any] = {"q": [f"<p>{GOOD}</p>", f"<p>{GOOD} {GUESS}</p>"], "format": "html", **LANGUAGES}
    assert client.post("/translate", json=values).json()["green"] == [True, False]


def test_deepl_and_opus_cat_get_the_same(client: TestClient) -> None:
    values = {"text": [GOOD, GUESS], "source_lang": "EN", "target_lang": "IT", "details": True}
    found = client.post("/v2/translate", json=values).json()["translations"]
    assert [each["green"] for each in found] == [True, False]
    query = {"srcLangCode": "en", "trgLangCode": "it", "input": GOOD, "details": "1"}
    answer = client.get("/MTRestService/TranslateJson", params=query).json()
    assert (answer["translation"], answer["green"]) == ("Il cane è grande.", True)


def test_the_page_gets_it_for_each_sentence(client: TestClient) -> None:
    for _ in range(2):  # the second time from the cache
        answer = client.post("/translate_stream", json={"q": f"{GOOD} {GUESS}", **LANGUAGES})
        events = [json.loads(line) for line in answer.text.splitlines()]
        sentences = [event for event in events if event["type"] == "sentence"]
        assert [each["green"] for each in sentences] == [True, False]
        assert sentences[0]["quality"] > sentences[1]["quality"]


@pytest.mark.long
def test_a_file_is_counted_and_marked_if_it_is_wished() -> None:
    of = load_translator(DOCS_RUN)
    quality = of.pipeline.quality
    assert quality is not None
    second = "Where is the ticket of the black cat?"
    estimates = [each.estimate for each in replace(of, estimates=True).translate([GOOD, second])]
    best, other = (each.probability for each in estimates if each is not None and each.is_green)
    assert best > other
    # Now nothing but its estimate speaks against the second message.
    stricter = {"en-it": replace(quality, threshold=(best + other) / 2)}
    of = replace(of, pipeline=replace(of.pipeline, qualities=stricter))
    po = f'msgid "{GOOD}"\nmsgstr ""\n\nmsgid "{second}"\nmsgstr ""\n'.encode()
    with served(small_runs(of)) as (client, _):
        for mark in ("false", "true"):
            data: dict[str, Any] = {**LANGUAGES, "mark": mark}
            answer = client.post("/translate_file", data=data, files={"file": ("a.po", po)}).json()
            assert (answer["segments"], answer["green"]) == (2, 1)
            path = answer["translatedFileUrl"].split("/", 3)[3]
            assert ("#, fuzzy" in client.get(f"/{path}").text) == (mark == "true")


@pytest.mark.long
def test_a_run_without_calibration_answers_as_before() -> None:
    with served(small_runs(small_translator())) as (client, _):
        assert list(client.post("/translate", json={"q": "uno", **LANGUAGES}).json()) == ["translatedText"]
