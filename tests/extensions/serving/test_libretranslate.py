"""The interface of LibreTranslate: its parameters in each form, its answers, its errors."""

import functools
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from transformer_cli.extensions.serving.application import ServerOptions
from transformer_cli.extensions.serving.languages import served_language
from transformer_cli.extensions.serving.libretranslate import shown_name
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.request_values import ApiKeys

from .served_translators import LINES, served, small_runs, small_translator

TRANSLATORS = small_translator(), small_translator("it", "en"), small_translator("en", "pt-BR")


@functools.cache
def expected_texts() -> list[str]:
    """The translations of LINES; not made where the tests are only collected."""
    return [translation.text for translation in TRANSLATORS[0].translate(LINES)]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with served(small_runs(*TRANSLATORS)) as (client, _):
        yield client


def translate(client: TestClient, **values: Any) -> Any:
    answer = client.post("/translate", json={"source": "en", "target": "it", **values})
    assert answer.status_code == 200, answer.text
    return answer.json()


def error(answer: Any) -> tuple[int, str]:
    assert set(answer.json()) == {"error"}
    return answer.status_code, answer.json()["error"]


def test_a_text_is_translated_as_by_the_translator(client: TestClient) -> None:
    for line, expected in zip(LINES[:4], expected_texts(), strict=False):
        assert translate(client, q=line) == {"translatedText": expected}


def test_a_list_gets_a_list_in_its_order(client: TestClient) -> None:
    assert translate(client, q=LINES) == {"translatedText": expected_texts()}
    assert translate(client, q=LINES[:1]) == {"translatedText": expected_texts()[:1]}


def test_each_line_of_a_text_is_translated_and_line_breaks_stay(client: TestClient) -> None:
    text = f"{LINES[0]}\r\n\n  - {LINES[1]}\n"
    [first, second] = expected_texts()[:2]
    assert translate(client, q=text)["translatedText"] == f"{first}\r\n\n  - {second}\n"


@pytest.mark.parametrize("form", ["json", "urlencoded", "multipart", "query", "query and form"])
def test_parameters_may_come_in_each_form(client: TestClient, form: str) -> None:
    values = {"q": LINES[3], "source": "en", "target": "it", "format": "text"}
    sent: dict[str, dict[str, Any]] = {
        "json": {"json": values},
        "urlencoded": {"data": values},
        "multipart": {"files": {name: (None, value) for name, value in values.items()}},
        "query": {"params": values},
        "query and form": {"params": {**values, "q": "not this"}, "data": {"q": values["q"]}},
    }
    answer = client.post("/translate", **sent[form])
    assert answer.json() == {"translatedText": expected_texts()[3]}


@pytest.mark.parametrize("place", ["form", "query"])
def test_forms_and_addresses_may_have_utf_8_without_escapes(client: TestClient, place: str) -> None:
    """As `curl -d q='schön'` sends it; a model is not asked where both languages are the same."""
    fields = "q=schön naïve 100%25&source=en&target=en"
    if place == "form":
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = client.post("/translate", content=fields.encode(), headers=headers)
    else:
        answer = client.post("/translate", params=fields)
    assert answer.json() == {"translatedText": "schön naïve 100%"}


@pytest.mark.parametrize("fields", [b"q=%ff%fe&source=en&target=it", b"q=\xff&source=en&target=it"])
def test_a_form_that_is_not_utf_8_is_refused(client: TestClient, fields: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/translate", content=fields, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"] == "Invalid request: the form is not UTF-8"


