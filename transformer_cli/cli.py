"""The command line `tfm`: its arguments. A command is imported only when it runs."""

from typing import Annotated, Literal

import typer

from transformer_cli import __version__
from transformer_cli.commands import completion
from transformer_cli.commands.arguments.align import align
from transformer_cli.commands.arguments.average import average
from transformer_cli.commands.arguments.benchmark import benchmark
from transformer_cli.commands.arguments.export import export
from transformer_cli.commands.arguments.glossary import GlossaryOption
from transformer_cli.commands.arguments.hypotheses import (
    NBestOption,
    PrefixesOption,
    PrefixOption,
)
from transformer_cli.commands.arguments.import_model import import_model
from transformer_cli.commands.arguments.init import init
from transformer_cli.commands.arguments.likelihood import likelihood
from transformer_cli.commands.arguments.options import (
    BeamOption,
    ConfigOption,
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    RunsOption,
    ToOption,
    set_option,
)
from transformer_cli.commands.arguments.real_text import ProtectOption, StrictOption
from transformer_cli.commands.arguments.runs import runs
from transformer_cli.commands.arguments.score import score
from transformer_cli.commands.arguments.sentence_arguments import CarefulCommand, SentenceCommand
from transformer_cli.commands.arguments.translate import (
    AlignmentOption,
    AttentionOption,
    DetailsOption,
    DictionaryOption,
    InputOption,
    OutputOption,
    ReplaceUnknownOption,
    ResumeOption,
)
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


@app.command(cls=SentenceCommand, epilog="Example: cat in.txt | tfm translate > out.txt")
def translate(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences, one per argument. Default: the lines of standard input."),
    ] = None,
    run: RunsOption = None,
    input_file: InputOption = None,
    output_file: OutputOption = None,
    overrides: Annotated[
        Overrides, set_option("decoding.beam_size=8", completion.settings_of_translating)
    ] = None,
    beam_size: BeamOption = None,
    protect: ProtectOption = False,
    strict: StrictOption = False,
    n_best: NBestOption = None,
    prefix: PrefixOption = None,
    prefixes: PrefixesOption = None,
    glossary: GlossaryOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    alignment: AlignmentOption = False,
    details: DetailsOption = False,
    attention: AttentionOption = False,
    replace_unknown: ReplaceUnknownOption = False,
    dictionary: DictionaryOption = None,
    resume: ResumeOption = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Translate sentences: line N of the output is the translation of line N of the input."""
    if sentences and input_file:
        raise UsageError("give either sentences or --input, not both")
    if prefix and prefixes:
        raise UsageError("give either --prefix or --prefixes, not both")
    _set_up_logging(debug)
    from transformer_cli.commands.translate import run_translation
    from transformer_cli.commands.translating.wishes import Wishes

    settings = _with_beam(overrides, beam_size)
    flags = {"alignment": alignment, "details": details, "attention": attention, "resume": resume}
    flags |= {"protects_spans": protect, "is_strict": strict, "replace_unknown": replace_unknown}
    wishes = Wishes(
        to,
        from_,
        num_best=n_best,
        prefix=prefix,
        prefixes=prefixes,
        glossary=glossary,
        dictionary=dictionary,
        **flags,
    )
    given = sentences or input_file
    run_translation(given, output_file, run=run, overrides=settings, wishes=wishes, as_json=as_json)


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
app.command(
    name="import", cls=CarefulCommand, epilog="Example: tfm import opus-mt-en-fr --name en-fr"
)(import_model)
app.add_typer(runs, name="runs")
app.command(
    cls=CarefulCommand, epilog="Example: tfm export --run en-it --to ctranslate2 --output en-it.ct2"
)(export)
app.command(
    cls=CarefulCommand, epilog="Example: tfm benchmark --config en-it.yaml --set runtime.threads=1"
)(benchmark)


def _with_beam(overrides: list[str] | None, beam_size: int | None) -> list[str]:
    return [*(overrides or []), *([] if beam_size is None else [f"decoding.beam_size={beam_size}"])]


def _set_up_logging(debug: bool) -> None:
    from transformer_cli.messages import talk_on_stderr

    talk_on_stderr(debug=debug)


def main() -> None:
    """Run the command line of this process; `__main__` calls it, after it has taken over the signals."""
    completion.join_words_of_bash()
    run_to_exit(app)
