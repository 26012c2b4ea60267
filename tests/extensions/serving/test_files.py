"""HTML and files over HTTP: as `translate_document` translates them, and downloaded under names that nobody guesses."""

import json
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from starlette.testclient import TestClient

from transformer_cli.extensions.documents import (
    ModelTranslator,
    format_named,
    read_document,
    translate_document,
)
from transformer_cli.extensions.serving import files
from transformer_cli.extensions.serving.application import ServerOptions
from transformer_cli.extensions.serving.files import TranslatedFiles
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.texts import name_of_translation

from .served_translators import LINES, served, small_runs, small_translator

TRANSLATORS = small_translator(), small_translator("it", "en")
HTML = f"<p class=x>{LINES[3]}. <b>{LINES[2]}</b></p>\n<!-- uno --><script>uno()</script><p>{LINES[5]}"
PAGE = f"<!doctype html>\n<html lang=en><title>{LINES[1]}</title><body>{HTML}</body></html>\n"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    options = ServerOptions(limits=Limits(max_file_bytes=50_000))
    with served(small_runs(*TRANSLATORS), options) as (client, _):
        yield client


def expected_html(text: str) -> str:
    document = read_document(text.encode(), format_named("html"))
    return translate_document(document, ModelTranslator.of(TRANSLATORS[0])).data.decode()


def send(client: TestClient, name: str, data: bytes, **values: str) -> Any:
    fields = {"source": "en", "target": "it", **values}
    return client.post("/translate_file", data=fields, files={"file": (name, data)})


def download(client: TestClient, answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    address = urlsplit(answer.json()["translatedFileUrl"])
    assert (address.scheme, address.netloc) == ("http", "testserver")
    return client.get(address.path)


@pytest.mark.long
def test_html_keeps_its_tags(client: TestClient) -> None:
    values = {"q": HTML, "source": "en", "target": "it", "format": "html", "alternatives": 2}
    answer = client.post("/translate", json=values).json()
    assert answer == {"translatedText": expected_html(HTML), "alternatives": []}
    assert re.findall("<[^>]*>", answer["translatedText"]) == re.findall("<[^>]*>", HTML)
    assert LINES[5] not in answer["translatedText"]


@pytest.mark.long
def test_html_keeps_its_tags_in_the_interface_of_deepl(client: TestClient) -> None:
    values = {"text": [HTML, "<i>uno</i>"], "source_lang": "EN", "target_lang": "IT", "tag_handling": "html"}
    found = client.post("/v2/translate", json=values).json()["translations"]
    assert [one["text"] for one in found] == [expected_html(HTML), expected_html("<i>uno</i>")]
    ignored = client.post("/v2/translate", json={**values, "ignore_tags": ["i"]}).json()
    assert ignored["translations"][1]["text"] == "<i>uno</i>"


@pytest.mark.parametrize("text", ["<p", "a < b & c", "<p>" * 3000, "<b></i>", "&#xD800;", "<![CDATA[", ""])
def test_damaged_html_is_translated_or_refused(client: TestClient, text: str) -> None:
    values = {"q": text, "source": "en", "target": "it", "format": "html"}
    assert client.post("/translate", json=values).status_code in (200, 400)


@pytest.mark.long
def test_a_file_is_translated_and_downloaded(client: TestClient) -> None:
    answer = send(client, "my page.html", PAGE.encode())
    assert re.search(r"/download_file/[0-9a-f]{32}\.my_page_it\.html$", answer.json()["translatedFileUrl"])
    found = download(client, answer)
    assert found.text == expected_html(PAGE)
    assert found.headers["content-disposition"] == 'attachment; filename="my_page_it.html"'
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("content_type", "name", "data"),
    [
        ("text/html; charset=utf-8", "page_it.html", PAGE.encode()),
        ("text/plain", "page_it.txt", f"{LINES[0]}\n".encode()),
    ],
)
def test_a_file_without_an_ending_has_that_of_its_content_type(
    client: TestClient, content_type: str, name: str, data: bytes
) -> None:
    fields = {"source": "en", "target": "it"}
    answer = client.post("/translate_file", data=fields, files={"file": ("page", data, content_type)})
    found = download(client, answer)
    assert f'filename="{name}"' in found.headers["content-disposition"]
    kept = send(client, "page.x", data)  # an ending counts
    assert kept.status_code == 400


def test_a_part_in_another_language_stays_in_a_page_that_names_none(client: TestClient) -> None:
    foreign = f'<p lang="de">{LINES[1]}</p>'
    page = f"<p>{LINES[3]}</p>{foreign}"
    found = download(client, send(client, "page.html", page.encode())).text
    assert found.endswith(foreign)
    assert found != page
    answer = client.post("/translate", json={"q": page, "source": "en", "target": "it", "format": "html"})
    assert answer.json()["translatedText"] == found


def test_a_text_file_is_translated_line_by_line(client: TestClient) -> None:
    text = "\n".join(LINES[:5]) + "\n"
    translations = TRANSLATORS[0].translate(LINES[:5])
    expected = "".join(f"{each.text}\n" for each in translations)
    assert download(client, send(client, "a.txt", text.encode())).text == expected


@pytest.mark.long
@pytest.mark.parametrize("columns", ["text", " note , text"])
def test_the_columns_of_a_table_are_translated(client: TestClient, columns: str) -> None:
    table = f"note,text\r\n1,{LINES[1]}\r\n2,{LINES[3]}\r\n".encode()
    found = download(client, send(client, "table.csv", table, columns=columns))
    expected = [each.text for each in TRANSLATORS[0].translate([LINES[1], LINES[3]])]
    assert found.text == f"note,text\r\n1,{expected[0]}\r\n2,{expected[1]}\r\n"


