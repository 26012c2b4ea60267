"""DeepL's interface, where its own client cannot look: forms, line breaks, limits, errors."""

import gc
import re
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from transformer_cli.config import Direction
from transformer_cli.decoding import Glossary, Translator
from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.serving import deepl, files
from transformer_cli.extensions.serving.application import ServerOptions
from transformer_cli.extensions.serving.deepl import ServedGlossary
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.request_values import ApiKeys
from transformer_cli.process.errors import DataError

from .served_translators import LINES, served, small_runs, small_translator

TRANSLATOR = small_translator()
FIRST, SECOND = (translation.text for translation in TRANSLATOR.translate(LINES[:2]))


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with served(small_runs(TRANSLATOR)) as (client, _):
        yield client


def texts_of(client: TestClient, **values: Any) -> list[str]:
    answer = client.post("/v2/translate", json={"source_lang": "EN", "target_lang": "IT", **values})
    assert answer.status_code == 200, answer.text
    return [one["text"] for one in answer.json()["translations"]]


def test_a_form_repeats_the_field_for_several_texts(client: TestClient) -> None:
    values = {"text": LINES[:2], "source_lang": "EN", "target_lang": "IT"}
    found = client.post("/v2/translate", data=values).json()["translations"]
    assert [one["text"] for one in found] == [FIRST, SECOND]
    assert [one["billed_characters"] for one in found] == [len(line) for line in LINES[:2]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("splitting", "expected_lines"),
    [("1", [LINES[0], LINES[1], "", LINES[0]]), ("nonewlines", [f"{LINES[0]} {LINES[1]}", "", LINES[0]])],
)
def test_line_breaks_end_sentences_or_do_not(client: TestClient, splitting: str, expected_lines: list[str]) -> None:
    expected = "\n".join(each.text for each in TRANSLATOR.translate(expected_lines))
    text = f"{LINES[0]}\n{LINES[1]}\n\n{LINES[0]}"
    assert texts_of(client, text=[text], split_sentences=splitting) == [expected]


@pytest.mark.long
def test_sentences_are_not_split_if_the_client_says_so(client: TestClient) -> None:
    text = "Uno due. Tre quattro."
    assert texts_of(client, text=[text], split_sentences="0") != texts_of(client, text=[text])


@pytest.mark.long
@pytest.mark.parametrize("splitting", ["0", "newlines", "nonewlines", "1"])
@pytest.mark.parametrize("form", ["{}", "<p>{}</p>"])
def test_no_way_of_splitting_loses_a_sentence(splitting: str, form: str) -> None:
    """The model of docs/run writes one sentence less if it reads these texts at once."""
    texts = ["We have a house. The cat is black.", "I am here. You are there. The dog is red."]
    handling = "" if form == "{}" else "xml"
    with served(small_runs(load_translator(Path(__file__).parents[3] / "docs/run"))) as (client, _):
        found = texts_of(
            client,
            text=list(map(form.format, texts)),
            split_sentences=splitting,
            tag_handling=handling,
        )
    whole = "Abbiamo una casa. Il gatto è nero.", "Sono qui. Sei lì. Il cane è rosso."
    assert found == list(map(form.format, whole))


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "same"),
    [
        (0, "0"),
        (False, "0"),
        ("false", "0"),
        (1, "1"),
        (True, "1"),
        ("True", "1"),
        ("NONEWLINES", "nonewlines"),
    ],
)
@pytest.mark.parametrize("tag_handling", ["", "plain", "html", "xml"])
def test_ways_of_splitting_may_be_numbers_switches_and_capitals(
    client: TestClient, given: Any, same: str, tag_handling: str
) -> None:
    text = [f"{LINES[0]}\n{LINES[1]}"]
    expected = texts_of(client, text=text, split_sentences=same, tag_handling=tag_handling)
    assert texts_of(client, text=text, split_sentences=given, tag_handling=tag_handling) == expected


