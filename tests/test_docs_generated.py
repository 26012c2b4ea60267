"""Generated parts of the documents: quoted code, outputs of the committed model, and pictures are what they would be today."""

import contextlib
import io
import re
import sys
from functools import cache
from pathlib import Path

import make
import pytest
import yaml
from making import pictures, quotes
from making.blocks import ROOT, Block, MarkerError, blocks, pages, rewritten
from making.by_hand import BY_HAND
from making.outputs import is_same, outputs_of

pytestmark = pytest.mark.pages

ALL = [block for page in pages() for block in blocks(page)]
QUOTES = [block for block in ALL if block.kind == "code"]
OUTPUTS = [block for block in ALL if block.kind == "output"]
# Blocks in these languages are what a reader types or writes; blocks in others are what a program prints.
TYPED = {"bash", "sh", "yaml", "python", "json", "javascript", "ini", "nginx", "dockerfile", "html"}


@cache
def made() -> dict[str, str]:
    """The output of each marker today, by the place of the block."""
    contents = outputs_of(OUTPUTS)
    return {block.place: content for block, content in zip(OUTPUTS, contents, strict=True)}


def block(text: str, *, kind: str = "code", program: str = "") -> Block:
    return Block(ROOT / "docs" / "page.md", 1, kind, text, "python", "", program)


def test_quoted_code_is_the_code() -> None:
    changed = [one.place for one in QUOTES if quotes.quoted(one) != one.content]
    assert changed == [], "run python docs/make.py"


def test_an_output_is_what_the_command_prints() -> None:
    new = made()
    changed = {one.place: new[one.place] for one in OUTPUTS if not is_same(one.content, new[one.place])}
    assert changed == {}, "run python docs/make.py"


def test_each_block_of_the_page_of_questions_runs_alone() -> None:
    """The blocks of a page share their variables here, and so hide what a block on its own lacks."""
    alone = [one for one in OUTPUTS if one.page.name == "why.md"]
    assert "Each Python block runs as it stands" in alone[0].page.read_text(encoding="utf-8")
    for one in alone:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(one.program, one.place, "exec"), {"__name__": "page"})
        assert is_same(one.content, printed.getvalue()), one.place


def test_every_output_has_a_marker_or_stands_in_the_list_of_those_typed_by_hand() -> None:
    typed: dict[str, int] = {}
    for one in ALL:
        if not one.kind and one.language not in TYPED:
            name = one.page.relative_to(ROOT).as_posix()
            typed[name] = typed.get(name, 0) + 1
    assert typed == {name: number for name, (number, _) in BY_HAND.items()}


def test_a_measured_output_has_a_date_and_a_command() -> None:
    measured = [one for one in ALL if one.kind == "measured"]
    assert measured
    assert [one.place for one in measured if not re.match(r"\d{4}-\d\d-\d\d, \S", one.text)] == []


def test_the_table_of_pictures_has_every_picture_and_each_stands_in_a_page() -> None:
    assert [*pictures.unlisted()] == []


@pytest.mark.heavy  # it draws all of them, in a process of its own
@pytest.mark.parametrize("is_slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pictures_show_what_their_commands_draw_today(is_slow: bool) -> None:
    commands = pictures.drawings(is_slow=is_slow)
    assert commands
    assert pictures.drifted_pictures(commands, is_written=False) == [], "run python docs/make.py"


def test_a_quotation_is_the_lines_of_a_function() -> None:
    quoted = quotes.quoted(block("docs/making/blocks.py Block.place without docstring"))
    assert quoted.splitlines() == [
        "# docs/making/blocks.py: Block.place",
        "@property",
        "def place(self) -> str:",
        '    return f"{self.page.relative_to(ROOT)}:{self.line}"',
    ]


def test_a_quotation_may_begin_and_end_at_given_lines() -> None:
    marker = 'docs/making/blocks.py cut from "first, end" to "first, end"'
    assert quotes.quoted(block(marker)).splitlines()[1:] == [
        "# ...",
        "first, end = 0, len(lines)",
        "# ...",
    ]


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("docs/making/none.py name", "docs/making/none.py is not a file"),
        ("docs/making/blocks.py Block.missing", "defines no Block.missing"),
        ("docs/making/blocks.py cut form x", "'form' is no option"),
        ('docs/making/blocks.py cut from "xyzzy"', "no line contains 'xyzzy'"),
    ],
)
def test_a_marker_that_cannot_be_followed_is_an_error(marker: str, message: str) -> None:
    with pytest.raises(MarkerError, match=re.escape(message)):
        quotes.quoted(block(marker))


def test_a_marker_without_a_block_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("making.blocks.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- output: tfm --version -->\n\nText\n", encoding="utf-8")
    with pytest.raises(MarkerError, match=r"page\.md:1: a fenced block must follow"):
        list(blocks(page))


def test_only_the_content_of_a_block_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "A\n\n  <!-- output: x -->\n  ```text\n  old\n  ```\n\nB\n```bash\nls\n```\n"
    page.write_text(text, encoding="utf-8")
    new = rewritten(page, lambda one: "new\n\n  more\n" if one.kind == "output" else None)
    assert new == text.replace("  old\n", "  new\n\n    more\n")


@pytest.mark.parametrize(
    ("shown", "made"),
    [
        ("0.95  ██ sono", "0.96  ██ sono"),
        ("  9.99 x", " 10.00 x"),
        ("-1.820840", "-1.820791"),
        (" 15.6% ██  sono", " 15.5% ███ sono"),
        ("    I    ░ ▓  ·", "    I    ▒ ▓  ░"),
        ("tok:13a|version:2.6.0", "tok:13a|version:2.7.0"),
    ],
)
def test_outputs_that_differ_by_rounding_are_the_same(shown: str, made: str) -> None:
    assert is_same(shown, made)
    assert is_same(made, shown)


@pytest.mark.parametrize(
    ("shown", "made"),
    [
        ("0.95 sono", "0.97 sono"),
        ("0.95 sono", "0.95 stanno"),
        ("15 sentences", "16 sentences"),
        ("    I   ░ ▓", "    I   █ ▓"),
        (" 15.6% █    sono", " 15.6% ███  sono"),
        ("one line", "one line\nanother"),
        ("0.950", "0.95"),
    ],
)
def test_outputs_that_differ_otherwise_are_not_the_same(shown: str, made: str) -> None:
    assert not is_same(shown, made)


def test_the_committed_model_was_trained_with_the_config_beside_it() -> None:
    wanted = yaml.safe_load((ROOT / "docs" / "run.yaml").read_text(encoding="utf-8"))
    of_model = yaml.safe_load((ROOT / "docs" / "run" / "config.yaml").read_text(encoding="utf-8"))
    for section, settings in wanted.items():
        if isinstance(settings, dict):
            assert settings.items() <= of_model[section].items(), section
        else:
            assert settings == of_model[section]


def test_a_page_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["make.py", "--check", "docs/nosuch.md"])
    with pytest.raises(SystemExit) as ended:
        make.main()
    assert ended.value.code == 2
    assert "docs/nosuch.md: no page of the documentation" in capsys.readouterr().err