@pytest.mark.parametrize(
    ("columns", "message"),
    [("", "missing columns parameter"), (" , ", "missing columns"), ("none", "no column none")],
)
def test_a_table_needs_columns_that_it_has(client: TestClient, columns: str, message: str) -> None:
    answer = send(client, "table.tsv", b"a\tb\nuno\tdue\n", columns=columns)
    assert answer.status_code == 400
    assert message in answer.json()["error"]


@pytest.mark.long
def test_the_language_of_a_file_is_detected(client: TestClient) -> None:
    italian = "Questa è sicuramente una frase italiana, e questa anche.\n"
    same = download(client, send(client, "a.txt", italian.encode(), source="auto"))
    assert same.text == italian
    other = download(client, send(client, "a.txt", italian.encode(), source="auto", target="en"))
    assert other.text != italian


@pytest.mark.parametrize(
    ("name", "data", "values", "status"),
    [
        ("a.exe", b"uno", {}, 400),
        ("noname", b"uno", {}, 400),
        ("a.html", b"uno", {"target": "zz"}, 400),
        ("a.html", b"uno", {"source": "zz"}, 400),
        ("a.html", b"uno", {"source": ""}, 400),
        ("a.html", b" " * 60_000, {}, 413),
        ("a.txt", b"\xff\xfe\x00", {}, 400),
    ],
)
def test_what_cannot_be_translated_is_said(
    client: TestClient, name: str, data: bytes, values: dict[str, str], status: int
) -> None:
    answer = send(client, name, data, **values)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}


def test_a_file_is_needed(client: TestClient) -> None:
    answer = client.post("/translate_file", data={"source": "en", "target": "it", "file": "text"})
    assert answer.status_code == 400
    assert client.post("/translate_file", json={"file": "x"}).status_code == 400


def test_only_the_name_itself_finds_a_file(client: TestClient) -> None:
    name = urlsplit(send(client, "a.html", b"uno").json()["translatedFileUrl"]).path
    for wrong in ("/download_file/a_it.html", f"{name}x", "/download_file/..%2f..%2fetc%2fpasswd", "/download_file/"):
        assert client.get(wrong).status_code == 404
    assert client.get(name).status_code == 200


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\letter.html", 'a"\r\nb.html', "é" * 300 + ".html", ""])
def test_names_of_files_are_harmless(name: str) -> None:
    found = name_of_translation(name, "it")
    assert PurePath(found).name == found
    assert re.fullmatch(r"[\w.-]{1,120}", found)


def test_the_oldest_files_are_dropped_when_memory_is_full() -> None:
    kept = TranslatedFiles(max_bytes=25)
    names = [kept.add("a.txt", bytes(10)) for _ in range(4)]
    assert [kept.get(name) is None for name in names] == [True, True, False, False]
    assert len(set(names)) == 4


def test_files_are_dropped_after_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = TranslatedFiles(max_bytes=25)
    name = kept.add("a.txt", b"text")
    assert kept.get(name) == b"text"
    monkeypatch.setattr(files, "KEPT_SECONDS", -1.0)
    old = kept.add("b.txt", b"text")
    assert kept.get(name) == b"text"
    monkeypatch.setattr(files.time, "monotonic", lambda: 1e12)
    assert (kept.get(name), kept.get(old)) == (None, None)


def test_a_file_is_forgotten_after_its_time_also_if_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    holders: list[TranslatedFiles] = []
    add = TranslatedFiles.add

    def noted(holder: TranslatedFiles, name: str, data: bytes) -> str:
        holders.append(holder)
        return add(holder, name, data)

    monkeypatch.setattr(TranslatedFiles, "add", noted)
    monkeypatch.setattr(files, "KEPT_SECONDS", 0.0)
    with served(small_runs(*TRANSLATORS), ServerOptions()) as (client, _):
        send(client, "a.html", b"uno")
        client.get("/health")
    [holder] = holders
    assert holder._num_bytes() == 0


@pytest.mark.long
def test_the_progress_of_a_file_is_told_by_sentence(client: TestClient) -> None:
    lines = [LINES[number % len(LINES)] for number in range(100)]
    data = "".join(f"{line}\n" for line in lines).encode()
    answer = send(client, "a.txt", data, progress="true")
    *steps, last = [json.loads(line) for line in answer.text.splitlines()]
    assert all(step["type"] == "progress" for step in steps)
    assert steps == sorted(steps, key=lambda step: step["done"])
    assert steps[-1]["done"] == steps[-1]["total"] == len(set(lines))
    whole = download(client, send(client, "a.txt", data))
    assert client.get(urlsplit(last["translatedFileUrl"]).path).content == whole.content


def test_a_refusal_after_the_beginning_is_the_last_line(client: TestClient) -> None:
    answer = send(client, "a.json", b"{", progress="true")
    [last] = [json.loads(line) for line in answer.text.splitlines()]
    assert last["type"] == "error"
    assert "no valid JSON" in last["error"]
    assert last["status"] == 400


def test_a_name_that_is_not_ascii_is_told_in_utf_8(client: TestClient) -> None:
    found = download(client, send(client, "日本語.html", b"<p>uno"))
    expected = "attachment; filename=\"____it.html\"; filename*=UTF-8''" + quote("日本語_it.html")
    assert found.headers["content-disposition"] == expected


def test_the_address_of_a_file_has_the_path_of_the_proxy() -> None:
    options = ServerOptions(root_path="/mt")
    with served(small_runs(*TRANSLATORS), options) as (client, _):
        address = urlsplit(send(client, "a.html", b"uno").json()["translatedFileUrl"])
        assert address.path.startswith("/mt/download_file/")
        assert client.get(address.path.removeprefix("/mt")).status_code == 200
