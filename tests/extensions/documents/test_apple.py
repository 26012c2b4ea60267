"""The texts of Apple's apps: .strings, .stringsdict and string catalogs."""

import json
import plistlib

import pytest

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents import apple
from transformer_cli.extensions.documents.apple import (
    read_string_catalog,
    read_strings,
    read_stringsdict,
)
from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.process.errors import DataError

from .fake_translators import REVERSED, UPPER, Identity, WordByWord, done, translated


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ('"a" = "A red car";', '"a" = "A RED CAR";'),
        (r'"a" = "A \"red\" car";', r'"a" = "A \"RED\" CAR";'),
        (r'"a"="One line.\nA second one.";', r'"a"="ONE LINE.\nA SECOND ONE.";'),
        ('"a" = "One line.\nA second one.";', r'"a" = "ONE LINE.\nA SECOND ONE.";'),
        (r'"a" = "\U0041 door, caf\U00E9";', '"a" = "A DOOR, CAF\u00c9";'),
        (r'"a" = "a \\ b";', r'"a" = "A \\ B";'),
        ('"%@ files" = "%1$@ has %lld files";', '"%@ files" = "%1$@ HAS %lld FILES";'),
        ('"a" = "it has %#@files@";', '"a" = "IT HAS %#@files@";'),
        ("key.b = Value;", 'key.b = "VALUE";'),
        ("'a' = 'It is';", "'a' = \"IT IS\";"),
        ('"a" /* x = y; */ = // no\n "Red" ;', '"a" /* x = y; */ = // no\n "RED" ;'),
        ('"same key";', '"same key";'),
        ('"a" = "pref_dark_mode";', '"a" = "pref_dark_mode";'),
        ('"a" = "12 %";', '"a" = "12 %";'),
        ('"a" = "R&D";', '"a" = "R&D";'),
    ],
)
def test_the_values_of_strings_are_translated(entry: str, wanted: str) -> None:
    text = '/* A "comment" = "stays"; */\n{}\n// Neither this one;\n'
    assert translated(read_strings(text.format(entry).encode())) == text.format(wanted)


STRINGS = '/* caf\u00e9 */\r\n"a" = "A red %@";\r\nb = "Blue\\n";\r\n'


