"""How fast training pairs become ids, in one process; in turns with another checkout of this repository, if wanted.

    OMP_NUM_THREADS=1 python benchmarks/encoding.py train.en.gz train.fr.gz
    OMP_NUM_THREADS=1 python benchmarks/encoding.py train.en.gz train.fr.gz --against FOLDER

Line N of the second file translates line N of the first. The pairs are written six times, as `tfm train` stores them before it encodes
them; then they are read, encoded with a BPE vocabulary of 8,000 for both languages, and written as ids. The words that the
tokenizer remembers are forgotten before each round. Tokens count without [EOS]. The ids must be equal in both checkouts.
"""

import argparse
import gzip
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPEATS, VOCAB_SIZE = 6, 8000
HERE = Path(__file__).resolve().parents[1]


def measure(files: list[Path]) -> dict[str, Any]:
    """CPU seconds of a round, the number of tokens, and a digest of the ids."""
    from transformer_cli.config import Config
    from transformer_cli.data.encoded import DataReport, encoded_text, write_encoded
    from transformer_cli.data.pairs import SentencePair, TrainingText
    from transformer_cli.text import train_tokenizer

    sides = [gzip.decompress(file.read_bytes()).decode().split("\n")[:-1] for file in files]
    corpora = [{"split": split, "path": "none.tsv"} for split in ("train", "validation")]
    config = Config.model_validate(
        {
            "name": "encoding",
            "data": {"source": "files", "corpora": corpora},
            "tokenizer": {"kind": "bpe", "vocab_size": VOCAB_SIZE, "shared": True},
            "training": {"max_steps": 1, "batch_tokens": 1000},
            "runtime": {"workers": 1},
        }
    )
    tokenizer = train_tokenizer([*sides[0], *sides[1]], config.tokenizer)
    pairs = [SentencePair(*both) for both in zip(*sides, strict=True)]
    report = DataReport()
    with tempfile.TemporaryDirectory() as name:
        text = TrainingText.of((pair for _ in range(REPEATS) for pair in pairs), Path(name, "text.arrow"))
        ids = Path(name, "train.arrow")
        tokenizer = type(tokenizer).from_json(tokenizer.to_json())  # with an empty cache of words
        started_at = time.process_time()
        chunks = encoded_text(text, text.num_pairs, (tokenizer, tokenizer), config, report)
        write_encoded(ids, chunks, vocab_size=VOCAB_SIZE)
        seconds = time.process_time() - started_at
        digest = hashlib.sha256(ids.read_bytes()).hexdigest()
    num_tokens = report.source.train.num_tokens + report.target.train.num_tokens
    return {"seconds": seconds, "tokens": num_tokens, "digest": digest}


def measured_in(folder: Path, files: list[Path]) -> dict[str, Any]:
    """The same, by the code of a checkout, in a process of its own."""
    paths = [str(file.resolve()) for file in files]
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--once", *paths]
    environment = os.environ | {"PYTHONPATH": str(folder.resolve())}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure in turns, and print a line for each checkout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs=2, help="compressed with gzip")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        json.dump(measure(arguments.files), sys.stdout)
        return
    folders = {"here": HERE} | ({"against": arguments.against} if arguments.against else {})
    rounds = [
        {name: measured_in(folder, arguments.files) for name, folder in folders.items()}
        for _ in range(arguments.rounds)
    ]
    assert len({found["digest"] for one in rounds for found in one.values()}) == 1, "other ids"
    sys.stdout.write(f"{rounds[0]['here']['tokens']:,} tokens; million tokens per CPU second\n")
    for name in folders:
        speeds = [one[name]["tokens"] / one[name]["seconds"] / 1e6 for one in rounds]
        spread = f"{min(speeds):.2f} to {max(speeds):.2f}"
        sys.stdout.write(f"{name:10}{statistics.median(speeds):>8.2f}  ({spread})\n")


if __name__ == "__main__":
    main()