@pytest.mark.parametrize("form", ["json", "urlencoded", "multipart"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_come_back_as_they_were_given(client: TestClient, form: str, end: str) -> None:
    values = {"q": f"{LINES[0]}{end}{end}{LINES[1]}{end}", "source": "en", "target": "it"}
    head = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in values.items()
    )
    sent: dict[str, dict[str, Any]] = {
        "json": {"json": values},
        "urlencoded": {"data": values},
        "multipart": {"content": f"{head}--x--\r\n", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
    }
    first, second = expected_texts()[:2]
    assert client.post("/translate", **sent[form]).json() == {"translatedText": f"{first}{end}{end}{second}{end}"}


def test_languages_are_named_with_their_targets(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["it", "pt-BR", "en"]},
        {"code": "it", "name": "Italian", "targets": ["en", "pt-BR", "it"]},  # by way of English
        {"code": "pt-BR", "name": "Portuguese (BR)", "targets": ["pt-BR"]},
    ]


@pytest.mark.long
@pytest.mark.parametrize("code", ["pt-BR", "pb", "PT-br", "pt_BR", "pt"])
def test_a_language_has_several_codes(client: TestClient, code: str) -> None:
    answer = translate(client, q=LINES[0], source="EN-us", target=code)
    [expected] = TRANSLATORS[2].translate(LINES[:1])
    assert answer == {"translatedText": expected.text}


def test_each_text_of_a_list_has_its_own_detected_language(client: TestClient) -> None:
    texts = [
        "This is surely an English sentence.",
        "Questa è sicuramente una frase italiana.",
        "12",
    ]
    answer = translate(client, q=texts, source="auto", target="it")
    found = answer["detectedLanguage"]
    assert [one["language"] for one in found] == ["en", "it", "en"]
    assert all(50.0 < one["confidence"] <= 100.0 for one in found[:2])
    assert found[2]["confidence"] == 0.0
    assert answer["translatedText"][1] == texts[1]  # it is Italian already
    assert "detectedLanguage" not in translate(client, q=texts)


def test_a_text_in_a_language_that_no_model_knows_has_no_confidence(client: TestClient) -> None:
    answer = translate(client, q="Привет, как дела?", source="auto", target="it")
    assert answer["detectedLanguage"]["confidence"] == 0.0


def test_one_text_has_one_detected_language(client: TestClient) -> None:
    answer = translate(client, q="This is surely an English sentence.", source="auto")
    assert answer["detectedLanguage"]["language"] == "en"
    assert isinstance(answer["translatedText"], str)


def test_a_text_that_is_in_the_target_language_stays_also_where_nothing_is_translated_into_it() -> None:
    english, italian = (
        "This is surely an English sentence.",
        "Questa è sicuramente una frase italiana.",
    )
    with served(small_runs(TRANSLATORS[0])) as (client, _):
        named = client.get("/languages").json()
        assert "en" in next(one["targets"] for one in named if one["code"] == "en")
        answer = translate(client, q=[english, english], source="auto", target="en")
        assert answer["translatedText"] == [english, english]
        assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "en"]
        into_english = {"source": "auto", "target": "en"}
        refused = client.post("/translate", json={"q": [english, italian], **into_english})
        assert error(refused) == (400, "en is not available as a target language")


def test_detection_names_all_languages_the_most_probable_first(client: TestClient) -> None:
    found = client.post("/detect", data={"q": "Questa è sicuramente una frase italiana."}).json()
    assert found[0]["language"] == "it"
    assert {one["language"] for one in found} == {"en", "it", "pt-BR"}
    assert all(type(one["confidence"]) is int for one in found)  # clients in Swift read no other number
    assert [one["confidence"] for one in found] == sorted((one["confidence"] for one in found), reverse=True)


@pytest.mark.long
def test_alternatives_are_the_n_best_list_without_the_best(client: TestClient) -> None:
    answer = translate(client, q=LINES[:6], alternatives=3)
    wide = small_translator(beam_size=4, num_best=4)
    for text, others, expected in zip(
        answer["translatedText"], answer["alternatives"], wide.translate(LINES[:6]), strict=True
    ):
        assert [text, *others] == [one.text for one in expected.alternatives]
    assert isinstance(translate(client, q=LINES[0], alternatives="2")["alternatives"], list)
    assert "alternatives" not in translate(client, q=LINES[0], alternatives=0)


