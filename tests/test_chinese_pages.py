"""The Chinese pages: the same stations, code and commands as the English ones, and typeset as Chinese text is."""

import re
from pathlib import Path

import pytest
from making.blocks import ROOT, MarkerError
from making.translations import TRANSLATIONS, drifted_translations, sections, with_blocks_of

pytestmark = pytest.mark.pages

PAGES = sorted((ROOT / "docs" / "zh").glob("*.md"))

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
STATION = re.compile(r"## (\d+)\. ")
PICTURE = re.compile(r"!\[[^\]]*\]\((?:\.\./)*([^)]+)\)")
FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
TEXT = re.compile(r"\\text\{[^}]*\}")
HAN = r"[\u4e00-\u9fff]"
MARK = r"[\u3001-\u303f\uff00-\uffef]"
HALF_WIDTH = re.compile(rf"{HAN}[,;:!?()]|[,;:!?(]{HAN}|{HAN}\.(?:\s|$)")
TIGHT = re.compile(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9%]{HAN}")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


each_translation = pytest.mark.parametrize("names", TRANSLATIONS.items(), ids=lambda names: names[0])


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """What readers read as text: code, formulas and addresses are replaced by a letter or left out."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"<!--.*?-->|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]+`|\$[^$\n]+\$|<https?:[^>]+>", "x", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("*", "")


def test_a_translated_page_has_the_code_and_the_outputs_of_the_english_one() -> None:
    drifted = [page.name for page, _ in drifted_translations({})]
    assert drifted == [], "run python docs/make.py"


@each_translation
def test_a_translated_page_has_the_parts_and_pictures_of_the_english_one(
    names: tuple[str, str],
) -> None:
    translated, original = (sections(text_of(name)) for name in names)
    assert len(translated) >= len(original)
    for one, other in zip(translated, original, strict=False):
        found, wanted = STATION.match(one), STATION.match(other)
        assert (found and found[1]) == (wanted and wanted[1])
        assert PICTURE.findall(one) == PICTURE.findall(other), one.partition("\n")[0]


def test_the_chinese_answers_stand_under_the_numbers_of_the_english_questions() -> None:
    numbers = [
        re.findall(r"^### (\d+)\. ", text_of(f"docs/{one}thirty_questions.md"), re.MULTILINE) for one in ("", "zh/")
    ]
    assert numbers[0] == numbers[1] == [str(number) for number in range(1, 31)]


def test_the_chinese_ablations_have_the_right_options_and_the_figures_of_the_english_ones() -> None:
    english, chinese = (sections(text_of(f"docs/{one}what_breaks.md")) for one in ("", "zh/"))
    for one, other in zip(english[1:-1], chinese[1:-1], strict=True):
        assert one.partition("\n")[0] == other.partition("\n")[0]
        for what in (
            r"^\*\*(\d)\.\*\*",
            r"`(tfm ablate [\w-]+)`",
            r"\d+(?:\.\d+)? (?:%|CPU)",
            r"\b\d\.\d+",
        ):
            found = [re.findall(what, each, re.MULTILINE) for each in (one, other)]
            assert sorted(found[0]) == sorted(found[1]), one.partition("\n")[0]


@each_translation
def test_a_translated_page_has_the_formulas_of_the_english_one(names: tuple[str, str]) -> None:
    translated, original = (FORMULA.findall(FENCED.sub("", text_of(name))) for name in names)
    same = ["".join(TEXT.sub("", one).split()) for one in translated]
    assert same == ["".join(TEXT.sub("", one).split()) for one in original]


@each_translation
def test_a_translated_page_names_the_code_that_the_english_one_names(
    names: tuple[str, str],
) -> None:
    translated, original = (set(re.findall(r"`([\w/]+\.py: [\w.]+)`", FENCED.sub("", text_of(name)))) for name in names)
    assert original - translated == set()


def test_a_section_with_another_number_of_blocks_is_named() -> None:
    block = "```text\na\n```\n"
    assert with_blocks_of(f"# A\n{block}", "# 甲\n```text\nb\n```\n", "zh.md") == f"# 甲\n{block}"
    with pytest.raises(MarkerError, match=r"zh\.md: '## 乙' has 0 blocks, and the English page has 1"):
        with_blocks_of(f"# A\n## B\n{block}", "# 甲\n## 乙\n", "zh.md")


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
    broken = re.findall(rf"^(?![#|>-]).*(?:{HAN}|{MARK})\n(?![#|>-]){HAN}.*$", text, re.MULTILINE)
    assert broken == []


def test_the_checks_of_the_typesetting_find_what_they_look_for() -> None:
    assert HALF_WIDTH.search("词元,")
    assert HALF_WIDTH.search("(注意力")
    assert TIGHT.search("用PyTorch写")
    assert not TIGHT.search("用 PyTorch 写。")
