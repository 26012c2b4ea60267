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
    weight: Annotated[
        float, typer.Option("--weight", min=0.01, help="How often an epoch reads each real pair.")
    ] = 2.0,
    n_best: NBestOption = 1,
    judge: JudgeOption = None,
    drop: DropOption = 0.0,
    folder: Annotated[Path | None, folder_option("NAME-back-translated")] = None,
    overrides: Annotated[
        Overrides, set_option("training.max_steps=100", completion.settings)
    ] = None,
    teacher_overrides: TeacherOverrides = None,
    as_json: JsonOption = False,
) -> None:
    """Make training pairs of text of the target language. The same command continues after an interruption."""
    from transformer_cli.commands.back_translate_steps import BackTranslation
    from transformer_cli.commands.output import show
    from transformer_cli.commands.recorded_steps import Steps, chosen_languages
    from transformer_cli.commands.synthetic_corpus import (
        CandidateChoice,
        Writer,
        config_of_folder,
        cost_lines,
        given_text,
        one_direction,
        write_config,
        write_real_pairs,
    )
    from transformer_cli.config import load_config

    given = load_config(config, overrides or [])
    name = f"{given.name}-back-translated"
    place = folder or Path(name)
    texts = [given_text(one) for one in text]
    direction = one_direction(given)
    languages = chosen_languages(run or (), direction.reverse, "--run")
    of_judge = chosen_languages([judge] if judge else [], direction, "--judge")
    writer = Writer(
        tuple(run or [f"{given.name}-reverse"]),
        tuple(teacher_overrides or ()),
        from_=languages.from_,
        to=languages.to,
    )
    steps = Steps(place)
    real = write_real_pairs(given, place, steps)
    choice = CandidateChoice(judge, dropped_share=drop, languages=of_judge)
    way = BackTranslation(real, place, steps, texts, writer, n_best, choice)
    way.write_texts()
    way.check_translations(writer.conditions(n_best) if run else writer.settings(n_best))
    if not run:
        way.train_reverse()
    kept = {str(one.path): way.translate(number) for number, one in enumerate(texts)}
    written = write_config(
        config_of_folder(given, place, way.entries(tag, weight), name=name), place
    )
    costs = steps.costs()
    facts = {
        "config": str(written),
        "name": name,
        "real_pairs": real.num_pairs,
        "pairs": kept,
        "costs": {step: cost._asdict() for step, cost in costs.items()},
    }
    lines = [f"{path}: {number:,} pairs" for path, number in kept.items()]
    lines += ["", *cost_lines(costs), "", f"next: tfm train --config {written}"]
    show(facts, lines, as_json=as_json)