@pytest.mark.parametrize(("tag_handling", "usual"), [("", "1"), ("plain", "1"), ("xml", "1"), ("html", "nonewlines")])
def test_line_breaks_stay_unless_the_client_says_nonewlines_or_sends_html(
    client: TestClient, tag_handling: str, usual: str
) -> None:
    text = f"{LINES[0]}\n\n  {LINES[1]}"

    def found(**values: str) -> str:
        [one] = texts_of(client, text=[text], tag_handling=tag_handling, **values)
        return one

    for splitting in ("0", "1"):
        first, empty, second = found(split_sentences=splitting).split("\n")
        assert [first, empty, second] == [FIRST, "", f"  {SECOND}"]
    if tag_handling in ("html", "xml"):
        assert "\n" not in found(split_sentences="nonewlines")
    assert found() == found(split_sentences=usual)


def test_lines_can_be_the_sentences(client: TestClient) -> None:
    one, other = "Uno due. Tre quattro.", "Cinque."
    [found] = texts_of(client, text=[f"{one}\n{other}"], split_sentences="newlines")
    assert found.split("\n") == texts_of(client, text=[one, other], split_sentences="0")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"text": None}, "'text'"),
        ({"text": []}, "'text'"),
        ({"text": ["a"] * 51}, "51"),
        ({"target_lang": None}, "'target_lang'"),
        ({"target_lang": "ZZ"}, "'target_lang'"),
        ({"source_lang": "ZZ"}, "'source_lang'"),
        ({"split_sentences": "2"}, "0, 1, nonewlines, newlines are"),
        ({"split_sentences": 2}, "'split_sentences'"),
        ({"split_sentences": ["1"]}, "split_sentences must be a string"),
        ({"tag_handling": "markdown"}, "'tag_handling'"),
        ({"text": ["uno <x>due</x>"], "ignore_tags": "x"}, "'ignore_tags'"),
        ({"tag_handling": "xml", "outline_detection": "maybe"}, "outline_detection"),
        ({"tag_handling": "xml", "text": ["<a>uno"]}, "no well-formed XML"),
        ({"formality": "less"}, "'formality'"),
        ({"glossary_ids": ["a"]}, "'glossary_ids'"),
        ({"style_id": "a"}, "'style_id'"),
    ],
)
def test_errors_have_a_message(client: TestClient, values: dict[str, Any], named: str) -> None:
    given = {"text": ["uno"], "source_lang": "EN", "target_lang": "IT", **values}
    sent = {name: value for name, value in given.items() if value is not None}
    answer = client.post("/v2/translate", json=sent)
    assert answer.status_code == 400
    assert set(answer.json()) == {"message"}
    assert named in answer.json()["message"]


def test_parameters_without_a_value_are_absent(client: TestClient) -> None:
    absent: dict[str, Any] = {"glossary_ids": [], "style_id": "", "custom_instructions": None}
    assert texts_of(client, text=LINES[:1], **absent) == [FIRST]


def test_an_unknown_glossary_is_not_found(client: TestClient) -> None:
    sent = {"text": ["uno"], "source_lang": "EN", "target_lang": "IT", "glossary_id": "none"}
    assert client.post("/v2/translate", json=sent).status_code == 404
    for version in ("v2", "v3"):
        found = client.get(f"/{version}/glossaries/none").json()
        assert found == {"message": "Glossary not found."}
    assert client.get("/v2/nothing").json() == {"message": "Not Found"}
    assert client.get("/v2/translate").json() == {"message": "Method Not Allowed"}


@pytest.mark.parametrize(
    "path",
    ["/v2/usage", "/v2/languages?type=target", "/v2/glossaries", "/v2/glossary-language-pairs", "/v3/glossaries"],
)
def test_a_type_that_is_named_for_an_empty_body_is_no_fault(client: TestClient, path: str) -> None:
    """As of clients that send the same headers with each request."""
    answer = client.get(path, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()) == (200, client.get(path).json())
    refused = client.post("/v2/translate", headers={"Content-Type": "application/json"})
    assert refused.json() == {"message": "Parameter 'text' not specified."}


def test_usage_counts_characters(client: TestClient) -> None:
    before = client.get("/v2/usage").json()["character_count"]
    texts_of(client, text=["uno", "due tre"])
    assert client.get("/v2/usage").json()["character_count"] == before + 10


