"""A server whose model loses text: the text stays, and the answer says so if details are asked for."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from transformer_cli.extensions.documents.tagged_xml import TagRules
from transformer_cli.extensions.serving.sentences import DetailedSentence
from transformer_cli.extensions.serving.texts import (
    TextOptions,
    TranslatedText,
    translate_texts,
    with_options,
)

from ...decoding.stub_translators import silent_about, stub_translator
from .served_translators import served, small_runs


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    of = replace(stub_translator(silent_about("mute")), reports_lines=False)
    with served(small_runs(of)) as (client, _):
        yield client


@pytest.mark.parametrize("form", ["text", "html"])
def test_the_answer_of_libretranslate_has_one_more_field(client: TestClient, form: str) -> None:
    values = {"source": "en", "target": "it", "format": form, "details": "true"}
    both = client.post("/translate", json={"q": ["the mute sleeps.", "the train waits."], **values})
    assert both.json() == {
        "translatedText": ["the mute sleeps.", "THE TRAIN WAITS."],
        "untranslated": [True, False],
    }
    one = client.post("/translate", json={"q": "the mute sleeps.", **values})
    assert one.json() == {"translatedText": "the mute sleeps.", "untranslated": True}


def test_a_text_that_is_translated_is_answered_as_before(client: TestClient) -> None:
    values = {"source": "en", "target": "it", "q": "the train waits.", "details": "true"}
    assert client.post("/translate", json=values).json() == {"translatedText": "THE TRAIN WAITS."}


def test_deepl_gets_it_beside_the_text(client: TestClient) -> None:
    values = {
        "text": ["the mute sleeps.", "the train waits."],
        "source_lang": "EN",
        "target_lang": "IT",
        "details": True,
    }
    [first, second] = client.post("/v2/translate", json=values).json()["translations"]
    assert (first["text"], first["untranslated"]) == ("the mute sleeps.", True)
    assert (second["text"], "untranslated" in second) == ("THE TRAIN WAITS.", False)


def test_the_answer_for_a_file_says_it(client: TestClient) -> None:
    for text, is_said in ((b"the mute sleeps.\n", True), (b"the train waits.\n", False)):
        values = {"data": {"source": "en", "target": "it", "details": "true"}, "files": {"file": ("a.txt", text)}}
        answer = client.post("/translate_file", **values).json()  # type: ignore[arg-type]
        assert ("untranslated" in answer) == is_said
        path = answer["translatedFileUrl"].split("/", 3)[3]
        assert client.get(f"/{path}").content.lower() == text


def test_a_sentence_with_its_words_says_it() -> None:
    sentence = DetailedSentence("a", "a", (), None, ())
    assert "untranslated" not in sentence.as_json(0, 0)
    assert sentence._replace(is_untranslated=True).as_json(0, 0)["untranslated"] is True


@pytest.mark.parametrize("options", [TextOptions(is_html=True), TextOptions(tag_rules=TagRules())])
def test_texts_with_markup_say_it_too(options: TextOptions) -> None:
    of = stub_translator(silent_about("mute"))
    texts = ["<p>the mute sleeps.</p>", "<p>the train waits.</p>"]
    assert translate_texts(of, texts, options) == [
        TranslatedText("<p>the mute sleeps.</p>", is_untranslated=True),
        TranslatedText("<p>THE TRAIN WAITS.</p>"),
    ]


MESSAGE = "the garden sleeps.\n\n```python\r\nprint(the_dog)\r\nthe garden\n```\nthe house burns.\n"


def test_code_in_a_message_stays_with_its_fences() -> None:
    translator = replace(stub_translator(lambda text: [text.upper(), "a b"], beam_size=2), protects_spans=True)
    [answer] = translate_texts(translator, [MESSAGE], TextOptions())
    assert answer.text == MESSAGE.replace("the garden sleeps.", "THE GARDEN SLEEPS.").replace(
        "the house burns.", "THE HOUSE BURNS."
    )
    [answer] = translate_texts(with_options(translator, TextOptions(num_alternatives=1)), [MESSAGE], TextOptions(1))
    assert all(
        "```python\r\nprint(the_dog)\r\nthe garden\n```\n" in text for text in (answer.text, *answer.alternatives)
    )


@pytest.mark.parametrize(
    "text",
    [
        "```\nthe garden sleeps.\n```",  # prose may stand so, too
        "```python\nthe garden sleeps.",  # no end
        "```the garden\nthe garden sleeps.\n```",
    ],
)
def test_what_may_be_no_code_is_translated(text: str) -> None:
    translator = replace(stub_translator(lambda text: [text.upper()]), protects_spans=True)
    [answer] = translate_texts(translator, [text], TextOptions())
    assert "THE GARDEN SLEEPS." in answer.text
