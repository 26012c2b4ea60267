"""`tfm data diversify`: training pairs that models of both directions make of the training pairs.

Source: Nguyen et al. 2020, "Data Diversification: A Simple Strategy For Neural Machine Translation".
"""

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_cli.checkpoint.trained_files import find_run, first_usable, read_trained_files
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    ConfigOption,
    JsonOption,
    Overrides,
    TeacherOverrides,
    folder_option,
    set_option,
)
from transformer_cli.commands.output import show
from transformer_cli.commands.recorded_steps import ONLY, Languages, Steps, digest_of_file
from transformer_cli.config import Config, load_config
from transformer_cli.config.data import Direction
from transformer_cli.data.pairs import CleaningReport
from transformer_cli.data.selection import all_held_out_pairs, clean, held_out_digests
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import replace_file

if TYPE_CHECKING:
    from transformer_cli.commands.synthetic_corpus import Writer

logger = logging.getLogger(__name__)

_MANY_EQUAL = 0.5
"""A larger share of pairs that stand in the corpus already, among those that the models have written, is named."""


def diversify_command(
    config: ConfigOption,
    models: Annotated[
        int,
        typer.Option(
            "--models",
            min=1,
            max=100,
            help="Models of each direction that are trained; they differ in their seed.",
        ),
    ] = 2,
    model_config: Annotated[
        str | None,
        typer.Option(
            "--model-config",
            metavar="PATH",
            help="Another config for these models; its section data is not used. Default: --config.",
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            help="A run that translates, in one of the two directions or in both, instead of models that are trained; may be repeated.",
            autocompletion=completion.runs,
        ),
    ] = None,
    folder: Annotated[Path | None, folder_option("NAME-diversified")] = None,
    overrides: Annotated[Overrides, set_option("training.max_steps=100", completion.settings)] = None,
    teacher_overrides: TeacherOverrides = None,
    as_json: JsonOption = False,
) -> None:
    """Make training pairs of what several models of both directions write. The same command continues after an interruption."""
    from transformer_cli.commands.synthetic_corpus import (
        Writer,
        bytes_of_lines,
        config_of_folder,
        cost_lines,
        held_out_entries,
        one_direction,
        read_n_best,
        real_entries,
        train_run,
        translate_file,
        write_config,
        write_real_pairs,
    )

    given = load_config(config, overrides or [])
    models_config = given if model_config is None else load_config(model_config, overrides or [])
    name = f"{given.name}-diversified"
    place = folder or Path(name)
    direction = one_direction(given)
    named = _writers(run or (), direction, teacher_overrides or ())
    steps = Steps(place)
    real = write_real_pairs(given, place, steps)
    entries = real_entries(real, place)
    held_out = held_out_entries(real)
    trained = [] if run else _configs(given, models_config, place, [*entries, *held_out], models)
    writers = named or [
        (Writer((settings.name,), tuple(teacher_overrides or ())), is_reversed) for settings, is_reversed in trained
    ]
    for number, (writer, is_reversed) in enumerate(writers, start=1):  # before models are trained
        conditions = writer.settings(1)
        for entry in entries:
            stem = Path(entry["target_path" if is_reversed else "source_path"]).stem
            steps.check(f"translate written-{number}-{stem}", conditions, is_partial=True)
    for settings, _ in trained:
        train_run(settings, steps)
    made = list[dict[str, Any]]()
    for number, (writer, is_reversed) in enumerate(writers, start=1):
        read, written = ("target", "source") if is_reversed else ("source", "target")
        for entry in entries:
            source = place / entry[f"{read}_path"]
            stem = f"written-{number}-{source.stem}"
            n_best, output = place / f"{stem}.n-best.tsv", place / f"{stem}.{written}"
            translate_file(source, n_best, writer, 1, steps, name=f"translate {stem}")

            def work(n_best: Path = n_best, output: Path = output) -> None:
                replace_file(output, bytes_of_lines(found[0].text for found in read_n_best(n_best)))

            steps.run(f"write {stem}", {"n_best": digest_of_file(n_best)}, [output], work)
            origin = f"the {read}s of {entry['origin']}, translated by {writer.describe()}"
            made.append({**entry, f"{written}_path": output.name, "origin": origin})
    settings = config_of_folder(given, place, [*entries, *made, *held_out], name=name)
    settings, num_written, num_new = that_trains(settings, real.num_pairs)
    path = write_config(settings, place)
    costs = steps.costs()
    runs = list(dict.fromkeys(writer.runs[0] for writer, _ in writers))
    facts = {
        "config": str(path),
        "name": name,
        "runs": runs,
        "real_pairs": real.num_pairs,
        "written_pairs": num_written,
        "new_pairs": num_new,
        "costs": {step: cost._asdict() for step, cost in costs.items()},
    }
    lines = [
        f"{real.num_pairs:,} real pairs; {len(runs)} model{' has' if len(runs) == 1 else 's have'} written {num_written:,} pairs, of which {num_new:,} are new",
        "",
        *cost_lines(costs),
        "",
        f"next: tfm train --config {for_shell(path)}",
    ]
    if trained:
        newest = trained[-1][0]
        lines.append(
            f"until then, tfm translate without --run takes {newest.name}, which translates {newest.data.directions[0]}"
        )
    show(facts, lines, as_json=as_json)


