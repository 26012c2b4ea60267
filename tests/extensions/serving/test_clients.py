"""Clients that others wrote, unchanged, against a server on loopback."""

import functools
import io
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import deepl
import pytest
from deep_translator import LibreTranslator
from deepl.api_data import MultilingualGlossaryDictionaryEntries
from libretranslatepy import LibreTranslateAPI

from transformer_cli.config import Direction
from transformer_cli.decoding import Glossary
from transformer_cli.extensions.serving.application import ServerOptions
from transformer_cli.extensions.serving.deepl import read_glossaries
from transformer_cli.extensions.serving.request_values import ApiKeys

from .served_translators import LINES, listening, small_runs, small_translator

TRANSLATORS = small_translator(), small_translator("it", "en")


@functools.cache
def expected_texts() -> list[str]:
    """The translations of LINES; not made where the tests are only collected."""
    return [translation.text for translation in TRANSLATORS[0].translate(LINES)]


KEY = "a-key"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    terms = tmp_path_factory.mktemp("glossary") / "numbers.tsv"
    terms.write_text("uno\tsette\n", encoding="utf-8")
    options = ServerOptions(keys=ApiKeys([KEY]), glossaries=read_glossaries([f"en-it={terms}"]))
    with listening(small_runs(*TRANSLATORS), options) as address:
        yield address


def test_libretranslatepy(address: str) -> None:
    client = LibreTranslateAPI(address, api_key=KEY)
    assert [client.translate(line, "en", "it") for line in LINES[:3]] == expected_texts()[:3]
    assert {language["code"] for language in client.languages()} == {"en", "it"}
    assert client.detect("Questa è sicuramente una frase italiana.")[0]["language"] == "it"


def test_deep_translator(address: str) -> None:
    client = LibreTranslator(source="en", target="it", custom_url=f"{address}/", api_key=KEY)
    assert client.translate(LINES[5]) == expected_texts()[5]
    assert client.translate_batch(LINES[:3]) == expected_texts()[:3]


@pytest.fixture
def deepl_client(address: str) -> Iterator[deepl.DeepLClient]:
    client = deepl.DeepLClient(KEY, server_url=address)
    yield client
    client.close()


def test_deepl(deepl_client: deepl.DeepLClient) -> None:
    one = deepl_client.translate_text(LINES[3], source_lang="EN", target_lang="IT")
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang) == (expected_texts()[3], "EN")
    several = deepl_client.translate_text(LINES[:5], source_lang="EN", target_lang="IT")
    assert isinstance(several, list)
    assert [each.text for each in several] == expected_texts()[:5]
    detected = deepl_client.translate_text("This is surely an English sentence.", target_lang="IT")
    assert isinstance(detected, deepl.TextResult)
    assert detected.detected_source_lang == "EN"


def test_deepl_languages_and_usage(deepl_client: deepl.DeepLClient) -> None:
    assert {each.code for each in deepl_client.get_source_languages()} == {"EN", "IT"}
    assert {each.code for each in deepl_client.get_target_languages()} == {"EN", "IT"}
    usage = deepl_client.get_usage()
    assert usage.character is not None
    assert not usage.any_limit_reached


@pytest.mark.long
def test_deepl_glossaries(deepl_client: deepl.DeepLClient) -> None:
    [listed] = deepl_client.list_glossaries()
    assert (listed.glossary_id, listed.source_lang, listed.target_lang) == ("numbers", "EN", "IT")
    assert deepl_client.get_glossary("numbers").entry_count == 1
    pairs = {(one.source_lang, one.target_lang) for one in deepl_client.get_glossary_languages()}
    assert pairs == {("en", "it"), ("it", "en")}
    [multilingual] = deepl_client.list_multilingual_glossaries()
    [dictionary] = multilingual.dictionaries
    assert (dictionary.source_lang, dictionary.target_lang, dictionary.entry_count) == (
        "EN",
        "IT",
        1,
    )
    assert deepl_client.get_multilingual_glossary("numbers").name == "numbers"
    found = deepl_client.translate_text(LINES[2], source_lang="EN", target_lang="IT", glossary="numbers")
    assert isinstance(found, deepl.TextResult)
    with_terms = TRANSLATORS[0].with_glossary(Glossary.of({"uno": "sette"}))
    [expected] = with_terms.translate(LINES[2:3])
    assert found.text == expected.text
    assert "sette" in found.text


@pytest.mark.long
def test_deepl_writes_and_deletes_glossaries(deepl_client: deepl.DeepLClient) -> None:
    languages = {"source_lang": "EN", "target_lang": "IT"}
    terms = {"uno": "sette", "due": "sette sette"}
    made = deepl_client.create_glossary("my terms", **languages, entries=terms)
    assert (made.name, made.entry_count, made.ready) == ("my terms", 2, True)
    assert (made.source_lang, made.target_lang) == ("EN", "IT")
    assert deepl_client.get_glossary_entries(made) == terms
    assert {each.glossary_id for each in deepl_client.list_glossaries()} == {
        "numbers",
        made.glossary_id,
    }
    found = deepl_client.translate_text(LINES[2], **languages, glossary=made)
    assert isinstance(found, deepl.TextResult)
    [expected] = TRANSLATORS[0].with_glossary(Glossary.of(terms)).translate(LINES[2:3])
    assert found.text == expected.text
    of_csv = deepl_client.create_glossary_from_csv("csv", **languages, csv_data='uno,"tre",en,it\r\n')
    assert deepl_client.get_glossary_entries(of_csv) == {"uno": "tre"}
    for each in (made, of_csv):
        deepl_client.delete_glossary(each)
        with pytest.raises(deepl.GlossaryNotFoundException):
            deepl_client.get_glossary_entries(each)
    with pytest.raises(deepl.DeepLException, match="cannot be deleted"):
        deepl_client.delete_glossary("numbers")