@pytest.mark.long
def test_the_tags_of_xml_stay_and_divide_as_the_parameters_say(client: TestClient) -> None:
    xml = {"tag_handling": "xml"}
    text = "<doc><p>uno</p><p>due</p><keep>tre</keep></doc>"
    uno, due = (each.text for each in TRANSLATOR.translate(["uno", "due"]))
    [divided] = texts_of(client, text=[text], ignore_tags="keep", **xml)
    assert divided == f"<doc><p>{uno}</p><p>{due}</p><keep>tre</keep></doc>"
    [by_list] = texts_of(
        client,
        text=[text],
        outline_detection=False,
        splitting_tags=["p", "doc"],
        ignore_tags="keep, none",
        **xml,
    )
    assert by_list == divided
    [together] = texts_of(client, text=["<doc><p>uno</p> <p>due</p></doc>"], non_splitting_tags="p", **xml)
    assert re.sub("<[^>]*>", "", together).split() == (next(iter(TRANSLATOR.translate(["uno due"]))).text.split())


def test_the_outline_is_ignored_where_it_has_no_effect(client: TestClient) -> None:
    """DeepL's command line sends it with every text."""
    values = {"text": [LINES[0]], "source_lang": "EN", "target_lang": "IT"}
    plain = client.post("/v2/translate", json=values).json()
    for more in ({"outline_detection": "1"}, {"outline_detection": False, "tag_handling": "html"}):
        answer = client.post("/v2/translate", json={**values, **more})
        assert answer.json() == plain


def test_lists_of_tags_are_taken_where_they_are_followed_and_else_refused(
    client: TestClient,
) -> None:
    """django-traduire sends the blocks with every text of HTML, djangocms-deepl-translations the elements that stay with every text."""
    values = {"text": ["<p>uno <b>due</b></p>"], "target_lang": "IT", "tag_handling": "html"}
    plain = client.post("/v2/translate", json=values).json()
    for lists in (
        {"splitting_tags": "p,h1,li,td,br,P,i"},
        {"non_splitting_tags": "u"},
        {"ignore_tags": ["template", "cms-plugin"]},
    ):
        assert client.post("/v2/translate", json={**values, **lists}).json() == plain
    for lists in ({"splitting_tags": "p,b"}, {"non_splitting_tags": "p"}):
        assert client.post("/v2/translate", json={**values, **lists}).status_code == 400
    text = {"text": ["uno < due"], "target_lang": "IT"}
    answer = client.post("/v2/translate", json={**text, "ignore_tags": "template,cms-plugin"})
    assert answer.json() == client.post("/v2/translate", json=text).json()
    text = {"text": ["uno <due>tre</due>"], "target_lang": "IT", "ignore_tags": "due"}
    assert client.post("/v2/translate", json=text).status_code == 400


@pytest.mark.long
@pytest.mark.parametrize("tag", ["b", "cms-plugin", "CMS-Plugin", "p"])
def test_the_content_of_ignored_elements_of_html_stays(client: TestClient, tag: str) -> None:
    text = f"<div>uno <{tag}>due</{tag}> tre</div>"
    values = {"text": [text], "target_lang": "IT", "tag_handling": "html"}
    before, after = (
        client.post("/v2/translate", json={**values, **more}).json()["translations"][0]["text"]
        for more in ({}, {"ignore_tags": tag})
    )
    assert f"<{tag}>due</{tag}>" in after
    assert f"<{tag}>due</{tag}>" not in before


@pytest.mark.parametrize("wanted", ["quality_optimized", "prefer_quality_optimized"])
def test_the_model_is_named_if_a_client_prefers_one(client: TestClient, wanted: str) -> None:
    values = {"text": LINES[:1], "target_lang": "IT", "source_lang": "EN", "model_type": wanted}
    [found] = client.post("/v2/translate", json=values).json()["translations"]
    assert found["model_type_used"] == "quality_optimized"
    refused = client.post("/v2/translate", json={**values, "model_type": "best"})
    assert refused.status_code == 400


