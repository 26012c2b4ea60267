"""The arguments and options of `tfm translate`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.arguments.document import (
    ColumnsOption,
    EncodingOption,
    FormatOption,
    ValuesOption,
)
from transformer_cli.commands.arguments.glossary import GlossaryOption
from transformer_cli.commands.arguments.hypotheses import (
    CometOption,
    NBestOption,
    PrefixesOption,
    PrefixOption,
)
from transformer_cli.commands.arguments.real_text import ProtectOption, StrictOption
from transformer_cli.commands.options import (
    BeamOption,
    DebugOption,
    FromOption,
    JsonOption,
    Overrides,
    RunsOption,
    ToOption,
    set_option,
)
from transformer_cli.process.errors import UsageError

if TYPE_CHECKING:
    from transformer_cli.commands.documents.chosen_document import ChosenDocument

InputOption = Annotated[
    Path | None,
    typer.Option(
        "--input",
        help="A text file, one sentence per line, may be compressed; or a document such as page.html. - is standard input.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="A file for the translations. Default, or -: standard output.",
    ),
]
AlignmentOption = Annotated[
    bool,
    typer.Option(
        "--alignment",
        help="Print, after a tab, which words belong together: 0-0 1-2 links the first words, and the second with the third.",
    ),
]
DetailsOption = Annotated[
    bool,
    typer.Option(
        "--details", help="With --json: tokens, their probabilities, and the word alignment."
    ),
]
AttentionOption = Annotated[
    bool,
    typer.Option("--attention", help="With --json: as --details, and the attention weights."),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Keep the output so far in OUTPUT.unfinished; after an interruption, the same command goes on.",
    ),
]
ReplaceUnknownOption = Annotated[
    bool,
    typer.Option(
        "--replace-unknown",
        help="Show the word of the source that the model read, instead of [UNK]. For tokenizer.kind wordlevel.",
    ),
]
DictionaryOption = Annotated[
    Path | None,
    typer.Option(
        "--dictionary",
        help="With --replace-unknown: a file of lines WORD, tab, TRANSLATION for these words.",
    ),
]
SentencesArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Sentences, one per argument. Default: the lines of standard input."),
]
SettingsOption = Annotated[
    Overrides, set_option("decoding.beam_size=8", completion.settings_of_translating)
]


def translate(
    sentences: SentencesArgument = None,
    run: RunsOption = None,
    input_file: InputOption = None,
    output_file: OutputOption = None,
    document_format: FormatOption = None,
    columns: ColumnsOption = None,
    values: ValuesOption = None,
    encoding: EncodingOption = None,
    overrides: SettingsOption = None,
    beam_size: BeamOption = None,
    protect: ProtectOption = False,
    strict: StrictOption = False,
    n_best: NBestOption = None,
    prefix: PrefixOption = None,
    prefixes: PrefixesOption = None,
    comet: CometOption = None,
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
    """Translate sentences or a document. Line N of the output is the translation of line N of the input."""
    if sentences and input_file:
        raise UsageError("give either sentences or --input, not both")
    if prefix and prefixes:
        raise UsageError("give either --prefix or --prefixes, not both")
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.commands.translate import run_translation
    from transformer_cli.commands.translating.wishes import Wishes

    settings = _with_beam(overrides, beam_size)
    flags = {"alignment": alignment, "details": details, "attention": attention, "resume": resume}
    flags |= {"protects_spans": protect, "is_strict": strict, "replace_unknown": replace_unknown}
    wishes = Wishes(
        to, from_, n_best, prefix, prefixes, glossary, dictionary=dictionary, comet=comet, **flags
    )
    document = _document(
        input_file, document_format, columns, values, encoding, has_text=bool(sentences)
    )
    if document is not None:
        from transformer_cli.commands.documents.whole_document import run_document_translation

        run_document_translation(
            document, output_file, run=run, overrides=settings, wishes=wishes, as_json=as_json
        )
        return
    _check_output_of_text(output_file)
    given = sentences or input_file
    run_translation(given, output_file, run=run, overrides=settings, wishes=wishes, as_json=as_json)


def _check_output_of_text(output: Path | None) -> None:
    """Refuse to write lines of text into a file whose name says that it is a zip archive, such as .docx."""
    if output is None:
        return
    from transformer_cli.extensions.documents.formats import format_of

    named = format_of(output)
    if named is not None and named.is_archive:
        raise UsageError(
            f"the input is plain text, and {output} has the ending of {named.name}",
            hint="name an --output that ends with .txt: plain text is not converted",
        )


def _document(
    input_file: Path | None,
    document_format: str | None,
    columns: str | None,
    values: list[str] | None,
    encoding: str | None,
    *,
    has_text: bool,
) -> "ChosenDocument | None":
    """The document to translate, if there is one; a sentence does not wait for the import of its readers."""
    if not (input_file or document_format or columns or values or encoding):
        return None
    from transformer_cli.commands.documents.chosen_document import chosen_document

    return chosen_document(
        input_file,
        document_format,
        columns=columns,
        values=values or [],
        encoding=encoding,
        has_text=has_text,
    )


def _with_beam(overrides: list[str] | None, beam_size: int | None) -> list[str]:
    return [*(overrides or []), *([] if beam_size is None else [f"decoding.beam_size={beam_size}"])]