@pytest.mark.long
def test_deepl_writes_and_deletes_glossaries_of_version_3(deepl_client: deepl.DeepLClient) -> None:
    terms = {"uno": "sette", "due": "sette sette"}
    sent = MultilingualGlossaryDictionaryEntries("EN", "IT", terms)
    made = deepl_client.create_multilingual_glossary("my terms", [sent])
    [dictionary] = made.dictionaries
    assert (made.name, dictionary.source_lang, dictionary.target_lang, dictionary.entry_count) == (
        "my terms",
        "EN",
        "IT",
        2,
    )
    [entries] = deepl_client.get_multilingual_glossary_entries(made, "EN", "IT").dictionaries
    assert entries.entries == "uno\tsette\ndue\tsette sette"
    with pytest.raises(deepl.GlossaryNotFoundException):
        deepl_client.get_multilingual_glossary_entries(made, "IT", "EN")
    deepl_client.delete_multilingual_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        deepl_client.get_multilingual_glossary(made)


@pytest.mark.long
@pytest.mark.parametrize("glossary", [None, "numbers"])
def test_deepl_documents(deepl_client: deepl.DeepLClient, glossary: str | None) -> None:
    text = "\n".join(LINES[:3])
    handle = deepl_client.translate_document_upload(
        text, filename="lines.txt", source_lang="EN", target_lang="IT", glossary=glossary
    )
    while not (status := deepl_client.translate_document_get_status(handle)).done:
        assert status.ok, status.error_message
    assert status.billed_characters == sum(map(len, LINES[:3]))
    received = io.BytesIO()
    deepl_client.translate_document_download(handle, received, chunk_size=1000)
    translator = TRANSLATORS[0]
    if glossary:
        translator = translator.with_glossary(Glossary.of({"uno": "sette"}))
    expected = "\n".join(each.text for each in translator.translate(LINES[:3]))
    assert received.getvalue().decode() == expected


def test_deepl_is_told_why_a_document_is_not_translated(deepl_client: deepl.DeepLClient) -> None:
    handle = deepl_client.translate_document_upload(b"no zip file", filename="letter.docx", target_lang="IT")
    while (status := deepl_client.translate_document_get_status(handle)).ok:
        assert not status.done
    assert "zip" in str(status.error_message)
    handle = deepl_client.translate_document_upload(
        "Questa è sicuramente una frase italiana.", filename="a.txt", target_lang="IT"
    )
    while (status := deepl_client.translate_document_get_status(handle)).ok:
        assert not status.done
    assert status.error_message == "Source and target language are the same."
    with pytest.raises(deepl.DeepLException, match="not supported"):
        deepl_client.translate_document_upload(b"", filename="letter.pdf", target_lang="IT")
    with pytest.raises(deepl.DeepLException, match="output_format"):
        deepl_client.translate_document_upload(b"a", filename="a.txt", target_lang="IT", output_format="docx")


def test_deepl_translates_xml_and_html(deepl_client: deepl.DeepLClient) -> None:
    languages = {"source_lang": "EN", "target_lang": "IT"}
    text = f"<doc><p>{LINES[0]}</p><keep>uno</keep></doc>"
    found = deepl_client.translate_text(
        text, tag_handling="xml", ignore_tags=["keep"], outline_detection=True, **languages
    )
    assert isinstance(found, deepl.TextResult)
    assert found.text == f"<doc><p>{expected_texts()[0]}</p><keep>uno</keep></doc>"
    found = deepl_client.translate_text(f"<p>{LINES[1]}</p>", tag_handling="html", **languages)
    assert isinstance(found, deepl.TextResult)
    assert found.text == f"<p>{expected_texts()[1]}</p>"


def test_deepl_is_refused_without_a_valid_key(address: str) -> None:
    client = deepl.DeepLClient("wrong", server_url=address)
    with pytest.raises(deepl.AuthorizationException):
        client.translate_text("uno", target_lang="IT")
    client.close()


def test_deepl_is_told_what_is_not_supported(deepl_client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="target_lang"):
        deepl_client.translate_text("uno", target_lang="ZZ")
    with pytest.raises(deepl.DeepLException, match="formality"):
        deepl_client.translate_text("uno", target_lang="IT", formality="more")


@pytest.mark.network
def test_the_npm_package_translate(address: str, tmp_path: Path) -> None:
    """It needs node, and a registry from which npm installs the package."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not (node and npm):
        pytest.skip("node and npm are not installed")
    installed = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "translate@3"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip("npm cannot install the package translate here")
    (tmp_path / "client.mjs").write_text(
        "import translate from 'translate';\n"
        "translate.engine = 'libre';\n"
        f"translate.url = '{address}/translate';\n"
        f"translate.key = '{KEY}';\n"
        "console.log(await translate(process.argv[2], {from: 'en', to: 'it'}));\n"
    )
    found = subprocess.run([node, "client.mjs", LINES[7]], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout == f"{expected_texts()[7]}\n"


def test_directions_are_read_from_the_option(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("a\tb\n", encoding="utf-8")
    assert read_glossaries([f"pt-it={file}"])["terms"].languages == Direction("pt", "it")
    file.write_bytes("a\tzastávka\n".encode("windows-1250"))
    [entry] = read_glossaries([f"en-cs={file}"], "windows-1250")["terms"].terms.entries
    assert entry.target == "zastávka"
