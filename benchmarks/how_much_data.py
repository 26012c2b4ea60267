"""Draws smaller corpora from a large one, to measure how the scores of a model grow with the number of sentence pairs.

    python benchmarks/how_much_data.py CORPUS --pairs 1000 3000 10000 --seed 1
    tfm init pairs-1000-1
    tfm train --config pairs-1000-1.yaml
    tfm validate --run pairs-1000-1

CORPUS is a folder with train.en.gz, train.fr.gz, dev.en.gz and dev.fr.gz (other languages: --languages). Each new folder
pairs-N-SEED holds N pairs of the training files and all pairs of the dev files as text, so `tfm init` uses the latter for
validation, and the scores of all models are of the same sentences. The pairs are shuffled once with the seed, and the first
N are taken, so each smaller corpus lies within the larger ones of the same seed.
"""

import argparse
import gzip
import random
from collections.abc import Sequence
from pathlib import Path


def pairs_of(corpus: Path, split: str, languages: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of one split, from two files with a sentence a line."""
    sides = []
    for language in languages:
        path = corpus / f"{split}.{language}.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            sides.append([line.removesuffix("\n") for line in file])
    source, target = sides
    return list(zip(source, target, strict=True))


def write(folder: Path, split: str, languages: Sequence[str], pairs: list[tuple[str, str]]) -> None:
    """Write one text file for each language."""
    for side, language in enumerate(languages):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{split}.{language}").write_text(text, encoding="utf-8", newline="")


def main() -> None:
    """Draw the corpora, and write each into a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--languages", nargs=2, default=["en", "fr"])
    parser.add_argument("--output", type=Path, default=Path())
    given = parser.parse_args()
    train = pairs_of(given.corpus, "train", given.languages)
    dev = pairs_of(given.corpus, "dev", given.languages)
    if max(given.pairs) > len(train):
        parser.error(f"the corpus has {len(train):,} pairs")
    random.Random(given.seed).shuffle(train)
    for size in given.pairs:
        folder = given.output / f"pairs-{size}-{given.seed}"
        folder.mkdir(parents=True)
        write(folder, "train", given.languages, train[:size])
        write(folder, "dev", given.languages, dev)


if __name__ == "__main__":
    main()
