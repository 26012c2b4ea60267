"""What is not green is marked in a document, or left out of it; formats without a state are told by messages."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.commands.translate_lines import TranslateOptions
from transformer_cli.decoding.translation import Estimate
from transformer_cli.extensions.documents.formats import ReadingOptions, format_named, read_document
from transformer_cli.extensions.documents.tables import read_csv
from transformer_cli.extensions.documents.translate_command import (
    chosen_document,
    translate_document_file,
)
from transformer_cli.extensions.documents.translation import (
    LEFT_OUT,
    NOT_GREEN,
    Doubt,
    NotGreen,
    TranslatedDocument,
    translate_document,
)
from transformer_cli.extensions.documents.translator import DOUBTFUL, UNTRANSLATED, AnsweredText, AskedText
from transformer_cli.process.errors import UsageError

from .fake_translators import WordByWord

DOCS_RUN = Path(__file__).parents[3] / "docs" / "run"
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="it" original="a" datatype="plaintext"><body>
<trans-unit id="1"><source>sure words</source></trans-unit>
<trans-unit id="2"><source>a guess</source></trans-unit>
<trans-unit id="3"><source>kept words</source></trans-unit>
</body></file></xliff>"""
PO = 'msgid "sure words"\nmsgstr ""\n\nmsgid "a guess"\nmsgstr ""\n'


class Estimating(WordByWord):
    """Writes capitals; a text with "guess" is not green, and one with "kept" stays as it is."""

    def __init__(self) -> None:
        super().__init__(str.upper)

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        return [
            AnsweredText(asked.text, is_untranslated=True)
            if "kept" in asked.text
            else answer._replace(estimate=Estimate(0.5, "guess" not in asked.text))
            for asked, answer in zip(texts, super().translate(texts), strict=True)
        ]


def done(text: str, name: str, not_green: NotGreen) -> TranslatedDocument:
    document = read_document(text.encode(), format_named(name))
    return translate_document(document, Estimating(), not_green=not_green)


def test_an_xliff_unit_that_is_not_green_needs_a_review() -> None:
    found = done(XLIFF, "xliff", NotGreen.MARKED)
    text = found.data.decode()
    assert '<target state="translated">SURE WORDS</target>' in text
    assert '<target state="needs-review-translation">A GUESS</target>' in text
    assert [(doubt.place, doubt.reason) for doubt in found.doubts] == [
        ("unit 2", NOT_GREEN),
        ("unit 3", UNTRANSLATED),
        ("unit 3", NOT_GREEN),
    ]
    assert [estimate.is_green for estimate in found.estimates] == [True, False, False]


def test_what_has_no_other_doubt_says_why_it_is_not_green() -> None:
    class Explaining(Estimating):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            return [answer._replace(why_not_green="its probability is low") for answer in super().translate(texts)]

    document = read_document(XLIFF.encode(), format_named("xliff"))
    found = translate_document(document, Explaining(), not_green=NotGreen.MARKED)
    assert [(doubt.place, doubt.reason) for doubt in found.doubts] == [
        ("unit 2", f"{NOT_GREEN}: its probability is low"),
        ("unit 3", UNTRANSLATED),
        ("unit 3", NOT_GREEN),
    ]


def test_a_correction_in_a_segment_that_is_left_out_is_not_counted() -> None:
    class Remembering(Estimating):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            answers = super().translate(texts)
            return [
                answer._replace(estimate=None, is_from_memory=True) if asked.text == "Sure." else answer
                for asked, answer in zip(texts, answers, strict=True)
            ]

    page = "<p><b>Sure.</b> A guess.</p><p>Sure.</p>"
    for not_green, number in ((NotGreen.LEFT_OUT, 1), (NotGreen.MARKED, 2)):
        found = translate_document(
            read_document(page.encode(), format_named("html")), Remembering(), not_green=not_green
        )
        assert found.num_from_memory == number == found.data.count(b"SURE.")


