"""The command line `tfm`: its arguments. A command is imported only when it runs."""

from typing import Annotated

import typer

from transformer_cli import __version__
from transformer_cli.commands import completion
from transformer_cli.commands.arguments.benchmark import benchmark
from transformer_cli.commands.arguments.corpora.align import align
from transformer_cli.commands.arguments.corpora.data import data
from transformer_cli.commands.arguments.corpora.init import init
from transformer_cli.commands.arguments.corpora.likelihood import likelihood
from transformer_cli.commands.arguments.corpora.score import score
from transformer_cli.commands.arguments.draw import draw
from transformer_cli.commands.arguments.explain import explain
from transformer_cli.commands.arguments.models.average import average
from transformer_cli.commands.arguments.models.card import card
from transformer_cli.commands.arguments.models.export import export
from transformer_cli.commands.arguments.models.import_model import import_model
from transformer_cli.commands.arguments.models.info import info
from transformer_cli.commands.arguments.models.plot import plot
from transformer_cli.commands.arguments.models.push import push
from transformer_cli.commands.arguments.models.runs import runs
from transformer_cli.commands.arguments.next import show_next
from transformer_cli.commands.arguments.sentence_arguments import (
    CarefulCommand,
    CarefulGroup,
    SentenceCommand,
)
from transformer_cli.commands.arguments.serve import serve
from transformer_cli.commands.arguments.train import train
from transformer_cli.commands.arguments.translate import translate
from transformer_cli.commands.arguments.validate import validate
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


app.command(
    cls=CarefulCommand, epilog="Example: tfm train --config en-it.yaml --set training.max_steps=500"
)(train)
app.command(cls=SentenceCommand, epilog="Example: cat in.txt | tfm translate > out.txt")(translate)
app.command(cls=CarefulCommand, epilog="Example: tfm validate --split test --json")(validate)
app.command(cls=CarefulCommand, epilog="Example: tfm score out.txt reference.txt")(score)
app.command(
    name="next",
    cls=SentenceCommand,
    epilog="""Example: tfm next "Where is the station?" --prefix "Dov'è la" --top 5""",
)(show_next)
app.command(
    cls=SentenceCommand,
    epilog='Example: tfm explain "The red cars are here." --html page.html',
)(explain)
app.command(
    cls=CarefulCommand,
    epilog="Example: tfm likelihood --run en-it --source in.en --target out.it",
)(likelihood)
app.command(cls=CarefulCommand, epilog="Example: tfm info --run en-it")(info)
app.command(
    cls=CarefulCommand, epilog="Example: tfm init phrases.csv, or: tfm init train.en train.it"
)(init)
app.command(cls=CarefulCommand, epilog="Example: tfm average --run en-it --last 5")(average)
app.command(cls=CarefulCommand, epilog="Example: tfm align --source in.en --target in.it")(align)
app.command(cls=CarefulCommand, epilog="Example: tfm serve --run en-it --port 5000")(serve)
app.add_typer(data, name="data", cls=CarefulGroup)
app.add_typer(runs, name="runs")
app.command(cls=CarefulCommand, epilog="Example: tfm plot en-it en-it-2 --output curves.png")(plot)
app.command(
    name="import", cls=CarefulCommand, epilog="Example: tfm import opus-mt-en-fr --name en-fr"
)(import_model)
app.command(
    cls=CarefulCommand, epilog="Example: tfm export --run en-it --to ctranslate2 --output en-it.ct2"
)(export)
app.command(cls=CarefulCommand, epilog="Example: tfm card --run en-it --license cc-by-4.0")(card)
app.command(cls=CarefulCommand, epilog="Example: tfm push en-it.hf your-name/en-it")(push)
app.command(
    cls=CarefulCommand, epilog="Example: tfm benchmark --config en-it.yaml --set runtime.threads=1"
)(benchmark)
app.command(cls=CarefulCommand, epilog="Example: tfm draw architecture --output architecture.png")(
    draw
)


def main() -> None:
    """Run the command line of this process; `__main__` calls it, after it has taken over the signals."""
    completion.join_words_of_bash()
    run_to_exit(app)
