"""A small student that was trained, in int8, and the programs of others that read it.

The folder `student` was made by `tfm export --to bergamot` from 3,000 updates on the phrasebook (width 64, 2 + 1 layers, 1,000
pieces of SentencePiece). known.en has 200 training sentences that it translates as their references: a model that guesses is
no judge, because rounding alone then decides between its words.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import load_config
from transformer_cli.extensions.exchange.browser import browser_files, read_engine
from transformer_cli.extensions.exchange.export_format import add_to_folder

STUDENT = Path(__file__).parent / "student"
MODEL, VOCABULARY = STUDENT / "model.intgemm.alphas.bin", STUDENT / "vocab.spm"
NPM_PACKAGE = "@browsermt/bergamot-translator@0.4.9"


def known_sentences() -> list[str]:
    return (STUDENT / "known.en").read_text(encoding="utf-8").splitlines()


def write_page(folder: Path, engine: Path) -> Path:
    """The student as `--to browser` writes it."""
    files = {path.name: path.read_bytes() for path in STUDENT.iterdir()}
    config = load_config("student-en-it.yaml")
    folder.mkdir(exist_ok=True)
    add_to_folder(folder, browser_files(config, files, read_engine(engine)))
    return folder


_FIREFOX = """
import json, sys
from fxtranslate import Translator
model, vocabulary = (open(name, "rb").read() for name in sys.argv[1:])
translator = Translator(model=model, src_vocab=vocabulary, trg_vocab=vocabulary)
json.dump([translator.translate(line) for line in json.load(sys.stdin)], sys.stdout)
"""


def translated_by_firefox(lines: Sequence[str]) -> list[str]:
    """By the package fxtranslate, in an environment of its own, whose Python TFM_FXTRANSLATE names."""
    python = os.environ.get("TFM_FXTRANSLATE")
    if python is None:
        pytest.skip("fxtranslate: TFM_FXTRANSLATE must name a Python in which it is installed")
    command = [python, "-c", _FIREFOX, str(MODEL), str(VOCABULARY)]
    finished = subprocess.run(command, input=json.dumps(list(lines)), capture_output=True, text=True, check=True)
    found: Any = json.loads(finished.stdout)
    return [str(text) for text in found]
