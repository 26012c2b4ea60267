"""PO files: what gets a translation, what stays, and what gettext makes of the result."""

import gettext
import io
import shutil
import subprocess
from typing import ClassVar

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.extensions.documents.po import plural_rule, read_po
from transformer_cli.extensions.documents.translation import translate_document
from transformer_cli.extensions.documents.translator import COPIED, AnsweredText
from transformer_cli.process.errors import DataError
from transformer_cli.text.spans import find_spans

from .fake_translators import REVERSED, UPPER, Identity, WordByWord, done, translated

CATALOGUE = r"""# A comment
msgid ""
msgstr ""
"Language: en\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. for translators
#: src/a.c:1
#, c-format
msgctxt "menu"
msgid "Open %s now"
msgstr ""

msgid "done already"
msgstr "fatto"

#, fuzzy
msgid "a guess"
msgstr "forse"

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid ""
"first line\n"
"second \"line\" with <b>bold words</b> here\n"
msgstr ""

#~ msgid "old"
#~ msgstr ""
"""


def entries(data: bytes) -> dict[str, polib.POEntry]:
    return {entry.msgid: entry for entry in polib.pofile(data.decode())}


def test_missing_translations_are_filled_in_and_all_others_stay() -> None:
    found = entries(done(read_po(CATALOGUE.encode())).data)
    assert found["Open %s now"].msgstr == "OPEN %s NOW"
    assert found["Open %s now"].msgctxt == "menu"
    assert found["done already"].msgstr == "fatto"
    assert found["a guess"].msgstr == "forse"
    assert found["one file"].msgstr_plural == {0: "ONE FILE", 1: "%d FILES"}
    assert found['first line\nsecond "line" with <b>bold words</b> here\n'].msgstr == (
        'FIRST LINE\nSECOND "LINE" WITH <b>BOLD WORDS</b> HERE\n'
    )
    assert found["old"].obsolete
    assert not found["Open %s now"].fuzzy


def test_all_other_lines_stay_as_they_were() -> None:
    result = done(read_po(CATALOGUE.encode())).data.decode()
    kept = [line for line in CATALOGUE.splitlines() if line and not line.startswith(("msgstr", '"Language'))]
    assert [line for line in result.splitlines() if line in kept] == kept


def test_the_header_names_the_target_language() -> None:
    assert '"Language: it\\n"' in done(read_po(CATALOGUE.encode())).data.decode()


@pytest.mark.parametrize("code", ["it", "ita", "it_CH", "eng"])
@pytest.mark.parametrize("languages", [("en", "it"), ("eng", "ita")])
def test_a_header_may_name_a_language_of_the_model_by_two_letters_or_three(
    code: str, languages: tuple[str, str]
) -> None:
    read_po(CATALOGUE.replace("Language: en", f"Language: {code}").encode()).require_languages(Direction(*languages))


def test_a_header_in_one_string_names_the_target_language_and_a_message_does_not() -> None:
    catalogue = (
        'msgid ""\nmsgstr "Language: en\\nProject: a\\nPlural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
        'msgid "red"\nmsgstr ""\n\nmsgid "way"\nmsgstr ""\n"Language: en\\n"\n'
    )
    result = done(read_po(catalogue.encode())).data.decode()
    assert '"Language: it\\nProject: a\\nPlural-Forms: nplurals=2;' in result
    assert result.endswith('msgstr ""\n"Language: en\\n"\n')


def test_an_empty_language_is_filled_in_when_a_message_is_translated() -> None:
    empty = CATALOGUE.replace("Language: en", "Language: ")
    assert '"Language: it\\n"' in done(read_po(empty.encode())).data.decode()
    header = empty[: empty.index("\n\n")] + "\n"
    assert done(read_po(header.encode())).data.decode() == header


class Forgetful(WordByWord):
    """Loses every placeholder, and so does each piece."""

    def translate(self, texts):  # type: ignore[no-untyped-def]
        return [AnsweredText(asked.text.replace("%s", "").upper()) for asked in texts]


def test_a_doubtful_translation_is_marked_as_fuzzy() -> None:
    found = done(read_po(CATALOGUE.encode()), Forgetful())
    entry = entries(found.data)["Open %s now"]
    assert entry.msgstr == "OPEN %s NOW"
    assert entry.flags == ["fuzzy", "c-format"]
    assert [doubt.place for doubt in found.doubts if "%s" in doubt.text] == ["line 11"]


