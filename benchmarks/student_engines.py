"""Compares engines that translate with one student model, in turns: tfm, Marian (float32) and the engine of Firefox (int8).

    tfm train --config student-en-it.yaml --set tokenizer.kind=sentencepiece ...      # a model as of docs/marian.md
    python benchmarks/student_engines.py --run student --marian A/bin/python --firefox B/bin/python

--marian names a Python in which `pip install pymarian` was done, --firefox one with `pip install fxtranslate`; what is not named
is left out. Every engine is a process of its own with one thread. It loads the model and translates once, then the rounds
begin: in each round, each engine translates the first validation sentences (--sentences) and reports its own CPU seconds.
Figures are target tokens of its own translations per CPU second, counted by the tokenizer of the run. Firefox's package takes one sentence at a
time, so tfm is measured so, too, beside its batches. --set decoding.repair=false leaves out what tfm does beyond a search, for a model whose translations are doubtful.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from transformer_cli.checkpoint import find_run, load_trained
from transformer_cli.extensions.exchange.bergamot import MODEL_FILE, bergamot_files
from transformer_cli.extensions.exchange.export_format import add_to_folder
from transformer_cli.extensions.exchange.marian import marian_files, vocabulary_names
from transformer_cli.extensions.exchange.verification import stored_sources

# Each program gets its settings as one JSON argument, and defines `translate`: lines to texts.
_TFM = """
from transformer_cli.decoding.loading import load_run
translator = load_run(given["run"], given["settings"]).translator
def translate(lines):
    if given["alone"]:
        return [one.text for line in lines for one in translator.translate([line])]
    return [one.text for one in translator.translate(lines)]
"""
_MARIAN = """
from pymarian import Translator
translator = Translator(models=given["model"], vocabs=given["vocabularies"], beam_size=given["beam"], normalize=1.0,
    max_length_factor=2.0, mini_batch=32, maxi_batch=100, maxi_batch_sort="src", cpu_threads=1, quiet=True, quiet_translation=True)
def translate(lines):
    return translator.translate(lines)
"""
_FIREFOX = """
from fxtranslate import Translator
contents = [open(name, "rb").read() for name in (given["model"], *given["vocabularies"])]
translator = Translator(model=contents[0], src_vocab=contents[1], trg_vocab=contents[2])
def translate(lines):
    return [translator.translate(line) for line in lines]
"""
_ROUNDS = """
import os
lines = given["lines"]
answers = os.fdopen(os.dup(1), "w")
texts = translate(lines)
for _ in sys.stdin:
    before = time.process_time()
    texts = translate(lines)
    answers.write(json.dumps([time.process_time() - before, texts]) + "\\n")
    answers.flush()
"""


class Engine:
    """A program with a model, in a process of its own."""

    def __init__(self, python: str, program: str, folder: Path, **given: Any) -> None:
        path = folder / f"{len(list(folder.iterdir()))}.json"
        path.write_text(json.dumps(given))
        start = f"import json, sys, time\ngiven = json.load(open({str(path)!r}))\n"
        root = str(Path(__file__).parent.parent)
        own = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        if python == sys.executable:
            own["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [python, "-c", start + program + _ROUNDS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | own,
            text=True,
        )

    def measure(self) -> tuple[float, list[str]]:
        """CPU seconds of one round, and the translations."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the program has ended")
        seconds, texts = json.loads(answer)
        return seconds, texts

    def close(self) -> None:
        self._process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", required=True, help="a run that --to bergamot can hold")
    parser.add_argument("--marian", metavar="PYTHON", help="a Python with pymarian")
    parser.add_argument("--firefox", metavar="PYTHON", help="a Python with fxtranslate")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of tfm"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=200)
    arguments = parser.parse_args()
    trained = load_trained(find_run(arguments.run))
    lines = [text for text, _ in stored_sources(trained)[: arguments.sentences]]
    with tempfile.TemporaryDirectory(prefix="tfm-engines-") as name:
        folders = {kind: Path(name, kind) for kind in ("marian", "bergamot", "given")}
        for folder in folders.values():
            folder.mkdir()
        add_to_folder(folders["marian"], marian_files(trained))
        add_to_folder(folders["bergamot"], bergamot_files(trained, is_rounded=True))
        names = vocabulary_names(trained)

        def tfm(precision: str, beam: int, *, alone: bool = False) -> Engine:
            settings = [
                f"runtime.precision={precision}",
                "runtime.threads=1",
                f"decoding.beam_size={beam}",
                *arguments.set,
            ]
            run = (
                str(Path(find_run(arguments.run)).absolute())
                if Path(arguments.run).exists()
                else arguments.run
            )
            return Engine(
                sys.executable,
                _TFM,
                folders["given"],
                run=run,
                settings=settings,
                alone=alone,
                lines=lines,
            )

        engines = {
            "tfm, int8, greedy": tfm("int8", 1),
            "tfm, int8, greedy, one sentence at a time": tfm("int8", 1, alone=True),
            "tfm, float32, greedy": tfm("float32", 1),
            "tfm, float32, beam 4": tfm("float32", 4),
        }
        if arguments.marian:
            for beam in (1, 4):
                what = "greedy" if beam == 1 else f"beam {beam}"
                vocabularies = [str(folders["marian"] / one) for one in names]
                model = str(folders["marian"] / "model.npz")
                engines[f"Marian, float32, {what}"] = Engine(
                    arguments.marian,
                    _MARIAN,
                    folders["given"],
                    model=[model],
                    vocabularies=vocabularies,
                    beam=beam,
                    lines=lines,
                )
        if arguments.firefox:
            vocabularies = [str(folders["bergamot"] / one) for one in names]
            model = str(folders["bergamot"] / MODEL_FILE)
            engines["Firefox, int8, greedy, one sentence at a time"] = Engine(
                arguments.firefox,
                _FIREFOX,
                folders["given"],
                model=model,
                vocabularies=vocabularies,
                lines=lines,
            )
        rates: dict[str, list[float]] = {one: [] for one in engines}
        for _ in range(arguments.rounds):
            for one, engine in engines.items():
                seconds, texts = engine.measure()
                num_tokens = sum(len(trained.target_tokenizer.encode(text)) + 1 for text in texts)
                rates[one].append(num_tokens / seconds)
        for engine in engines.values():
            engine.close()
    sys.stdout.write(
        f"{len(lines)} sentences, target tokens per CPU second: median and range of {arguments.rounds} rounds\n"
    )
    for one, values in rates.items():
        spread = f"{min(values):,.0f}-{max(values):,.0f}"
        sys.stdout.write(f"{one:48}{statistics.median(values):10,.0f}{spread:>18}\n")


if __name__ == "__main__":
    main()
