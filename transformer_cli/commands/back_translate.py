"""`tfm data back-translate`: more training pairs from text of the target language, which a model of the reverse direction translates.

Sources: Sennrich et al. 2016, "Improving Neural Machine Translation Models with Monolingual Data"; the tag: Caswell et al.
2019, "Tagged Back-Translation".
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    ConfigOption,
    JsonOption,
    Overrides,
    set_option,
)
from transformer_cli.commands.student import DropOption, TeacherOverrides

if TYPE_CHECKING:
    from transformer_cli.commands.recorded_steps import Steps
    from transformer_cli.commands.synthetic_corpus import RealPairs

TAG = "<BT>"


def back_translate_command(
    config: ConfigOption,
    text: Annotated[
        list[str],
        typer.Option(
            "--text",
            metavar="FILE[=LICENCE]",
            help="Text of the target language, a sentence a line, and its licence; may be repeated.",
        ),
    ],
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
    n_best: Annotated[
        int,
        typer.Option(
            "--n-best",
            metavar="N",
            min=1,
            max=64,
            help="Translations of each line, among which --judge chooses.",
        ),
    ] = 1,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="RUN",
            help="A run of the direction of the config, whose likelihood of the text chooses among translations, and for --drop.",
            autocompletion=completion.runs,
        ),
    ] = None,
    drop: DropOption = 0.0,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", help="For text, translations and the config. Default: NAME-back-translated."
        ),
    ] = None,
    overrides: Annotated[
        Overrides, set_option("training.max_steps=100", completion.settings)
    ] = None,
    teacher_overrides: TeacherOverrides = None,
    as_json: JsonOption = False,
) -> None:
    """Make training pairs of text of the target language. The same command continues after an interruption."""
    from transformer_cli.commands.output import show
    from transformer_cli.commands.recorded_steps import (
        Steps,
        chosen_languages,
        digest_of,
        digest_of_run,
    )
    from transformer_cli.commands.synthetic_corpus import (
        CandidateChoice,
        Writer,
        choose,
        config_of_folder,
        cost_lines,
        given_text,
        held_out_entries,
        lines_of,
        new_sentences,
        one_direction,
        read_lines,
        read_n_best,
        real_entries,
        translate_file,
        write_config,
        write_likelihoods,
        write_real_pairs,
    )
    from transformer_cli.config import load_config
    from transformer_cli.storage import replace_file

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
    entries = real_entries(real, place)
    monolingual = [place / f"text-{number}.target" for number in range(len(texts))]

    def write_texts() -> None:
        known = [line for one in entries for line in read_lines(place / one["target_path"])]
        held_out = [pair.target for pairs in real.held_out.values() for pair in pairs]
        most = given.cleaning.max_words or 250
        for path, lines in zip(
            monolingual, new_sentences(texts, known, held_out, max_words=most), strict=True
        ):
            replace_file(path, lines_of(lines))

    of_texts = {str(one.path): digest_of(one.path) for one in texts}
    steps.run("texts", of_texts, monolingual, write_texts, is_fixed=True)
    for path in monolingual:  # before a model is trained for hours
        steps.check(
            f"translate {path.stem}",
            writer.conditions(n_best) if run else writer.settings(n_best),
            is_partial=True,
        )
    if not run:
        _train_reverse(real, place, steps)
    choice = CandidateChoice(judge, dropped_share=drop, languages=of_judge)
    kept = dict[str, int]()
    for number, (one, path) in enumerate(zip(texts, monolingual, strict=True)):
        n_best_file = place / f"text-{number}.n-best.tsv"
        translate_file(path, n_best_file, writer, n_best, steps)
        outputs = [place / f"back-{number}.{side}" for side in ("source", "target")]

        def work(
            path: Path = path,
            n_best_file: Path = n_best_file,
            outputs: list[Path] = outputs,
            number: int = number,
        ) -> dict[str, Any]:
            lines, candidates = read_lines(path), list(read_n_best(n_best_file))
            likelihoods = None
            if judge is not None:
                output = place / f"text-{number}.likelihoods.txt"
                likelihoods = write_likelihoods(lines, candidates, output, choice)
            chosen = choose(lines, (), candidates, likelihoods, drop)
            replace_file(outputs[0], lines_of(chosen.texts))
            replace_file(outputs[1], lines_of(lines[row] for row in chosen.rows))
            return {"pairs": len(chosen.rows)}

        conditions = {
            "n_best": digest_of(n_best_file),
            "judge": None if judge is None else digest_of_run(judge),
            "drop": drop,
        }
        found = steps.run(f"choose {path.stem}", conditions, outputs, work)
        kept[str(one.path)] = found["pairs"]
        entries.append(
            {
                "split": "train",
                "source_path": outputs[0].name,
                "target_path": outputs[1].name,
                "tag": tag,
                "origin": f"{one.path.name}, translated back by {writer.describe()}",
                "license": f"targets: {one.license or 'not stated'}",
            }
        )
    for entry in entries:
        if "tag" not in entry and weight != 1.0:
            entry.setdefault("weight", weight)
    settings = config_of_folder(given, place, [*entries, *held_out_entries(real)], name=name)
    written = write_config(settings, place)
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


def _train_reverse(real: "RealPairs", folder: Path, steps: "Steps") -> None:
    """Train the model that translates back."""
    from transformer_cli.commands.synthetic_corpus import (
        config_of_folder,
        held_out_entries,
        real_entries,
        swapped,
        train_run,
    )

    untagged = [
        {key: value for key, value in one.items() if key != "tag"}
        for one in real_entries(real, folder)
    ]
    pairs = swapped([*untagged, *held_out_entries(real)])
    name = f"{real.config.name}-reverse"
    reverse = config_of_folder(real.config, folder, pairs, name=name, is_reversed=True)
    train_run(reverse, steps)
