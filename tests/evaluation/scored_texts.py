"""Texts of a few systems, and what the command `sacrebleu` says about them."""

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REFERENCES = [
    "Le macchine rosse sono davanti alla stazione.",
    "Non ho mai visto un'isola così bella!",
    "Dov'è l'acqua?",
    "Costa 1.250,50 euro, più l'IVA.",
    "Il Dr. Rossi non c'è, ma torna alle 18:30 con sua sorella.",
] * 12
WORDS = sorted({word for line in REFERENCES for word in line.split()})


def damaged(lines: Sequence[str], share: float, seed: int) -> list[str]:
    """The lines, in which a share of the words is another word, and some words are missing."""
    random_words = random.Random(seed)
    return [
        " ".join(
            random_words.choice(WORDS) if random_words.random() < share else word
            for word in line.split()
            if random_words.random() > share / 3
        )
        for line in lines
    ]


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """A text file with these lines."""
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def by_sacrebleu(
    folder: Path, references: Sequence[str], *systems: str, options: Sequence[str]
) -> list[dict[str, object]]:
    """The JSON of the command `sacrebleu REFERENCES -i SYSTEMS`, whose files lie in the folder."""
    command = [sys.executable, "-m", "sacrebleu", *references, "-i", *systems, "-w", "9"]
    finished = subprocess.run(
        [*command, "--format", "json", *options],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    said = json.loads(finished.stdout)
    return said if isinstance(said, list) else [said]
