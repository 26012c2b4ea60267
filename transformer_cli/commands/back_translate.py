"""`tfm data back-translate`: more training pairs from text of the target language, which a model of the reverse direction translates.

Sources: Sennrich et al. 2016, "Improving Neural Machine Translation Models with Monolingual Data"; the tag: Caswell et al.
2019, "Tagged Back-Translation".
"""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    ConfigOption,
    DropOption,
    JsonOption,
    JudgeOption,
    NBestOption,
    Overrides,
    TeacherOverrides,
    folder_option,
    set_option,
    text_option,
)
from transformer_cli.commands.output import show

TAG = "<BT>"


def back_translate_command(
    config: ConfigOption,
    text: Annotated[list[str], text_option("Text of the target language")],
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            help="The run that translates into the source language; several are an ensemble. Default: it is trained first.",
            autocompletion=completion.runs,
        ),
    ] = None,
    tag: Annotated[
        str,
        typer.Option("--tag", help="What the model reads before each source that a model wrote."),
    ] = TAG,
    weight: Annotated[float, typer.Option("--weight", min=0.01, help="How often an epoch reads each real pair.")] = 2.0,
    n_best: NBestOption = 1,
    judge: JudgeOption = None,
    drop: DropOption = 0.0,
    folder: Annotated[Path | None, folder_option("NAME-back-translated")] = None,
    overrides: Annotated[Overrides, set_option("training.max_steps=100", completion.settings)] = None,
    teacher_overrides: TeacherOverrides = None,
    as_json: JsonOption = False,
) -> None:
    """Make training pairs of text of the target language. The same command continues after an interruption."""
    # The help does not wait for the modules that do the work.
    from transformer_cli.commands.back_translation import back_translated

    facts, lines = back_translated(
        config,
        overrides=overrides or [],
        runs=run or [],
        teacher_overrides=teacher_overrides or [],
        texts=text,
        tag=tag,
        weight=weight,
        num_best=n_best,
        judge=judge,
        dropped_share=drop,
        folder=folder,
    )
    show(facts, lines, as_json=as_json)