def test_xml_may_have_a_document_type(client: TestClient) -> None:
    values = {"source_lang": "EN", "target_lang": "IT", "tag_handling": "xml"}

    def translated(text: str) -> str:
        answer = client.post("/v2/translate", json={**values, "text": [text]})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["translations"][0]["text"])

    inner = f"<html><p>{LINES[3]}</p></html>"
    assert translated(f"<!DOCTYPE html>{inner}") == f"<!DOCTYPE html>{translated(inner)}"
    entity = f'<!DOCTYPE a [<!ENTITY b "c">]>{inner}'
    refused = client.post("/v2/translate", json={**values, "text": [entity]})
    assert (refused.status_code, "entity" in refused.json()["message"]) == (400, True)


DICTIONARY = {"source_lang": "EN", "target_lang": "IT", "entries": "uno\tdue"}
GLOSSARY = {"name": "a", **DICTIONARY}


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": ""}, "'name'"),
        ({"name": "a" * 1025}, "1025"),
        ({"entries": ""}, "'entries'"),
        ({"entries": " \n"}, "no terms"),
        ({"entries": "uno"}, "Line 1"),
        ({"entries": "uno\tdue\ntre\t"}, "Line 2"),
        ({"entries": "uno\tdue\tcase"}, "Line 1"),
        ({"entries": "uno\tdue\n\nuno\ttre"}, "Line 3 of 'entries': the source term stands there twice"),
        ({"entries": 'uno,"due', "entries_format": "csv"}, "Line 1"),
        ({"entries": 'uno,"due\ntre"', "entries_format": "csv"}, "line break"),
        ({"entries": "uno\tdue\x07"}, "control character"),
        ({"entries": "uno,due,en,it,x", "entries_format": "csv"}, "Line 1"),
        ({"entries": "uno\tdue", "entries_format": "csv"}, "Line 1"),
        ({"entries_format": "xlsx"}, "'entries_format'"),
        ({"target_lang": "EN"}, "en"),
        ({"source_lang": "ZZ"}, "'source_lang'"),
        ({"entries": "\n".join(f"{n}\t{n}" for n in range(10_001))}, "10001"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_refused(client: TestClient, values: dict[str, str], message: str) -> None:
    answer = client.post("/v2/glossaries", json={**GLOSSARY, **values})
    assert answer.status_code == 400
    assert message in answer.json()["message"]
    assert client.get("/v2/glossaries").json() == {"glossaries": []}


@pytest.mark.long
@pytest.mark.parametrize(
    ("dictionaries", "message"),
    [
        ([], "'dictionaries' not specified"),
        ("uno", "dictionaries must be a list of objects"),
        (["uno"], "dictionaries must be a list of objects"),
        ([DICTIONARY, DICTIONARY], "one dictionary"),
        ([{**DICTIONARY, "entries": ""}], "'entries' not specified"),
        ([{**DICTIONARY, "source_lang": "ZZ"}], "'source_lang'"),
    ],
)
def test_a_glossary_of_version_3_has_one_dictionary(client: TestClient, dictionaries: object, message: str) -> None:
    answer = client.post("/v3/glossaries", json={"name": "a", "dictionaries": dictionaries})
    assert answer.status_code == 400
    assert message in answer.json()["message"]
    assert client.get("/v3/glossaries").json() == {"glossaries": []}


def test_a_glossary_is_made_ready_for_its_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds for thousands of terms, which would be the time of each request."""
    made: list[Glossary] = []
    with_glossary = Translator.with_glossary

    def counted(translator: Translator, glossary: Glossary) -> Translator:
        made.append(glossary)
        return with_glossary(translator, glossary)

    monkeypatch.setattr(Translator, "with_glossary", counted)
    terms = Glossary.of({"uno": "sette"})
    given = ServedGlossary("given", "given", Direction("en", "it"), terms, datetime.now(UTC))
    with served(small_runs(TRANSLATOR), ServerOptions(glossaries={"given": given})) as (client, _):
        sent = client.post("/v2/glossaries", json=GLOSSARY).json()["glossary_id"]
        for name in ("given", sent, "given", sent):
            texts_of(client, text=["uno"], glossary_id=name)
    assert len(made) == 2


@pytest.mark.parametrize(
    ("limit", "most"), [("_MAX_TERMS", 3), ("_MAX_CHARACTERS_OF_TERMS", 18), ("_MAX_GLOSSARIES", 3)]
)
def test_glossaries_of_clients_have_a_limit(monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(deepl, limit, most)
    with served(small_runs(TRANSLATOR)) as (client, _):
        made = [client.post("/v2/glossaries", data=GLOSSARY) for _ in range(4)]
        assert [each.status_code for each in made] == [201, 201, 201, 456]
        first = made[0].json()["glossary_id"]
        assert client.delete(f"/v2/glossaries/{first}").status_code == 204
        assert client.post("/v2/glossaries", data=GLOSSARY).status_code == 201


def test_the_limit_of_glossaries_holds_when_several_are_made_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deepl, "_MAX_GLOSSARIES", 2)
    with_glossary = Translator.with_glossary
    all_are_there = threading.Barrier(4)

    def held(translator: Translator, glossary: Glossary) -> Translator:
        all_are_there.wait(60.0)
        return with_glossary(translator, glossary)

    monkeypatch.setattr(Translator, "with_glossary", held)
    with served(small_runs(TRANSLATOR)) as (client, _), ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: client.post("/v2/glossaries", data=GLOSSARY), range(4)))
        assert sorted(each.status_code for each in made) == [201, 201, 456, 456]
        assert len(client.get("/v2/glossaries").json()["glossaries"]) == 2


def test_a_name_of_a_glossary_is_kept_whole(client: TestClient) -> None:
    made = client.post("/v2/glossaries", json={**GLOSSARY, "name": "a" * 1024}).json()
    assert client.delete(f"/v2/glossaries/{made['glossary_id']}").status_code == 204
    assert made["name"] == "a" * 1024


def test_a_glossary_of_a_client_is_only_for_the_key_that_made_it() -> None:
    terms = Glossary.of({"uno": "sette"})
    given = ServedGlossary("given", "given", Direction("en", "it"), terms, datetime.now(UTC))
    own, other = ({"Authorization": f"DeepL-Auth-Key {key}"} for key in ("own key", "other key"))
    options = ServerOptions(keys=ApiKeys(["own key", "other key"]), glossaries={"given": given})
    with served(small_runs(TRANSLATOR), options) as (client, _):
        made = client.post("/v2/glossaries", json=GLOSSARY, headers=own).json()["glossary_id"]

        def seen(version: str, headers: dict[str, str]) -> list[str]:
            answer = client.get(f"/{version}/glossaries", headers=headers).json()
            return [each["glossary_id"] for each in answer["glossaries"]]

        def codes(headers: dict[str, str]) -> list[int]:
            address = f"glossaries/{made}"
            paths = (f"/v2/{address}", f"/v3/{address}", f"/v2/{address}/entries")
            values = {"source_lang": "EN", "target_lang": "IT", "glossary_id": made}
            text = client.post("/v2/translate", json={**values, "text": ["uno"]}, headers=headers)
            file = {"file": ("a.txt", b"uno")}
            document = client.post("/v2/document", data=values, files=file, headers=headers)
            deleted = client.delete(f"/v2/{address}", headers=headers)
            read = [client.get(path, headers=headers) for path in paths]
            return [each.status_code for each in (*read, text, document, deleted)]

        for version in ("v2", "v3"):
            assert seen(version, other) == ["given"]
            assert seen(version, own) == ["given", made]
        assert codes(other) == [404] * 6
        # The key may be a field, too.
        assert client.get(f"/v2/glossaries/{made}?auth_key=own key").status_code == 200
        assert client.delete(f"/v2/glossaries/{made}", headers=own).status_code == 204


def send_document(client: TestClient, name: str = "a.txt") -> tuple[str, dict[str, str]]:
    """The address of a document, and the parameter with its key."""
    values = {"source_lang": "EN", "target_lang": "IT"}
    answer = client.post("/v2/document", data=values, files={"file": (name, LINES[3])})
    assert answer.status_code == 200, answer.text
    given = answer.json()
    return f"/v2/document/{given['document_id']}", {"document_key": given["document_key"]}


def wait_for(client: TestClient, address: str, key: dict[str, str]) -> None:
    while client.post(address, json=key).json()["status"] != "done":
        time.sleep(0.001)


@pytest.mark.long
def test_a_document_is_queued_until_its_turn_and_has_no_result_before_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = threading.Event()
    opened = files.opened_document

    def held(*arguments: Any, **options: Any) -> Any:
        assert released.wait(60.0)
        return opened(*arguments, **options)

    monkeypatch.setattr(files, "opened_document", held)
    options = ServerOptions(Limits(max_files=1, max_waiting_files=1))
    with served(small_runs(TRANSLATOR), options) as (client, service):
        address, key = send_document(client)
        assert client.post(address, json=key).json()["status"] == "queued"
        early = client.post(f"{address}/result", json=key)
        assert (early.status_code, set(early.json())) == (503, {"message"})
        send_document(client)
        refused = client.post("/v2/document", files={"file": ("b.txt", b"a")})
        assert refused.status_code == 429
        assert service.num_files == 2
        released.set()
        wait_for(client, address, key)
        [expected] = TRANSLATOR.translate(LINES[3:4])
        assert client.post(f"{address}/result", data=key).text == expected.text
        while service.num_files:
            time.sleep(0.001)
        assert service.num_active == 0


def test_a_document_is_given_only_for_its_key_and_forgotten_after_its_time(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, key = send_document(client)
    wait_for(client, address, key)
    for path in (address, f"{address}/result"):
        for wrong in ({}, {"document_key": "A" * 64}, {"document_key": "\u00e9"}):
            assert client.post(path, json=wrong).status_code == 404
    monkeypatch.setattr(deepl, "KEPT_SECONDS", -1e6)
    assert client.post(address, json=key).status_code == 404


def test_the_oldest_documents_are_forgotten_when_there_are_many(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl, "_MAX_DOCUMENTS", 2)
    sent = [send_document(client) for _ in range(2)]
    for address, key in sent:
        wait_for(client, address, key)
    third = send_document(client)
    wait_for(client, *third)
    codes = [client.post(address, json=key).status_code for address, key in [*sent, third]]
    assert codes == [404, 200, 200]


def test_a_document_that_still_works_does_not_keep_others_from_being_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deepl, "_MAX_DOCUMENTS", 2)
    released = threading.Event()
    opened = files.opened_document

    def held(name: str, *arguments: Any, **options: Any) -> Any:
        assert name != "held.txt" or released.wait(60.0)
        return opened(name, *arguments, **options)

    monkeypatch.setattr(files, "opened_document", held)
    with served(small_runs(TRANSLATOR)) as (client, service):
        first = send_document(client, "held.txt")
        others = [send_document(client) for _ in range(2)]
        while service.num_files > 1:
            time.sleep(0.001)
        last = send_document(client)
        wait_for(client, *last)
        codes = [client.post(address, json=key).status_code for address, key in [first, *others, last]]
        released.set()
        assert codes == [200, 404, 404, 200]
        wait_for(client, *first)


@pytest.mark.long
def test_a_document_that_failed_keeps_its_message_and_not_its_upload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Upload:
        pass

    kept: list[weakref.ref[Upload]] = []

    def failing(*arguments: Any, **options: Any) -> Any:
        upload = Upload()
        kept.append(weakref.ref(upload))
        raise DataError("it is damaged")

    monkeypatch.setattr(files, "opened_document", failing)
    with served(small_runs(TRANSLATOR)) as (client, service):
        gc.collect()
        # What only the collector frees would stay until it looks, which may be long.
        gc.disable()
        try:
            address, key = send_document(client)
            while service.num_files:
                time.sleep(0.001)
            state = client.post(address, json=key).json()
            assert (state["status"], state["error_message"]) == ("error", "it is damaged")
            assert [each() for each in kept] == [None]
        finally:
            gc.enable()
        assert client.post(f"{address}/result", json=key).json() == {"message": "it is damaged"}


def test_a_document_may_be_larger_than_a_text() -> None:
    limits = Limits(max_body_bytes=1000, max_file_bytes=5000)
    with served(small_runs(TRANSLATOR), ServerOptions(limits)) as (client, _):
        values = {"source_lang": "EN", "target_lang": "IT"}
        for size, status in ((2000, 200), (6000, 413)):
            sent = {"file": ("a.txt", b"uno\n" * (size // 4))}
            answer = client.post("/v2/document", data=values, files=sent)
            assert answer.status_code == status
