"""The steps of `tfm student`, from a corpus and a teacher to a measured student. All of them keep their files in one folder (`synthetic_corpus.py`)."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal

from transformer_cli.checkpoint.run_folder import RUNS
from transformer_cli.checkpoint.trained_files import find_run, load_trained
from transformer_cli.commands.calibrate import calibrated_run
from transformer_cli.commands.input_lines import check_input
from transformer_cli.commands.recorded_steps import (
    Languages,
    Steps,
    chosen_languages,
    digest_of_file,
    digest_of_run,
    require_direction_of_ctranslate2,
)
from transformer_cli.commands.shortlist import learned_shortlist
from transformer_cli.commands.student import STEPS, StudentStep
from transformer_cli.commands.student_report import measured, table
from transformer_cli.commands.synthetic_corpus import (
    CandidateChoice,
    GivenText,
    RealPairs,
    Writer,
    bytes_of_lines,
    choose,
    config_of_folder,
    given_text,
    held_out_entries,
    license_of_corpus,
    lines_of_text_file,
    new_sentences,
    noisy_copy,
    one_direction,
    origin_of_corpus,
    read_n_best,
    real_entries,
    real_names,
    train_run,
    translate_file,
    translated_file_conditions,
    write_alignments,
    write_config,
    write_likelihoods,
    write_real_pairs,
)
from transformer_cli.config import Config, load_config
from transformer_cli.config.data import Direction
from transformer_cli.process.errors import TfmError, UsageError
from transformer_cli.storage import remove, replace_file

logger = logging.getLogger(__name__)

SOURCES, REFERENCES = "sources.txt", "references.txt"
N_BEST, LIKELIHOODS = "n-best.tsv", "likelihoods.txt"
CHECKED = STEPS[:5]
"""Each of them needs what those before it have made, with the same options; later steps need the student alone."""
GUIDED_ALIGNMENT, ALIGNMENT_HEAD = 0.1, 0
"""What a student learns alignments with if its config does not say: the weight of Marian, and the first head."""


def known_steps(given: Sequence[str] | None) -> list[StudentStep]:
    """The steps that are named, in their order; all of them if none is.

    Raises:
        UsageError: there is no such step.
    """
    for step in given or ():
        if step not in STEPS:
            raise UsageError(f"{step}: no step of a student", hint=f"the steps are {', '.join(STEPS)}")
    return [step for step in STEPS if step in (given or STEPS)]


def opened_way(
    config: str,
    steps: Collection[StudentStep],
    *,
    overrides: Sequence[str],
    teachers: Sequence[str],
    teacher_overrides: Sequence[str],
    translations: Path | None,
    license_of_teacher: str | None,
    to: str | None,
    from_: str | None,
    texts: Sequence[str],
    num_best: int,
    judge: str | None,
    dropped_share: float,
    has_real: bool,
    align: bool,
    aligner: str | None,
    folder: Path | None,
) -> "StudentWay":
    """The way of a student, after a check of what its steps need; the options of `tfm student` describe the arguments.

    Raises:
        MissingInputError: there is no such run or file.
        UsageError: the options do not fit together.
    """
    given = load_config(config, overrides)
    writer = Writer(
        runs=tuple(teachers),
        overrides=tuple(teacher_overrides),
        from_=from_,
        to=to,
        file=translations,
        license=license_of_teacher,
    )
    _check_teacher(writer, given.name, config, steps)
    writer, choice, aligners, aligner_languages = _directed(
        one_direction(given), writer, judge, dropped_share, aligner, align=align
    )
    if align and not aligners:
        logger.info("no guided alignment: the teacher is no run; name one with --aligner, to have it")
    place = folder or Path(f"{given.name}-distilled")
    return StudentWay(
        config=given,
        folder=place,
        steps=Steps(place),
        writer=writer,
        texts=[given_text(one) for one in texts],
        num_best=num_best,
        choice=choice,
        has_real=has_real,
        aligners=aligners,
        aligner_languages=aligner_languages,
        measures_anew=[*steps] == ["measure"],
    )


def _check_teacher(writer: Writer, student: str, config: str, steps: Collection[StudentStep]) -> None:
    """Refuse no teacher or two, a file of translations that is not there, and a student that would train in its teacher's folder.

    Raises:
        MissingInputError: there is no such run or file.
        UsageError: the options do not fit together.
    """
    if bool(writer.runs) == (writer.file is not None):
        raise UsageError(
            "a student needs one teacher: give --teacher, or --translations of another program",
            hint="the teacher is a run of the same languages, such as --teacher en-it; tfm runs lists the runs",
        )
    if writer.file is not None and (readers := sorted({*steps} - {"corpus"})):
        check_input(writer.file, f"--translations, for {', '.join(readers)}")
    for run in () if writer.is_ctranslate2 else writer.runs:
        if find_run(run).resolve() == (RUNS / student).resolve():
            raise UsageError(
                f"{config}: its name, {student}, is that of the teacher, so the student would train in the teacher's folder",
                hint="give the student another name: --set name=student",
            )


def _directed(
    direction: Direction,
    writer: Writer,
    judge: str | None,
    dropped_share: float,
    aligner: str | None,
    *,
    align: bool,
) -> tuple[Writer, CandidateChoice, tuple[str, ...], Languages]:
    """Teacher, judge and aligners, after a check that each has the direction that it needs.

    Raises:
        MissingInputError: there is no such run.
        UsageError: a run does not translate in the direction.
    """
    chosen = Languages(writer.to, writer.from_)
    if writer.is_run:
        chosen = chosen_languages(writer.runs, direction, "--teacher", chosen)
        writer = replace(writer, to=chosen.to, from_=chosen.from_)
    elif writer.is_ctranslate2:
        require_direction_of_ctranslate2(Path(writer.runs[0]), direction, "--teacher")
    judge_languages = chosen_languages([judge] if judge else [], direction.reverse, "--judge")
    choice = CandidateChoice(judge, dropped_share, judge_languages)
    if not align:
        return writer, choice, (), chosen
    if aligner is None:
        return writer, choice, writer.runs if writer.is_run else (), chosen
    return writer, choice, (aligner,), chosen_languages([aligner], direction, "--aligner")


@dataclass(kw_only=True)
class StudentWay:
    """The way from a corpus and a teacher to a measured student."""

    config: Config
    folder: Path
    steps: Steps
    writer: Writer
    texts: Sequence[GivenText]
    num_best: int
    choice: CandidateChoice
    has_real: bool
    aligners: tuple[str, ...]
    aligner_languages: Languages
    measures_anew: bool
    """Although it is measured already."""
    _done: set[StudentStep] = field(default_factory=set)

    def do(self, step: StudentStep) -> tuple[dict[str, Any], list[str]]:
        """Do a step, unless it is done; facts for other programs, and lines for people."""
        if step in CHECKED:
            for before in CHECKED[: CHECKED.index(step)]:
                if before not in self._done:
                    self._check(before)
        found: tuple[dict[str, Any], list[str]] | None = getattr(self, f"_{step}")()
        self._done.add(step)
        return found or ({}, [])

    def _check(self, step: StudentStep) -> None:
        """Refuse what a step of an earlier command has made of another corpus, or with other options.

        Raises:
            UsageError: it was made so; or a file is missing.
        """
        if step == "corpus":
            self._require(SOURCES, step)
            assert self.real  # reading it checks it
            self.steps.check("sources", self._conditions_of_sources())
        elif step == "translate":
            self._require(N_BEST, step)
            conditions = translated_file_conditions(self._path(SOURCES), self.writer, self.num_best)
            self.steps.check("translate sources", conditions)
        elif step == "choose":
            for name in self._parts()[0]:
                self._require(f"{name}.source", step)
            self.steps.check("choose", self.choice.conditions(self._path(N_BEST)))
        elif self.aligners:
            for name in self._taught_files():
                self._require(f"{name}.alignment", step)
            self.steps.check("align", self._conditions_of_alignment())

    @cached_property
    def real(self) -> RealPairs:
        """The pairs of the config, which lie in the folder."""
        return write_real_pairs(self.config, self.folder, self.steps)

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _require(self, name: str, step: StudentStep) -> Path:
        path = self._path(name)
        if not path.exists():
            raise UsageError(
                f"{path}: no such file; the step {step} writes it",
                hint=f"do the steps before this one first: tfm student {step} ..., or tfm student without a step",
            )
        return path

    def _corpus(self) -> None:
        """sources.txt: the sources of the real pairs, then the further text; references.txt: the targets of the former."""
        real = self.real
        outputs = [self._path(SOURCES), self._path(REFERENCES)]

        def work() -> dict[str, Any]:
            pairs = self._real_lines()
            known = [source for source, _, _ in pairs]
            held_out = [pair.source for found in real.held_out.values() for pair in found]
            most = self.config.applied_cleaning.max_words or 250
            further = new_sentences(self.texts, known, held_out, max_words=most)
            replace_file(outputs[1], bytes_of_lines(target for _, target, _ in pairs))
            replace_file(outputs[0], bytes_of_lines([*known, *(line for one in further for line in one)]))
            counts = [len(lines_of_text_file(self._path(f"{name}.source"))) for name in self._names()]
            return {"of_corpora": counts, "of_texts": [len(one) for one in further]}

        self.steps.run("sources", self._conditions_of_sources(), outputs, work, is_fixed=True)

    def _conditions_of_sources(self) -> dict[str, Any]:
        return {
            "corpora": {name: digest_of_file(self._path(f"{name}.source")) for name in self._names()},
            "texts": {str(one.path): digest_of_file(one.path) for one in self.texts},
        }

    def _names(self) -> list[str]:
        return real_names(self.folder)

    def _real_lines(self) -> list[tuple[str, str, str]]:
        return [
            (source, target, name)
            for name in self._names()
            for source, target in zip(
                lines_of_text_file(self._path(f"{name}.source")),
                lines_of_text_file(self._path(f"{name}.target")),
                strict=True,
            )
        ]

    def _translate(self) -> None:
        source = self._require(SOURCES, "corpus")
        translate_file(source, self._path(N_BEST), self.writer, self.num_best, self.steps)

    def _choose(self) -> None:
        """One pair of files for each corpus and each text: what the student learns."""
        source, n_best = self._require(SOURCES, "corpus"), self._require(N_BEST, "translate")
        references = self._require(REFERENCES, "corpus")
        names, sizes = self._parts()
        outputs = [self._path(f"{name}.{side}") for name in names for side in ("source", "target")]
        judge = self.choice.judge

        def work() -> dict[str, Any]:
            sources, given = lines_of_text_file(source), lines_of_text_file(references)
            candidates = list(read_n_best(n_best))
            likelihoods = None
            if judge is not None and len(sources) > len(given):
                likelihoods = write_likelihoods(
                    sources[len(given) :], candidates[len(given) :], self._path(LIKELIHOODS), self.choice
                )
            language = self.config.data.directions[0].target
            chosen = choose(
                sources,
                given,
                candidates,
                likelihoods,
                self.choice.dropped_share,
                language=language,
            )
            texts = dict(zip(chosen.rows, chosen.texts, strict=True))
            start, kept = 0, []
            for name, size in zip(names, sizes, strict=True):
                rows = [row for row in range(start, start + size) if row in texts]
                replace_file(self._path(f"{name}.source"), bytes_of_lines(sources[row] for row in rows))
                replace_file(self._path(f"{name}.target"), bytes_of_lines(texts[row] for row in rows))
                kept.append(len(rows))
                start += size
            return {"kept": dict(zip(names, kept, strict=True)), "of": sum(sizes)}

        self.steps.run("choose", self.choice.conditions(self._path(N_BEST)), outputs, work)

    def _parts(self) -> tuple[list[str], list[int]]:
        """The names of the corpora that the teacher has written, and how many sources each has."""
        facts = self.steps.facts("sources")
        sizes = facts["of_corpora"], facts["of_texts"]
        names = [name.replace("real", "taught") for name in self._names()]
        names += [f"taught-text-{number}" for number in range(len(sizes[1]))]
        return names, [*sizes[0], *sizes[1]]

    def _align(self) -> None:
        if not self.aligners:
            return
        files = self._taught_files()
        noise = self.config.training.noise

        def work() -> dict[str, Any]:
            num_noisy = dict[str, int]()
            for name, (source, target) in files.items():
                output = self._path(f"{name}.alignment")
                remove([old for old in [output] if old.exists()])
                write_alignments(
                    source,
                    target,
                    output,
                    self.aligners,
                    languages=self.aligner_languages,
                )
                if noise is None:
                    continue
                noisy = noisy_copy(
                    sources=lines_of_text_file(source),
                    targets=lines_of_text_file(target),
                    links=lines_of_text_file(output),
                    noise=noise,
                    seed=self.config.seed,
                )
                for side, lines in zip(("source", "target", "alignment"), noisy, strict=True):
                    replace_file(self._path(f"noisy-{name}.{side}"), bytes_of_lines(lines))
                num_noisy[name] = len(noisy.sources)
            return {"noisy": num_noisy}

        outputs = [self._path(f"{name}.alignment") for name in files]
        self.steps.run("align", self._conditions_of_alignment(), outputs, work)

    def _taught_files(self) -> dict[str, list[Path]]:
        """Source and target of each corpus that the student learns, by its name."""
        return {
            name: [self._require(f"{name}.{side}", "choose") for side in ("source", "target")]
            for name in [*self._parts()[0], *(self._names() if self.has_real else ())]
        }

    def _conditions_of_alignment(self) -> dict[str, Any]:
        noise, files = self.config.training.noise, self._taught_files()
        return {
            "pairs": {name: [digest_of_file(path) for path in paths] for name, paths in files.items()},
            "aligner": [digest_of_run(one) for one in self.aligners],
            "noise": None if noise is None else noise.model_dump(),
        }

    def student(self) -> Config:
        """The config of the student, whose training pairs are the translations of the teacher."""
        names = self._parts()[0]
        judged = "by chrF to the reference" if self.num_best > 1 else ""
        entries = []
        for name in names:
            number = int(name.rpartition("-")[2])
            if name.startswith("taught-text"):
                text = self.texts[number]
                origin, license_ = text.path.name, text.license
                how = f"by the likelihood of {self.choice.judge}" if self.choice.judge else "the best"
            else:
                origin = origin_of_corpus(self.config, number)
                license_ = license_of_corpus(self.config, number)
                how = judged
            chosen = f", chosen {how} among {self.num_best}" if self.num_best > 1 and how != "the best" else ""
            licenses = [
                f"sources: {license_ or 'not stated'}",
                f"teacher: {self.writer.license or 'not stated'}",
            ]
            entries.append(
                {
                    "split": "train",
                    "source_path": f"{name}.source",
                    "target_path": f"{name}.target",
                    "origin": f"sources of {origin}, translated by {self.writer.describe()}{chosen}",
                    "license": "; ".join(licenses),
                }
            )
        if self.has_real:
            entries += real_entries(self.real, self.folder)
        changes: dict[str, dict[str, Any]] = {}
        if self.aligners:
            entries = [one for entry in entries for one in self._aligned(entry)]
            training, model = self.config.training, self.config.model
            head = ALIGNMENT_HEAD if model.alignment_head is None else model.alignment_head
            weight = training.guided_alignment or GUIDED_ALIGNMENT
            changes = {
                "training": {"guided_alignment": weight, "noise": None},
                "model": {"alignment_head": head},
            }
        return config_of_folder(self.config, self.folder, [*entries, *held_out_entries(self.real)], changes)

    def _aligned(self, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
        """A corpus with its alignment, and its noisy copy if there is one."""
        stem = str(entry["source_path"]).removesuffix(".source")
        found = [{**entry, "alignment_path": f"{stem}.alignment"}]
        noisy = self._path(f"noisy-{stem}.source")
        if self.config.training.noise is not None and noisy.exists() and noisy.stat().st_size:
            names = {
                "source_path": "source",
                "target_path": "target",
                "alignment_path": "alignment",
            }
            paths = {key: f"noisy-{stem}.{side}" for key, side in names.items()}
            found.append({**entry, **paths, "origin": f"{entry['origin']}, with noise"})
        return found

    def _train(self) -> None:
        self._require(f"{self._parts()[0][0]}.source", "choose")
        settings = self.student()
        write_config(settings, self.folder)
        train_run(settings, self.steps)

    def _student_conditions(self) -> dict[str, Any]:
        return {"student": digest_of_run(self.config.name)}

    def _shortlist(self) -> None:
        def work() -> dict[str, Any]:
            return learned_shortlist(self.config.name)

        output = self._run_folder() / "shortlist.npz"
        self.steps.run("shortlist", self._student_conditions(), [output], work)

    def _run_folder(self) -> Path:
        return RUNS / self.config.name

    def _calibrate(self) -> None:
        split: Literal["validation", "test"] = "test" if "test" in self.real.held_out else "validation"

        def work() -> dict[str, Any]:
            return _or_reason(lambda: calibrated_run(self.config.name, split=split)[0], "not calibrated")

        self.steps.run("calibrate", self._student_conditions(), [], work)

    def _export(self) -> None:
        output = self._path("bergamot")

        def work() -> dict[str, Any]:
            def export() -> dict[str, Any]:
                formats = resolve_name("transformer_cli.extensions.exchange.export:FORMATS")
                [wanted] = [one for one in formats if one.name == "bergamot"]
                export_run = resolve_name("transformer_cli.extensions.exchange.export:export_run")
                exported = export_run(load_trained(find_run(self.config.name)), wanted, output)
                return {"output": str(exported.path), "bytes": exported.num_bytes}

            return _or_reason(export, "not exported for translators in browsers")

        self.steps.run("export", self._student_conditions(), [], work)

    def _measure(self) -> tuple[dict[str, Any], list[str]]:
        conditions = self._student_conditions() | {
            "teacher": {"file": str(self.writer.file)} if self.writer.file else self.writer.conditions(1)
        }
        exported = self.steps.facts("export").get("output")

        def work() -> dict[str, Any]:
            pairs = self.real.held_out["validation"]
            return {
                "models": measured(
                    self.config.name,
                    self.writer,
                    pairs,
                    exported=Path(exported) if exported else None,
                )
            }

        if self.measures_anew:
            conditions["anew"] = len(self.steps.costs())
        found = self.steps.run("measure", conditions, [], work)
        costs = self.steps.costs()
        facts = {
            **found,
            "costs": {name: cost._asdict() for name, cost in costs.items()},
            "exported": self.steps.facts("export"),
        }
        return facts, table(found["models"], costs, self.steps.facts("export"))


def _or_reason(work: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
    """What a step finds; or, if it is not possible for this student, why: the way goes on without it."""
    try:
        return work()
    except TfmError as error:
        logger.info("%s: %s", what, error.message)
        return {"reason": error.message}
