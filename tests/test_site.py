"""The documentation site: every page is in a group, links work, and nothing is loaded from elsewhere."""

import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from selenium.webdriver.support.ui import WebDriverWait

from .extensions.serving.page.browser import chromium, needs_chromium
from .test_links import website

pytestmark = pytest.mark.pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ADDRESS = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
COUNTED = {"ul", "ol", "li", "table", "tr", "pre", "code", "h1", "h2", "h3", "img", "details"}
STYLE_ADDRESS = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")


class _Structure(HTMLParser):
    """How many lists, tables, pictures and so on a page has, within its article if it has one; the dark form of a picture does not count."""

    def __init__(self, *, begins_with_article: bool) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._is_inside = not begins_with_article

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_inside = self._is_inside or tag == "article"
        is_dark_form = (dict(attrs).get("src") or "").endswith("#only-dark")
        if self._is_inside and tag in COUNTED and not is_dark_form:
            self.counts[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "article"


class _Loaded(HTMLParser):
    """The addresses from which a browser loads something for a page, without being asked."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.classes.update(values.get("class", "").split())
        if tag in LOADS:
            self.addresses.append(values.get(LOADS[tag], ""))
        elif tag == "link" and values.get("rel", "").split() not in (["canonical"], ["alternate"]):
            self.addresses.append(values.get("href", ""))


def settings() -> dict[str, Any]:
    """mkdocs.yml as it is written."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return values


def pages() -> list[str]:
    return [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning of the build is an error."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_in_a_group_of_the_navigation() -> None:
    assert website("navigation").ungrouped(settings()["nav"], pages()) == []


def test_a_page_in_no_group_is_found() -> None:
    entries = [{"A": ["a.md", {"B": ["b/*.md"]}]}]
    ungrouped = website("navigation").ungrouped
    assert ungrouped(entries, ["a.md", "b/1.md", "c.md"]) == ["c.md"]


def test_a_page_that_is_not_written_yet_is_left_out() -> None:
    entries = [{"A": ["a.md", {"Later": "later.md"}]}, {"B": ["b/x.md", "b/*.md"]}, {"C": ["c.md"]}]
    filled = website("navigation").filled(entries, ["a.md", "b/y.md", "b/x.md"])
    assert filled == [{"A": ["a.md"]}, {"B": ["b/x.md", "b/y.md"]}]


@pytest.mark.parametrize(
    ("link", "page", "expected"),
    [
        ("search.md#coverage", "index.md", "search.md#coverage"),
        ("../README.md#results", "search.md", "overview.md#results"),
        ("docs/search.md#coverage", "overview.md", "search.md#coverage"),
        ("../search.md", "decisions/0001-x.md", "../search.md"),
        ("../../README.md", "decisions/0001-x.md", "../overview.md"),
        ("#results", "overview.md", "#results"),
        ("https://example.org", "index.md", "https://example.org"),
        ("../transformer_cli/cli.py", "index.md", None),
        ("make_configuration.py", "index.md", None),
        ("docs/decisions", "overview.md", None),
        ("none.md", "index.md", "none.md"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_to_nothing(link: str, page: str, expected: str | None) -> None:
    assert website("links").on_site(link, page) == expected


def test_the_language_switch_leads_to_the_same_page_or_the_first() -> None:
    switch = website("languages").switch
    known = ["index.md", "a.md", "b.md", "zh/README.md", "zh/a.md"]

    def targets(page: str) -> list[str]:
        return [choice["page"] for choice in switch(page, known)]

    assert targets("a.md") == targets("zh/a.md") == ["a.md", "zh/a.md"]
    assert targets("b.md") == ["b.md", "zh/README.md"]
    assert targets("index.md") == targets("zh/README.md") == ["index.md", "zh/README.md"]
    assert switch("a.md", ["index.md", "a.md"]) == []


def test_a_formula_becomes_mathml() -> None:
    html = website("formulas").with_formulas(
        r'<p><span class="arithmatex">\(\frac{a}{b}\)</span></p><div class="arithmatex">\[x &lt; 1\]</div>'
    )
    assert "<mfrac>" in html
    assert "&#x0003C;" in html  # a sign smaller than
    assert "arithmatex" not in html


def test_a_picture_opens_large_and_has_its_dark_and_narrow_forms() -> None:
    html = website("pictures").with_forms('<img alt="a &lt; b" src="../pictures/page.png" />')
    assert html.startswith('<a class="picture" href="../pictures/page.png">')
    assert re.findall(r'(?:src|srcset)="\.\./pictures/([^"]+)"', html) == [
        "page-narrow.png",
        "page.png#only-light",
        "page-narrow-dark.png",
        "page-dark.png#only-dark",
    ]
    assert html.count('alt="a &lt; b"') == 2


def test_a_picture_on_white_without_a_dark_form_is_inverted_in_the_dark() -> None:
    with_forms = website("pictures").with_forms
    assert 'class="wide on-white"' in with_forms('<img alt="" src="pictures/draw-masks.png">')
    assert 'class="wide"' in with_forms('<img alt="" src="pictures/draw-dark-architecture.png">')
    assert with_forms('<img alt="" src="assets/logo.svg">') == '<img alt="" src="assets/logo.svg">'


def test_the_pictures_of_the_read_me_are_markdown_on_the_site() -> None:
    plain = website("pictures").without_forms((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "<picture>" not in plain
    assert re.findall(r"!\[[^\]]+\]\(docs/pictures/(.+?)\.png\)", plain) == [
        "prompt",
        "page",
        "explain-page",
        "offline-page",
    ]


def test_each_page_is_built(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    wanted = {page.replace("README.md", "index.md").replace(".md", ".html") for page in pages()}
    assert wanted | {"overview.html", "changelog.html", "contributing.html", "404.html"} == built


def test_a_page_has_the_lists_and_tables_that_the_repository_shows(site: Path) -> None:
    # The site reads Markdown by other rules: there a nested list needs four spaces, for example.
    github = MarkdownIt("commonmark", {"html": True}).enable("table")
    different = {}
    for page in sorted(pages()):
        shown = _Structure(begins_with_article=False)
        shown.feed(github.render((DOCS / page).read_text(encoding="utf-8")))
        built = _Structure(begins_with_article=True)
        file = page.replace("README.md", "index.md").replace(".md", ".html")
        html = (site / file).read_text(encoding="utf-8")
        built.feed(re.sub(r"<nav .*?</nav>", "", html, flags=re.DOTALL))
        if built.counts != shown.counts:
            different[page] = built.counts, shown.counts
    assert different == {}


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = _Loaded()
        loaded.feed(text)
        assert [address for address in loaded.addresses if ADDRESS.match(address)] == [], page
        assert STYLE_ADDRESS.findall(text) == [], page
        # The script of the theme would load a library for these.
        assert "mermaid" not in loaded.classes, page
    for style in site.rglob("*.css"):
        assert STYLE_ADDRESS.findall(style.read_text(encoding="utf-8")) == [], style


def test_an_address_from_which_something_is_loaded_is_found() -> None:
    loaded = _Loaded()
    loaded.feed('<script src="https://x.org/a.js"></script><link rel="stylesheet" href="//x.org">')
    assert [address for address in loaded.addresses if ADDRESS.match(address)] == [
        "https://x.org/a.js",
        "//x.org",
    ]
    assert STYLE_ADDRESS.findall('a { b: url("https://x.org/f.woff") }') == ["https://x.org/f.woff"]


def test_sources_of_the_site_are_not_part_of_it(site: Path) -> None:
    assert [*site.rglob("*.py"), *site.rglob("*.yaml"), *site.rglob("website")] == []


@needs_chromium
def test_search_finds_a_page_without_a_server(site: Path) -> None:
    with chromium() as browser:
        browser.set_window_size(1400, 900)
        browser.get((site / "index.html").as_uri())
        field = browser.find_element("css selector", "[data-md-component=search-query]")
        field.click()
        field.send_keys("coverage penalty")
        browser.implicitly_wait(20)
        found = browser.find_element("css selector", ".md-search-result__link")
        assert "search.html" in str(found.get_attribute("href"))


@needs_chromium
@pytest.mark.browser
def test_a_telephone_shows_pages_in_their_width_and_pictures_of_its_size_and_theme(
    site: Path,
) -> None:
    names = "return [...document.images].filter((one) => one.width).map((one) => one.currentSrc.split('/').pop())"
    with chromium() as browser:
        metrics = {"width": 360, "height": 760, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        for page in ("the_transformer", "drawing", "scaling", "zh/index", "overview"):
            browser.get((site / f"{page}.html").as_uri())
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 360, page
        for theme, end in (("light", ""), ("dark", "-dark")):
            features = [{"name": "prefers-color-scheme", "value": theme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            browser.get((site / "index.html").as_uri())
            browser.execute_script("localStorage.clear()")  # where the site keeps the last theme
            browser.get((site / "overview.html").as_uri())
            browser.execute_script("document.images[0].scrollIntoView()")
            WebDriverWait(browser, 20).until(
                lambda seen, name=f"prompt-narrow{end}.png": name in seen.execute_script(names)
            )