def test_all_reasons_to_look_at_a_segment_stand_in_one_message() -> None:
    doubts = [
        Doubt("line 3", f"{DOUBTFUL}repeats itself", "a b"),
        Doubt("line 3", f"{DOUBTFUL}has other numbers or units", "a b"),
        Doubt("line 3", NOT_GREEN, "a b"),
        Doubt("line 4", NOT_GREEN, "c"),
    ]
    assert TranslatedDocument(b"", 2, tuple(doubts)).messages == [
        "line 3: a translation may be wrong: it repeats itself; it has other numbers or units; the translation is not green: a b",
        "line 4: the translation is not green: c",
    ]


def test_an_xliff_unit_that_is_not_green_gets_no_target_if_it_is_left_out() -> None:
    found = done(XLIFF, "xliff", NotGreen.LEFT_OUT)
    text = found.data.decode()
    assert '<target state="translated">SURE WORDS</target>' in text
    assert text.count("<target ") == 1
    assert [doubt.reason for doubt in found.doubts] == [LEFT_OUT, LEFT_OUT]


def test_a_po_message_that_is_not_green_is_fuzzy_or_stays_empty() -> None:
    marked = done(PO, "po", NotGreen.MARKED).data.decode()
    assert marked == 'msgid "sure words"\nmsgstr "SURE WORDS"\n\n#, fuzzy\nmsgid "a guess"\nmsgstr "A GUESS"\n'
    left = done(PO, "po", NotGreen.LEFT_OUT).data.decode()
    assert left == PO.replace('words"\nmsgstr ""', 'words"\nmsgstr "SURE WORDS"')


def test_nothing_changes_without_the_wish() -> None:
    found = done(XLIFF, "xliff", NotGreen.WRITTEN)
    assert "needs-review" not in found.data.decode().split("kept")[0]
    assert [doubt.reason for doubt in found.doubts] == [UNTRANSLATED]


def test_a_paragraph_is_green_only_if_all_of_its_sentences_are() -> None:
    found = done("Sure words. A guess.\n\nSure words.\n", "md", NotGreen.LEFT_OUT)
    assert found.data.decode() == "Sure words. A guess.\n\nSURE WORDS.\n"
    assert [doubt.place for doubt in found.doubts] == ["line 1"]


def test_a_table_has_the_trust_of_each_new_translation_beside_it() -> None:
    table = "id;English\r\n1;sure words\r\n2;a guess\r\n3;\r\n4;42\r\n5\r\n6;sure;more;kept by hand\r\n"
    options = ReadingOptions(("English=Italian", "id=Number"), has_trust=True)
    document = read_csv(table.encode(), options)
    found = translate_document(document, Estimating(), not_green=NotGreen.MARKED)
    assert found.data.decode().split("\r\n") == [
        "id;English;Italian;green;Number;green",
        "1;sure words;SURE WORDS;green 0.500;1;",
        "2;a guess;A GUESS;not green 0.500;2;",
        "3;;;;3;",
        "4;42;42;;4;",
        "5;;;;5;",
        "6;sure;more;kept by hand;6;",
        "",
    ]
    plain = translate_document(
        read_csv(table.encode(), replace(options, has_trust=False)), Estimating(), not_green=NotGreen.MARKED
    )
    assert plain.data.decode().splitlines()[:2] == ["id;English;Italian;Number", "1;sure words;SURE WORDS;1"]


def test_a_table_says_which_translations_a_memory_or_a_glossary_has() -> None:
    class Remembering(Estimating):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            known: dict[str, Any] = {"kept by hand": {"is_from_memory": True}, "cat": {"is_of_terms": True}}
            return [
                answer._replace(estimate=None, is_untranslated=False, **known[asked.text])
                if asked.text in known
                else answer
                for asked, answer in zip(texts, super().translate(texts), strict=True)
            ]

    document = read_csv(b"English\nkept by hand\ncat\nsure\n42\n", ReadingOptions(("English=Italian",), has_trust=True))
    found = translate_document(document, Remembering(), not_green=NotGreen.MARKED)
    marks = [line.rpartition(",")[2] for line in found.data.decode().splitlines()]
    assert marks == ["green", "memory", "glossary", "green 0.500", ""]
    assert found.num_without_model == {"memory": 1, "glossary": 1}


