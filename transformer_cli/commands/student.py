"""`tfm student`: a small model learns from the translations of a trained one (knowledge distillation on whole sentences).

The way has steps, and each is a command of its own: `tfm student translate ...` does only this one. All of them keep their
files in one folder (`synthetic_corpus.py`).
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    ConfigOption,
    DropOption,
    FromOption,
    JsonOption,
    JudgeOption,
    NBestOption,
    Overrides,
    TeacherOverrides,
    ToOption,
    folder_option,
    set_option,
    text_option,
)
from transformer_cli.process.errors import UsageError

if TYPE_CHECKING:
    from transformer_cli.commands.recorded_steps import Languages
    from transformer_cli.commands.synthetic_corpus import CandidateChoice, Writer
    from transformer_cli.config.data import Direction

logger = logging.getLogger(__name__)

StudentStep = Literal[
    "corpus", "translate", "choose", "align", "train", "shortlist", "calibrate", "export", "measure"
]
STEPS: tuple[StudentStep, ...] = get_args(StudentStep)


StepsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STEP]...",
        help=f"Do only these steps: {', '.join(STEPS)}. Default: all, in this order.",
        autocompletion=lambda: list(STEPS),
    ),
]
TeacherOption = Annotated[
    list[str] | None,
    typer.Option(
        "--teacher",
        help="Name or folder of a run, or a folder of CTranslate2; several runs are an ensemble.",
        autocompletion=completion.runs,
    ),
]
TranslationsOption = Annotated[
    Path | None,
    typer.Option(
        "--translations",
        help="Instead of --teacher: what another program has made of FOLDER/sources.txt, which the step corpus writes; "
        "a line each, or an n-best list.",
    ),
]
RealOption = Annotated[
    bool, typer.Option("--with-real", help="Let the student also learn from the real pairs.")
]
AlignOption = Annotated[
    bool,
    typer.Option(
        "--align/--no-align",
        help="Guided alignment: a head of the student learns which words belong together.",
    ),
]
AlignerOption = Annotated[
    str | None,
    typer.Option(
        "--aligner",
        metavar="RUN",
        help="The run that aligns words. Default: the teacher, if it is a run.",
        autocompletion=completion.runs,
    ),
]
LicenseOption = Annotated[
    str | None,
    typer.Option(
        "--teacher-license", metavar="NAME", help="The licence of the teacher, for the model card."
    ),
]


def student_command(
    config: ConfigOption,
    steps: StepsArgument = None,
    teacher: TeacherOption = None,
    translations: TranslationsOption = None,
    text: Annotated[list[str] | None, text_option("More text of the source language")] = None,
    n_best: NBestOption = 4,
    judge: JudgeOption = None,
    drop: DropOption = 0.0,
    with_real: RealOption = False,
    align: AlignOption = True,
    aligner: AlignerOption = None,
    folder: Annotated[Path | None, folder_option("NAME-distilled")] = None,
    overrides: Annotated[
        Overrides, set_option("training.max_steps=100", completion.settings)
    ] = None,
    teacher_overrides: TeacherOverrides = None,
    teacher_license: LicenseOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a small model on the translations of another one, and measure both. The same command continues after an interruption."""
    from transformer_cli.commands.output import show
    from transformer_cli.commands.recorded_steps import Steps
    from transformer_cli.commands.student_steps import StudentWay
    from transformer_cli.commands.synthetic_corpus import Writer, given_text, one_direction
    from transformer_cli.config import load_config

    wanted = _known_steps(steps)
    given = load_config(config, overrides or [])
    writer = Writer(
        runs=tuple(teacher or ()),
        overrides=tuple(teacher_overrides or ()),
        from_=from_,
        to=to,
        file=translations,
        license=teacher_license,
    )
    _check_teacher(writer, given.name, config, wanted)
    writer, choice, aligners, of_aligners = _directed(
        one_direction(given), writer, judge, drop, aligner, align=align
    )
    if align and not aligners:
        logger.info(
            "no guided alignment: the teacher is no run; name one with --aligner, to have it"
        )
    texts = [given_text(one) for one in text or ()]
    place = folder or Path(f"{given.name}-distilled")
    way = StudentWay(
        given,
        place,
        Steps(place),
        writer,
        texts,
        n_best,
        choice,
        with_real,
        aligners,
        of_aligners,
    )
    facts: dict[str, Any] = {"corpus": str(place), "run": given.name}
    lines: list[str] = []
    for step in wanted:
        found, shown = way.do(step, anew=wanted == ["measure"])
        facts |= found
        lines += shown
    show(facts, lines or [f"done; the files are in {place}"], as_json=as_json)


def _known_steps(given: Sequence[str] | None) -> list[StudentStep]:
    """The steps that are named, in their order; all of them if none is.

    Raises:
        UsageError: there is no such step.
    """
    for step in given or ():
        if step not in STEPS:
            raise UsageError(
                f"{step}: no step of a student", hint=f"the steps are {', '.join(STEPS)}"
            )
    return [step for step in STEPS if step in (given or STEPS)]


def _check_teacher(
    writer: "Writer", student: str, config: str, steps: Collection[StudentStep]
) -> None:
    """Refuse no teacher or two, a file of translations that is not there, and a student that would train in its teacher's folder.

    Raises:
        MissingInputError: there is no such run or file.
        UsageError: the options do not fit together.
    """
    from transformer_cli.checkpoint import find_run
    from transformer_cli.checkpoint.run_folder import RUNS
    from transformer_cli.commands.input_lines import check_input

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
    direction: "Direction",
    writer: "Writer",
    judge: str | None,
    dropped_share: float,
    aligner: str | None,
    *,
    align: bool,
) -> "tuple[Writer, CandidateChoice, tuple[str, ...], Languages]":
    """Teacher, judge and aligners, after a check that each has the direction that it needs.

    Raises:
        MissingInputError: there is no such run.
        UsageError: a run does not translate in the direction.
    """
    from transformer_cli.commands.recorded_steps import (
        Languages,
        chosen_languages,
        require_direction_of_ctranslate2,
    )
    from transformer_cli.commands.synthetic_corpus import CandidateChoice

    chosen = Languages(writer.to, writer.from_)
    if writer.is_run:
        chosen = chosen_languages(writer.runs, direction, "--teacher", chosen)
        writer = replace(writer, to=chosen.to, from_=chosen.from_)
    elif writer.is_ctranslate2:
        require_direction_of_ctranslate2(Path(writer.runs[0]), direction, "--teacher")
    of_judge = chosen_languages([judge] if judge else [], direction.reverse, "--judge")
    choice = CandidateChoice(judge, dropped_share, of_judge)
    if not align:
        return writer, choice, (), chosen
    if aligner is None:
        return writer, choice, writer.runs if writer.is_run else (), chosen
    return writer, choice, (aligner,), chosen_languages([aligner], direction, "--aligner")
