"""Where a link of a page leads on the site: to another page, to a repository, or nowhere."""

import os.path
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from markdown import Markdown

ROOT = Path(__file__).parents[2]
# Files of the repository's root that are pages of the site, too, with their names there.
ROOT_PAGES = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
SHOWN = {
    ".md",
    ".html",
    ".svg",
    ".png",
    ".gif",
    ".jpg",
    ".pdf",
}  # other files of docs/ are not on the site


def on_site(link: str, page: str) -> str | None:
    """The link that leads on the site to what a link of a page leads to in the repository.

    Args:
        link: the link as it is written, relative to the file of the page.
        page: the path of the page on the site, such as `decisions/0001-x.md` or `overview.md`.

    Returns:
        None if it leads to a file of the repository that is not on the site.
    """
    if re.match(r"[a-z][a-z+.-]*:|//|#|/|$", link):
        return link
    path, mark, anchor = link.partition("#")
    written_in = source_of(page)
    target = posixpath.normpath(posixpath.join(posixpath.dirname(written_in), path))
    if target in ROOT_PAGES:
        place = ROOT_PAGES[target]
    elif target.startswith("docs/") and Path(target).suffix in SHOWN and (ROOT / target).is_file():
        place = target.removeprefix("docs/")
    elif (ROOT / target / "README.md").is_file() and target.startswith("docs/"):
        place = f"{target}/README.md".removeprefix("docs/")
    elif (ROOT / target).exists():
        return None
    else:
        return link  # MkDocs warns of it, and a strict build fails
    return os.path.relpath(place, posixpath.dirname(page) or ".") + mark + anchor


def source_of(page: str) -> str:
    """The path in the repository of the file that a page of the site is made from."""
    for path, place in ROOT_PAGES.items():
        if place == page:
            return path
    return f"docs/{page}"


def in_repository(link: str, page: str) -> str:
    """The path in the repository to which a link of a page leads, without an anchor."""
    folder = posixpath.dirname(source_of(page))
    return posixpath.normpath(posixpath.join(folder, link.partition("#")[0]))


class SiteLinks(Extension):
    """Changes the links of each page before MkDocs checks them; the build sets `page`."""

    def __init__(self, repository: str | None) -> None:
        super().__init__()
        self.page = ""
        self.repository = repository

    def extendMarkdown(self, md: "Markdown") -> None:
        # MkDocs checks links with priority 0, that is, after this.
        md.treeprocessors.register(_Rewriter(md, self), "site_links", 5)


class _Rewriter(Treeprocessor):
    def __init__(self, md: "Markdown", links: SiteLinks) -> None:
        super().__init__(md)
        self._links = links

    def run(self, root: "Element") -> None:
        for element in root.iter():
            name = {"a": "href", "img": "src"}.get(element.tag)
            link = element.get(name) if name else None
            if name is None or link is None:
                continue
            changed = on_site(link, self._links.page)
            if changed is not None:
                element.set(name, changed)
                continue
            path = in_repository(link, self._links.page)
            if self._links.repository:
                element.set(name, f"{self._links.repository.rstrip('/')}/blob/main/{path}")
            else:  # no public address is known: the reader is told where the file is
                element.tag = "span"
                element.attrib.clear()
                element.set("class", "in-repository")
                element.set("title", f"a file of the repository: {path}")