def test_a_table_that_is_translated_in_its_place_says_that_no_marks_are_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = "English,Italian\nThe dog,\n"
    read_csv(table.encode(), ReadingOptions(("English=Italian",), has_trust=True))
    assert not caplog.text
    read_csv(table.encode(), ReadingOptions(("English",), has_trust=True))
    assert "no column of marks is written" in caplog.text


def marked_table(table: str, *columns: str) -> str:
    document = read_csv(table.encode(), ReadingOptions(columns, has_trust=True))
    return translate_document(document, Estimating(), not_green=NotGreen.MARKED).data.decode()


def test_a_column_of_translations_that_is_there_gets_marks_at_the_end_of_the_rows() -> None:
    table = 'English,Italian,Note\nsure,,x\nsure,gatto,x\na guess\n\nsure,,"y"\n'
    expected = (
        "English,Italian,Note,green\nsure,SURE,x,green 0.500\nsure,gatto,x,\na guess,A GUESS,,not green 0.500\n\n"
        'sure,SURE,"y",green 0.500\n'
    )
    assert marked_table(table, "English=Italian") == expected
    last = marked_table("English,Italian\nsure,\nsure\n", "English=Italian")
    assert last == "English,Italian,green\nsure,SURE,green 0.500\nsure,SURE,green 0.500\n"


def test_marks_of_an_earlier_translation_are_in_the_same_column_and_other_texts_of_its_name_stay() -> None:
    table = "English,Italian,green\nsure,,not green 0.123\nsure,gatto,memory\nsure,,\n"
    expected = "English,Italian,green\nsure,SURE,green 0.500\nsure,gatto,memory\nsure,SURE,green 0.500\n"
    assert marked_table(table, "English=Italian") == expected
    expected = "English,Italian,green,green\nsure,SURE,5 pieces,green 0.500\n"
    assert marked_table("English,Italian,green\nsure,,5 pieces\n", "English=Italian") == expected
    # A cell behind the columns of the first row is not known.
    assert marked_table("English,Italian\nsure,,memory\n", "English=Italian").endswith("\nsure,SURE,memory\n")


def test_of_several_columns_of_translations_each_has_marks_of_its_own() -> None:
    found = marked_table("English,Italian,French\nsure,,\n", "English=French", "English=Italian", "English=German")
    head, row = found.splitlines()
    assert head == "English,Italian,French,German,green,green French,green Italian"
    assert row == "sure,SURE,SURE,SURE" + ",green 0.500" * 3


def test_a_plural_is_green_only_if_all_of_its_branches_are() -> None:
    text = "{n, plural, one {sure} other {a guess}}"
    unit = XLIFF.replace("sure words", text)
    found = done(unit, "xliff", NotGreen.LEFT_OUT)
    assert found.doubts[0].reason == LEFT_OUT
    assert "SURE" not in found.data.decode()


def translate(name: str, **options: bool) -> None:
    document = chosen_document(Path(name), None, columns=None, values=[], has_text=False)
    assert document is not None
    options_of_run = TranslateOptions(run=str(DOCS_RUN), **options)  # type: ignore[arg-type]
    translate_document_file(document, Path(f"out.{name.partition('.')[2]}"), options_of_run)


@pytest.mark.heavy
def test_the_command_names_what_is_not_green_where_the_format_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    paragraphs = ["The dog is big."] + [f"Xkcd {number * 'q'}zz wwvv." for number in range(1, 26)]
    Path("in.md").write_text("\n\n".join(paragraphs) + "\n")
    with caplog.at_level("INFO"):
        translate("in.md", mark=True)
    told = {message.partition(":")[0] for message in caplog.messages if NOT_GREEN in message}
    assert told == {f"line {2 * number + 1}" for number in range(1, 26)}
    assert "in.md: green: 1 of 26 segments" in caplog.messages
    translate("in.md", only_green=True)
    assert Path("out.md").read_text().split("\n\n")[:2] == ["Il cane è grande.", paragraphs[1]]


def test_a_document_needs_a_calibration_as_lines_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.md").write_text("The dog is big.\n")
    monkeypatch.setattr("transformer_cli.decoding.loading.read_quality", lambda _: {})
    with pytest.raises(UsageError, match="no calibration"):
        translate("in.md", mark=True)
