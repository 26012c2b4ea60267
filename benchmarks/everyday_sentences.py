"""Translates everyday English sentences with a run, and compares them with a list.

    tfm train --config en-it.yaml
    python benchmarks/everyday_sentences.py --run en-it
    python benchmarks/everyday_sentences.py --run docs/demonstration --list benchmarks/everyday_french.tsv

The Italian list was written without a look at the grammar that generated the built-in corpus, and no split contains one of its
sentences. The French list was written by somebody who had seen neither the corpus nor the model, and then judged its translations.
Each line is "right" where the translation equals an accepted one. Other lines are marked "READ": a person must judge them, because
no list is complete.
"""

import argparse
import sys
from pathlib import Path

from transformer_cli import load_translator

ITALIAN = Path(__file__).with_suffix(".tsv")


def main() -> None:
    parser = argparse.ArgumentParser(description="Translate everyday sentences.")
    parser.add_argument("--run", default="runs/en-it", help="folder of a run")
    parser.add_argument(
        "--list", type=Path, default=ITALIAN, help="a line for each sentence: English, then what is right, between tabs"
    )
    arguments = parser.parse_args()
    accepted = everyday_sentences(arguments.list)
    translator = load_translator(arguments.run)
    num_right = 0
    for english, translation in zip(accepted, translator.translate(list(accepted)), strict=True):
        is_right = translation.text in accepted[english]
        num_right += is_right
        mark = "right" if is_right else "READ "
        hint = "" if is_right else f"   ({' / '.join(accepted[english])})"
        sys.stdout.write(f"{mark}  {english}  ->  {translation.text}{hint}\n")
    sys.stdout.write(f"{num_right} of {len(accepted)} equal an accepted translation\n")


def everyday_sentences(path: Path = ITALIAN) -> dict[str, list[str]]:
    """English sentences, each with the translations that are right."""
    text = path.read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return {row[0]: row[1:] for row in rows}


if __name__ == "__main__":
    main()
