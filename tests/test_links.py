"""Links between the documents of the repository lead to files and headings, by the rules of GitHub."""

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.pages

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "runs/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    # Those of examples/documents are text to be translated.
    *sorted(path for path in (ROOT / "examples").rglob("*.md") if path.parent.name != "documents"),
]
FENCED = re.compile(r"^( *)(```+|~~~+)[^\n]*\n.*?^\1\2 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
SPAN = re.compile(r"`+[^`\n]+`+")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
REFERENCE = re.compile(r"^\[[^\]]+\]: *(\S+)", re.MULTILINE)
ATTRIBUTE = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=\"([^\"]+)\"", re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
NAMED = re.compile(r"<[^>]+\b(?:id|name)=\"([^\"]+)\"")


@cache
def website(name: str) -> ModuleType:
    """A module of docs/website, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "website" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(f"website_{name}", module)
    spec.loader.exec_module(module)
    return module


def prose(text: str) -> str:
    """Markdown without its code blocks and comments."""
    return COMMENT.sub("", FENCED.sub("", text))


def links(text: str) -> list[str]:
    """The links and pictures of a Markdown text that lead to files or headings of the repository."""
    seen = SPAN.sub("", prose(text))
    found = [*LINK.findall(seen), *REFERENCE.findall(seen), *ATTRIBUTE.findall(seen)]
    return [link for link in found if not re.match(r"[a-z][a-z+.-]*:|//", link)]


@cache
def anchors(document: Path) -> frozenset[str]:
    """The anchors by which parts of a document can be linked on GitHub."""
    text = prose(document.read_text(encoding="utf-8"))
    slugs = website("slugs")
    numbers = slugs.Slugs()
    headings = {numbers.next(slugs.plain(heading)) for heading in HEADING.findall(text)}
    return frozenset(headings | set(NAMED.findall(text)))


def broken(text: str, document: Path) -> list[str]:
    """The links of a text that lead nowhere, if it is the text of the document."""
    missing = []
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        leads_out = ROOT not in [target, *target.parents]
        no_heading = anchor and target.suffix == ".md" and anchor not in anchors(target)
        if leads_out or not target.exists() or no_heading:
            missing.append(link)
    return missing


def test_every_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    missing = [
        f"{document.relative_to(ROOT)}: {link}"
        for document in DOCUMENTS
        for link in broken(document.read_text(encoding="utf-8"), document)
    ]
    assert missing == []


@pytest.mark.parametrize(
    "text",
    [
        "[x](no_such_page.md)",
        "[x](search.md#no-such-heading)",
        "![x](pictures/none.png)",
        '<img src="pictures/none.png">',
        "[x][1]\n\n[1]: none.md",
        "[x](../../outside.md)",
    ],
)
def test_a_broken_link_is_found(text: str) -> None:
    assert len(broken(text, ROOT / "docs" / "search.md")) == 1


def test_code_and_addresses_are_no_links() -> None:
    text = "`[x](none.md)`\n\n```\n[x](none.md)\n```\n\n[x](https://example.org/none.md)"
    assert broken(text, ROOT / "docs" / "search.md") == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Which words belong together: `--alignment`", "which-words-belong-together---alignment"),
        ("`model.norm_eps` and *stress*", "modelnorm_eps-and-stress"),
        ("[Beam search](search.md), again", "beam-search-again"),
        ("束搜索\uff08beam search\uff09", "束搜索beam-search"),  # full-width brackets
        ("1. Text to ids", "1-text-to-ids"),
        ("Why divide by √d_k?", "why-divide-by-d_k"),
        ("C'è più", "cè-più"),
    ],
)
def test_the_anchor_of_a_heading_is_the_one_of_github(heading: str, anchor: str) -> None:
    slugs = website("slugs")
    assert slugs.slug(slugs.plain(heading)) == anchor


def test_equal_headings_get_numbers() -> None:
    numbers = website("slugs").Slugs()
    assert [numbers.next("Data") for _ in range(3)] == ["data", "data-1", "data-2"]
