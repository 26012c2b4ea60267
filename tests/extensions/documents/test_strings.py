"""Which values of a tree are translated."""

import json
from collections.abc import Sequence

import polib
import pytest

from transformer_cli.extensions.documents.files_in_strings import NOT_READ
from transformer_cli.extensions.documents.formats import (
    ReadingOptions,
    format_named,
    read_document,
)
from transformer_cli.extensions.documents.json import read_json
from transformer_cli.extensions.documents.strings import (
    Path,
    is_chosen,
    is_translated,
    tagged_segment,
)
from transformer_cli.extensions.documents.translator import AnsweredText, AskedText

from .fake_translators import REVERSED, WordByWord, done, translated


@pytest.mark.parametrize(
    ("path", "pattern", "wanted"),
    [
        (("a",), "a", True),
        (("a", "b"), "a", False),
        (("a", 0, "b"), "a.*.b", True),
        (("a", 0, "b"), "a.0.b", True),
        (("a", 0, "b"), "**.b", True),
        (("b",), "**.b", True),
        (("a", "x", "y", "b"), "a.**", True),
        (("a", "title_en"), "a.title_*", True),
        (("a", "B"), "a.b", False),
        ((), "**", True),
    ],
)
def test_a_pattern_chooses_paths(path: Path, pattern: str, wanted: bool) -> None:
    assert is_chosen(path, [pattern]) is wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("Open", True),
        ("open the door", True),
        ("Stop.", True),
        ("en_US", False),
        ("menu.open", False),
        ("de-DE", False),
        ("zh-Hans", False),
        ("text/html", False),
        ("minecraft:oak_log", False),
        ("#c:wood/planks", False),
        ("create:cut_stone_wall", False),
        ("net.fabricmc:yarn:1.21.11+build.3:v2", False),
        ("rtl", False),
        ("note:this is so", True),
        ("Name:", True),
        ("^(city|local)$", False),
        ("Europe/Rome", False),
        ("app/models/car.rb", False),
        (":year", False),
        ("rgba(0, 0, 0, .5)", False),
        ("#a0ff00", False),
        ("1.5rem", False),
        ("1.2.3-beta", False),
        ("123e4567-e89b-12d3-a456-426614174000", False),
        ("and/or", True),
        ("text / html", True),
        ("en", True),
        (":smile: now", True),
        (":thredded.form.create_btn", False),
        ("--share=network", False),
        ("-Wall", False),
        ("- share it", True),
        ("xdg-run/gvfs", False),
        ("$HOME/bin", False),
        ("/app/lib/*.so", False),
        ("*.la", False),
        ("lib*", False),
        ("*bold*", True),
        ("Name*", True),
        ("<b>Open</b>", True),
        ("Yes/No?", True),
        ("\u958b/\u95dc", True),
        ("item-2", False),
        ("camelCase", False),
        ("12", False),
        ("", False),
        ("e-mail", True),
        ("Wi-Fi", True),
    ],
)
def test_without_patterns_names_for_programs_stay(value: str, wanted: bool) -> None:
    assert is_translated(value, ("a",), ()) is wanted


def test_a_pattern_chooses_names_for_programs_too() -> None:
    assert is_translated("en_US", ("a",), ("a",))


@pytest.mark.parametrize(
    ("value", "path", "wanted"),
    [
        ("en", ("locale",), False),
        ("en", ("a", 0, "Language"), False),
        ("English", ("language",), True),
        ("pt-br", ("code",), False),
        ("Codes", ("code",), True),
        ("no way", ("code",), True),
        ("wrapper/dists", ("distributionPath",), False),
        ("docs/guide", ("help", "docs_url"), False),
        ("app/views", ("view-dir",), False),
        ("Up/Down", ("dir",), True),
        ("your home page", ("url",), True),
        ("and/or", ("purl",), True),
        ("wrapper/dists", ("pathological",), True),
        ("Good day", ("hello",), True),
        ("Sun", ("app.id",), False),
        ("Sun", ("Application.vendorId",), False),
        ("Application", ("appId",), True),
        ("Sun", ("vendor",), True),
        ("red", ("app.id",), False),
        ("house", ("x.iconName",), False),
        ("house", ("quit.Action.icon",), False),
        ("Icon", ("form.icon",), True),
        ("A red icon", ("icon",), True),
        ("dog", ("x.mnemonic",), False),
        ("D", ("fileMnemonic",), False),
        ("system", ("Application.lookAndFeel",), False),
        ("ctrl pressed Q", ("accelerator",), False),
        *(("False", (key,), False) for key in ("EnableReverting", "dog.visible", "is_red", "ShouldBeShort", "enabled")),
        ("TRUE", ("show",), False),
        *(("True", (key,), True) for key in ("answer", "island", "candy", "option")),
        ("youtube", ("SuccessIconResourceName",), False),
        ("Red house", ("resourceName",), True),
        *((unit, ("unit_of_length",), False) for unit in ("cm", "km/h", "kg", "ml", "MB", "dB")),
        *((word, ("unit_of_length",), True) for word in ("inches", "m", "Cm")),
        ("meta shift F4", ("quit.accelerator",), False),
        ("Keys of the menu", ("accelerator",), True),
        ("dog", ("x.class",), False),
        ("first class", ("x.class",), True),
        ("system", ("Application.title",), True),
        ("system", ("Application.description",), True),
    ],
)
def test_a_key_tells_what_its_value_is_for(value: str, path: Path, wanted: bool) -> None:
    assert is_translated(value, path, ()) is wanted


