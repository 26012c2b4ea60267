"""The .ts of Qt Linguist: which messages get a translation, and its state."""

import pytest

from transformer_cli.extensions.documents.qt import read_qt
from transformer_cli.process.errors import DataError

from .fake_translators import REVERSED, Identity, WordByWord, done, translated

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n'


def linguist(*messages: str, attributes: str = ' language="it_IT" sourcelanguage="en"') -> str:
    body = "\n    ".join(messages)
    return f'{HEAD}<TS version="2.1"{attributes}>\n<context>\n    <name>Main window</name>\n    {body}\n</context>\n</TS>\n'


def message(source: str, translation: str, attributes: str = "") -> str:
    return f'<message{attributes}><location line="3"/><source>{source}</source>{translation}</message>'


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (message("Good day", '<translation type="unfinished"></translation>'), "<translation>GOOD DAY</translation>"),
        (message("Good day", '<translation type="unfinished"/>'), "<translation>GOOD DAY</translation>"),
        (message("Good day", ""), "<translation>GOOD DAY</translation>"),
        (message("&amp;Open", "<translation/>"), "<translation>&amp;OPEN</translation>"),
        (message("Hide too&amp;lbar", "<translation/>"), "<translation>&amp;HIDE TOOLBAR</translation>"),
        (
            message("%1 of &lt;b&gt;%n&lt;/b&gt; cars", "<translation/>"),
            "<translation>%1 OF &lt;b&gt;%n&lt;/b&gt; CARS</translation>",
        ),
        (message("Good day", "<translation>Ciao</translation>"), "<translation>Ciao</translation>"),
        (
            message("Good day", '<translation type="unfinished">Ciao</translation>'),
            '<translation type="unfinished">Ciao</translation>',
        ),
        (
            message("Good day", '<translation type="vanished"></translation>'),
            '<translation type="vanished"></translation>',
        ),
        (message("12", "<translation/>"), "<translation/>"),
        (
            message('red<byte value="x1b"/> car &amp; more', "<translation/>"),
            '<translation>RED<byte value="x1b"/> CAR &amp; MORE</translation>',
        ),
        (message('red<byte value="x9"/>car', "<translation/>"), '<translation>RED<byte value="x9"/>CAR</translation>'),
        (
            message(
                "%n car(s)",
                "<translation>\n  <numerusform></numerusform>\n  <numerusform/>\n</translation>",
                ' numerus="yes"',
            ),
            "<translation>\n  <numerusform>%n CAR(S)</numerusform>\n  <numerusform>%n CAR(S)</numerusform>\n</translation>",
        ),
    ],
)
def test_a_message_gets_a_translation_if_it_has_none(given: str, wanted: str) -> None:
    done_message = message("Yes", "<translation>S\u00ec</translation>")
    found = translated(read_qt(linguist(given, done_message).encode()))
    before = given.partition("</source>")[0]
    assert f"{before}</source>{wanted}</message>" in found
    assert found.endswith(linguist(done_message).partition("</name>\n")[2].lstrip())


def test_a_source_with_other_elements_stays_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    given = message("<lengthvariant>A red car</lengthvariant>", "<translation/>")
    assert given in translated(read_qt(linguist(given).encode()))
    assert "line 6: the message is not translated" in caplog.text


def test_a_new_translation_stands_on_a_line_of_its_own_if_the_source_does() -> None:
    text = linguist("<message>\n        <source>Red</source>\n    </message>")
    assert "</source>\n        <translation>RED</translation>\n    </message>" in translated(read_qt(text.encode()))


def test_a_translation_in_doubt_stays_unfinished() -> None:
    lost = WordByWord()
    lost._translated = str.upper  # type: ignore[method-assign]
    text = linguist(message("Dear {name}, hello", "<translation/>"))
    assert '<translation type="unfinished">' in translated(read_qt(text.encode()), lost)


def test_the_languages_are_those_of_the_model() -> None:
    given = message("Red", "<translation/>")
    without = linguist(given, attributes="")
    assert '<TS language="it" version="2.1">' in translated(read_qt(without.encode()))
    with pytest.raises(DataError, match='language="fr_FR", but the model translates from en into it'):
        translated(read_qt(linguist(given, attributes=' language="fr_FR"').encode()))


def test_a_template_that_names_only_the_source_language_gets_the_target_language() -> None:
    unfinished = message("Red", '<translation type="unfinished"></translation>')
    for attributes in (' language="en_US"', ' language="en" sourcelanguage="en"'):
        found = translated(read_qt(linguist(unfinished, attributes=attributes).encode()))
        assert ' language="it"' in found
        assert "<translation>RED</translation>" in found
    finished = message("Dog", "<translation>Dog</translation>")
    for messages, attributes in (
        ((unfinished, finished), ' language="en_US"'),
        ((unfinished,), ' language="en_GB" sourcelanguage="en_US"'),
    ):
        with pytest.raises(DataError, match="but the model translates from en into it"):
            translated(read_qt(linguist(*messages, attributes=attributes).encode()))


def test_a_translator_that_changes_nothing_gives_the_same_bytes() -> None:
    given = message("The <b>red</b> car", "<translation/>").replace("<b>", "&lt;b&gt;").replace("</b>", "&lt;/b&gt;")
    data = linguist(given, attributes=' language="en"').replace("\n", "\r\n").encode()
    assert read_qt(data).segments
    assert done(read_qt(data), Identity()).data == data
    text = linguist(given)
    assert "CAR &lt;b&gt;RED&lt;/b&gt; THE" in translated(read_qt(text.encode()), REVERSED)


@pytest.mark.parametrize(
    ("text", "said"),
    [("const a: string = 'x';", "no file of Qt Linguist, which is XML"), ("<html/>", "root is <html>")],
)
def test_typescript_and_other_xml_are_refused(text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_qt(text.encode())


def test_a_language_inside_the_value_of_another_attribute_stays() -> None:
    message = '<message><source>Red</source><translation type="unfinished"/></message>'
    text = f"<TS a=' language=\"de\"'><context>{message}</context></TS>"
    assert translated(read_qt(text.encode())).startswith('<TS language="it" a=\' language="de"\'>')