def test_a_language_with_one_form_gets_the_plural() -> None:
    text = CATALOGUE.replace("nplurals=2; plural=(n != 1)", "nplurals=1; plural=0").replace('msgstr[1] ""\n', "")
    assert entries(done(read_po(text.encode())).data)["one file"].msgstr_plural == {0: "%d FILES"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_identity_translation_gives_identical_bytes(end: str) -> None:
    data = CATALOGUE.replace("\n", end).encode()
    assert translate_document(read_po(data), Identity()).data == data


STRINGS = st.text(st.sampled_from('ab \n\t"\\<>/%s{}'), max_size=30)


@pytest.mark.long
@given(st.lists(st.tuples(STRINGS, STRINGS), max_size=8, unique_by=lambda pair: pair[0]))
def test_catalogues_that_polib_writes_come_back_and_are_translated(
    pairs: list[tuple[str, str]],
) -> None:
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for source, target in pairs:
        if source:
            catalogue.append(polib.POEntry(msgid=source, msgstr=target))
    data = str(catalogue).encode()
    assert translate_document(read_po(data), Identity()).data == data
    found = entries(done(read_po(data), UPPER).data)
    for source, target in pairs:
        if source:
            assert found[source].msgstr == target or not target


SPREAD_FIELDS = """msgid ""
msgstr
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=n != 1;\\n"

msgid"The dog"
msgstr""

msgid
"The "
"house"
msgstr
""

msgid "one " "file"
msgid_plural
"files"
msgstr[0]
""
msgstr[1]
"fatto"
"""


def test_a_first_string_stands_beside_its_field_or_below_it_and_strings_beside_each_other() -> None:
    data = translate_document(read_po(SPREAD_FIELDS.encode()), UPPER).data.decode()
    assert data == SPREAD_FIELDS.replace('msgstr""', 'msgstr"THE DOG"').replace(
        'house"\nmsgstr\n""', 'house"\nmsgstr\n"THE HOUSE"'
    ).replace('[0]\n""', '[0]\n"ONE FILE"')


@pytest.mark.process
@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_gettext_reads_the_same_texts_of_fields_over_several_lines() -> None:
    data = translate_document(read_po(SPREAD_FIELDS.encode()), UPPER).data
    command = ["msgfmt", "--output-file=-", "-"]
    compiled = subprocess.run(command, input=data, capture_output=True, check=True).stdout
    catalogue = gettext.GNUTranslations(io.BytesIO(compiled))
    assert catalogue.gettext("The house") == "THE HOUSE"
    assert catalogue.ngettext("one file", "files", 1) == "ONE FILE"


def test_a_field_without_a_string_is_refused_and_named() -> None:
    with pytest.raises(DataError, match="line 1: a message whose msgstr has no string"):
        read_po(b'msgid "The dog"\nmsgstr\n')


def test_a_file_that_is_no_catalogue_is_refused_with_its_line() -> None:
    with pytest.raises(DataError, match="line 2: neither a field such as msgid"):
        read_po(b"# x\nhello world\n")


def test_a_plural_without_numbered_translations_is_refused() -> None:
    text = 'msgid "a"\nmsgstr ""\n\nmsgid "one file"\nmsgid_plural "%d files"\nmsgstr ""\n'
    with pytest.raises(DataError, match="line 4: a message has a plural"):
        read_po(text.encode())


@pytest.mark.parametrize(
    "name", ["%(user.name)s", '%(day|date:"F")s', "%%", "%*d", "%n", "<%= x %>", "__count__", "%name%", ":name"]
)
def test_names_in_many_styles_stay(name: str) -> None:
    escaped = name.replace('"', '\\"')
    text = f'msgid "the {escaped} is old"\nmsgstr ""\n'
    assert f'msgstr "THE {escaped} IS OLD"' in translated(read_po(text.encode()))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("See the %sdog today.", "SEE THE %sDOG TODAY."),
        ("%sbook%s", "%sBOOK%s"),
        ("%dbooks and %dm high", "%dBOOKS AND %dM HIGH"),
        ("%1$sthe house%2$s", "%1$sTHE HOUSE%2$s"),
    ],
)
def test_a_specification_that_touches_a_word_stays_where_a_flag_says_that_it_is_one(text: str, wanted: str) -> None:
    catalogue = f'msgid ""\nmsgstr ""\n\n#, c-format\nmsgid "{text}"\nmsgstr ""\n'
    assert entries(done(read_po(catalogue.encode())).data)[text].msgstr == wanted