MISSING = "Invalid request: missing {} parameter"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no q": ({"q": None}, MISSING.format("q")),
    "empty q": ({"q": ""}, MISSING.format("q")),
    "empty list": ({"q": []}, MISSING.format("q")),
    "no source": ({"source": None}, MISSING.format("source")),
    "no target": ({"target": None}, MISSING.format("target")),
    "unknown source": ({"source": "zz"}, "zz is not supported"),
    "unknown target": ({"target": "zz"}, "zz is not supported"),
    "no such pair": ({"source": "pt-BR", "target": "it"}, "it is not available as a target language of pt-BR"),
    "unknown format": ({"format": "doc"}, "doc format is not supported"),
    "too many texts": ({"q": ["uno"] * 129}, "Invalid request: request (129) exceeds text limit (128)"),
    "too long": ({"q": "uno " * 2000}, "Invalid request: request (8000) exceeds text limit (5000)"),
    "too many alternatives": ({"alternatives": 10_000}, "Invalid request: alternatives (10000) exceeds the limit (7)"),
    "negative alternatives": ({"alternatives": -1}, "Invalid request: alternatives must be a whole number from 0"),
    "a number as text": ({"q": 12}, "Invalid request: q must be a string"),
    "a list of numbers": ({"q": ["a", 1]}, "Invalid request: q must be a string or a list of strings"),
    "a list as language": ({"source": ["en"]}, "Invalid request: source must be a string"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said(client: TestClient, case: str) -> None:
    changed, message = REFUSED[case]
    values = {"q": LINES[0], "source": "en", "target": "it", **changed}
    sent = {name: value for name, value in values.items() if value is not None}
    assert error(client.post("/translate", json=sent)) == (400, message)


def test_a_wrong_method_and_an_unknown_path_are_errors_in_json(client: TestClient) -> None:
    assert error(client.get("/detect")) == (405, "Method Not Allowed")
    assert error(client.get("/translate")) == (405, "Method Not Allowed")
    assert error(client.get("/nothing")) == (404, "Not Found")


def test_an_address_of_the_server_may_end_with_a_slash(client: TestClient) -> None:
    values = {"q": LINES[0], "source": "en", "target": "it"}
    found = client.post("http://testserver//translate", json=values)
    assert (found.status_code, found.json()) == (200, client.post("/translate", json=values).json())
    assert client.get("http://testserver/v2//usage").json() == client.get("/v2/usage").json()
    assert client.get("http://testserver//nowhere").status_code == 404


def test_a_format_may_have_capital_letters(client: TestClient) -> None:
    values = {"q": f"<p>{LINES[0]}</p>", "source": "en", "target": "it"}
    small = client.post("/translate", data={**values, "format": "html"}).json()
    assert client.post("/translate", data={**values, "format": "Html"}).json() == small
    assert small["translatedText"].startswith("<p>")


def test_suggestions_are_refused(client: TestClient) -> None:
    values = {"q": "a", "s": "b", "source": "en", "target": "it"}
    assert client.post("/suggest", data=values).status_code == 403


def test_the_settings_of_a_page_name_the_limits(client: TestClient) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 5000
    assert settings["keyRequired"] is False
    assert settings["suggestions"] is False
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    # The columns of a table cannot be named in a request.
    assert {".docx", ".html"} <= {*settings["supportedFilesFormat"]}
    assert not {".csv", ".tsv"} & {*settings["supportedFilesFormat"]}


def test_a_key_is_needed_if_the_server_has_keys() -> None:
    options = ServerOptions(keys=ApiKeys(["one", "two"]))
    values = {"q": LINES[0], "source": "en", "target": "it"}
    with served(small_runs(TRANSLATORS[0]), options) as (client, _):
        assert error(client.post("/translate", data=values)) == (
            400,
            "Please contact the server operator to get an API key",
        )
        assert error(client.post("/translate", data={**values, "api_key": "on"})) == (
            403,
            "Invalid API key",
        )
        for right in (
            {"json": {**values, "api_key": "two"}},
            {"params": {**values, "api_key": "one"}},
        ):
            assert client.post("/translate", **right).status_code == 200
        header = {"Authorization": "Bearer two"}
        assert client.post("/translate", json=values, headers=header).status_code == 200
        assert client.post("/detect", json={"q": "a"}).status_code == 400
        assert client.get("/languages").status_code == 200
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers=header).status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"] is True


def test_pages_of_other_origins_may_ask_only_if_the_server_allows_it() -> None:
    asked = {
        "Origin": "https://page.test",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    with served(small_runs(TRANSLATORS[0]), ServerOptions(has_cors=True)) as (client, _):
        answer = client.options("/translate", headers=asked)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert answer.headers["access-control-max-age"] == "1728000"
        assert client.get("/languages", headers=asked).headers["access-control-allow-origin"] == "*"
    with served(small_runs(TRANSLATORS[0])) as (client, _):
        assert client.options("/translate", headers=asked).status_code == 403
        assert "access-control-allow-origin" not in client.get("/languages", headers=asked).headers


def test_limits_are_those_of_the_server() -> None:
    options = ServerOptions(limits=Limits(max_texts=2, max_characters=10, max_alternatives=1))
    with served(small_runs(TRANSLATORS[0]), options) as (client, _):
        values = {"source": "en", "target": "it"}
        assert client.post("/translate", json={"q": ["uno"] * 3, **values}).status_code == 400
        assert client.post("/translate", json={"q": "uno due tre", **values}).status_code == 400
        assert client.post("/translate", json={"q": "uno", "alternatives": 2, **values}).status_code == 400
        assert client.post("/translate", json={"q": "uno", "alternatives": 1, **values}).status_code == 200


@pytest.mark.parametrize("given", [{}, {"json": {"api_key": "any"}}, {"files": {}}])
def test_the_languages_may_be_asked_for_with_post(client: TestClient, given: dict[str, Any]) -> None:
    assert client.post("/languages", **given).json() == client.get("/languages").json()


@pytest.mark.parametrize(
    ("given", "code"), [("en", "eng"), ("EN-us", "eng"), ("eng", "en"), ("zh", "cmn"), ("por_BR", "pt-BR")]
)
def test_a_code_of_two_letters_and_one_of_three_name_the_same_language(given: str, code: str) -> None:
    assert served_language(given, ["it", code]) == code
    assert shown_name("eng-GB") == "English (GB)"
