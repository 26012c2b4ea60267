"""Draws sentences of the pages that claim something which can be checked, so that a person checks them one by one.

    python benchmarks/claims.py --seed 20261127

A sentence, an item of a list or a row of a table is a claim if it has a figure, something in code style (a command, an
option, a file, a setting) or a word such as "always", "refuses" or "only". Generated settings and the dated pages of what was
measured are left out; a page that has changed often lately (`git log`) is drawn more often. The same seed gives the same sentences
at the same commit. CONTRIBUTING.md says when the draw is due.
"""

import argparse
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_OUT = {"configuration.md", "experiments.md", "tried_from_outside.md", "reliability.md"}
CODE_BLOCK = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
MARKUP = re.compile(r"<!--.*?-->|</?[a-z]+( [^>]*)?>", re.DOTALL)
PARTS = re.compile(r"\n\s*\n|\n(?=\||\s*[-*] |\d+\. |#)")
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[(])|(?<=[\u3002\uff01\uff1f])")
CLAIM = re.compile(
    r"\d|`|\b(always|never|each|every|all|only|none|refuse|warn|say|print|write|need)s?\b|总是|从不|每|所有|只有|拒绝|警告"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, help="written beside the result of the check")
    parser.add_argument("--number", type=int, default=60, help="sentences that are drawn")
    arguments = parser.parse_args()
    pages = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/zh").glob("*.md")),
        *sorted((ROOT / "docs/decisions").glob("*.md")),
    ]
    found = [(page, text) for page in pages if page.name not in LEFT_OUT for text in claims(page)]
    changes = recent_changes()
    draw = random.Random(arguments.seed)
    # Efraimidis and Spirakis 2006: weights without replacement.
    keys = [draw.random() ** (1 / (1 + changes[page.relative_to(ROOT).as_posix()])) for page, _ in found]
    chosen = sorted(range(len(found)), key=lambda index: -keys[index])[: arguments.number]
    lines = [f"{len(found)} claims, {len(chosen)} of them drawn with seed {arguments.seed}", ""]
    for number, index in enumerate(sorted(chosen), 1):
        page, text = found[index]
        lines.append(f"{number}. {page.relative_to(ROOT)}: {text}")
    sys.stdout.write("\n".join(lines) + "\n")


def claims(page: Path) -> Iterator[str]:
    """The sentences, items and rows of a page that claim something."""
    text = MARKUP.sub("", CODE_BLOCK.sub("", page.read_text(encoding="utf-8")))
    for part in PARTS.split(text):
        joined = " ".join(part.split())
        if joined.startswith(("#", "|--", "|:-")):
            continue
        sentences = [joined] if joined.startswith("|") else END.split(joined)
        yield from (one for one in sentences if len(one) > 20 and CLAIM.search(one))


def recent_changes() -> Counter[str]:
    """The number of the last 300 commits that changed each page, at most 4; none outside a checkout."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "log",
        "-300",
        "--format=",
        "--name-only",
        "--",
        "README.md",
        "docs",
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")
    return Counter({name: min(count, 4) for name, count in Counter(listed).items()})


if __name__ == "__main__":
    main()
