"""The command line `tfm`: its arguments. A command is imported only when it runs."""

from typing import Annotated, Literal

import typer

from transformer_cli import __version__
from transformer_cli.commands import completion
from transformer_cli.commands.arguments.align import align
from transformer_cli.commands.arguments.average import average
from transformer_cli.commands.arguments.benchmark import benchmark
from transformer_cli.commands.arguments.init import init
from transformer_cli.commands.arguments.likelihood import likelihood
from transformer_cli.commands.arguments.options import (
    ConfigOption,
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    ToOption,
    set_option,
)
from transformer_cli.commands.arguments.runs import runs
from transformer_cli.commands.arguments.score import score
from transformer_cli.commands.arguments.sentence_arguments import CarefulCommand, SentenceCommand
from transformer_cli.commands.arguments.translate import translate
from transformer_cli.commands.arguments.validate import validate
from transformer_cli.errors import UsageError
from transformer_cli.exits import run_to_exit
from transformer_cli.torchrun import require_single_process

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train a neural machine translator from a parallel corpus, and translate with it.",
    epilog="Start with: tfm train --config en-it.yaml, then: tfm translate 'The red cars are in front of the station.'",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tfm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    require_single_process(context.invoked_subcommand)


@app.command(
    cls=CarefulCommand, epilog="Example: tfm train --config en-it.yaml --set training.max_steps=500"
)
def train(
    config: ConfigOption,
    overrides: Annotated[
        Overrides, set_option("training.max_steps=100", completion.settings)
    ] = None,
    from_scratch: Annotated[
        bool,
        typer.Option(
            "--from-scratch", help="Start a new run; rename the checkpoints of an earlier one."
        ),
    ] = False,
    accept_data_change: Annotated[
        bool, typer.Option("--accept-data-change", help="Continue a run whose corpus has changed.")
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Train a model, or continue the run of the same name where it stopped."""
    _set_up_logging(debug)
    from transformer_cli.commands.train import run_training

    run_training(
        config, overrides or [], from_scratch=from_scratch, accept_data_change=accept_data_change
    )


app.command(cls=SentenceCommand, epilog="Example: cat in.txt | tfm translate > out.txt")(translate)
app.command(cls=CarefulCommand, epilog="Example: tfm validate --split test --json")(validate)
app.command(cls=CarefulCommand, epilog="Example: tfm score out.txt reference.txt")(score)


@app.command(
    name="next",
    cls=SentenceCommand,
    epilog="""Example: tfm next "Where is the station?" --prefix "Dov'è la" --top 5""",
)
def show_next(
    source: Annotated[str, typer.Argument(help="The source sentence.")],
    prefix: Annotated[str, typer.Option("--prefix", help="The beginning of its translation.")] = "",
    top: Annotated[
        int, typer.Option("--top", min=1, max=1000, help="How many tokens to show.")
    ] = 10,
    run: RunOption = None,
    overrides: Annotated[
        Overrides, set_option("runtime.device=cpu", completion.settings_of_the_machine)
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the probabilities of the next token; greedy search takes the largest."""
    _set_up_logging(debug)
    from transformer_cli.commands.next import show_next as show
    from transformer_cli.inference import load_run

    translator = load_run(run, overrides or [], command="next").translator.towards(to, from_)
    show(translator, source, prefix=prefix, top=top, as_json=as_json)


app.command(
    cls=CarefulCommand,
    epilog="Example: tfm likelihood --run en-it --source in.en --target out.it",
)(likelihood)


@app.command(cls=CarefulCommand, epilog="Example: tfm info --run en-it")
def info(
    run: RunOption = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            help="Show a config instead of a run.",
            autocompletion=completion.configs,
        ),
    ] = None,
    overrides: Annotated[Overrides, set_option("model.d_model=256", completion.settings)] = None,
    parameters: Annotated[bool, typer.Option("--parameters", help="List every parameter.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show a run or a config: parameters, vocabularies, best scores, and where the files are."""
    if run and config:
        raise UsageError("give either --run or --config, not both")
    _set_up_logging(debug)
    from transformer_cli.commands.info import show_info

    show_info(run, config, overrides or [], parameters=parameters, as_json=as_json)


@app.command(cls=CarefulCommand, epilog="Example: tfm data --config en-it.yaml --split test")
def data(
    config: ConfigOption,
    overrides: Annotated[
        Overrides, set_option("tokenizer.vocab_size=4000", completion.settings)
    ] = None,
    split: Annotated[
        Literal["train", "validation", "test"],
        typer.Option("--split", help="Which part of the corpus: train, validation or test."),
    ] = "train",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Preview a corpus: sentence pairs, what cleaning drops, and tokenizer statistics; trains no model."""
    _set_up_logging(debug)
    from transformer_cli.commands.data import show_data

    show_data(config, overrides or [], split=split, as_json=as_json)


app.command(
    cls=CarefulCommand, epilog="Example: tfm init phrases.csv, or: tfm init train.en train.it"
)(init)
app.command(cls=CarefulCommand, epilog="Example: tfm average --run en-it --last 5")(average)
app.command(cls=CarefulCommand, epilog="Example: tfm align --source in.en --target in.it")(align)
app.add_typer(runs, name="runs")
app.command(
    cls=CarefulCommand, epilog="Example: tfm benchmark --config en-it.yaml --set runtime.threads=1"
)(benchmark)


def _set_up_logging(debug: bool) -> None:
    from transformer_cli.messages import talk_on_stderr

    talk_on_stderr(debug=debug)


def main() -> None:
    """Run the command line of this process; `__main__` calls it, after it has taken over the signals."""
    completion.join_words_of_bash()
    run_to_exit(app)
