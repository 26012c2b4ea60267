"""The command line `tfm`: which commands there are. The file of a command is imported only when it is used."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from transformer_cli import __version__
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import CarefulCommand, SentenceCommand
from transformer_cli.process.exits import run_to_exit
from transformer_cli.process.torchrun import require_single_process


class Entry(NamedTuple):
    """A command in the list of commands."""

    place: str
    """Module and name: a function, or a `typer.Typer` with commands of its own."""
    help: str
    """The first sentence of its docstring."""
    example: str = ""
    """A command line for the end of its help. A `typer.Typer` has its own."""
    takes_sentences: bool = False
    """Whether its arguments are sentences, which may begin with a dash."""


COMMANDS = {
    "train": Entry(
        "transformer_cli.commands.arguments.train:train",
        "Train a model, or continue its training.",
        "tfm train --config en-it.yaml --set training.max_steps=500",
    ),
    "translate": Entry(
        "transformer_cli.commands.arguments.translate:translate",
        "Translate sentences or a document.",
        "cat in.txt | tfm translate > out.txt",
        takes_sentences=True,
    ),
    "validate": Entry(
        "transformer_cli.commands.arguments.validate:validate",
        "Score a run on held-out text.",
        "tfm validate --split test --json",
    ),
    "score": Entry(
        "transformer_cli.commands.arguments.corpora.score:score",
        "Score translations in a file against references.",
        "tfm score out.txt reference.txt",
    ),
    "next": Entry(
        "transformer_cli.commands.arguments.next:show_next",
        "Show the probabilities of the next token.",
        """tfm next "Where is the station?" --prefix "Dov'è la" --top 5""",
        takes_sentences=True,
    ),
    "explain": Entry(
        "transformer_cli.commands.arguments.explain:explain",
        "Show how the model translates a sentence.",
        'tfm explain "The red cars are here." --html page.html',
        takes_sentences=True,
    ),
    "likelihood": Entry(
        "transformer_cli.commands.arguments.corpora.likelihood:likelihood",
        "Print how probable given translations are.",
        "tfm likelihood --run en-it --source in.en --target out.it",
    ),
    "info": Entry(
        "transformer_cli.commands.arguments.models.info:info",
        "Show a run or a config.",
        "tfm info --run en-it",
    ),
    "init": Entry(
        "transformer_cli.commands.arguments.corpora.init:init",
        "Write a config for a corpus of your own.",
        "tfm init phrases.csv, or: tfm init train.en train.it",
    ),
    "average": Entry(
        "transformer_cli.commands.arguments.models.average:average",
        "Average the weights of several checkpoints of a run.",
        "tfm average --run en-it --last 5",
    ),
    "ablate": Entry(
        "transformer_cli.commands.arguments.models.ablate:ablate",
        "Train with and without a part of the model, and compare.",
        "tfm ablate no-causal-mask",
    ),
    "align": Entry(
        "transformer_cli.commands.arguments.corpora.align:align",
        "Print which words of given pairs belong together.",
        "tfm align --source in.en --target in.it",
    ),
    "serve": Entry(
        "transformer_cli.extensions.serving.command:serve",
        "Serve translations over HTTP.",
        "tfm serve --run en-it --port 5000",
    ),
    "plot": Entry(
        "transformer_cli.commands.arguments.models.plot:plot",
        "Draw the training curves of runs.",
        "tfm plot en-it en-it-2 --output curves.png",
    ),
    "import": Entry(
        "transformer_cli.commands.arguments.models.import_model:import_model",
        "Make a run of a model of another program.",
        "tfm import opus-mt-en-fr --name en-fr",
    ),
    "export": Entry(
        "transformer_cli.commands.arguments.models.export:export",
        "Write a run in the format of another program.",
        "tfm export --run en-it --to ctranslate2 --output en-it.ct2",
    ),
    "card": Entry(
        "transformer_cli.commands.arguments.models.card:card",
        "Print the model card of a run.",
        "tfm card --run en-it --license cc-by-4.0",
    ),
    "push": Entry(
        "transformer_cli.commands.arguments.models.push:push",
        "Upload an exported folder to the Hugging Face hub.",
        "tfm push en-it.hf your-name/en-it",
    ),
    "benchmark": Entry(
        "transformer_cli.extensions.benchmark.command:benchmark",
        "Measure how fast this machine trains or translates.",
        "tfm benchmark --config en-it.yaml --set runtime.threads=1",
    ),
    "draw": Entry(
        "transformer_cli.commands.arguments.draw:draw",
        "Draw the model, its masks, schedules and batches.",
        "tfm draw architecture --output architecture.png",
    ),
    "exercises": Entry(
        "transformer_cli.commands.arguments.exercises:exercises",
        "Write exercises, or check them.",
        "tfm exercises my-exercises, then: tfm exercises --check my-exercises",
    ),
    "data": Entry(
        "transformer_cli.commands.arguments.corpora.data:data",
        "Preview a corpus, check it, clean it or get one.",
    ),
    "runs": Entry(
        "transformer_cli.commands.arguments.models.runs:runs",
        "List, compare and prune the runs of a folder.",
    ),
}


class Commands(Mapping[str, Any]):
    """The commands by name, as objects of Typer that parse their arguments; each is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return _imported(name, COMMANDS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _imported(name: str, entry: Entry) -> Any:
    module, attribute = entry.place.split(":")
    found = getattr(import_module(module), attribute)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
        return get_group(app).commands[name]
    kind = SentenceCommand if entry.takes_sentences else CarefulCommand
    app.command(name=name, cls=kind, epilog=f"Example: {entry.example}")(found)
    return get_command(app)


class LazyGroup(TyperGroup):
    """The group of all commands: its help lists them and imports none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = Commands()  # type: ignore[assignment]  # Typer asks for a mapping that it could change

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands into the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
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


def main() -> None:
    """Run the command line of this process; `__main__` calls it, after it has taken over the signals."""
    completion.join_words_of_bash()
    run_to_exit(app)