def test_a_long_value_is_no_name_for_programs() -> None:
    assert is_translated("a_" * 200_000, ("a",), ())


ICU = "You have {n, plural, =0 {no file} one {# file} other {# files in {place}}} here"
ICU_IN_CAPITALS = "YOU HAVE {n, plural, =0 {NO FILE} one {# FILE} other {# FILES IN {place}}} HERE"


@pytest.mark.parametrize(
    ("name", "columns", "source"),
    [
        ("json", (), '{"a": "TEXT"}'),
        ("yaml", (), 'a: "TEXT"\n'),
        ("csv", ("2",), 'a,"TEXT"\n'),
        ("po", (), 'msgid "TEXT"\nmsgstr "TARGET"\n'),
        (
            "xliff",
            (),
            '<xliff version="1.2"><file source-language="en" target-language="it"><trans-unit id="1">'
            '<source>TEXT</source><target state="translated">TARGET</target></trans-unit></file></xliff>',
        ),
    ],
)
def test_the_branches_of_icu_are_texts_and_their_frame_stays_in_every_format(
    name: str, columns: tuple[str, ...], source: str
) -> None:
    text = source.replace("TEXT", ICU).replace(' state="translated"', "").replace("TARGET", "")
    document = read_document(text.encode(), format_named(name), ReadingOptions(columns=columns))
    found = done(document)
    is_separate = "TARGET" in source
    wanted = source.replace("TEXT", ICU if is_separate else ICU_IN_CAPITALS)
    wanted = wanted.replace("TARGET", ICU_IN_CAPITALS)
    if name == "po":
        assert polib.pofile(found.data.decode())[0].msgstr == ICU_IN_CAPITALS
    else:
        assert found.data.decode() == wanted
    assert found.num_segments == 1
    assert not found.doubts


def test_the_placeholders_of_angular_inside_branches_stay() -> None:
    inner = '{VAR, plural, =0 {just now &amp; here} other {<x id="A"/> minutes ago}}'
    source = f'<xliff version="1.2"><file source-language="en" target-language="it"><trans-unit id="1"><source>{inner}</source></trans-unit></file></xliff>'
    found = done(read_document(source.encode(), format_named("xliff"))).data.decode()
    wanted = '{VAR, plural, =0 {JUST NOW &amp; HERE} other {<x id="A"/> MINUTES AGO}}'
    assert f'<target state="translated">{wanted}</target>' in found


def test_the_doubts_about_a_branch_are_those_of_its_message() -> None:
    class Losing(WordByWord):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            return [AnsweredText(asked.text.replace("%s", "").upper()) for asked in texts]

    source = 'msgid "{n, plural, one {a %s file} other {files}}"\nmsgstr ""\n'
    found = done(read_document(source.encode(), format_named("po")), Losing())
    assert found.data.decode().startswith("#, fuzzy\n")
    assert len(found.messages) == 1