class Dictionary(WordByWord):
    """Knows these words alone, each without anything that touches it, and loses any other word."""

    KNOWN: ClassVar[dict[str, str]] = {
        "the": "il",
        "dog": "cane",
        "is": "\u00e8",
        "big.": "grande.",
    }

    def _translated(self, word: str) -> str:
        spans = [word[span.start : span.end] for span in find_spans(word)]
        return self.KNOWN.get(word, "".join(spans))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("%sdog is big.", "%scane \u00e8 grande."),
        ("the %sdog%s is big.", "il %scane%s \u00e8 grande."),
        ("the %1$sdog is big.", "il %1$scane \u00e8 grande."),
        ("the dog%d is big.", "il cane%d \u00e8 grande."),
    ],
)
def test_the_word_that_a_specification_touches_is_translated(text: str, wanted: str) -> None:
    catalogue = f'#, c-format\nmsgid "{text}"\nmsgstr ""\n'
    found = done(read_po(catalogue.encode()), Dictionary())
    assert entries(found.data)[text].msgstr == wanted
    assert not found.doubts


def test_a_text_whose_specifications_are_lost_stays_and_is_named() -> None:
    found = done(read_po(b'msgid "See the %sdog today."\nmsgstr ""\n'))
    assert entries(found.data)["See the %sdog today."].msgstr == ""
    assert [doubt.reason for doubt in found.doubts] == [COPIED]


def test_a_per_cent_sign_behind_a_number_is_no_specification() -> None:
    found = done(read_po(b'msgid "a 50 %discount"\nmsgstr ""\n'))
    assert entries(found.data)["a 50 %discount"].msgstr == "A 50 %DISCOUNT"


TEMPLATE = r"""msgid ""
msgstr ""
"Language: \n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

msgid "a car"
msgstr ""
"""


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("it", "nplurals=2; plural=(n != 1);"),
        ("ja", "nplurals=1; plural=0;"),
        ("pt-BR", "nplurals=2; plural=(n > 1);"),
    ],
)
def test_a_template_gets_the_plural_rule_of_its_new_language(target: str, wanted: str) -> None:
    words = WordByWord(str.upper, languages=Direction("en", target))
    assert f'"Plural-Forms: {wanted}\\n"' in done(read_po(TEMPLATE.encode()), words).data.decode()


PLURALS = r"""msgid ""
msgstr ""
"Project-Id-Version: animals\n"
"PO-Revision-Date: 2026-11-26 12:00+0000\n"
"Last-Translator: nobody\n"
"Language-Team: none\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

msgid "the dog"
msgid_plural "the dogs"
msgstr[0] ""
msgstr[1] ""

msgid "a car"
msgstr ""
"""
NUMBERS = [0, 1, 2, 5, 1_000_000]
ONE, OTHER = "THE DOG", "THE DOGS"


def _shown(data: bytes, singular: str, plural: str) -> list[str]:
    """What gettext shows for 0, 1, 2, 5 and a million things."""
    compiled = gettext.GNUTranslations(io.BytesIO(polib.pofile(data.decode()).to_binary()))
    return [compiled.ngettext(singular, plural, number) for number in NUMBERS]


