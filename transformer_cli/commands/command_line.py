"""The options that several commands share, and checks of their values."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from transformer_cli.commands import completion
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import for_shell

ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        help="A YAML file, or the name of a shipped config such as en-it.yaml.",
        autocompletion=completion.configs,
    ),
]
OptionalConfigOption = Annotated[str | None, *ConfigOption.__metadata__]
Overrides = list[str] | None


def set_option(example: str, offered: Callable[[str], list[completion.Offer]]) -> Any:
    """The option --set: an example that works for the command, and the settings that a shell offers."""
    return typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help=f"Override a setting, such as {example}; may be repeated, and the last one for a setting counts.",
        autocompletion=offered,
    )


RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Name or folder of a run, or one of its checkpoints. Default: the newest run under runs/.",
        autocompletion=completion.runs,
    ),
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        help="Name or folder of a run, or one of its checkpoints; several are an ensemble. "
        "Default: the newest run under runs/.",
        autocompletion=completion.runs,
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
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="LANGUAGE", help="Translate into this language, if the model knows several."),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LANGUAGE",
        help="Language of the source, if the model translates from several.",
    ),
]
SignificanceOption = Annotated[
    Literal["bootstrap", "randomization"] | None,
    typer.Option(
        "--significance",
        help="The test behind the p-values of --against; bootstrap if absent.",
    ),
]
ScoresOption = Annotated[
    str | None,
    typer.Option(
        "--scores",
        metavar="NAMES",
        help="Which scores, such as bleu,chrf++. Default: all but bleu_lc_moses.",
        autocompletion=completion.scores,
    ),
]
CometScoreOption = Annotated[
    Path | None,
    typer.Option(
        "--comet",
        metavar="FOLDER",
        help="Also score with the COMET model in this folder. Needs unbabel-comet.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]


# Those of the commands whose models write training pairs: student, data back-translate, data diversify.


def text_option(what: str) -> Any:
    """The option --text: text without translations, and its language."""
    return typer.Option(
        "--text",
        metavar="FILE[=LICENCE]",
        help=f"{what}, a sentence a line, and its licence; may be repeated.",
    )


def folder_option(default: str) -> Any:
    """The option --folder: where the command keeps its files."""
    return typer.Option(
        "--folder",
        help=f"For all that the command makes: text, translations, the config. Default: {default}.",
    )


NBestOption = Annotated[
    int,
    typer.Option(
        "--n-best",
        metavar="N",
        min=1,
        max=64,
        help="Translations of each sentence among which the best is chosen; all are kept in the folder.",
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="RUN",
        help="A run of the opposite direction to the model that translates; the likelihood that it gives to a sentence chooses "
        "among the translations of the sentence that have no reference.",
        autocompletion=completion.runs,
    ),
]
DropOption = Annotated[
    float,
    typer.Option(
        "--drop",
        min=0.0,
        max=0.9,
        help="Leave out the worst pairs, so large a share of them: by chrF to the reference, or by the likelihood of --judge.",
    ),
]
TeacherOverrides = Annotated[
    list[str] | None,
    typer.Option(
        "--teacher-set",
        metavar="KEY=VALUE",
        help="A setting of the model that translates the corpus, such as decoding.beam_size=5; may be repeated.",
        autocompletion=completion.settings_of_translating,
    ),
]


def check_page_name(option: str, page: Path | None) -> None:
    """Refuse a name for an HTML page that says something else.

    Raises:
        UsageError: it ends in .pdf or another ending, or is - for standard output.
    """
    if page == Path("-"):
        raise UsageError(f"{option} -: this option takes a file", hint=f"{option} page.html")
    if page is not None and page.suffix.lower() not in ("", ".html", ".htm", ".xhtml"):
        raise UsageError(
            f"{option} {page}: the page is HTML, but this name ends in {page.suffix}",
            hint=f"{option} {for_shell(page.with_suffix('.html'))}",
        )


_MOST_WORDS = 20


def require_whole_words(command: str, args: Sequence[str], *, has_sentences: bool) -> None:
    """Refuse what a shell has divided at spaces: the name of a file, or a setting and its value.

    Args:
        command: with its name, such as tfm score.
        args: all words behind it.
        has_sentences: whether words may be sentences; they are left to the command.

    Raises:
        UsageError: a name with spaces lacks quotation marks, or there are spaces around the = of a setting.
    """
    for option, setting, *rest in zip(args, args[1:], args[2:], [*args[3:], ""], strict=False):
        value = "".join(rest) if rest[0] == "=" else rest[0]
        is_divided = "=" not in setting and re.fullmatch("=.+", value)
        if option == "--set" and (is_divided or (setting.endswith("=") and value.isalnum() and not has_sentences)):
            whole = setting.removesuffix("=") + "=" + value.removeprefix("=")
            raise UsageError(
                f"--set {setting} {' '.join(rest) if rest[0] == '=' else value}: spaces around the =, so the shell makes several words of it",
                hint=f"without spaces: --set {for_shell(whole)}",
            )
    names, meant, start = list[str](), list[str](), 0
    while start < len(args):
        is_sentence = has_sentences and not args[max(start - 1, 0)].startswith("-")
        end = start + 1
        may_go_on = end < len(args) and not args[end].startswith("-")
        if may_go_on and not (is_sentence or args[start].startswith("-") or os.path.exists(args[start])):
            end = max(end_of_name(args, start), end)
        meant.append(" ".join(args[start:end]))
        names += [meant[-1]] * (end > start + 1)
        start = end
    if names:
        raise UsageError(
            f"{names[0]}: a name with spaces needs quotation marks; without them it is {len(names[0].split(' '))} words",
            hint=f"{command} {' '.join(map(for_shell, meant))}",
        )


def end_of_name(words: Sequence[str], start: int) -> int:
    """The place behind the words that together, with spaces between, name a file or folder; `start` if no such words begin there.

    A shell makes several words of a name with spaces, unless it stands in quotation marks.
    """
    longest = start
    for end in range(start + 1, min(start + _MOST_WORDS, len(words)) + 1):
        if words[end - 1].startswith("-"):
            break
        if words[start] and os.path.exists(" ".join(words[start:end])):
            if end == start + 1:  # the word alone is a name
                return end
            longest = end
    return longest


def files_among(words: Sequence[str]) -> Iterator[str]:
    """The names of files among words, also those that have spaces."""
    start = 0
    while start < len(words):
        end = max(end_of_name(words, start), start + 1)
        if os.path.isfile(name := " ".join(words[start:end])):
            yield name
        start = end


# Those of the commands that read a corpus whose format is found out.


SourceFieldOption = Annotated[
    str | None,
    typer.Option("--source-field", help="Column of the source: a name, or a number from 0."),
]
TargetFieldOption = Annotated[str | None, typer.Option("--target-field", help="Column of the target.")]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the files, such as windows-1252 or utf-16. Default: UTF-8, or found out.",
    ),
]
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def require_run_name(name: str) -> None:
    """Refuse a value of --name that cannot be the name of a run.

    Raises:
        UsageError: it cannot.
    """
    if not _RUN_NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r} cannot be the name of a run",
            hint="letters, digits, '.', '_' and '-', of which a letter or a digit is the first; at most 100",
        )


SourceFileOption = Annotated[
    Path, typer.Option("--source", help="A text file, one sentence per line; - is standard input.")
]
TargetFileOption = Annotated[
    Path, typer.Option("--target", help="Its translations: line N belongs to line N of --source.")
]
