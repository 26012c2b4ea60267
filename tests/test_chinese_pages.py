"""The Chinese pages: the same stations, code and commands as the English ones, and typeset as Chinese text is."""

import itertools
import re
from pathlib import Path

import pytest
from making.blocks import ROOT, blocks

DOCS = ROOT / "docs"
PAGES = sorted((DOCS / "zh").glob("*.md"))

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SHARED = re.compile(r"^## (?P<number>\d+)\. ", re.MULTILINE)
HAN = r"[\u4e00-\u9fff]"
HALF_WIDTH = re.compile(rf"{HAN}[,;:!?()]|[,;:!?(]{HAN}|{HAN}\.(?:\s|$)")
TIGHT = re.compile(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9%]{HAN}")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def sections(page: Path) -> list[str]:
    """The text of each part of a page that begins with a heading of the second level."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return re.split(r"^(?=## )", text, flags=re.MULTILINE)


def shown(page: Path) -> list[tuple[str, str, str]]:
    """The fenced blocks of a page: what marks them, their language and their content."""
    return [(f"{one.kind}: {one.text}", one.language, one.content) for one in blocks(page)]


def prose(page: Path) -> str:
    """What readers read as text: code, formulas and addresses are replaced by a letter or left out."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"<!--.*?-->|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]+`|\$[^$\n]+\$|<https?:[^>]+>", "x", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("*", "")


def test_the_page_on_the_transformer_has_the_stations_of_the_english_one() -> None:
    english, chinese = (sections(DOCS / folder / "the_transformer.md") for folder in ("", "zh"))
    assert len(english) == len(chinese)
    for original, translated in itertools.zip_longest(english, chinese):
        found, also = SHARED.match(original), SHARED.match(translated)
        assert (found and found["number"]) == (also and also["number"])


def test_the_page_on_the_transformer_quotes_and_runs_what_the_english_one_does() -> None:
    original, translated = (shown(DOCS / folder / "the_transformer.md") for folder in ("", "zh"))
    for number, (one, other) in enumerate(itertools.zip_longest(original, translated), start=1):
        assert one == other, f"block {number}: copy it from docs/the_transformer.md"


def test_the_page_on_the_tutorials_begins_with_the_blocks_of_the_map() -> None:
    original = shown(DOCS / "map_of_the_tutorials.md")
    translated = shown(DOCS / "zh" / "from_the_tutorials.md")
    for number, (one, other) in enumerate(zip(original, translated, strict=False), start=1):
        assert one == other, f"block {number}: copy it from docs/map_of_the_tutorials.md"
    assert len(original) <= len(translated)


def test_the_page_on_the_tutorials_names_the_code_that_the_map_names() -> None:
    original, translated = (
        set(re.findall(r"`([\w/]+\.py: [\w.]+)`", (DOCS / name).read_text(encoding="utf-8")))
        for name in ("map_of_the_tutorials.md", "zh/from_the_tutorials.md")
    )
    assert original - translated == set()


@each_page
def test_chinese_text_has_full_width_punctuation(page: Path) -> None:
    assert [found[0] for found in HALF_WIDTH.finditer(prose(page))] == []


@each_page
def test_a_space_separates_chinese_from_latin_letters_and_digits(page: Path) -> None:
    text = prose(page)
    assert [text[max(found.start() - 8, 0) : found.end() + 8] for found in TIGHT.finditer(text)] == []


@each_page
def test_a_paragraph_of_chinese_is_one_line(page: Path) -> None:
    """A line feed would be shown as a space between two characters."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    broken = re.findall(rf"^(?![#|>-]).*(?:{HAN}|[，。；：、])\n(?![#|>-]){HAN}.*$", text, re.MULTILINE)
    assert broken == []


def test_the_checks_of_the_typesetting_find_what_they_look_for() -> None:
    assert HALF_WIDTH.search("词元,")
    assert HALF_WIDTH.search("(注意力")
    assert TIGHT.search("用PyTorch写")
    assert not TIGHT.search("用 PyTorch 写，GPU。")
