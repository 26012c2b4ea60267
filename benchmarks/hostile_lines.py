"""Counts what three engines make of ten thousand hostile or odd lines: one translation for each line, and no crash.

    tfm export --run student --to browser --output page
    python benchmarks/hostile_lines.py --run student --page page --firefox OTHER/bin/python

The engines are the int8 engine of tfm, the WebAssembly engine of the page in Node, and that of Firefox, for which --firefox
names a Python in which `pip install fxtranslate` was done. What is not named is left out. The model is read from the files
of the page, so it must be an export of `--to browser`. Lines are made by rules with a seed: the sources of ugly_inputs.jsonl.gz, random characters of
all planes, control characters, halves of surrogate pairs, marks that turn the direction, stacked accents, markup, numbers,
one word thousands of times, lines of nothing but spaces.
"""

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.exchange.browser import (
    FILES,
    content_of,
    node,
    translated_in_node,
)

SEED, NUM_LINES, CHUNK = 7, 10_000, 500
WORDS = [
    "the",
    "station",
    "is",
    "not",
    "big",
    "where",
    "my",
    "sister",
    "eats",
    "apples",
    "12",
    "%s",
    "$HOME",
    "../../etc/passwd",
    "<b>",
    "</s>",
    "<unk>",
    "NULL",
    "&amp;",
]
FIREFOX = """
import json, sys
from fxtranslate import Translator
model, source, target = (open(name, "rb").read() for name in sys.argv[1:])
translator = Translator(model=model, src_vocab=source, trg_vocab=target)
json.dump([translator.translate(line) for line in json.load(sys.stdin)], sys.stdout)
"""


def hostile_lines() -> Iterator[str]:
    """Lines without an end."""
    generator = random.Random(SEED)
    with gzip.open(Path(__file__).with_name("ugly_inputs.jsonl.gz"), "rt", encoding="utf-8") as file:
        ugly = [json.loads(line)["source"] for line in file]

    def characters(first: int, last: int, most: int) -> str:
        return "".join(chr(generator.randint(first, last)) for _ in range(generator.randint(1, most)))

    def words(most: int) -> str:
        return " ".join(generator.choices(WORDS, k=generator.randint(1, most)))

    kinds: list[Callable[[], str]] = [
        lambda: generator.choice(ugly),
        lambda: words(30),
        lambda: characters(0x20, 0x2FFF, 60),
        lambda: characters(0, 0x1F, 20).replace("\n", "\t"),
        lambda: characters(0x10000, 0x10FFFF, 40),
        lambda: characters(0xD800, 0xDFFF, 10) + words(4),
        lambda: characters(0x300, 0x36F, 80) + words(3),
        lambda: characters(0x200B, 0x206F, 30) + words(5),
        lambda: characters(0x4E00, 0x9FFF, 80),
        lambda: " " * generator.randint(0, 50),
        lambda: f"{generator.random() * 10 ** generator.randint(-9, 12)!r}" * generator.randint(1, 8),
        lambda: f"<{words(3)}>" * generator.randint(1, 10),
        lambda: generator.choice(WORDS) * generator.randint(1, 200),
        lambda: characters(0x21, 0x2F, 100),
    ]
    for number in range(sys.maxsize):
        line = kinds[number % len(kinds)]()
        if number % 500 == 499:
            line = f"{generator.choice(WORDS)} " * 1500  # far longer than a model reads at once
        yield " ".join(line.splitlines())  # a line is one line


def in_firefox(python: str, page: Path, folder: Path) -> Callable[[Sequence[str]], list[str]]:
    """The engine of Firefox with the model of a page."""
    names = ["model", "vocabulary", "target_vocabulary"]
    if not (page / FILES / "target_vocabulary.js").exists():
        names[2] = "vocabulary"
    paths = []
    for name in names:
        paths.append(folder / name)
        paths[-1].write_bytes(content_of(page / FILES / f"{name}.js"))

    def translate(lines: Sequence[str]) -> list[str]:
        # Half of a surrogate pair has no bytes in UTF-8, and no Python string for programs in Rust.
        whole = [line.encode(errors="replace").decode() for line in lines]
        command = [python, "-c", FIREFOX, *map(str, paths)]
        finished = subprocess.run(command, input=json.dumps(whole), capture_output=True, text=True, check=False)
        if finished.returncode:
            raise RuntimeError(finished.stderr.strip().splitlines()[-1:] or finished.returncode)
        found: list[str] = json.loads(finished.stdout)
        return found

    return translate


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="for the int8 engine of tfm")
    parser.add_argument("--page", type=Path, help="a folder of tfm export --to browser")
    parser.add_argument("--firefox", metavar="PYTHON", help="a Python with fxtranslate")
    parser.add_argument("--lines", type=int, default=NUM_LINES)
    arguments = parser.parse_args()
    lines = [*islice(hostile_lines(), arguments.lines)]
    engines: dict[str, Callable[[Sequence[str]], list[str]]] = {}
    if arguments.run:
        settings = ["runtime.precision=int8", "runtime.threads=1", "decoding.beam_size=1"]
        translator = load_run(arguments.run, settings).translator
        engines["tfm, int8"] = lambda some: [one.text for one in translator.translate(some)]
    page: Path | None = arguments.page
    if page and node():
        engines["WebAssembly in Node"] = lambda some: translated_in_node(page, some)
    with tempfile.TemporaryDirectory(prefix="tfm-hostile-") as folder:
        if page and arguments.firefox:
            engines["Firefox (fxtranslate)"] = in_firefox(arguments.firefox, page, Path(folder))
        for name, translate in engines.items():
            before, num_written, problems = cpu_seconds(), 0, []
            for start in range(0, len(lines), CHUNK):
                try:
                    num_written += len(translate(lines[start : start + CHUNK]))
                except Exception as error:  # of any kind: this is what is looked for
                    problems.append(f"lines {start + 1}-{start + CHUNK}: {error}")
            seconds = cpu_seconds() - before
            sys.stdout.write(
                f"{name:24}{len(lines):8,} lines in, {num_written:,} translations out, {len(problems)} crashes, {seconds:.0f} CPU seconds\n"
            )
            for problem in problems[:5]:
                sys.stdout.write(f"    {problem[:300]}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