@pytest.mark.parametrize(
    ("target", "num_forms", "wanted"),
    [
        ("it", 2, [OTHER, ONE, OTHER, OTHER, OTHER]),
        ("es-MX", 2, [OTHER, ONE, OTHER, OTHER, OTHER]),
        ("fr", 2, [ONE, ONE, OTHER, OTHER, OTHER]),
        ("pt", 2, [OTHER, ONE, OTHER, OTHER, OTHER]),
        ("pt-BR", 2, [ONE, ONE, OTHER, OTHER, OTHER]),
        ("de", 2, [OTHER, ONE, OTHER, OTHER, OTHER]),
        ("pl", 3, [OTHER, ONE, OTHER, OTHER, OTHER]),
        ("ru", 3, [OTHER, ONE, OTHER, OTHER, OTHER]),
        ("ja", 1, [OTHER] * 5),
        ("ar", 6, [OTHER, ONE, OTHER, OTHER, OTHER]),
    ],
)
def test_a_plural_of_a_template_has_as_many_forms_as_the_rule_that_it_gets(
    target: str, num_forms: int, wanted: list[str]
) -> None:
    words = WordByWord(str.upper, languages=Direction("en", target))
    result = done(read_po(PLURALS.encode()), words).data
    found = entries(result)
    assert f"nplurals={num_forms};" in result.decode()
    assert sorted(found["the dog"].msgstr_plural) == list(range(num_forms))
    assert _shown(result, "the dog", "the dogs") == wanted
    assert found["a car"].msgstr == "A CAR"


@pytest.mark.process
@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
@pytest.mark.parametrize("target", ["it", "es", "fr", "pt", "de", "pl", "ru", "ja", "ar"])
def test_msgfmt_accepts_a_template_with_plurals_that_is_translated(target: str) -> None:
    words = WordByWord(str.upper, languages=Direction("en", target))
    command = ["msgfmt", "--check", "--output-file=/dev/null", "-"]
    catalogue = done(read_po(PLURALS.encode()), words).data
    assert subprocess.run(command, input=catalogue, capture_output=True).returncode == 0


def test_an_empty_plural_gets_the_forms_that_the_rule_of_its_header_has() -> None:
    rule = "nplurals=3; plural=(n%10==1 ? 1 : n<5 ? 0 : 2);"
    catalogue = PLURALS.replace("nplurals=INTEGER; plural=EXPRESSION;", rule)
    found = entries(done(read_po(catalogue.encode())).data)
    assert found["the dog"].msgstr_plural == {0: OTHER, 1: ONE, 2: OTHER}


def test_a_form_that_a_person_wrote_stays_and_the_others_are_added() -> None:
    rule = "nplurals=3; plural=(n==1 ? 0 : n<5 ? 1 : 2);"
    catalogue = PLURALS.replace("nplurals=INTEGER; plural=EXPRESSION;", rule)
    catalogue = catalogue.replace('msgstr[1] ""', 'msgstr[1] "by hand"')
    found = entries(done(read_po(catalogue.encode())).data)
    assert found["the dog"].msgstr_plural == {0: ONE, 1: "by hand", 2: OTHER}


def test_a_plural_whose_one_form_stays_as_it_is_has_no_empty_form() -> None:
    keeps_dogs = WordByWord(lambda word: word if word == "dogs" else word.upper())
    catalogue = 'msgid "dog"\nmsgid_plural "dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    found = entries(done(read_po(catalogue.encode()), keeps_dogs).data)
    assert found["dog"].msgstr_plural == {0: "DOG", 1: "dogs"}


@pytest.mark.parametrize("rule", ["nplurals=999999999; plural=0;", "nplurals=2; plural=(n", "nplurals=2; plural=1/0;"])
def test_a_plural_rule_that_makes_no_sense_leaves_the_forms_of_the_file(rule: str) -> None:
    catalogue = PLURALS.replace("nplurals=INTEGER; plural=EXPRESSION;", rule)
    found = entries(done(read_po(catalogue.encode())).data)
    assert found["the dog"].msgstr_plural == {0: ONE, 1: OTHER}


def test_a_plural_rule_that_is_not_known_is_to_be_filled_in_by_a_person(
    caplog: pytest.LogCaptureFixture,
) -> None:
    words = WordByWord(str.upper, languages=Direction("en", "tlh"))
    assert "plural=EXPRESSION;" in done(read_po(TEMPLATE.encode()), words).data.decode()
    assert "fill in Plural-Forms" in caplog.text


OF_SOURCE = PLURALS.replace("nplurals=INTEGER; plural=EXPRESSION;", "nplurals=2; plural=(n != 1);")


