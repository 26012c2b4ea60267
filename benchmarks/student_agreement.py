"""Counts how many translations of a student are equal in several engines that read one export for browsers.

    python benchmarks/student_agreement.py --run student --engine NODE_FOLDER --firefox OTHER/bin/python

The engines are WebAssembly in Node (--engine: the folder in which the npm package was installed), that of Firefox (--firefox: a
Python in which `pip install fxtranslate` was done), our reading of the files in numpy, the export as an imported run in int8, and the run itself in int8.
All search greedily, without the repairs of tfm, and write at most twice as many tokens as the source has. Sentences are the first
of the validation split (--sentences).
"""

import argparse
import sys
import tempfile
from itertools import combinations
from pathlib import Path

from hostile_lines import in_firefox

from transformer_cli.checkpoint.trained_files import find_run, load_trained
from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.exchange.bergamot import BergamotFolder, bergamot_files
from transformer_cli.extensions.exchange.browser import (
    browser_files,
    read_engine,
    translated_in_node,
)
from transformer_cli.extensions.exchange.export_format import add_to_folder
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.model_folder import NamedLanguages
from transformer_cli.extensions.exchange.verification import stored_sources

PLAIN = [
    "runtime.precision=int8",
    "runtime.threads=1",
    "decoding.beam_size=1",
    "decoding.max_length_ratio=2.0",
    "decoding.allow_unknown=false",
    *(
        f"decoding.{name}=false"
        for name in ("repair", "keep_text", "split_sentences", "keep_layout", "known_spellings")
    ),
]


def translations(
    run: str, engine: Path, firefox: str, num_sentences: int, folder: Path
) -> tuple[list[str], dict[str, list[str]]]:
    """The sentences, and their translations by each engine."""
    trained = load_trained(find_run(run))
    lines = [text for text, _ in stored_sources(trained)[:num_sentences]]
    files = bergamot_files(trained, is_rounded=True)
    bergamot, page, other = (folder / name for name in ("bergamot", "page", "other"))
    for one in (bergamot, page, other):
        one.mkdir()
    add_to_folder(bergamot, files)
    add_to_folder(page, browser_files(trained.config, files, read_engine(engine)))
    import_folder(bergamot, "back", NamedLanguages(), runs_folder=folder / "runs")
    ours = BergamotFolder(bergamot)
    limits = [2 * (len(trained.source_tokenizer.encode(line)) + 1) for line in lines]

    def by_tfm(name: str) -> list[str]:
        return [one.text for one in load_run(name, PLAIN).translator.translate(lines)]

    return lines, {
        "WebAssembly": translated_in_node(page, lines),
        "Firefox": in_firefox(firefox, page, other)(lines),
        "numpy": [one.text for one in ours.decode(lines, limits)],
        "imported run": by_tfm(str(folder / "runs" / "back")),
        "run": by_tfm(run),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="a run that --to browser can hold")
    parser.add_argument("--engine", type=Path, required=True, help="with the npm package")
    parser.add_argument("--firefox", required=True, metavar="PYTHON", help="with fxtranslate")
    parser.add_argument("--sentences", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tfm-agreement-") as folder:
        lines, texts = translations(given.run, given.engine, given.firefox, given.sentences, Path(folder))
    for one, other in combinations(texts, 2):
        pairs = zip(texts[one], texts[other], strict=True)
        num_equal = sum(a.strip() == b.strip() for a, b in pairs)
        sys.stdout.write(f"{one} = {other}: {num_equal} of {len(lines)}\n")
    for number, line in enumerate(lines):
        of_files = {name: texts[name][number] for name in ("WebAssembly", "Firefox", "numpy")}
        if len({text.strip() for text in of_files.values()}) > 1:
            sys.stdout.write(f"{line}\n" + "".join(f"    {name:14}{text}\n" for name, text in of_files.items()))


if __name__ == "__main__":
    main()
