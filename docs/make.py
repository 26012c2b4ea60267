"""Makes every output, quotation of code, generated page and picture of the documentation.

    python docs/make.py            # write what has changed
    python docs/make.py --check    # say what has changed, and exit with 1
    python docs/make.py --train    # train the model of docs/run anew, then write
    python docs/make.py --demonstration runs/everyday-en-fr    # take the model of docs/demonstration from this run, then write

CONTRIBUTING.md explains the markers in the pages.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from making.blocks import ROOT, Block, MarkerError, blocks, pages, rewritten
from making.outputs import is_same, outputs_of
from making.pictures import drawings, drifted_pictures, unlisted
from making.quotes import quoted
from making.translations import TRANSLATIONS, drifted_translations

GENERATED = {
    "docs/configuration.md": "make_configuration",
    "docs/what_breaks.md": "make_what_breaks",
}
"""The pages that a script of docs/ prints as a whole."""


def drifted(wanted: Callable[[Path], bool] = lambda page: True) -> Iterator[tuple[Path, str]]:
    """Each page that should have another text, with this text.

    Args:
        wanted: the pages that are looked at.
    """
    chosen = [page for page in pages() if wanted(page)]
    asked = [block for page in chosen for block in blocks(page) if block.kind == "output"]
    made = {(block.page, block.line): content for block, content in zip(asked, outputs_of(asked), strict=True)}

    def content_of(block: Block) -> str | None:
        if block.kind == "code":
            return quoted(block)
        content = made.get((block.page, block.line))
        return None if content is None or is_same(block.content, content) else content

    for page in chosen:
        name = page.relative_to(ROOT).as_posix()
        if name in GENERATED:
            new = "\n".join(importlib.import_module(GENERATED[name]).lines())
        else:
            new = rewritten(page, content_of)
        if new != page.read_text(encoding="utf-8"):
            yield page, new


def is_translation(page: Path) -> bool:
    """Whether a page takes its blocks from a page in English."""
    return page.relative_to(ROOT).as_posix() in TRANSLATIONS


def main() -> int:
    """Write or check the documentation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something has drifted")
    parser.add_argument("--train", action="store_true", help="train the model of docs/run anew")
    parser.add_argument("--demonstration", type=Path, metavar="RUN", help="replace docs/demonstration by this run")
    parser.add_argument("pages", nargs="*", type=Path, help="only these pages; absent: all")
    arguments = parser.parse_args()
    if arguments.train:
        from making.models import train

        train()
    if arguments.demonstration is not None:
        from making.models import DEMONSTRATION, keep

        keep(arguments.demonstration, DEMONSTRATION, in_half=True)
    only = {page.resolve() for page in arguments.pages}
    unknown = only - {page.resolve() for page in pages()}
    if unknown:
        parser.error(f"{min(unknown)}: no page of the documentation")

    def is_wanted(page: Path) -> bool:
        return not only or page in only

    try:
        changed = [*drifted(lambda page: is_wanted(page) and not is_translation(page))]
        changed += [one for one in drifted_translations(dict(changed)) if is_wanted(one[0])]
        pictures = [] if only else drifted_pictures(drawings(), is_written=not arguments.check)
    except MarkerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    wrong = [] if only else [*unlisted()]
    for page, new in changed:
        sys.stdout.write(f"{page.relative_to(ROOT)}: {'has drifted' if arguments.check else 'written'}\n")
        if not arguments.check:
            page.write_text(new, encoding="utf-8")
    what = "has drifted" if arguments.check else "written"
    sys.stdout.writelines(f"docs/pictures/{name}: {what}\n" for name in pictures)
    sys.stdout.writelines(f"{one}\n" for one in wrong)
    return int(bool(wrong or (arguments.check and (changed or pictures))))


if __name__ == "__main__":
    sys.exit(main())
