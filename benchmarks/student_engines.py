"""Compares engines that translate with one student model, in turns: tfm, Marian (float32) and the engine of Firefox (int8).

    tfm train --config student-en-it.yaml --set tokenizer.kind=sentencepiece ...      # a model as of docs/marian.md
    python benchmarks/student_engines.py --run student --marian A/bin/python --firefox B/bin/python

--marian names a Python in which `pip install pymarian` was done, --firefox one with `pip install fxtranslate`; what is not named
is left out. Every engine is a process of its own with one thread. It loads the model and translates once, then the rounds
begin: in each round, each engine translates the first validation sentences (--sentences) and reports its own CPU seconds.
Figures are target tokens of its own translations per CPU second, counted by the tokenizer of the run. Firefox's package takes one sentence at a
time and searches greedily, so tfm is measured so, too: --batches and --beams name what is measured beside it. --shortlist gives tfm and Firefox's package
the shortlist of the run. --set decoding.repair=false leaves out what tfm does beyond a search, for a model whose translations are doubtful.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from transformer_cli.checkpoint.trained_files import TrainedModel, find_run, load_trained
from transformer_cli.config import ShortlistConfig
from transformer_cli.extensions.exchange.bergamot import MODEL_FILE, SHORTLIST, bergamot_files
from transformer_cli.extensions.exchange.export_format import add_to_folder
from transformer_cli.extensions.exchange.marian import marian_files, vocabulary_names
from transformer_cli.extensions.exchange.verification import stored_sources

# Each program gets its settings as one JSON argument, and defines `translate`: lines to texts.
_TFM = """
from transformer_cli.decoding.loading import load_run
translator = load_run(given["run"], given["settings"]).translator
def translate(lines):
    size = given["batch"] or len(lines)
    parts = [lines[first : first + size] for first in range(0, len(lines), size)]
    return [one.text for part in parts for one in translator.translate(part)]
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
shortlist = {"shortlist": open(given["shortlist"], "rb").read()} if given["shortlist"] else {}
translator = Translator(model=contents[0], src_vocab=contents[1], trg_vocab=contents[2], **shortlist)
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


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def _name(program: str, precision: str, beam: int, batch: int) -> str:
    search = "greedy" if beam == 1 else f"beam {beam}"
    size = {0: "all sentences", 1: "one sentence"}.get(batch, f"{batch} sentences")
    return f"{program}, {precision}, {search}, {size} at a time"


def _own(arguments: argparse.Namespace, lines: list[str], given: Path) -> dict[str, Engine]:
    run = arguments.run
    if Path(run).exists():
        run = str(Path(find_run(run)).absolute())
    engines = {}
    precisions = ("int8", "float32") if arguments.float32 else ("int8",)
    for precision, beam, batch in product(precisions, arguments.beams, arguments.batches):
        settings = [f"runtime.precision={precision}", f"decoding.beam_size={beam}", *arguments.set]
        settings.append("runtime.threads=1")
        if arguments.shortlist:
            settings.append("decoding.shortlist={}")
        engines[_name("tfm", precision, beam, batch)] = Engine(
            sys.executable, _TFM, given, run=run, settings=settings, batch=batch, lines=lines
        )
    return engines


def _others(arguments: argparse.Namespace, trained: TrainedModel, lines: list[str], folder: Path) -> dict[str, Engine]:
    marian, bergamot, given = (folder / one for one in ("marian", "bergamot", "given"))
    engines, names = {}, vocabulary_names(trained)
    if arguments.marian:
        marian.mkdir()
        add_to_folder(marian, marian_files(trained))
        vocabularies = [str(marian / one) for one in names]
        model = [str(marian / "model.npz")]
        for beam in arguments.beams:
            engines[_name("Marian", "float32", beam, 0)] = Engine(
                arguments.marian,
                _MARIAN,
                given,
                model=model,
                vocabularies=vocabularies,
                beam=beam,
                lines=lines,
            )
    if arguments.firefox:
        bergamot.mkdir()
        files = bergamot_files(trained, is_rounded=True)
        add_to_folder(bergamot, files)
        vocabularies = [str(bergamot / one) for one in names]
        shortlists = [str(bergamot / one) for one in files if one.startswith(f"{SHORTLIST}.")]
        engines[_name("Firefox", "int8", 1, 1)] = Engine(
            arguments.firefox,
            _FIREFOX,
            given,
            model=str(bergamot / MODEL_FILE),
            vocabularies=vocabularies,
            shortlist=shortlists[0] if shortlists else None,
            lines=lines,
        )
    return engines


def _with_shortlist(trained: TrainedModel, shortlist: ShortlistConfig | None) -> TrainedModel:
    decoding = trained.config.decoding.model_copy(update={"shortlist": shortlist})
    return replace(trained, config=trained.config.model_copy(update={"decoding": decoding}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="a run that --to bergamot can hold")
    parser.add_argument("--marian", metavar="PYTHON", help="a Python with pymarian")
    parser.add_argument("--firefox", metavar="PYTHON", help="a Python with fxtranslate")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of tfm")
    parser.add_argument("--beams", type=_numbers, default=[1], metavar="N,N", help="beams of tfm and Marian")
    parser.add_argument(
        "--batches",
        type=_numbers,
        default=[1, 0],
        metavar="N,N",
        help="how many sentences tfm gets at a time; 0: all",
    )
    parser.add_argument("--shortlist", action="store_true", help="as tfm shortlist made it")
    parser.add_argument("--float32", action="store_true", help="tfm in float32, too")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=200)
    arguments = parser.parse_args()
    trained = load_trained(find_run(arguments.run))
    trained = _with_shortlist(trained, ShortlistConfig() if arguments.shortlist else None)
    lines = [text for text, _ in stored_sources(trained)[: arguments.sentences]]
    with tempfile.TemporaryDirectory(prefix="tfm-engines-") as name:
        folder = Path(name)
        (folder / "given").mkdir()
        engines = _own(arguments, lines, folder / "given")
        engines |= _others(arguments, trained, lines, folder)
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
