"""Markdown: what is translated, what stays, and where the markup goes."""

import functools
import html
import json
import random
import re

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from transformer_cli.extensions.documents.json import read_json
from transformer_cli.extensions.documents.markdown import read_markdown
from transformer_cli.extensions.documents.translation import (
    AT_NEAREST,
    EMPTY,
    TAG_LEFT_OUT,
    translate_document,
)
from transformer_cli.text.spans import find_spans, masked

from .fake_translators import REVERSED, Identity, WordByWord, done, translated

ABBREVIATION = re.compile(r"^ {0,3}\*\[[^\]]+\]:", re.MULTILINE)


def upper(text: str) -> str:
    return translated(read_markdown(text.encode()))


def reverse(text: str) -> str:
    return translated(read_markdown(text.encode()), REVERSED)


BLOCKS = [
    "# Title\n",
    "Title\n===\n",
    "> quoted\n> text\n",
    "> ",
    "- ",
    "  - one\n",
    "1. ",
    "* * *\n",
    "\t",
    "    code\n",
    "```\ncode here\n```\n",
    "~~~",
    "<div>\nhtml text\n</div>\n",
    "[a]: http://x.org 'T'\n",
    "|a|b|\n|-|-|\n|c `x\\|y`|d|\n",
    "---\n",
    "# x #\n",
    "- [ ] task\n",
]
INLINES = [
    "**",
    "*",
    "_",
    "__",
    "~~",
    "`",
    "``",
    "[",
    "](u)",
    "][a]",
    "[a]",
    "![dog](d.png)",
    "<b>",
    "</b>",
    "<br>",
    "<http://x.org>",
    "\\*",
    "\\\\",
    "&amp;",
    "&#35;",
    "<!-- c -->",
    "[^1]",
    "[^1]: ",
]
TEXTS = [
    "Hello world. ",
    "word",
    " ",
    "  \n",
    "\\\n",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "{name}",
    "https://x.org/a_b_c",
    "a_b_c",
    "2 * 3",
    "\u00e8",
    "\0",
    "#",
    "|",
    "\udc80",
]
EXTENSIONS = [
    "[^1]: note\n",
    ": definition\n",
    "!!! note\n    inside\n",
    "::: tip\n",
    "$$\n",
    "$x_1$",
    "$$",
    ":smile:",
    '!!! note "Title"\n',
    "::: tip Title\n",
    "+--+--+\n|a|b|\n+--+--+\n",
    "--- ---\na   b\n",
    "-----\n",
    "\\begin{a}\n",
    "\\end{a}\n",
    "\\[\n",
    "\\]\n",
    "title: a\n",
    ":::{note} Title\n",
    ":class: big\n",
    "```{tip}\n",
    "% said\n",
    "+++\n",
    ":::\n",
]
PARTS = st.lists(st.sampled_from([*BLOCKS, *INLINES, *TEXTS]), max_size=25)
MORE_PARTS = st.lists(st.sampled_from([*BLOCKS, *INLINES, *TEXTS, *EXTENSIONS]), max_size=25)


@pytest.mark.long
@given(MORE_PARTS)
def test_an_identity_translation_gives_identical_bytes(parts: list[str]) -> None:
    data = "".join(parts).encode("utf-8", "surrogateescape")
    assert translate_document(read_markdown(data), Identity()).data == data