@pytest.mark.parametrize(
    ("source", "reversed_"),
    [
        ("The **big** house", "HOUSE **BIG** THE"),
        ('Read [the page](http://a.b/c_d "T") now', 'NOW [PAGE THE](http://a.b/c_d "T") READ'),
        ("A ![small dog](x.png) here", "HERE ![DOG SMALL](x.png) A"),
        ("A *small* and _red_ and ~~old~~ dog", "DOG ~~OLD~~ AND _RED_ AND *SMALL* A"),
        ("# The **big** house\n\n- one _red_ dog", "# HOUSE **BIG** THE\n\n- DOG _RED_ ONE"),
        ("[**big** house](x) here", "HERE [HOUSE **BIG**](x)"),
        ("**The dog** is [big](http://a.b).", "[BIG](http://a.b). IS **DOG THE**"),
        ("The ***red house*** is __very big__", "__BIG VERY__ IS ***HOUSE RED*** THE"),
        (
            "**_The dog_** is ~~**big now**~~ [here](x)",
            "[HERE](x) ~~**NOW BIG**~~ IS **_DOG THE_**",
        ),
        ("**The [big dog](x) is** here", "HERE **IS [DOG BIG](x) THE**"),
        (
            "The _**red** dog_ ~~[here](http://a.b)~~ **[now](http://a.b/~me)**",
            "**[NOW](http://a.b/~me)** ~~[HERE](http://a.b)~~ _DOG **RED**_ THE",
        ),
    ],
)
def test_markdown_in_strings_moves_with_its_words(source: str, reversed_: str) -> None:
    data = json.dumps({"a": source}).encode()
    assert json.loads(done(read_json(data), REVERSED).data) == {"a": reversed_}


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4 dogs",
        "f(*args, **kwargs) is",
        "snake_case and other_case",
        "a*b*c d",
        "`**x**` is",
        "__name__ is __old__",
        "a [b] (c)",
        "{{ **x** }} is",
    ],
)
def test_other_signs_in_strings_are_no_markdown(text: str) -> None:
    assert tagged_segment(text, "x").pieces == (text,)


@pytest.mark.parametrize("name", ["48x48", "16x16 32x32", ".png", ".NET"])
def test_sizes_of_pictures_and_endings_of_files_are_names(name: str) -> None:
    assert not is_translated(name, ("sizes",), ())
    assert is_translated(f"{name} is here", ("sizes",), ())


@pytest.mark.parametrize("path", [("base_locale",), ("defaultLanguage",), ("locales", 0), ("LANG",)])
def test_the_code_of_a_language_stays_below_a_key_that_says_so(path: Path) -> None:
    assert not is_translated("it", path, ())
    assert is_translated("Italian", path, ())
    assert is_translated("it", ("slang",), ())


@pytest.mark.parametrize(
    ("value", "is_text"),
    [
        ("config/locales/side.%{locale}.yml", False),
        ("<%= root_path %>/locale/%{locale}.yml", False),
        ("${base}/models/{name}.rb", False),
        ("%{count}/day", True),
        ("{count} dogs/cats", True),
        ("Open {folder}/a.yml", True),
    ],
)
def test_a_placeholder_is_a_part_of_a_path(value: str, is_text: bool) -> None:
    assert is_translated(value, ("patterns", 0), ()) is is_text


KEPT = ['class="notranslate"', "class='big notranslate'", 'translate="no"', 'TRANSLATE="NO"']


@pytest.mark.parametrize("attribute", KEPT)
@pytest.mark.parametrize("name", ["json", "po", "csv", "android", "md"])
def test_an_element_that_is_not_to_be_translated_takes_the_place_of_a_word(name: str, attribute: str) -> None:
    attribute = attribute.lower() if name == "android" else attribute
    text = f"see <b>the</b> <span {attribute}>big <b>Red</b> <span>House</span></span> now"
    files = {
        "json": json.dumps({"a": text}),
        "po": f'msgid {json.dumps(text)}\nmsgstr ""\n',
        "csv": json.dumps(text).replace('\\"', '""').join(["a\n", "\n"]),
        "android": f'<resources><string name="a">{text}</string></resources>\n',
        "md": f"{text}\n",
    }
    options = ReadingOptions(columns=("a",) if name == "csv" else ())
    document = read_document(files[name].encode(), format_named(name), options)
    written = done(document, REVERSED).data.decode()
    shown = polib.pofile(written)[0].msgstr if name == "po" else written.replace('\\"', '"').replace('""', '"')
    assert f"NOW <span {attribute}>big <b>Red</b> <span>House</span></span> <b>THE</b> SEE" in shown


@pytest.mark.parametrize("attribute", ['class="notranslated"', 'class="x"', 'translate="yes"', 'data-x="translate=no"'])
def test_other_attributes_keep_no_words(attribute: str) -> None:
    text = f"the <span {attribute}>red house</span> now"
    wanted = f"THE <span {attribute}>RED HOUSE</span> NOW"
    assert translated(read_json(json.dumps({"a": text}).encode())) == json.dumps({"a": wanted})
    assert translated(read_document(text.encode(), format_named("md"))) == wanted


def test_a_block_that_is_not_to_be_translated_divides_texts() -> None:
    text = "<p>the dog</p><p translate='no'>red <b>house</b></p><p>a cat</p>"
    wanted = "<p>DOG THE</p><p translate='no'>red <b>house</b></p><p>CAT A</p>"
    assert translated(read_json(json.dumps({"a": text}).encode()), REVERSED) == json.dumps({"a": wanted})
    resources = f'<resources><string name="a">{text}</string></resources>'
    document = read_document(resources.encode(), format_named("android"))
    assert translated(document, REVERSED) == resources.replace(text, wanted)


