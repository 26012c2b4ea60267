"""The command line `tfm`: its arguments and exit codes. A command is imported only when it runs."""

import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal, NoReturn

import typer

from transformer_cli import __version__
from transformer_cli.commands.init import init
from transformer_cli.errors import TfmError, UsageError, is_out_of_memory

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train a neural machine translator from a parallel corpus, and translate with it.",
    epilog="Start with: tfm train --config en-it.yaml, then: tfm translate 'The red cars are in front of the station.'",
)

ConfigOption = Annotated[
    str,
    typer.Option(
        "--config", "-c", help="A YAML file, or the name of a shipped config such as en-it.yaml."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Override a setting, such as training.max_steps=100; may be repeated.",
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Name or folder of a run, or one of its checkpoints. Default: the newest run under runs/.",
    ),
]
BeamOption = Annotated[
    int | None,
    typer.Option(
        "--beam-size",
        "-b",
        min=1,
        max=64,
        help="Hypotheses per sentence; 1 is greedy search. Short for --set decoding.beam_size=N.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tfm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: tfm train --config en-it.yaml --set training.max_steps=500")
def train(
    config: ConfigOption,
    overrides: SetOption = None,
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


@app.command(epilog="Example: cat in.txt | tfm translate > out.txt")
def translate(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences, one per argument. Default: the lines of standard input."),
    ] = None,
    run: RunOption = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="A text file, one sentence per line.")
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option("--output", help="A file for the translations. Default: standard output."),
    ] = None,
    overrides: SetOption = None,
    beam_size: BeamOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Translate sentences: line N of the output is the translation of line N of the input."""
    if sentences and input_file:
        raise UsageError("give either sentences or --input, not both")
    _set_up_logging(debug)
    from transformer_cli.commands.translate import run_translation

    settings = _with_beam(overrides, beam_size)
    given = sentences or input_file
    run_translation(given, output_file, run=run, overrides=settings, as_json=as_json)


@app.command(epilog="Example: tfm validate --split test --json")
def validate(
    run: RunOption = None,
    split: Annotated[
        Literal["validation", "test"] | None,
        typer.Option("--split", help="Which part of the corpus. Default: validation."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", help="A source text to score instead of a split.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="The reference translations of --source.")
    ] = None,
    overrides: SetOption = None,
    beam_size: BeamOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Score a run on held-out text: BLEU, chrF, TER, CER, WER, loss and perplexity."""
    if (source is None) != (reference is None):
        raise UsageError("give both --source and --reference, or neither")
    if source is not None and split is not None:
        raise UsageError("give either --split, or --source and --reference")
    _set_up_logging(debug)
    from transformer_cli.commands.validate import run_validation

    files = (source, reference) if source and reference else None
    settings = _with_beam(overrides, beam_size)
    run_validation(run, split or "validation", files, overrides=settings, as_json=as_json)


@app.command(
    name="next", epilog="""Example: tfm next "Where is the station?" --prefix "Dov'è la" --top 5"""
)
def show_next(
    source: Annotated[str, typer.Argument(help="The source sentence.")],
    prefix: Annotated[str, typer.Option("--prefix", help="The beginning of its translation.")] = "",
    top: Annotated[
        int, typer.Option("--top", min=1, max=1000, help="How many symbols to show.")
    ] = 10,
    run: RunOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the probabilities of the next token; greedy search takes the largest."""
    _set_up_logging(debug)
    from transformer_cli.commands.next import show_next as show

    show(source, prefix=prefix, top=top, run=run, overrides=overrides or [], as_json=as_json)


@app.command(epilog="Example: tfm info --run en-it")
def info(
    run: RunOption = None,
    config: Annotated[
        str | None, typer.Option("--config", "-c", help="Show a config instead of a run.")
    ] = None,
    overrides: SetOption = None,
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


@app.command(epilog="Example: tfm data --config en-it.yaml --split test")
def data(
    config: ConfigOption,
    overrides: SetOption = None,
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


app.command(epilog="Example: tfm init phrases.csv, or: tfm init train.en train.it")(init)


def _with_beam(overrides: list[str] | None, beam_size: int | None) -> list[str]:
    return [*(overrides or []), *([] if beam_size is None else [f"decoding.beam_size={beam_size}"])]


def _set_up_logging(debug: bool) -> None:
    from transformer_cli.messages import talk_on_stderr

    talk_on_stderr(debug=debug)


def main() -> None:
    """The entry point `tfm`: every error becomes one message and an exit code."""
    _prepare_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end_by_signal)
    try:
        try:
            app(prog_name="tfm")
        finally:
            sys.stdout.flush()
    except TfmError as error:
        _exit_with_error(f"tfm: {error}", error.exit_code)
    except (BrokenPipeError, SystemExit) as end:  # typer turns a BrokenPipeError into a SystemExit
        if BrokenPipeError in (type(end), type(end.__context__)):  # the reader has closed the pipe:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end as `cat` does; shells show 141
            signal.raise_signal(signal.SIGPIPE)
        raise
    except BaseException as error:  # a panic in Rust is a BaseException
        if is_out_of_memory(error):
            _exit_with_error("tfm: out of memory\n  hint: lower the size of the batches", 75)
        if isinstance(error, OSError):
            place, is_full = error.filename or "standard output", error.errno == errno.ENOSPC
            hint = "make room, then try again" if is_full else "--debug shows the traceback"
            message = f"tfm: {place}: {error.strerror or error}\n  hint: {hint}"
            _exit_with_error(message, 75 if is_full else 74)
        what = f"tfm: internal error, please report it: {type(error).__name__}: {error}"
        _exit_with_error(f"{what}\n  hint: --debug shows the traceback", 70)


def _prepare_streams() -> None:
    """Set UTF-8 in any locale; reopen closed streams, or a file of ours would get descriptor 0, 1 or 2."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _end_by_signal(signal_number: int, frame: FrameType | None) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, f"tfm: ended by {signal.Signals(signal_number).name}\n".encode())
    sys.exit(128 + signal_number)


def _exit_with_error(message: str, exit_code: int) -> NoReturn:
    if "--debug" in sys.argv[1:]:
        traceback.print_exc()
    with contextlib.suppress(OSError):  # stderr may be closed
        typer.echo(message, err=True)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