def structure(text: str) -> list[str]:
    """The elements of the page that an independent reading of the text gives, without the order within a block."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found = []
    for token in parser.parse(text.replace("\0", "")):
        kinds = sorted(
            child.type + str(child.attrs.get("href", ""))
            for child in token.children or []
            if child.type not in ("text", "softbreak")
        )
        found += [token.type, *kinds]
        if token.type in ("fence", "code_block"):
            found.append(token.content)
        elif token.type == "html_block":
            found += re.findall("<[^>]*>", token.content)
    return found


@pytest.mark.long
@given(PARTS)
def test_a_translation_has_the_structure_of_its_source(parts: list[str]) -> None:
    text = "".join(parts).replace("\udc80", "").replace("\0", "")
    # Front matter and footnotes, which CommonMark does not know.
    assume(not text.startswith("---") and not re.search(r"^\[\^1\]: ", text, re.MULTILINE))
    assert structure(upper(text)) == structure(text)


@pytest.mark.long
@given(PARTS)
def test_every_text_is_found(parts: list[str]) -> None:
    text = "".join(parts).replace("\udc80", "").replace("\0", "")
    assume(not ABBREVIATION.search(text))  # is not translated as CommonMark reads it
    found = done(read_markdown(text.encode()), WordByWord(str.upper)).data.decode()
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(found):
        children = [child.content for child in token.children or [] if child.type == "text"]
        # Markup and pictures may stand inside a protected name: *A*4 is A4.
        if not is_upper("".join(children)):
            assert all(is_upper(text) for text in children if not text.startswith("http"))


def is_upper(text: str) -> bool:
    """Whether all of a text but its protected parts is in capitals."""
    visible = masked(text, find_spans(text), " ")
    return visible == visible.upper()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("A man <a href=x>dog<a href=y>cat</a>", "<a href=x>DOG</a> MAN A<a href=y>CAT</a>"),
        ("<a href=x>Two dogs <a href=y>a cat</a>", "<a href=y>CAT A</a> <a href=x>DOGS TWO</a>"),
    ],
)
def test_a_link_of_html_ends_where_another_one_begins(text: str, written: str) -> None:
    assert translated(read_markdown(text.encode()), REVERSED) == written


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("# A title\n\nSome *red* text.\n", "# A TITLE\n\nSOME *RED* TEXT.\n"),
        ("Title here\n----------\n", "TITLE HERE\n----------\n"),
        ("> - one\n>   more text\n", "> - ONE MORE TEXT\n"),
        ("a `code` b", "A `code` B"),
        ("see [the page](http://x.org 'Title')", "SEE [THE PAGE](http://x.org 'TITLE')"),
        ("![A dog](dog.png)", "![A DOG](dog.png)"),
        ("one ![A dog](dog.png) two", "ONE ![A DOG](dog.png) TWO"),
        ("one  \ntwo", "ONE  \nTWO"),
        ("| a | b \\| c |\n|---|:-:|\n| d | `e` f |\n", "| A | B \\| C |\n|---|:-:|\n| D | `e` F |\n"),
        ("---\ntags: x\n---\n\ntext", "---\ntags: x\n---\n\nTEXT"),
        ("```py\ncode\n```\n\n    indented\n", "```py\ncode\n```\n\n    indented\n"),
        ("[ref]: http://x.org\n\nsee [ref]", "[ref]: http://x.org\n\nSEE [REF][ref]"),
        ("- [x] done now\n", "- [x] DONE NOW\n"),
        ("note[^1]\n\n[^1]: the note\n", "NOTE[^1]\n\n[^1]: THE NOTE\n"),
        ("fish &amp; chips", "FISH & CHIPS"),
        ("a \\*star\\* b", "A \\*STAR\\* B"),
        ("<div>\nyes\n</div>\n\nyes", "<div>\nYES\n</div>\n\nYES"),
        ("a <b>bold</b> b", "A <b>BOLD</b> B"),
        ("\\# no title", "\\# NO TITLE"),
    ],
)
def test_only_text_is_translated(text: str, wanted: str) -> None:
    assert upper(text) == wanted


def test_markup_moves_with_its_words() -> None:
    assert reverse("The **red car** stops [here](x).") == "[HERE](x). STOPS **CAR RED** THE"


def test_each_footnote_is_a_text_of_its_own_with_all_of_its_paragraphs() -> None:
    source = "Text[^a] here[^two].\n\n[^a]: note\n[^two]: First\nline.\n\n    Second *part*.\n\nEnd\n"
    assert upper(source) == ("TEXT[^a] HERE[^two].\n\n[^a]: NOTE\n[^two]: FIRST LINE.\n\n    SECOND *PART*.\n\nEND\n")


def test_definitions_boxes_and_directives_keep_their_lines() -> None:
    assert upper("Term\n: meaning\n  of it\n") == "TERM\n: MEANING OF IT\n"
    assert upper('!!! note "Title"\n    Read\n    this.\n\n    And.\nEnd\n') == (
        '!!! note "TITLE"\n    READ THIS.\n\n    AND.\nEND\n'
    )
    assert upper("::: tip\nBe careful.\n:::\n{{< video x >}}\nSee\n{: .big }\n") == (
        "::: tip\nBE CAREFUL.\n:::\n{{< video x >}}\nSEE\n{: .big }\n"
    )


def test_formulas_and_names_of_pictures_stay() -> None:
    assert upper("We see $a_b + c$ and $x$ :smile: at 10:30 now.") == ("WE SEE $a_b + c$ AND $x$ :smile: AT 10:30 NOW.")
    assert upper("Here:\n$$\n\\sum x\n= y\n$$\nwe end.") == "HERE:\n$$\n\\sum x\n= y\n$$\nWE END."
    assert upper("It costs $5 and not $6.") == "IT COSTS $5 AND NOT $6."


def test_an_extension_inside_code_is_code() -> None:
    source = "```\n[^1]: x\n::: y\n```\n\n    [^2]: z\n"
    assert upper(source) == source


def test_blocks_of_html_in_a_cell_divide_texts() -> None:
    text = "|a|\n|-|\n|<p>The house is big</p><p>The dog is small</p>|\n|<ul><li>one dog</li><li>two cats</li></ul>|\n"
    assert translated(read_markdown(text.encode()), REVERSED) == (
        "|A|\n|-|\n|<p>BIG IS HOUSE THE</p><p>SMALL IS DOG THE</p>|\n|<ul><li>DOG ONE</li><li>CATS TWO</li></ul>|\n"
    )


@pytest.mark.parametrize("name", ["code", "kbd", "var", "samp"])
def test_an_element_of_code_takes_the_place_of_a_word(name: str) -> None:
    text = f"Press <{name}>the *key*</{name}> and <{name} class='x'>wait</{name}>.\n"
    expected = text.replace("Press", "PRESS").replace(" and ", " AND ")
    assert translated(read_markdown(text.encode())) == expected


def test_a_name_in_angle_brackets_stays_inside_its_word() -> None:
    text = 'Set "allow_<YOUR NAME>_x" to x<Y>z.\n'
    assert translated(read_markdown(text.encode())) == 'SET "ALLOW_<YOUR NAME>_X" TO X<Y>Z.\n'


def test_the_first_line_of_a_box_stays_a_line() -> None:
    text = "> [!NOTE]\n> The house\n> is big.\n\n> [!tip]- A title\n> The dog.\n\n> A line\n> and [!x]\n> more\n"
    assert translated(read_markdown(text.encode())) == (
        "> [!NOTE]\n> THE HOUSE IS BIG.\n\n> [!tip]- A TITLE\n> THE DOG.\n\n> A LINE AND [!x] MORE\n"
    )


def test_links_that_touch_are_texts_of_their_own() -> None:
    text = "[Home](a)[My garden](b)\n"
    assert translated(read_markdown(text.encode()), REVERSED) == "[HOME](a)[GARDEN MY](b)\n"


def test_the_mark_of_a_footnote_holds_no_other_bracket() -> None:
    source = "Uno[^[^a] due.\n"
    [segment] = read_markdown(source.encode()).segments
    assert [piece.raw for piece in segment.pieces if not isinstance(piece, str)] == ["[^a]"]


def test_link_references_directly_behind_a_footnote_stay() -> None:
    text = 'A [small dog][a] here.[^1]\n\n[^1]: The big\ncat.\n[a]: http://a.b "The title"\n[b]: c.png\n'
    assert translated(read_markdown(text.encode()), REVERSED) == (
        'HERE. [DOG SMALL][a] A[^1]\n\n[^1]: CAT. BIG THE\n[a]: http://a.b "TITLE THE"\n[b]: c.png\n'
    )


GRID = "+-----+------+\n| Red | Blue |\n+=====+======+\n| car | dog  |\n+-----+------+\n"
SIMPLE = "  Right     Left\n-------     ------\n     12     red car\n"
SEVERAL_LINES = "----------------------\n Head      Other\n one       two\n------- --------------\nFirst      red row\n\nSecond     blue\n----------------------\n"
WITHOUT_HEAD = "------- ------\n red     car\n blue    dog\n------- ------\n"


@pytest.mark.parametrize("table", [GRID, SIMPLE, SEVERAL_LINES, WITHOUT_HEAD])
def test_tables_of_pandoc_stay_as_they_are(table: str) -> None:
    assert upper(f"before\n\n{table}\nbehind\n") == f"BEFORE\n\n{table}\nBEHIND\n"


@pytest.mark.parametrize("table", [GRID, SIMPLE, SEVERAL_LINES, WITHOUT_HEAD])
def test_tables_of_pandoc_in_a_quotation_stay_and_are_named(table: str, caplog: pytest.LogCaptureFixture) -> None:
    quoted = "".join(f"> {line}".rstrip() + "\n" for line in table.splitlines())
    assert upper(f"before\n\n{quoted}\nbehind\n") == f"BEFORE\n\n{quoted}\nBEHIND\n"
    assert "line 3: a table of Pandoc is not translated" in caplog.text


@pytest.mark.parametrize("value", ["\n  The dog: it is red", "\n  - the dog", "\n\n  the dog\n\n  the cat"])
def test_a_value_below_its_setting_that_cannot_be_read_is_named(value: str, caplog: pytest.LogCaptureFixture) -> None:
    text = f"---\nsummary:{value}\n---\n"
    assert upper(f"{text}the cat\n") == f"{text}THE CAT\n"
    assert "line 2: a text among the settings that has several lines" in caplog.text


def test_a_setting_without_a_value_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    upper("---\nsummary:\ntags:\n  - dog\n---\nthe cat\n")
    assert not caplog.records


def test_dashes_are_no_table_of_pandoc() -> None:
    assert upper("hello\n-----\n\nred - - car\n") == "HELLO\n-----\n\nRED - - CAR\n"
    assert upper("one\n\n--- ---\n\ntwo\n") == "ONE\n\n--- ---\n\nTWO\n"
    assert upper("+ one\n+ two\n") == "+ ONE\n+ TWO\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('!!! note "My title"', '!!! note "MY TITLE"'),
        ('??? tip inline end "My `code` title"', '??? tip inline end "MY `code` TITLE"'),
        ('=== "C++ here"', '=== "C++ HERE"'),
        ('!!! note ""', '!!! note ""'),
        ("::: tip My title", "::: tip MY TITLE"),
        (":::note[My title]{.x}", ":::note[MY TITLE]{.x}"),
        (":::{admonition} My title", ":::{admonition} MY TITLE"),
        (":::{card} card", ":::{card} CARD"),
        ('!!! note "note"', '!!! note "NOTE"'),
        ("::: warning", "::: warning"),
        ("::: {.note}", "::: {.note}"),
        (":::{figure} my/picture.png", ":::{figure} my/picture.png"),
    ],
)
def test_the_titles_of_boxes_are_translated(line: str, expected: str) -> None:
    assert (
        upper(f"{line}\n\n    body here\n") == f"{expected}\n\n    {'BODY HERE' if line[0] != ':' else 'body here'}\n"
    )


def test_a_title_and_the_text_behind_it_are_two_texts() -> None:
    assert reverse('!!! note "one two"\n    three four\n') == ('!!! note "TWO ONE"\n    FOUR THREE\n')
    quoting = WordByWord(lambda word: f'"{word}"')
    assert translated(read_markdown(b'=== "one"\n'), quoting) == "=== \"'one'\"\n"


@pytest.mark.parametrize(
    "settings",
    [
        "title: The car\n",
        "Title: The car\nAuthor: Me\n    and you\nDate:\n",
        "layout: page\ntags: red car\n",
        "% The car\n% Me; You\n% May\n",
    ],
)
def test_of_settings_without_a_line_around_them_only_the_title_is_translated(settings: str) -> None:
    wanted = settings.replace("The car", "THE CAR")
    assert upper(f"{settings}\n# hello\n") == f"{wanted}\n# HELLO\n"


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        ("title: The car", "title: THE CAR"),
        ('description: "A car"  ', 'description: "A CAR"  '),
        ("subtitle: 'A car'", "subtitle: 'A CAR'"),
        ("slug: the-car", "slug: the-car"),
        ("title: {{ page.title }}", "title: {{ page.title }}"),
        ("summary: 12", "summary: 12"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_titles_and_descriptions_of_front_matter_are_translated(setting: str, wanted: str, end: str) -> None:
    text, expected = (f"---\n{each}\ntags: [a dog]\n---\n\nhello\n".replace("\n", end) for each in (setting, wanted))
    assert upper(text) == expected.replace("hello", "HELLO")


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("title: car", "a: b"),
        ("title: car", "- a"),
        ('title: "car"', 'a "b"'),
        ("title: 'car'", "it's a"),
        ("title: car", "a # b"),
        ("title: car", "yes"),
    ],
)
def test_a_translated_setting_is_read_by_yaml_as_the_translation(source: str, translation: str) -> None:
    found = translated(read_markdown(f"---\n{source}\n---\n".encode()), WordByWord(lambda word: translation))
    assert yaml.safe_load(found.split("---")[1]) == {"title": translation}


def test_titles_in_toml_are_translated_and_settings_of_several_lines_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    toml = '+++\ntitle = "a dog"\ndate = 2020-01-01\n+++\n'
    assert upper(toml) == toml.replace("a dog", "A DOG")
    several = "---\nx: 1\ntitle: |-\n  a dog\n---\n"
    caplog.clear()
    assert upper(several) == several
    assert "line 3: a text among the settings" in caplog.text


def test_blocks_and_attributes_of_html_are_translated() -> None:
    block = '<details>\n<summary>Open it</summary>\n<p title="a dog">One <b>red</b> car &amp; a dog</p>\n<pre>code</pre>\n</details>\n'
    wanted = (
        block.replace("Open it", "OPEN IT")
        .replace("a dog", "A DOG")
        .replace("One", "ONE")
        .replace("red", "RED")
        .replace("car", "CAR")
    )
    assert upper(f"hello\n\n{block}\nhello\n") == f"HELLO\n\n{wanted}\nHELLO\n"
    assert upper('one <img src="a.png" alt="a dog"> two') == 'ONE <img src="a.png" alt="A DOG"> TWO'


def test_a_block_of_html_behind_other_marks_stays_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "> <div>\n> a dog\n> </div>\n\n- <hr>\n"
    assert upper(text) == text
    assert [record.getMessage() for record in caplog.records] == [
        "line 1: a block of HTML inside a list, quotation, note or box is not translated"
    ]


def test_a_table_of_pandoc_is_named(caplog: pytest.LogCaptureFixture) -> None:
    upper(f"one\n\n{GRID}\ntwo\n")
    assert "line 3: a table of Pandoc is not translated" in caplog.text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A term\n~ one dog\n", "TERM A\n~ DOG ONE\n"),
        ("| One dog\n|   two dogs\n| end\n", "| DOG ONE\n|   DOGS TWO\n| END\n"),
        ("| one | two |\n|---|---|\n| a dog | b |\n", "| ONE | TWO |\n|---|---|\n| DOG A | B |\n"),
        ("A note^[one dog] here", "HERE NOTE^[DOG ONE] A"),
        ("See ==two dogs== here", "HERE ==DOGS TWO== SEE"),
        ("See {++two dogs++} here", "HERE {++DOGS TWO++} SEE"),
        ("See [two dogs]{.red} here", "HERE [DOGS TWO]{.red} SEE"),
        ("See [two dogs](u){.red} here", "HERE [DOGS TWO](u){.red} SEE"),
        ("See ![[dog.png]] the dog", "DOG ![[dog.png]] THE SEE"),
        ("(@dog) One dog", "(@dog) DOG ONE"),
        ("*[HTML]: Text of pages", "*[HTML]: PAGES OF TEXT"),
        ("{/* a dog */}", "{/* a dog */}"),
        ("One {/* a dog */} two", "TWO {/* a dog */} ONE"),
        ("![A **red** dog](u)", "![DOG **RED** A](u)"),
        ("a == b and c == d", "D == C AND B == A"),
        ("a ~ b", "B ~ A"),
        ("# The dog {#dog .red}\n", "# DOG THE {#dog .red}\n"),
        ("The dog {: .red}", "DOG THE {: .red}"),
        ("a ~~red~~blue dog", "DOG BLUE ~~RED~~ A"),
    ],
)
def test_extensions_of_markdown_keep_their_marks_around_their_words(text: str, wanted: str) -> None:
    assert reverse(text) == wanted


def test_a_text_with_a_colon_is_no_setting() -> None:
    assert upper("Warning: the dog bites.\n\nhello\n") == "WARNING: THE DOG BITES.\n\nHELLO\n"
    assert upper("title: the car\nis red\n\nhello\n") == "TITLE: THE CAR IS RED\n\nHELLO\n"


@pytest.mark.parametrize(
    "name", [":smile:", ":material-arrow-right-circle:", ":octicons-file-code-16:", ":fontawesome-brands-font-awesome:"]
)
def test_names_of_pictures_stay_with_their_hyphens(name: str) -> None:
    assert upper(f"a {name} red car") == f"A {name} RED CAR"


@pytest.mark.parametrize(
    "formula",
    [
        "\\begin{align*}\na &= \\text{words} \\\\\n\\end{align*}",
        "\\[\nx = \\text{words}\n\\]",
        "\\\\[\nx = \\text{words}\n\\\\]",
        "\\begin{x} some words \\\\ more \\end{x}",
    ],
)
def test_formulas_of_latex_stay(formula: str) -> None:
    assert upper(f"before\n\n{formula}\n\nbehind\n") == f"BEFORE\n\n{formula}\n\nBEHIND\n"


def test_formulas_of_latex_in_a_line_stay() -> None:
    text = r"now \(x = \text{words}\) and \\(y_1 \text{words}\\) and \begin{x} a \\ b \end{x} end"
    assert upper(text) == text.replace("now", "NOW").replace("and", "AND").replace(" end", " END").replace(
        "\\ END", "\\ end"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('see [a](b "The red house") now', 'SEE [A](b "THE RED HOUSE") NOW'),
        ("see ![the dog](x.png 'A dog') now", "SEE ![THE DOG](x.png 'A DOG') NOW"),
        ("see [a]( <b c> (The dog) ) now", "SEE [A]( <b c> (THE DOG) ) NOW"),
        ('[![the dog](a.png "The dog")](b "The cat")', '[![THE DOG](a.png "THE DOG")](b "THE CAT")'),
        ('[id]: url "The dog"\n[id]: url\n  (The cat)\n', '[id]: url "THE DOG"\n[id]: url\n  (THE CAT)\n'),
        ('> see [a](b\n> "The red\n> house")', '> SEE [A](b "THE RED HOUSE")'),
        ("> [id]: url 'The\n> dog'\n", "> [id]: url 'THE DOG'\n"),
        ('![the\r\nred dog](a.png "The dog")\r\n', '![THE RED DOG](a.png "THE DOG")\r\n'),
        ('a[^1]\n\n[^1]: see [a](b "The dog")\n', 'A[^1]\n\n[^1]: SEE [A](b "THE DOG")\n'),
        ('a ^[see [a](b "The dog")]', 'A ^[SEE [A](b "THE DOG")]'),
        ('[a](b){title="The dog" .big}', '[A](b){title="THE DOG" .big}'),
        ('# A dog {#id title="The dog"}', '# A DOG {#id title="THE DOG"}'),
        ('[a](b "http://example.org/dog")', '[A](b "http://example.org/dog")'),
        ('[a]: b "the dog" c', '[A]: B "THE DOG" C'),
        # Of a definition, the reference has the title.
        ('[a][id]\n\n[id]: b "the dog"', '[A][id]\n\n[id]: b "THE DOG"'),
    ],
)
def test_titles_of_links_and_images_are_translated(text: str, wanted: str) -> None:
    assert upper(text) == wanted
    assert translated(read_markdown(text.encode()), Identity()) == text


@pytest.mark.parametrize(
    "text",
    [
        '[a](b "the *red* \\" dog")',
        "[a](b 'the dog\\'s \\\\')",
        "[a](b (the \\(dog\\)))",
        '[a](b "dog &amp; cat &#34;")',
        '|a|b|\n|-|-|\n|c ![d](b "dog \\| cat")|e|\n',
    ],
)
def test_signs_in_a_translated_title_are_read_as_they_are_shown(text: str) -> None:
    shown = MarkdownIt("commonmark").enable("table").render
    [before], [after] = (re.findall(r'title="([^"]*)"', shown(each)) for each in (text, reverse(text)))
    assert html.unescape(after) == " ".join(html.unescape(before).upper().split()[::-1])


def test_attributes_of_a_tag_over_two_lines_are_translated() -> None:
    text = 'see <img\n  alt="the dog"\n  src="a b"> dog'
    assert upper(text) == 'SEE <img alt="THE DOG" src="a b"> DOG'


@pytest.mark.parametrize(
    "text", ["![the\nred dog](a.png)", "> a ![the\n> red dog](a.png) b", "- ![the\n  red\n  dog](a.png)"]
)
def test_the_text_of_an_image_over_two_lines_keeps_its_marks(text: str) -> None:
    assert upper(text).endswith("RED DOG](a.png)" + " B" * text.startswith(">"))


@pytest.mark.parametrize("mark", ["> ", "- ", "    "])
def test_markup_over_two_lines_becomes_one_line(mark: str) -> None:
    """What stands before the second line, such as the sign of a quotation, is no part of the link."""
    first, later = {"> ": ("> ", "> "), "- ": ("- ", "  "), "    ": ("!!! note\n\n    ", "    ")}[mark]
    text = f'{first}a [red\n{later}car] and `code\n{later}here` and [my\n{later}dog](x.md\n{later}"the dog") end\n\n[red car]: y.md\n'
    expected = f'{first}A [RED CAR][red car] AND `code here` AND [MY DOG](x.md "THE DOG") END\n\n[red car]: y.md\n'
    assert upper(text) == expected


@pytest.mark.parametrize(
    "row",
    [
        "import Tabs from '@theme/Tabs';",
        'import {one, two} from "./parts"',
        "import './style.css';",
        "export const toc = [1, 2];",
        "export default Page",
    ],
)
def test_imports_of_mdx_stay(row: str) -> None:
    assert upper(f"{row}\n\nhello\n") == f"{row}\n\nHELLO\n"
    assert upper("import duties rise from 3 to 5.\n") == "IMPORT DUTIES RISE FROM 3 TO 5.\n"


@pytest.mark.parametrize(
    "part",
    [
        "++ctrl+alt+del++",
        "++enter++",
        "{{ page.title | default: 'My page' }}",
        "{% include note.html content='My text is long' %}",
    ],
)
def test_parts_of_templates_and_keys_stay_in_a_sentence(part: str) -> None:
    expected = part.replace("\n", " ")
    assert upper(f"one {part} two") == f"ONE {expected} TWO"
    assert reverse(f"one {part} two") == f"TWO {expected} ONE"


@pytest.mark.parametrize(
    "part",
    ["{# a comment\nof two lines #}", "{% comment %}a car{% endcomment %}", "{{/* a car */}}"],
)
def test_comments_of_templates_stay_beside_their_words(part: str) -> None:
    expected = part.replace("\n", " ")
    assert reverse(f"one {part} two") == f"{expected} TWO ONE"


def test_statements_of_templates_divide_a_sentence() -> None:
    text = "one two <% if a > b %> three four <% end %>"
    assert reverse(text) == "TWO ONE <% if a > b %> FOUR THREE <% end %>"


def test_words_between_plus_signs_are_translated() -> None:
    assert upper("so ++much more++ and c++ code++") == "SO ++MUCH MORE++ AND c++ CODE++"


def test_the_label_of_a_link_of_a_wiki_is_translated_and_its_page_stays() -> None:
    assert upper("See [[my page|my label]] now") == "SEE [[my page|MY LABEL]] NOW"
    assert upper("See [[my page#part|my *label*]]") == "SEE [[my page#part|MY *LABEL*]]"


@pytest.mark.parametrize("kept", ["`a\\|b`", "<b title='a\\|b'>", "[[a\\|"])
def test_an_escaped_bar_in_the_markup_of_a_cell_stays(kept: str) -> None:
    end = {"<": "</b>", "[": "]]"}.get(kept[0], "")
    table = f"| a | b |\n|-|-|\n| {{}} {kept}{{}}{end} | {{}} |\n"
    assert upper(table.format("see", "it", "d")) == table.format("SEE", "IT", "D").replace("a | b", "A | B")


class Without(WordByWord):
    """Loses all words but the last one."""

    def __init__(self) -> None:
        super().__init__(str.upper, lambda words: [len(words) - 1])


@pytest.mark.parametrize("mark", ["**", "*", "_", "__", "***", "~~", "=="])
def test_an_emphasis_without_words_is_left_out_and_named(mark: str) -> None:
    text = f"{mark}Do{mark} you {mark}understand?{mark}"
    for data, read, wanted in (
        (text.encode(), read_markdown, f"{mark}UNDERSTAND?{mark}"),
        (
            json.dumps({"a": text}).encode(),
            read_json,
            json.dumps({"a": f"{mark}UNDERSTAND?{mark}"}),
        ),
    ):
        if read is read_json and mark in (
            "==",
            "__",
        ):  # no emphasis of strings; __name__ is a placeholder
            continue
        found = done(read(data), Without())
        assert found.data.decode() == wanted
        assert [doubt.reason for doubt in found.doubts] == [TAG_LEFT_OUT]


def test_a_link_without_words_stands_around_the_nearest_word_and_is_named() -> None:
    text = "See [the page](http://a.org) of dogs."
    for data, read in ((text.encode(), read_markdown), (json.dumps(text).encode(), read_json)):
        found = done(read(data), Without())
        assert found.data.decode().strip('"') == "[DOGS](http://a.org)."
        assert [doubt.reason for doubt in found.doubts] == [AT_NEAREST]


def test_a_picture_in_a_string_takes_no_word_of_another() -> None:
    found = done(read_json(b'"See ![the page](x.png) of dogs."'), Without())
    assert found.data == b'"![](x.png)DOGS."'
    assert [doubt.reason for doubt in found.doubts] == [EMPTY]


def test_html_without_words_in_markdown_is_empty_and_named() -> None:
    found = done(read_markdown(b"<b>Do</b> you understand?"), Without())
    assert found.data == b"<b></b>UNDERSTAND?"
    assert [doubt.reason for doubt in found.doubts] == [EMPTY]


def marked_text(rng: random.Random, num_words: int, used: tuple[str, ...] = ()) -> str:
    """Words with emphasis, links and code among them, two deep."""
    parts = []
    for _ in range(num_words):
        mark = rng.choice([each for each in ("**", "_", "~~", "[") if each not in used])
        if len(used) < 2 and rng.random() < 0.45:
            inner = marked_text(rng, rng.randint(1, 2), (*used, mark))
            parts.append(f"[{inner}](http://a.org)" if mark == "[" else f"{mark}{inner}{mark}")
        else:
            parts.append(rng.choice(["the", "dog,", "big", "is\u2014you", "and/or", "`x`"]))
    return " ".join(parts)


def shown_by_markdown(text: str) -> str:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    children = (child for token in tokens for child in token.children or [])
    return " ".join(child.content for child in children if child.type == "text")


@pytest.mark.long
def test_no_mark_becomes_text_when_words_vanish_or_move() -> None:
    signs, num_read_as_meant = re.compile(r"[*_~\[\]]"), 0
    for seed in range(100):
        rng = random.Random(seed)
        text = f"now {marked_text(rng, rng.randint(2, 6))}."
        if signs.search(shown_by_markdown(text)):
            continue  # the text itself is not read as it was meant
        num_read_as_meant += 1
        translator = WordByWord(str.upper, functools.partial(some_words, rng))
        in_markdown = translated(read_markdown(text.encode()), translator)
        in_json = json.loads(translated(read_json(json.dumps([text]).encode()), translator))[0]
        for found in (in_markdown, in_json):
            assert not signs.search(shown_by_markdown(found)), (text, found)
    assert num_read_as_meant > 50


def some_words(rng: random.Random, words: list[str]) -> list[int]:
    """The numbers of about three fifths of the words, in another order."""
    chosen = [number for number in range(len(words)) if rng.random() < 0.6] or [0]
    rng.shuffle(chosen)
    return chosen


@pytest.mark.parametrize(
    ("text", "reversed_text"),
    [
        ("The {--red--}{++blue++} dog", "DOG {++BLUE++} {--RED--} THE"),
        ("The {++blue++}{--red--} dog", "DOG {--RED--} {++BLUE++} THE"),
        ("A {--red--}blue dog", "DOG BLUE {--RED--} A"),
        ("A {==red==}{>>a note<<}{++big++} dog", "DOG {++BIG++} {==RED==}{>>a note<<} A"),
        ("A {~~old *x*~>**new**~~}{++big++} dog", "DOG {~~old *x*~>**new**~~} {++BIG++} A"),
        ("See [words]{.c}[more]{.d} here", "HERE [MORE]{.d} [WORDS]{.c} SEE"),
        ("See [words](u){.c}[more]{#d} here", "HERE [MORE]{#d} [WORDS](u){.c} SEE"),
        ("A ~~red~~**blue** dog", "DOG **BLUE** ~~RED~~ A"),
        ("A <ins>blue</ins><del>red</del> dog", "DOG <del>RED</del> <ins>BLUE</ins> A"),
        ("A dog un{++do++}able", "{++UNDOABLE++} DOG A"),
    ],
)
def test_changes_that_touch_each_other_are_words_of_their_own(text: str, reversed_text: str) -> None:
    assert translated(read_markdown(text.encode()), REVERSED) == reversed_text


def test_comments_and_substitutions_of_critic_markup_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "The dog {>>a *note*<<} and the {~~old~>new~~} cat."
    wanted = "THE DOG {>>a *note*<<} AND THE {~~old~>new~~} CAT."
    assert translated(read_markdown(text.encode())) == wanted
    assert "line 1: a comment or substitution of CriticMarkup is not translated" in caplog.text


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ("---\ntitle: The dog # a note\n---\n", "---\ntitle: THE DOG # a note\n---\n"),
        ('---\ntitle: "The dog" # a note\n---\n', '---\ntitle: "THE DOG" # a note\n---\n'),
        ('---\ntitle: "The dog\'s house"\n---\n', '---\ntitle: "THE DOG\'S HOUSE"\n---\n'),
        ("---\ntitle: 'A \"dog''s\" house'\n---\n", "---\ntitle: 'A \"DOG''S\" HOUSE'\n---\n"),
        ('+++\ntitle = "The dog\'s" # x\n+++\n', '+++\ntitle = "THE DOG\'S" # x\n+++\n'),
        ("+++\nx = '''\ntitle = \"A dog\"\n'''\n+++\n", "+++\nx = '''\ntitle = \"A dog\"\n'''\n+++\n"),
        ('+++\nx = """\ntitle = "A dog"\n"""\n+++\n', '+++\nx = """\ntitle = "A dog"\n"""\n+++\n'),
        ("title: The C# # dog\n\n", "title: THE C# # DOG\n\n"),  # no comment outside of YAML
    ],
)
def test_a_comment_behind_a_setting_stays_and_a_quoted_value_may_have_the_other_mark(
    settings: str, wanted: str
) -> None:
    assert translated(read_markdown(settings.encode())) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(@) The dog sleeps.\n(@) The cat.\n", "(@) THE DOG SLEEPS.\n(@) THE CAT.\n"),
        ("(@a) The dog\n  sleeps.\n(@) A cat.\n", "(@a) THE DOG SLEEPS.\n(@) A CAT.\n"),
        ("As\n(@a) says so.\n", "AS (@a) SAYS SO.\n"),
        ("> (@) The dog\n> sleeps.\n> (@) A cat.\n", "> (@) THE DOG SLEEPS.\n> (@) A CAT.\n"),
    ],
)
def test_each_example_of_pandoc_stays_one(text: str, wanted: str) -> None:
    assert translated(read_markdown(text.encode())) == wanted


@pytest.mark.parametrize(
    ("text", "reversed_text"),
    [
        ("The dog^[A red *animal*.] sleeps", "SLEEPS DOG^[*ANIMAL*. RED A] THE"),
        ("The dog^[See [the page](u) now] sleeps", "SLEEPS DOG^[NOW [PAGE THE](u) SEE] THE"),
        ("The dog^[A `]` sign] sleeps", "SLEEPS DOG^[SIGN `]` A] THE"),
        ("The dog^[A [red]{.c} cat] sleeps", "SLEEPS DOG^[CAT [RED]{.c} A] THE"),
        # A range that crosses the bracket is one of the sentence.
        ("A *dog^[red* cat", "CAT *DOG^[RED* A"),
    ],
)
def test_a_note_in_its_sentence_may_have_markup(text: str, reversed_text: str) -> None:
    assert translated(read_markdown(text.encode()), REVERSED) == reversed_text


def test_statements_of_templates_in_comments_of_html_keep_their_order() -> None:
    text = b"The <!-- {% if a %} --> red dog <!-- {% endif %} --> sleeps"
    wanted = "THE <!-- {% if a %} --> DOG RED <!-- {% endif %} --> SLEEPS"
    assert translated(read_markdown(text), REVERSED) == wanted


def test_a_note_of_several_lines_in_its_sentence_stays_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = translated(read_markdown(b"The dog^[A red\n*animal*.] sleeps"), REVERSED)
    assert found == "SLEEPS DOG^[A red *animal*.] THE"
    assert "line 1: a footnote of several lines inside its sentence is not translated" in caplog.text


def test_a_link_without_text_takes_no_space_away() -> None:
    assert translated(read_markdown(b"in the [](guide.md) section")) == "IN THE [](guide.md) SECTION"


def test_attributes_behind_a_link_or_on_a_line_of_their_own_stay() -> None:
    text = b'See [the page](/a.html){target="_self"} and [more](b){ .big x=y } now.\n'
    wanted = 'SEE [THE PAGE](/a.html){target="_self"} AND [MORE](b){ .big x=y } NOW.\n'
    assert translated(read_markdown(text)) == wanted
    text = b'- The dog\n{._list-un_styled}\n\n{attribution="A poet, line 4"}\n> It sleeps.\n'
    wanted = '- THE DOG\n{._list-un_styled}\n\n{attribution="A poet, line 4"}\n> IT SLEEPS.\n'
    assert translated(read_markdown(text)) == wanted


def test_labels_of_myst_stay_lines() -> None:
    text = b"(how-to/warnings)=\n(my-label)=\n# Dogs\n\n(another one)=\nA (red)= dog.\n"
    wanted = "(how-to/warnings)=\n(my-label)=\n# DOGS\n\n(another one)=\nA (RED)= DOG.\n"
    assert translated(read_markdown(text)) == wanted


def test_a_number_at_the_beginning_of_a_title_is_not_escaped() -> None:
    text = b"### 1. The dog\n\nDogs: 1\\. Two\n\n1\\. Dogs\n"
    assert translated(read_markdown(text)) == "### 1. THE DOG\n\nDOGS: 1. TWO\n\n1\\. DOGS\n"


def test_escaped_dollar_signs_make_no_formula_and_leave_none() -> None:
    assert translated(read_markdown(b"It is $a=\\$3$ here.")) == "IT IS $a=\\$3$ HERE."
    # Nothing that was text becomes a formula.
    found = translated(read_markdown(b"The \\$a_b c\\$ dog costs $5."))
    assert "\\$" in found


def test_a_link_behind_an_exclamation_mark_is_no_image() -> None:
    found = translated(read_markdown(b"See [here](u) now!"), REVERSED)
    assert found == "NOW! [HERE](u) SEE"
    inside = translated(read_markdown("\u00a1[Dog](u)! sees".encode()), REVERSED)
    assert "![" not in inside.replace("\\![", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is**very red** now", "IT IS **VERY RED** NOW"),
        ("See[the page](u)now", "SEE [THE PAGE](u) NOW"),
        # A word of which a part is marked is one.
        ("[dog](u)s and **d**ogs", "[DOGS](u) AND **DOGS**"),
        ("(**very red**) dog", "(**VERY RED**) DOG"),
    ],
)
def test_a_range_of_several_words_that_touches_a_word_is_no_part_of_it(text: str, expected: str) -> None:
    assert translated(read_markdown(text.encode())) == expected
    assert translated(read_markdown(text.encode()), Identity()) == text


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ("description: >-\n  The red dog\n  sleeps.\nx: 1\n", "THE RED DOG SLEEPS."),
        ("description:\n  The red dog\n  sleeps.\nx: 1\n", "THE RED DOG SLEEPS."),
        ("description: The red dog\n  sleeps.\n", "THE RED DOG SLEEPS."),
        ("description:\r\n  The red dog\r\n  sleeps.\r\n", "THE RED DOG SLEEPS."),
        # Not one text, or with marks that a plain value must not have.
        ("description:\n  - a dog\n  - a cat\n", ["a dog", "a cat"]),
        ("description:\n  en: a dog\n", {"en": "a dog"}),
        ("description: >-\n  a dog\n\n  sleeps\n", "a dog\nsleeps"),
        ('description: "a dog\n  sleeps"\n', "a dog sleeps"),
        ("description:\n  yes\n", True),
    ],
)
def test_a_setting_of_several_lines_is_one_text(settings: str, value: object) -> None:
    found = upper(f"---\n{settings}---\n")
    assert yaml.safe_load(found.split("---\n")[1])["description"] == value
    assert translated(read_markdown(f"---\n{settings}---\n".encode()), Identity()) == f"---\n{settings}---\n"


def test_code_with_three_signs_at_the_beginning_of_an_item_is_not_escaped() -> None:
    assert translated(read_markdown(b"- ```a_b``` is red\n")) == "- ```a_b``` IS RED\n"


@pytest.mark.parametrize("label", ["(my-label)", "{#eq-dog}", "  (a)  "])
def test_a_formula_may_have_a_label_behind_its_end(label: str) -> None:
    text = f"Dogs:\n\n$$\na &= b \\\\\n  &= cat_x\n$$ {label}\n\nCats.\n"
    wanted = text.replace("Dogs", "DOGS").replace("Cats", "CATS")
    assert translated(read_markdown(text.encode())) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (
            ":::{note} My cat\n:class: dropdown\n:icon: false\nIt sleeps.\n:::\n",
            ":::{note} MY CAT\n:class: dropdown\n:icon: false\nIT SLEEPS.\n:::\n",
        ),
        (
            ":::{figure} a.png\n:alt: My alt\n:width: 20px\nIt sleeps.\n:::\n",
            ":::{figure} a.png\n:alt: MY ALT\n:width: 20px\nIT SLEEPS.\n:::\n",
        ),
        (
            ":::{figure} a.png\n---\nwidth: 20px\nname: my-cat\n---\nIt sleeps.\n:::\n",
            ":::{figure} a.png\n---\nwidth: 20px\nname: my-cat\n---\nIT SLEEPS.\n:::\n",
        ),
        (
            ":::{card}\nMy cat\n^^^\nIt sleeps.\n+++\nThe end\n:::\n",
            ":::{card}\nMY CAT\n^^^\nIT SLEEPS.\n+++\nTHE END\n:::\n",
        ),
        (
            "{sub}`2` is small.\n\n% not shown\nIt sleeps.\n% not\n% shown\n",
            "{sub}`2` IS SMALL.\n\n% not shown\nIT SLEEPS.\n% not\n% shown\n",
        ),
        (
            ":::{code-block} python\nmy cat = 1\n:::\nIt sleeps.\n",
            ":::{code-block} python\nmy cat = 1\n:::\nIT SLEEPS.\n",
        ),
        ("```{tip} My cat\n:class: big\nIt sleeps.\n```\n", "```{tip} MY CAT\n:class: big\nIT SLEEPS.\n```\n"),
        (
            "````{tip}\n```{note}\nIt sleeps.\n```\n```python\nmy cat\n```\n````\n",
            "````{tip}\n```{note}\nIT SLEEPS.\n```\n```python\nmy cat\n```\n````\n",
        ),
        # No MyST: a line of Markdown can begin with these signs.
        ("More than fifty\n% of them sleep.\n", "MORE THAN FIFTY % OF THEM SLEEP.\n"),
        ("```{r}\nmy cat\n```\n\nFifty\n% of them\n", "```{r}\nmy cat\n```\n\nFIFTY % OF THEM\n"),
        ("```{mermaid}\nmy --> cat\n```\n", "```{mermaid}\nmy --> cat\n```\n"),
    ],
)
def test_directives_of_myst_keep_their_options_and_have_text(source: str, wanted: str) -> None:
    assert upper(source) == wanted


@pytest.mark.parametrize(
    "source",
    ["- one\n\n  ```{note}\n  The cat\n  ```\n", "> ```{tip}\n> The cat\n> ```\n", "```{note}\nThe cat\n"],
)
def test_a_directive_of_myst_that_stays_is_named(source: str, caplog: pytest.LogCaptureFixture) -> None:
    assert "The cat" in upper(source)
    assert "a directive of MyST" in caplog.text


def test_the_settings_of_a_slide_stay_but_their_titles() -> None:
    slides = "---\ntheme: seriph\n---\n\n# hello\n\n---\nlayout: two-cols\nclass: big dog\ntitle: the dog\n---\n\n# the cat\n"
    slides += "\n---\ndragPos:\n  square: 1,2,_\n---\n\n<<< @/snippets/external.ts#part\n\nred: dog\n---\n"
    wanted = slides.replace("hello", "HELLO").replace("the dog", "THE DOG").replace("the cat", "THE CAT")
    assert upper(slides) == wanted.replace("red: dog", "RED: DOG")


def test_a_title_between_two_lines_of_a_text_without_settings_is_a_title() -> None:
    assert upper("the dog\n\n---\nnote: red\n---\n") == "THE DOG\n\n---\nNOTE: RED\n---\n"


@pytest.mark.parametrize(
    ("beginning", "end"),
    [
        ("{% highlight html linenos %}", "{% endhighlight %}"),
        ("{%- highlight ruby -%}", "{%- endhighlight -%}"),
        ("{% codeblock lang:js %}", "{% endcodeblock %}"),
        ("{{< highlight go >}}", "{{< /highlight >}}"),
        ("{{% code-toggle file=a %}}", "{{% /code-toggle %}}"),
    ],
)
@pytest.mark.parametrize("code", ["my cat = 1", "<div>\n  my cat\n\n  my dog\n</div>", "[^1]: my cat\n: my dog\n\n---"])
def test_code_between_two_commands_stays(beginning: str, end: str, code: str) -> None:
    part = f"{beginning}\n{code}\n{end}"
    assert upper(f"One:\n{part}\nTwo.\n\n{part}\n\nThree.\n") == f"ONE:\n{part}\nTWO.\n\n{part}\n\nTHREE.\n"
    in_item = part.replace("\n", "\n  ")
    assert upper(f"* One:\n\n  {in_item}\n\n  Two.\n* Three.\n") == f"* ONE:\n\n  {in_item}\n\n  TWO.\n* THREE.\n"
    in_quotation = part.replace("\n", "\n> ")
    assert upper(f"> One:\n> {in_quotation}\n> Two.\n\nThree.\n") == f"> ONE:\n> {in_quotation}\n> TWO.\n\nTHREE.\n"


def test_code_between_two_commands_in_a_line_stays() -> None:
    code = "{% highlight ruby %}my cat{% endhighlight %}"
    assert upper(f"one {code} two") == f"ONE {code} TWO"


@pytest.mark.parametrize(
    "text",
    [
        "{% highlight ruby %}\nthe cat\n",
        "```\n{% highlight ruby %}\n```\n\nthe cat\n\n```\n{% endhighlight %}\n```\n",
        "{% highlighted %}\nthe cat\n{% endhighlighted %}\n",
    ],
)
def test_commands_without_an_end_or_in_code_hold_no_code(text: str) -> None:
    assert upper(text) == text.replace("the cat", "THE CAT")


@pytest.mark.parametrize(
    "text",
    [
        "---\n__the dog :)__\n\n- [the cat](https://a.org/b) - red\n\n---\n\nred\n",
        "---\n# the dog\nthe cat\n\n---\n",
        "---\nthe dog\n---\n",
    ],
)
def test_a_text_without_a_key_between_two_rules_is_no_setting(text: str) -> None:
    wanted = text
    for word in ("the dog", "the cat", "red"):
        wanted = wanted.replace(word, word.upper())
    assert upper(text) == wanted


@pytest.mark.parametrize(
    "settings", ["", "# the dog", "the dog:", "theme: red", "theme:red", '{"theme": "red"}', "a:\n  - the dog"]
)
def test_settings_stay(settings: str) -> None:
    assert upper(f"---\n{settings}\n---\n\nthe cat\n") == f"---\n{settings}\n---\n\nTHE CAT\n"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (
            '> [!div class="nextstepaction"]\n> [the dog](a.md)\n',
            '> [!div class="nextstepaction"]\n> [THE DOG](a.md)\n',
        ),
        ("> [!VIDEO https://a.org/v]\n> the dog\n", "> [!VIDEO https://a.org/v]\n> THE DOG\n"),
        ('::: zone pivot="one"\n\nthe dog\n\n::: zone-end\n', '::: zone pivot="one"\n\nTHE DOG\n\n::: zone-end\n'),
        (
            ':::image type="content" source="a dog.png" alt-text="the dog" lightbox="b.png":::\n',
            ':::image type="content" source="a dog.png" alt-text="THE DOG" lightbox="b.png":::\n',
        ),
        (
            'the :::image type="icon" source="a dog.png"::: dog\n',
            'THE :::image type="icon" source="a dog.png"::: DOG\n',
        ),
        (
            'the :::image type="content" source="a dog.png" alt-text="the cat"::: dog\n',
            'THE :::image type="content" source="a dog.png" alt-text="THE CAT"::: DOG\n',
        ),
        (':::code language="csharp" source="a dog.cs":::\n', ':::code language="csharp" source="a dog.cs":::\n'),
        ("::: tip the dog\nthe cat\n:::\n", "::: tip THE DOG\nTHE CAT\n:::\n"),
    ],
)
def test_directives_of_docfx_stay_but_their_texts(source: str, wanted: str) -> None:
    assert upper(source) == wanted


def test_the_text_of_a_picture_of_docfx_stays_between_its_quotation_marks() -> None:
    document = read_markdown(b'the :::image source="a.png" alt-text="the cat"::: dog\n')
    quoted = translated(document, WordByWord(lambda word: word.replace("cat", '"cat"')))
    assert quoted == 'the :::image source="a.png" alt-text="the \'cat\'"::: dog\n'


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("the dog %%the red cat%% sleeps\n", "THE DOG %%the red cat%% SLEEPS\n"),
        ("%% the cat %%\n\nthe dog\n", "%% the cat %%\n\nTHE DOG\n"),
        ("%%\nthe cat\n\n# the cat\n%%\nthe dog\n", "%%\nthe cat\n\n# the cat\n%%\nTHE DOG\n"),
        ("%%the cat\nsleeps%%\nthe dog\n", "%%the cat\nsleeps%%\nTHE DOG\n"),
        ("> %% the cat\n> sleeps %%\n\nthe dog\n", "> %% the cat\n> sleeps %%\n\nTHE DOG\n"),
        ("%% the dog\n\nthe cat\n", "%% THE DOG\n\nTHE CAT\n"),  # without an end
        ("50%% of it and 60%% of it\n", "50%% OF IT AND 60%% OF IT\n"),
        ("the #red/dog and #red-dog/big\n", "THE #red/dog AND #red-dog/big\n"),
    ],
)
def test_comments_and_nested_tags_of_obsidian_stay(source: str, wanted: str) -> None:
    assert upper(source) == wanted


def test_the_name_of_a_block_of_obsidian_stays_at_its_end() -> None:
    assert reverse("the red dog ^red-dog") == "DOG RED THE ^red-dog"
    assert upper("the ^red dog") == "THE ^RED DOG"


def test_the_name_of_a_block_of_obsidian_may_touch_a_picture() -> None:
    assert upper("![[a-dog.png]]^picture-of-dog\n") == "![[a-dog.png]]^picture-of-dog\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna's [dog's](a.md)*House* is red", "ANNA'S [DOG'S](a.md) *HOUSE* IS RED"),
        ("[dog's][a]**House** is red\n\n[a]: b.md", "[DOG'S][a] **HOUSE** IS RED\n\n[a]: b.md"),
        ("the [Git](a.md)**hub**", "THE [GITHUB](a.md)"),
        ("We like dogs._Our red note_", "WE LIKE DOGS. _OUR RED NOTE_"),
        ("We like dogs.[The red cat](a.md)", "WE LIKE DOGS. [THE RED CAT](a.md)"),
        ('Say "[the dog](a.md)" or ([the cat](b.md))', 'SAY "[THE DOG](a.md)" OR ([THE CAT](b.md))'),
    ],
)
def test_a_range_directly_behind_a_link_or_sentence_is_a_word_of_its_own(text: str, expected: str) -> None:
    assert upper(text) == expected


def test_a_long_formula_stays() -> None:
    formula = rf"\\( x_1 = {' + '.join(f'y_{number} the dog' for number in range(40))} \\)"
    assert upper(f"It is {formula} here") == f"IT IS {formula} HERE"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        # Blocks of PyMdown.
        ("/// note | The dog\nthe cat\n///\n", "/// note | THE DOG\nTHE CAT\n///\n"),
        (
            "/// html | div.dog\n    open: True\n\nthe cat\n\n///\n",
            "/// html | div.dog\n    open: True\n\nTHE CAT\n\n///\n",
        ),
        ("//// tab | The cat\n\n/// tip\nthe dog\n///\n////\n", "//// tab | THE CAT\n\n/// tip\nTHE DOG\n///\n////\n"),
        # The title of a box of Quarto.
        ('::: {.callout-note title="The dog"}\nthe cat\n:::\n', '::: {.callout-note title="THE DOG"}\nTHE CAT\n:::\n'),
        # Commands around a text on one line.
        ('{% hint style="info" %}the dog{% endhint %}\n', '{% hint style="info" %}THE DOG{% endhint %}\n'),
        ("{{< mark >}}the dog{{< /mark >}}\n", "{{< mark >}}THE DOG{{< /mark >}}\n"),
        ("{% a %} {% b %}\n{{< c >}}{{< d >}}\nthe dog\n", "{% a %} {% b %}\n{{< c >}}{{< d >}}\nTHE DOG\n"),
        ("{% comment %}the dog{% endcomment %}\n", "{% comment %}the dog{% endcomment %}\n"),
        # Attributes of several lines.
        ('![the dog](a.png){.big fig-alt="the red\ndog"}\n', '![THE DOG](a.png){.big fig-alt="THE RED DOG"}\n'),
        # References of bookdown.
        (
            "See \\@ref(fig:dog) and (\\#tab:dog) the cat\n\n(ref:dog-x) the dog\n",
            "SEE \\@ref(fig:dog) AND (\\#tab:dog) THE CAT\n\n(ref:dog-x) THE DOG\n",
        ),
        # Settings of a slide.
        ("class: center, dog\n\n# the dog\n", "class: center, dog\n\n# THE DOG\n"),
        ("the dog\n\n---\nname: dog\nclass: big\n\nthe cat\n", "THE DOG\n\n---\nname: dog\nclass: big\n\nTHE CAT\n"),
        ("the dog\nclass: big\n", "THE DOG CLASS: BIG\n"),
        # Fields of Obsidian and Logseq.
        ("status:: the dog\nowner:: the cat\nthe end\n", "status:: THE DOG\nowner:: THE CAT\nTHE END\n"),
        ("the dog\n\ndog.order-type:: number\n", "THE DOG\n\ndog.order-type:: NUMBER\n"),
        ("- size:: big\n- the (size:: big) dog and std::dog", "- size:: BIG\n- THE (size:: BIG) DOG AND std::dog"),
        # Columns of DocFX.
        (
            ":::row:::\n    :::column:::\n        The dog\n        runs.\n    :::column-end:::\n:::row-end:::\nthe cat\n",
            ":::row:::\n    :::column:::\n        THE DOG RUNS.\n    :::column-end:::\n:::row-end:::\nTHE CAT\n",
        ),
        # A diagram of Azure DevOps.
        ("::: mermaid\ngraph TD\n\nA[the dog]\n:::\nthe cat\n", "::: mermaid\ngraph TD\n\nA[the dog]\n:::\nTHE CAT\n"),
        ("::: mermaid\nthe dog\n", "::: mermaid\nTHE DOG\n"),
        # Parts of other files.
        (
            "[!INCLUDE [the dog](a.md)]\n[!code-cs[The dog](a.cs?b=1)]\n",
            "[!INCLUDE [the dog](a.md)]\n[!code-cs[The dog](a.cs?b=1)]\n",
        ),
        ("use @Red.Dog?text=dog and <xref:Red.Dog> here", "USE @Red.Dog?text=dog AND <xref:Red.Dog> HERE"),
    ],
)
def test_the_marks_of_generators_of_pages_stay(source: str, wanted: str) -> None:
    assert upper(source) == wanted
    assert translated(read_markdown(source.encode()), Identity()) == source


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('see [the dog]({{< ref "a dog.md" >}}) now', 'NOW [DOG THE]({{< ref "a dog.md" >}}) SEE'),
        ("see [the dog](my dog/a%20b c.md#d) now", "NOW [DOG THE](my dog/a%20b c.md#d) SEE"),
        ("see [the dog]({% link a.md %}) now", "NOW [DOG THE]({% link a.md %}) SEE"),
        ("see [the dog][d] now\n\n[d]: {{ site.url }}/a", "NOW [DOG THE][d] SEE\n\n[d]: {{ site.url }}/a"),
        ("the {{< mark x >}}red dog{{< /mark >}} now", "NOW {{< mark x >}}DOG RED{{< /mark >}} THE"),
        ("choose [!UICONTROL Save file] now", "NOW [!UICONTROL FILE SAVE] CHOOSE"),
        ("the [!DNL red dog] now", "NOW [!DNL red dog] THE"),
    ],
)
def test_links_and_ranges_of_generators_move_with_their_words(source: str, wanted: str) -> None:
    assert reverse(source) == wanted


def test_attributes_with_an_escape_stay_behind_their_link() -> None:
    source = 'the [ red dog ](a.md){:target="\\_blank"} sleeps'
    assert upper(source) == 'THE [ RED DOG ](a.md){:target="\\_blank"} SLEEPS'
    assert (
        upper("the[ dog ](a.md)sleeps and [ cat][]\n\n[cat]: b") == "THE [DOG](a.md) SLEEPS AND [ CAT][cat]\n\n[cat]: b"
    )


def test_a_link_whose_text_is_a_number_needs_no_reference() -> None:
    source = "[the dog] [1] and [2] now\n\n[1]: a.md\n[2]: b.md\n"
    assert upper(source) == "[THE DOG] [1] AND [2] NOW\n\n[1]: a.md\n[2]: b.md\n"


def test_a_letter_in_brackets_of_a_formula_stays() -> None:
    assert upper(r"the \(x\) and \\(n\\) of \(the dog\)") == r"THE \(x\) AND \\(n\\) OF (THE DOG)"


def test_a_setting_in_double_quotation_marks_may_have_escaped_ones() -> None:
    source = '---\ntitle: "The \\"red\\" dog"\n---\n'
    assert upper(source) == '---\ntitle: "THE \\"RED\\" DOG"\n---\n'
    assert translated(read_markdown(source.encode()), Identity()) == source


def test_comments_of_kramdown_stay() -> None:
    block = "{::comment}\nThis stays.\n\nSo does it.\n{:/comment}\n"
    assert upper(f"The dog.\n\n{block}\nThe cat.\n") == f"THE DOG.\n\n{block}\nTHE CAT.\n"
    short = block.replace("/comment", "/")
    assert upper(f"{short}\nThe cat.\n") == f"{short}\nTHE CAT.\n"
    assert upper("The {::comment}old{:/comment} dog {::comment}and cat{:/} sleeps\n") == (
        "THE {::comment}old{:/comment} DOG {::comment}and cat{:/} SLEEPS\n"
    )
    assert upper("{::comment}\nThe dog.\n") == "{::comment}\nTHE DOG.\n"  # it has no end


def test_a_notice_of_grav_is_text_and_its_lines_stay_lines() -> None:
    assert upper("!!! You can see the dog, too.\n\nText.\n") == "!!! YOU CAN SEE THE DOG, TOO.\n\nTEXT.\n"
    assert upper("! The dog\n! and the cat.\n") == "! THE DOG\n! AND THE CAT.\n"
    assert upper('!!! note "The dog"\n    The cat.\n') == '!!! note "THE DOG"\n    THE CAT.\n'
    assert upper("!!! tip inline end\n    The cat.\n") == "!!! tip inline end\n    THE CAT.\n"
    assert upper("![The dog](a.png)\n") == "![THE DOG](a.png)\n"


def test_the_lines_of_the_head_of_a_mail_stay_lines() -> None:
    head = "Subject: {}\nFrom: Anna Dog <anna@example.com>\nX-Mailer: Thunderbird\nDate: Mon, 3 Jun 2024 10:00:00 +0200\n\n"
    assert upper(head.format("the red house") + "The dog.\n") == head.format("THE RED HOUSE") + "THE DOG.\n"
    assert upper("Note: the dog\nand: the cat.\n") == "NOTE: THE DOG AND: THE CAT.\n"


@pytest.mark.parametrize("name", ["prism", "code", "sourcecode", "raw"])
def test_code_between_two_shortcodes_in_brackets_stays(name: str) -> None:
    code = f'[{name} classes="language-git"]\nthe dogs\nand cats\n[/{name}]\n'
    assert upper(f"The dog.\n\n{code}\nThe cat.\n") == f"THE DOG.\n\n{code}\nTHE CAT.\n"
    assert upper(f"[{name}](a.md) is it.\n") == f"[{name.upper()}](a.md) IS IT.\n"


def test_other_titles_and_texts_among_the_settings_are_translated() -> None:
    settings = "---\nseo_title: The dog\noneLineDescription: A big dog\nimageAlt: 'A dog'\nlayout: the page\n---\n"
    assert upper(settings) == (
        "---\nseo_title: THE DOG\noneLineDescription: A BIG DOG\nimageAlt: 'A DOG'\nlayout: the page\n---\n"
    )
    kept = "---\nhide_title: true\nshow-description: off # the dog\nsalt: a little\ncatalt: the dog\n---\n"
    assert upper(kept) == kept