def test_a_tag_without_an_end_keeps_no_words() -> None:
    text = "the <span translate='no'>red house"
    assert "RED HOUSE" in translated(read_json(json.dumps({"a": text}).encode()))
    assert translated(read_document(text.encode(), format_named("md"))) == "THE <span translate='no'>RED HOUSE"


@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("json", '{{"a": "{}"}}'),
        ("yaml", 'a: "{}"\n'),
        ("strings", '"a" = "{}";\n'),
        ("properties", "a={}\n"),
        ("android", '<resources><string name="a"><![CDATA[{}]]></string></resources>'),
        ("srt", "1\n00:00:01,000 --> 00:00:09,000\n{}\n"),
    ],
)
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("I can&rsquo;t go", "I CAN&rsquo;T GO"),
        ("I don&#39;t go", "I DON&#39;T GO"),
        ("Tom &amp; 5 &lt; 6", "TOM &amp; 5 &lt; 6"),
        ("See &brandShortName; it", "SEE &brandShortName; IT"),
        ("two&nbsp;dogs", "TWO DOGS"),
    ],
)
def test_references_are_read_as_characters_and_written_again(name: str, around: str, text: str, written: str) -> None:
    document = read_document(around.format(text).encode(), format_named(name), ReadingOptions(language="en"))
    found = done(document)
    assert found.data.decode() == around.format(written)
    assert not found.doubts


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("I can&rsquo;t see the caf&eacute;.", "I can't see the café."),
        ("He doesn&#x27;t &amp; won&apos;t", "He doesn't & won't"),
        ("{n, plural, other {They don&rsquo;t}}", "They don't"),
        ("{n, plural, other {They don&#39;t}}", "They don't"),
        ("write &amp;copy; for &copy;", "write &amp;copy; for ©"),
        ("Tom & Jerry &amp; the dog", "Tom & Jerry &amp; the dog"),
        ("a &#123;x} dog", "a &#123;x} dog"),
    ],
)
def test_the_translator_reads_characters_in_place_of_references(text: str, read: str) -> None:
    seen: list[str] = []

    class Reader(WordByWord):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            seen.extend(asked.text for asked in texts)
            return super().translate(texts)

    translated(read_json(json.dumps({"a": text}).encode()), Reader())
    assert seen[0] == read


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (
            "<?xml version='1.0'?><root><name lang='en'>a dog</name><item>The cat sleeps.</item></root>",
            "<?xml version='1.0'?><root><name lang='en'>DOG A</name><item>SLEEPS. CAT THE</item></root>",
        ),
        ("<root><name>a dog</name><type>red</type></root>", "<root><name>DOG A</name><type>red</type></root>"),
        (
            "<root><name>a dog</name><EnableDog>False</EnableDog></root>",
            "<root><name>DOG A</name><EnableDog>False</EnableDog></root>",
        ),
        (
            "<!DOCTYPE html><html><head><style>a {b: c}</style></head><body><p>The dog</p><script>var cat = 1;</script></body></html>",
            "<!DOCTYPE html><html><head><style>a {b: c}</style></head><body><p>DOG THE</p><script>var cat = 1;</script></body></html>",
        ),
        ("<style>.dog {color: red}</style><p>A dog</p>", "<style>.dog {color: red}</style><p>DOG A</p>"),
        ("<bold>Two dogs</bold>", "<bold>DOGS TWO</bold>"),
        ("Read <link>here now</link>", "<link>NOW HERE</link> READ"),
        ("A dog<!-- a cat -->", "DOG A<!-- a cat -->"),
    ],
)
def test_a_string_that_is_a_file_or_has_tags_of_the_program_stays_well_formed(text: str, written: str) -> None:
    assert json.loads(translated(read_json(json.dumps({"a": text}).encode()), REVERSED))["a"] == written


@pytest.mark.parametrize(
    "text", ["<?xml version='1.0'?><a>A <x>cat</x> dog</a>", "<?xml version='1.0'?><a><p>A dog</p>"]
)
def test_a_file_in_a_string_whose_texts_cannot_be_told_stays_and_is_named(text: str) -> None:
    found = done(read_json(json.dumps({"a": text}).encode()))
    assert json.loads(found.data)["a"] == text
    assert [doubt.reason for doubt in found.doubts] == [NOT_READ]


def test_names_below_keys_of_schemas_stay() -> None:
    given = {"$type": "dog house", "$ref": "The Dog", "$schema": "Big", "__typename": "Dog", "$price": "Price"}
    assert json.loads(translated(read_json(json.dumps(given).encode()))) == given | {"$price": "PRICE"}
