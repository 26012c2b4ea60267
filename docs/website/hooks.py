"""What MkDocs does for this site beside its own work; `mkdocs.yml` names this file."""

import re
from typing import Any

from formulas import with_formulas
from languages import language_of, switch
from links import ROOT, ROOT_PAGES, SiteLinks
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from navigation import filled
from pictures import with_forms, without_forms
from slugs import Slugs

FENCE = re.compile(r"^ *```mermaid", re.MULTILINE)


class _State:
    """What the pages of one build share."""

    links: SiteLinks
    slugs: Slugs
    files: Files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put our links and anchors into the Markdown of the build."""
    _State.links = SiteLinks(config.repo_url)
    _State.slugs = Slugs()
    config.markdown_extensions.append(_State.links)  # type: ignore[arg-type]
    config.mdx_configs["toc"]["slugify"] = lambda heading, separator: _State.slugs.next(heading)
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root, and leave what is not written out of the navigation."""
    for path, place in ROOT_PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = filled(config.nav, pages)
    _State.files = files
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Prepare one page: its links and anchors; its pictures; Markdown inside of folded answers."""
    _State.links.page = page.file.src_uri
    _State.slugs = Slugs()
    if FENCE.search(markdown):
        raise PluginError(
            f"{page.file.src_uri}: a mermaid diagram needs a script of 3.6 MB or an "
            "outside address; draw it as an SVG in docs/pictures/"
        )
    markdown = without_forms(markdown)
    return re.sub(r"<details>\s*<summary>", '<details markdown="1"><summary>', markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Turn the formulas of a page into MathML, and give its pictures their other forms."""
    return with_forms(with_formulas(html))


def on_page_context(context: dict[str, Any], *, page: Page, config: MkDocsConfig, **_: Any) -> dict[str, Any]:
    """Choose the language of the words around a page, and the page behind the language switch."""
    here = page.file.src_uri
    pages = {file.src_uri: file.url for file in _State.files.documentation_pages()}
    config.theme["language"] = language_of(here)
    config.extra["alternate"] = [
        {"name": choice["name"], "link": pages[choice["page"]], "lang": choice["lang"]}
        for choice in switch(here, list(pages))
    ]
    return context