def of_language(catalogue: str, target: str) -> bytes:
    """A catalogue translated from English into a language that its reader knows."""
    options = ReadingOptions(language="en", target_language=target)
    words = WordByWord(str.upper, languages=Direction("en", target))
    return done(read_po(catalogue.encode(), options), words).data


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("ru", [ONE, OTHER, OTHER]),
        ("pl", [ONE, OTHER, OTHER]),
        ("ja", [OTHER]),
        ("fr", [ONE, OTHER]),
        ("de", [ONE, OTHER]),
        ("ar", [OTHER, ONE, OTHER, OTHER, OTHER, OTHER]),
    ],
)
def test_a_header_with_the_rule_of_the_source_gets_that_of_the_target_and_as_many_forms(
    target: str, wanted: list[str]
) -> None:
    result = of_language(OF_SOURCE, target)
    found = entries(result)
    assert [text for _, text in sorted(found["the dog"].msgstr_plural.items())] == wanted
    rule = polib.pofile(result.decode()).metadata["Plural-Forms"]
    assert rule == {"de": "nplurals=2; plural=(n != 1);"}.get(target, plural_rule(target))


@pytest.mark.process
@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
@pytest.mark.parametrize("target", ["ru", "ar", "ja"])
def test_msgfmt_accepts_a_catalogue_whose_rule_was_that_of_the_source(target: str) -> None:
    command = ["msgfmt", "--check", "--output-file=/dev/null", "-"]
    catalogue = of_language(OF_SOURCE, target)
    assert subprocess.run(command, input=catalogue, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "rule",
    [
        # Russian with a form of its own for 1, and another one than those of both languages.
        "nplurals=4; plural=(n==1 ? 3 : n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
        "nplurals=3; plural=(n==1 ? 0 : n<5 ? 1 : 2);",
    ],
)
def test_a_rule_that_is_not_that_of_the_source_stays(rule: str) -> None:
    catalogue = PLURALS.replace("nplurals=INTEGER; plural=EXPRESSION;", rule)
    assert f'"Plural-Forms: {rule}\\n"' in of_language(catalogue, "ru").decode()


def test_a_rule_with_as_many_forms_stays_in_a_header_that_names_the_target() -> None:
    catalogue = OF_SOURCE.replace("Language: ", "Language: fr")
    assert b"plural=(n != 1);" in of_language(catalogue, "fr")
    assert b"plural=(n > 1);" in of_language(OF_SOURCE, "fr")


def test_a_plural_that_a_person_translated_gets_the_further_forms_and_is_fuzzy() -> None:
    by_hand = OF_SOURCE.replace('[0] ""', '[0] "eins"').replace('[1] ""', '[1] "zwei"')
    entry = entries(of_language(by_hand, "ru"))["the dog"]
    assert entry.msgstr_plural == {0: "eins", 1: "zwei", 2: OTHER}
    assert entry.fuzzy


def test_a_rule_with_fewer_forms_than_a_translated_plural_is_not_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    by_hand = OF_SOURCE.replace('[0] ""', '[0] "eins"').replace('[1] ""', '[1] "zwei"')
    assert b"nplurals=2;" in of_language(by_hand, "ja")
    assert "line 13: a plural has more forms than the rule of ja" in caplog.text


@pytest.mark.parametrize(
    "header",
    [
        '"Language: en\\n"\n"Plural-Forms: nplurals=2; plural=(n "\n"!= 1);\\n"\n',
        '"Language: en\\nPlural-Forms: nplurals=2; plural=(n != 1);\\n"\n',
        '"Language: en\\nPlural-Forms: nplurals=2; plural=(n != 1);"\n',
        '"Language: en\\n"\n',
        '"Language: en"\n',
    ],
)
def test_the_rule_comes_into_headers_of_every_form(header: str) -> None:
    catalogue = f'msgid ""\nmsgstr ""\n{header}\nmsgid "the dog"\nmsgid_plural "the dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    result = of_language(catalogue, "ru").decode()
    assert polib.pofile(result).metadata["Plural-Forms"] == plural_rule("ru")
    assert entries(result.encode())["the dog"].msgstr_plural == {0: ONE, 1: OTHER, 2: OTHER}


HEADER_OF_UTF_8 = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
LONG_LINES = r"""#, no-wrap
msgid "a long line that is never wrapped because a flag says so, however long it may be in the end"
msgstr ""

msgid "a line of \"quotes\" that is longer than seventy-nine characters so that it is \"wrapped\" here"
msgstr ""

msgid "exactly seventy-one characters, which do not fit behind the name msgstr"
msgstr ""

msgid "exactly sixty-nine letters, which do fit behind the short name msgstr"
msgstr ""
"""


