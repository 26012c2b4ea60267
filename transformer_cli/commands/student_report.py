"""What a student is worth: its scores, size and speed beside those of its teacher, on a CPU."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from transformer_cli.commands.recorded_steps import Cost
from transformer_cli.commands.synthetic_corpus import CTRANSLATE2_TEACHER, Writer, cost_lines
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding.loading import LoadedRun, load_run
from transformer_cli.decoding.shortlist import shortlist_path
from transformer_cli.evaluation.metrics import score_corpus
from transformer_cli.process.errors import ConfigError, UsageError

MOST_COMPARED = 500
"""Validation sentences whose translation is timed; all are scored."""
NUM_ROUNDS = 3
_ON_CPU = ("runtime.device=cpu", "runtime.threads=1")
_INT8 = "runtime.precision=int8"


@dataclass(frozen=True, slots=True)
class _System:
    """Something that translates, and what is known of it."""

    name: str
    translate: Callable[[Sequence[str]], list[str]]
    run: str | None
    settings: tuple[str, ...]
    num_bytes: int | None
    beam_size: int | None
    facts: Mapping[str, Any]


def measured(
    student: str, teacher: Writer, pairs: Sequence[SentencePair], *, exported: Path | None
) -> list[dict[str, Any]]:
    """A row for each system: the teacher as it is and with greedy search in int8, the student in float32, in int8, and in int8 with its shortlist.

    Speed is counted in tokens of the student's vocabulary, of the translations of the first `MOST_COMPARED` sentences, for
    each second of CPU time: one thread, in turns, the median of `NUM_ROUNDS` rounds. Loading is measured apart.

    Args:
        student: the run.
        teacher: who has written its corpus.
        pairs: held-out pairs.
        exported: the folder of `tfm export --to bergamot`; its files are the size of the student in int8.
    """
    loaded_student = load_run(student, [*_ON_CPU, "runtime.precision=float32", "decoding.shortlist=null"])
    systems = [*_teachers(teacher), *_students(student, loaded_student, exported)]
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    pipeline = loaded_student.translator.pipeline
    language = pipeline.languages.target
    rows, texts_of = list[dict[str, Any]](), list[list[str]]()
    for system in systems:
        texts = system.translate(sources)
        texts_of.append(texts)
        scores = score_corpus(texts, references, ["bleu", "chrf"], target_language=language, with_intervals=True)
        start = _start(system, sources[0])
        rows.append(
            {
                "model": system.name,
                "run": system.run,
                "settings": list(system.settings),
                "beam_size": system.beam_size,
                "bytes": system.num_bytes,
                "sentences": len(pairs),
                "scores": [score.as_json() for score in scores],
                "start_cpu_seconds": start,
                **system.facts,
            }
        )
    seconds: list[list[float]] = [[] for _ in systems]
    for _ in range(NUM_ROUNDS):
        for number, system in enumerate(systems):
            started_at = time.process_time()
            system.translate(sources[:MOST_COMPARED])
            seconds[number].append(time.process_time() - started_at)
    for row, texts, system_seconds in zip(rows, texts_of, seconds, strict=True):
        num_tokens = sum(len(pipeline.target_ids(text)) for text in texts[:MOST_COMPARED])
        row["tokens_per_cpu_second"] = round(num_tokens / max(statistics.median(system_seconds), 1e-9))
    return rows


def _teachers(teacher: Writer) -> list[_System]:
    if teacher.file is not None:
        return []
    if teacher.is_ctranslate2:
        folder = Path(teacher.runs[0])
        model = resolve_name(CTRANSLATE2_TEACHER)(folder, num_threads=1)
        return [
            _System(
                "teacher",
                lambda texts: [row[0][1] for row in model.translate(texts, 1)],
                None,
                (),
                (folder / "model.bin").stat().st_size,
                None,
                {"path": str(folder)},
            )
        ]
    own = [one for one in teacher.overrides if not one.startswith("runtime.")]
    plain = [*own, *_ON_CPU, "runtime.precision=float32", "decoding.engine=torch"]
    runs = list(teacher.runs)
    names = (teacher.to, teacher.from_)
    found = [measured_run("teacher", runs, plain, names)]
    if len(runs) == 1:
        fast = [*own, *_ON_CPU, _INT8, "decoding.engine=torch", "decoding.beam_size=1"]
        found += _if_possible(lambda: measured_run("teacher, int8", runs, fast, names))
    return found


def _students(student: str, loaded: LoadedRun, exported: Path | None) -> list[_System]:
    plain = [*_ON_CPU, "runtime.precision=float32", "decoding.shortlist=null"]
    found = [measured_run("student", [student], plain, (None, None))]
    fast = [*_ON_CPU, _INT8, "decoding.shortlist=null"]
    in_int8 = _if_possible(lambda: measured_run("student, int8", [student], fast, (None, None), exported))
    if in_int8 and shortlist_path(loaded.trained.folder).is_file():
        # With few thousand entries, to choose the candidates costs more than they save.
        short = [*_ON_CPU, _INT8, "decoding.shortlist={}"]
        in_int8.append(measured_run("  with shortlist", [student], short, (None, None), exported))
    found += in_int8
    return found


def _if_possible(load: Callable[[], _System]) -> list[_System]:
    """Nothing if the model has no such form."""
    try:
        return [load()]
    except (ConfigError, UsageError):
        return []


def measured_run(
    name: str,
    runs: list[str],
    settings: Sequence[str],
    languages: tuple[str | None, str | None],
    exported: Path | None = None,
) -> _System:
    loaded = load_run(runs, settings)
    # Its warnings would name lines of a text that the user does not see.
    translator = replace(loaded.translator.towards(*languages), reports_lines=False)
    in_int8 = _INT8 in settings
    num_bytes = sum(_num_bytes(member, in_int8=in_int8) for member in loaded.members)
    if in_int8 and exported is not None:
        num_bytes = sum(path.stat().st_size for path in exported.iterdir() if path.suffix in (".bin", ".spm"))
    return _System(
        name,
        lambda texts: [one.text for one in translator.translate(texts)],
        runs[0] if len(runs) == 1 else None,
        tuple(settings),
        num_bytes,
        translator.decoding.beam_size,
        {"parameters": sum(_num_parameters(member) for member in loaded.members)},
    )


def _num_parameters(trained: Any) -> int:
    return sum(one.numel() for one in trained.model.parameters())


def _num_bytes(trained: Any, *, in_int8: bool) -> int:
    """Of the weights; in int8, each number of a matrix has one byte, and each of its rows a factor of four bytes."""
    total = 0
    for parameter in trained.model.parameters():
        is_rounded = in_int8 and parameter.ndim == 2
        total += parameter.numel() + 4 * len(parameter) if is_rounded else 4 * parameter.numel()
    return total


def _start(system: _System, sentence: str) -> float | None:
    """CPU seconds of a new process that translates one sentence; None if the system is not one run."""
    if system.run is None:
        return None
    settings = [part for one in system.settings for part in ("--set", one)]
    before = os.times()
    subprocess.run(
        [
            sys.executable,
            "-m",
            "transformer_cli",
            "translate",
            "--run",
            system.run,
            *settings,
            "--",
            sentence,
        ],
        check=False,
        capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    after = os.times()
    return round(sum(after[2:4]) - sum(before[2:4]), 2)


def table(rows: Sequence[Mapping[str, Any]], costs: Mapping[str, Cost], exported: Mapping[str, Any]) -> list[str]:
    """The rows and the costs for people."""
    lines = [
        f"{'model':<16}{'beam':>5}{'BLEU':>13}{'chrF':>13}{'MB':>8}{'tokens per CPU second':>23}{'start, CPU s':>14}"
    ]
    for row in rows:
        scores = [f"{one['value']:.1f} ± {one['interval']['half_width']:.1f}" for one in row["scores"]]
        size = "" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f}"
        start = "" if row["start_cpu_seconds"] is None else f"{row['start_cpu_seconds']:.1f}"
        beam = row["beam_size"] or ""
        lines.append(
            f"{row['model']:<16}{beam:>5}{scores[0]:>13}{scores[1]:>13}{size:>8}{row['tokens_per_cpu_second']:>23,}{start:>14}"
        )
    lines.append(f"{rows[-1]['sentences']} validation sentences; {rows[-1]['scores'][0]['signature']}")
    lines += ["", *cost_lines(costs)]
    if "output" in exported:
        lines += ["", f"for translators in browsers: {exported['output']}"]
    elif "reason" in exported:
        lines += ["", f"not exported for translators in browsers: {exported['reason']}"]
    return lines
