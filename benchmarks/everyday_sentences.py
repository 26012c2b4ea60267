"""Translates everyday English sentences with a run of the built-in corpus, and compares them with a list.

    tfm train --config en-it.yaml
    python benchmarks/everyday_sentences.py --run en-it

The sentences stand in transformer_cli/phrasebook/everyday_sentences.tsv. They were written without a look at
the grammar, and no training split contains one of them. Each line is "right" where the translation
equals an accepted one. Other lines are marked "READ": a person must judge them, because no list is complete.
"""

import argparse
import sys

from transformer_cli import load_translator
from transformer_cli.phrasebook.generation import everyday_sentences


def main() -> None:
    parser = argparse.ArgumentParser(description="Translate everyday sentences.")
    parser.add_argument("--run", default="runs/en-it", help="folder of a run")
    accepted = everyday_sentences()
    translator = load_translator(parser.parse_args().run)
    num_right = 0
    for english, translation in zip(accepted, translator.translate(list(accepted)), strict=True):
        is_right = translation.text in accepted[english]
        num_right += is_right
        mark = "right" if is_right else "READ "
        hint = "" if is_right else f"   ({' / '.join(accepted[english])})"
        sys.stdout.write(f"{mark}  {english}  ->  {translation.text}{hint}\n")
    sys.stdout.write(f"{num_right} of {len(accepted)} equal an accepted translation\n")


if __name__ == "__main__":
    main()