@pytest.mark.process
@pytest.mark.skipif(shutil.which("msgcat") is None, reason="gettext is not installed")
def test_translations_are_wrapped_as_gettext_wraps_them() -> None:
    result = done(read_po(f"{HEADER_OF_UTF_8}{LONG_LINES}".encode())).data
    command = ["msgcat", "-"]
    of_gettext = subprocess.run(command, input=result, capture_output=True, check=True).stdout
    ours, theirs = (
        [part.partition("\nmsgstr ")[2] for part in text.decode().split("\n\n")] for text in (result, of_gettext)
    )
    assert len(ours) == 5
    assert ours == theirs


def test_a_long_text_is_wrapped_only_without_the_flag_no_wrap() -> None:
    result = done(read_po(LONG_LINES.encode())).data.decode()
    assert 'msgstr "A LONG LINE THAT IS NEVER WRAPPED BECAUSE' in result
    assert all(len(line) <= 79 for line in result.split("\n\n", 1)[1].splitlines() if line.startswith('"'))


@pytest.mark.parametrize(
    ("flag", "source", "is_fuzzy"),
    [
        ("c-format", "%s cats and %d dogs", True),
        ("c-format", "%1$s cats and %2$d dogs", False),
        ("python-format", "%(a)s cats and %(n)d dogs", False),
        ("c-format", "%s cats and %% dogs", False),
        ("no-c-format", "%s cats and %d dogs", False),
    ],
)
def test_a_message_whose_placeholders_without_numbers_change_their_order_is_fuzzy(
    flag: str, source: str, is_fuzzy: bool, caplog: pytest.LogCaptureFixture
) -> None:
    text = f'#, {flag}\nmsgid "{source}"\nmsgstr ""\n'
    found = translated(read_po(text.encode()), REVERSED)
    assert found.startswith(f"#, fuzzy, {flag}\n" if is_fuzzy else f"#, {flag}\n")
    assert ("line 2: 1 message(s) have placeholders" in caplog.text) == is_fuzzy


def _open_message(language: str) -> str:
    return (
        f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n"{language}"\n\nmsgid "the dog"\nmsgstr ""\n'
    )


@pytest.mark.parametrize("language", ["fr", "fr_CA", "pt_BR@latin"])
def test_a_catalogue_of_a_third_language_is_refused_before_anything_is_translated(
    language: str,
) -> None:
    class Refusing(WordByWord):
        def translate(self, texts: object) -> list[AnsweredText]:
            raise AssertionError("asked")

    document = read_po(_open_message(f"Language: {language}\\n").encode())
    with pytest.raises(DataError, match=f'the header has "Language: {language}", but the model'):
        translate_document(document, Refusing())


@pytest.mark.parametrize(
    "language", ["", "Language: \\n", "Language: LL\\n", "Language: it_CH@x\\n", "Language: en\\n"]
)
def test_a_catalogue_of_no_language_or_one_of_the_model_is_translated(language: str) -> None:
    assert 'msgstr "THE DOG"' in translated(read_po(_open_message(language).encode()))


def test_a_finished_catalogue_of_a_third_language_stays() -> None:
    text = (
        _open_message("Language: fr\\n")
        .replace('msgstr ""\n', 'msgstr "le chien"\n')
        .replace('msgid ""\nmsgstr "le chien"\n', 'msgid ""\nmsgstr ""\n')
    )
    assert translated(read_po(text.encode())) == text


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("Open %s\\\\%s or {dog}\\\\{cat}", "OPEN %s\\\\%s OR {dog}\\\\{cat}"),
        ("Put ``house``. Then press :menu:`Open` now.", "PUT ``house``. THEN PRESS :menu:`Open` NOW."),
        ("Visit {url}/the/house?login to see", "VISIT {url}/the/house?login TO SEE"),
    ],
)
def test_placeholders_codes_and_addresses_stay(source: str, wanted: str) -> None:
    assert f'msgstr "{wanted}"' in translated(read_po(f'msgid "{source}"\nmsgstr ""\n'.encode()))
