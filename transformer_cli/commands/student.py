"""`tfm student`: a small model learns from the translations of a trained one (knowledge distillation on whole sentences).

The way has steps, and each is a command of its own: `tfm student translate ...` does only this one. `student_way.py` does them.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

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
from transformer_cli.commands.output import show

StudentStep = Literal["corpus", "translate", "choose", "align", "train", "shortlist", "calibrate", "export", "measure"]
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
RealOption = Annotated[bool, typer.Option("--with-real", help="Let the student also learn from the real pairs.")]
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
    typer.Option("--teacher-license", metavar="NAME", help="The licence of the teacher, for the model card."),
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
    overrides: Annotated[Overrides, set_option("training.max_steps=100", completion.settings)] = None,
    teacher_overrides: TeacherOverrides = None,
    teacher_license: LicenseOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a small model on the translations of another one, and measure both. The same command continues after an interruption."""
    # The help does not wait for the modules that do the work.
    from transformer_cli.commands.student_way import known_steps, opened_way

    wanted = known_steps(steps)
    way = opened_way(
        config,
        wanted,
        overrides=overrides or [],
        teachers=teacher or [],
        teacher_overrides=teacher_overrides or [],
        translations=translations,
        license_of_teacher=teacher_license,
        to=to,
        from_=from_,
        texts=text or [],
        num_best=n_best,
        judge=judge,
        dropped_share=drop,
        has_real=with_real,
        align=align,
        aligner=aligner,
        folder=folder,
    )
    facts: dict[str, Any] = {"corpus": str(way.folder), "run": way.config.name}
    lines: list[str] = []
    for step in wanted:
        found, shown = way.do(step)
        facts |= found
        lines += shown
    show(facts, lines or [f"done; the files are in {way.folder}"], as_json=as_json)