def that_trains(settings: "Config", num_real: int) -> tuple["Config", int, int]:
    """The config of the last model, the number of pairs that the models have written, and how many of these it will learn from.

    Equal pairs count for `data.cleaning.max_dropped_share`, which may refuse a damaged corpus. Here they are no damage, so the
    config allows them, and the same share as before of all others.
    """
    rules = settings.data.cleaning
    counting = settings.applied_cleaning.model_copy(update={"drop_duplicates": True})
    report = CleaningReport()
    held_out = held_out_digests(settings, all_held_out_pairs(settings))
    pairs = read_pairs(settings.data, "train", seed=settings.seed)
    for _ in clean(pairs, counting, report, held_out=held_out):
        pass
    num_written, num_new = report.num_read - num_real, report.num_kept - num_real
    num_equal = report.dropped["drop_duplicates"].count
    if num_equal > _MANY_EQUAL * num_written:
        logger.warning(
            "only %d of %d written pairs are new: the models mostly repeat the text that they were trained on, and the last model learns little more from it; "
            "models with more dropout write other translations (--model-config), and so do earlier checkpoints (--run RUN/checkpoints/step-...)",
            num_new,
            num_written,
        )
    num_dropped = report.num_read - report.num_kept
    if rules.drop_duplicates and num_dropped > rules.max_dropped_share * report.num_read:
        share = num_equal / report.num_read
        allowed = math.ceil(1000 * (share + (1 - share) * rules.max_dropped_share)) / 1000
        rules = rules.model_copy(update={"max_dropped_share": allowed})
        data = settings.data.model_copy(update={"cleaning": rules})
        settings = settings.model_copy(update={"data": data})
    return settings, num_written, num_new


def _writers(runs: Sequence[str], direction: "Direction", overrides: Sequence[str]) -> list[tuple["Writer", bool]]:
    """Who translates for each run that is named, and whether from the target language; a run of both directions writes twice.

    Raises:
        UsageError: a run has neither direction.
    """
    from transformer_cli.commands.synthetic_corpus import Writer

    found = []
    for run in runs:
        directions = first_usable(find_run(run), read_trained_files).config.data.directions
        fitting = [one for one in (direction, direction.reverse) if one in directions]
        if not fitting:
            raise UsageError(
                f"{run} translates {', '.join(map(str, directions))}; {direction} or {direction.reverse} is expected"
            )
        for one in fitting:
            to, from_ = ONLY if len(directions) == 1 else Languages(one.target, one.source)
            found.append((Writer((run,), tuple(overrides), to=to, from_=from_), one != direction))
    return found


def _configs(
    given: "Config",
    models_config: "Config",
    folder: Path,
    entries: Sequence[Mapping[str, Any]],
    num_models: int,
) -> list[tuple["Config", bool]]:
    """The configs of the models that are trained, and whether each translates from the target language."""
    from transformer_cli.commands.synthetic_corpus import config_of_folder, swapped

    found = []
    for number in range(1, num_models + 1):
        for way, is_reversed in (("forward", False), ("reverse", True)):
            settings = config_of_folder(
                models_config.model_copy(update={"data": given.data}),
                folder,
                swapped(entries) if is_reversed else entries,
                name=f"{given.name}-{way}-{number}",
                is_reversed=is_reversed,
            )
            found.append((settings.model_copy(update={"seed": number}), is_reversed))
    return found