@pytest.mark.parametrize(
    ("encoding", "given"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
def test_strings_keep_their_encoding(encoding: str, given: str) -> None:
    data = STRINGS.encode(encoding)
    assert done(read_strings(data), Identity()).data == data
    found = done(read_strings(data), REVERSED).data.decode(given)
    assert found == STRINGS.replace("A red %@", "%@ RED A").replace("Blue", "BLUE")


@pytest.mark.parametrize(
    "text", ['"a" = "b"', '"a" "b";', '"a" = ;', '\n"a" = {"b" = "c";};', '"a" = "b', "= ;", "a b = c;"]
)
def test_a_broken_entry_is_named_with_its_line(text: str) -> None:
    with pytest.raises(DataError, match=f"line {1 + text.count(chr(10))}: no entry such as"):
        read_strings(text.encode())


def test_compiled_strings_are_refused_and_a_property_list_is_read() -> None:
    with pytest.raises(DataError, match="is compiled"):
        read_strings(plistlib.dumps({"a": "b"}, fmt=plistlib.FMT_BINARY))
    found = done(read_strings(plistlib.dumps({"a": "Red & blue", "b": {"c": "Car"}})))
    assert plistlib.loads(found.data) == {"a": "RED & BLUE", "b": {"c": "CAR"}}


PLURALS = {
    "%d files": {
        "NSStringLocalizedFormatKey": "You have %#@files@ here",
        "files": {
            "NSStringFormatSpecTypeKey": "NSStringPluralRuleType",
            "NSStringFormatValueTypeKey": "d",
            "one": "%d file",
            "other": "%d files",
        },
    },
    "short": {"NSStringVariableWidthRuleType": {"20": "A car", "50": "A big red car"}},
    "only": {"NSStringLocalizedFormatKey": "%#@files@"},
}


def test_the_forms_of_plurals_are_translated_and_their_rules_stay() -> None:
    data = plistlib.dumps(PLURALS, sort_keys=False)
    wanted = json.loads(json.dumps(PLURALS))
    wanted["%d files"]["NSStringLocalizedFormatKey"] = "HERE %#@files@ HAVE YOU"
    wanted["%d files"]["files"] |= {"one": "FILE %d", "other": "FILES %d"}
    wanted["short"]["NSStringVariableWidthRuleType"] = {"20": "CAR A", "50": "CAR RED BIG A"}
    assert plistlib.loads(done(read_stringsdict(data), REVERSED).data) == wanted
    assert done(read_stringsdict(data), Identity()).data == data
    with pytest.raises(DataError, match="its root is <dict>"):
        read_stringsdict(b"<dict/>")


def unit(value: str, state: str = "translated") -> dict[str, object]:
    return {"stringUnit": {"state": state, "value": value}}


def catalog(**strings: object) -> str:
    whole = {"sourceLanguage": "en", "strings": strings, "version": "1.0"}
    text = json.dumps(whole, ensure_ascii=False, indent=2, separators=(",", " : "))
    return text.replace("{}", "{\n\n    }")  # as Xcode writes them


TEXTS: dict[str, object] = {
    "%lld files": {
        "extractionState": "manual",
        "localizations": {
            "de": unit("%lld Dateien"),
            "en": {"variations": {"plural": {"one": unit("%lld file"), "other": unit("%lld files")}}},
            "zh": unit("\u6587\u4ef6"),
        },
    },
    "Hello": {"comment": "A greeting", "shouldTranslate": True},
    "Red car": {},
    "title.of.page": {"localizations": {"en": unit("The page")}},
    "title.alone": {},
    "Brand": {"shouldTranslate": False},
    "Blue": {"localizations": {"it": unit("", "new")}},
    "Green": {"localizations": {"it": unit("Verde")}},
    "Grey": {"localizations": {"it-IT": unit("Grigio", "needs_review")}},
}


def test_a_text_of_a_catalog_gets_the_target_language_if_it_lacks_it() -> None:
    text = catalog(**TEXTS)
    found = translated(read_string_catalog(text.encode()))
    wanted = json.loads(json.dumps(TEXTS))
    wanted["%lld files"]["localizations"] = {
        "de": unit("%lld Dateien"),
        "en": wanted["%lld files"]["localizations"]["en"],
        "it": {"variations": {"plural": {"one": unit("%lld FILE"), "other": unit("%lld FILES")}}},
        "zh": unit("\u6587\u4ef6"),
    }
    wanted["Hello"] = {"comment": "A greeting", "localizations": {"it": unit("HELLO")}, "shouldTranslate": True}
    wanted["Red car"] = {"localizations": {"it": unit("RED CAR")}}
    wanted["title.of.page"]["localizations"]["it"] = unit("THE PAGE")
    wanted["Blue"] = {"localizations": {"it": unit("BLUE")}}
    assert found == catalog(**wanted)  # the layout and the order of the keys, too


def test_a_catalog_of_which_nothing_is_translated_keeps_its_bytes() -> None:
    data = catalog(**TEXTS).replace("\n", "\r\n").encode()
    same = WordByWord()
    assert done(read_string_catalog(data), same).data == data
    assert read_string_catalog(data).segments


def test_texts_that_have_the_language_already_are_not_translated() -> None:
    options = ReadingOptions(target_language="it")
    document = read_string_catalog(catalog(**TEXTS).encode(), options)
    assert [each.pieces[0] for each in document.segments if len(each.pieces) == 1] == [
        "%lld file",
        "%lld files",
        "Hello",
        "Red car",
        "The page",
        "Blue",
    ]


def test_a_text_in_doubt_needs_review() -> None:
    lost = WordByWord()
    lost._translated = str.upper  # type: ignore[method-assign]
    found = translated(read_string_catalog(catalog(**{"Dear {name}, hello": {}}).encode()), lost)
    assert '"state" : "needs_review"' in found
    assert found.count("{name}") == 2


@pytest.mark.parametrize("text", ["[]", "{", '{"strings": {}}', '{"sourceLanguage": "en"}', "[" * 5000])
def test_another_file_is_no_catalog(text: str) -> None:
    with pytest.raises(DataError, match=r"no string catalog|no valid JSON"):
        read_string_catalog(text.encode())


def test_a_catalog_of_another_language_is_refused() -> None:
    german = WordByWord(str.upper, languages=Direction("de", "fr"))
    with pytest.raises(DataError, match='"sourceLanguage": "en", but the model translates from de'):
        translated(read_string_catalog(catalog(**TEXTS).encode()), german)


def test_the_layout_of_a_catalog_stays() -> None:
    text = '{\n\t"sourceLanguage": "en",\n\t"strings": {\n\t\t"Red": {}\n\t}\n}\n'
    found = translated(read_string_catalog(text.encode()), UPPER)
    assert '\n\t\t"Red": {\n\t\t\t"localizations": {\n\t\t\t\t"it": {' in found
    assert json.loads(found)["strings"]["Red"]["localizations"]["it"] == unit("RED")


@pytest.mark.parametrize("localizations", [["de"], None, 1, "de"])
def test_localizations_that_are_no_object_are_refused_with_their_line(
    localizations: object,
) -> None:
    text = catalog(Hello={}, Red={"localizations": localizations})
    with pytest.raises(DataError, match=r'line 7: the "localizations" of a text are .* no object'):
        read_string_catalog(text.encode())


def test_of_two_members_with_one_key_the_last_one_counts() -> None:
    entry = '{"localizations": 1, "localizations": {"it": null, "it": {"stringUnit": []}}}'
    text = f'{{"sourceLanguage": "en", "strings": 1, "strings": {{"Red": 1, "Red": {entry}}}}}'
    found = translated(read_string_catalog(text.encode()))
    assert json.loads(found)["strings"] == {"Red": {"localizations": {"it": unit("RED")}}}
    assert found.startswith('{"sourceLanguage": "en", "strings": 1, "strings": {"Red": 1, ')


def test_a_state_that_is_no_word_is_that_of_a_translation() -> None:
    text = catalog(Red={"localizations": {"it": {"stringUnit": {"state": [], "value": "Rosso"}}}})
    assert translated(read_string_catalog(text.encode())) == text


def test_a_catalog_that_is_nested_too_deep_is_refused() -> None:
    deep: object = unit("red")
    for _ in range(250):
        deep = {"a": deep}
    with pytest.raises(DataError, match="nested more than 200 deep"):
        read_string_catalog(catalog(Red={"localizations": {"en": deep}}).encode())


def test_the_layout_of_a_catalog_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    num_read = 0
    of = apple._Layout.of

    def counted(text: str) -> apple._Layout:
        nonlocal num_read
        num_read += 1
        return of(text)

    monkeypatch.setattr(apple._Layout, "of", counted)
    found = translated(read_string_catalog(catalog(Red={}, Blue={}, Green={}).encode()))
    assert found.count('"it"') == 3
    assert num_read == 1


def localized(localization: object) -> dict[str, object]:
    """What a catalog gives the target language for a text with this localization in its source language."""
    whole = {"sourceLanguage": "en", "strings": {"x": {"localizations": {"en": localization}}}}
    found = json.loads(translated(read_string_catalog(json.dumps(whole).encode())))
    return found["strings"]["x"]["localizations"]["it"]


def test_the_phrases_of_a_set_are_translated() -> None:
    given = {"stringSet": {"state": "translated", "values": ["Call the dog", "12"]}}
    assert localized(given) == {"stringSet": {"state": "translated", "values": ["CALL THE DOG", "12"]}}


def test_a_plural_inside_a_device_and_a_text_beside_it_are_translated() -> None:
    def unit(text: str) -> dict[str, object]:
        return {"stringUnit": {"state": "translated", "value": text}}

    def devices(one: str, other: str, elsewhere: str) -> dict[str, object]:
        plural = {"variations": {"plural": {"one": unit(one), "other": unit(other)}}}
        return {"variations": {"device": {"iphone": plural, "other": unit(elsewhere)}}}

    given = devices("%lld dog", "%lld dogs", "Dogs")
    assert localized(given) == devices("%lld DOG", "%lld DOGS", "DOGS")


PLURAL = "<plist><dict><key>n</key><dict><key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>{}</dict></dict></plist>"


@pytest.mark.parametrize(
    ("language", "forms", "is_named"),
    [
        ("ru", ["one", "other"], True),
        ("ru", ["one", "few", "many", "other"], False),
        ("it", ["one", "other"], False),
        ("ja", ["other"], False),
        ("pt-BR", ["one", "other"], False),
        ("ar", ["one", "two", "other"], True),
        ("qqq", ["one", "other"], False),
        (None, ["other"], False),
    ],
)
def test_a_plural_that_lacks_forms_of_the_target_language_is_named(
    language: str | None, forms: list[str], is_named: bool, caplog: pytest.LogCaptureFixture
) -> None:
    inner = "".join(f"<key>{form}</key><string>%d dogs</string>" for form in forms)
    read_stringsdict(PLURAL.format(inner).encode(), ReadingOptions(target_language=language))
    assert ("apps take the form other in their place" in caplog.text) is is_named
