"""`tfm translate`: the options, and which of the ways they lead: lines, a document, or a person at a terminal."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    BeamOption,
    FromOption,
    JsonOption,
    Overrides,
    RunsOption,
    ToOption,
    set_option,
)
from transformer_cli.process.errors import UsageError

logger = logging.getLogger(__name__)

DOCUMENTS = "transformer_cli.extensions.documents.translate_command"
"""Where documents are translated; the core imports it only for a file."""
ENCODINGS = "transformer_cli.extensions.documents.character_encoding"
"""What finds the encoding of a text file."""

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
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The format of the input: txt translates it line by line, html and others as a document. "
        "Default: by the ending of its name.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="For csv and tsv: which columns are translated, by name or by number from 1, such as title,3. "
        "English=Italian translates one column into another, which may be new.",
    ),
]
ValuesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--values",
        metavar="PATTERN",
        help="For json and yaml: which values are translated, such as items.*.title; may be repeated. "
        "Default: all strings but names for programs, such as en_US.",
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="For text files that are not UTF-8: their encoding, such as windows-1252; the output has it, too. "
        "Also of a --memory or --glossary that is not UTF-8; then an input in UTF-8 stays UTF-8.",
    ),
]
ProtectOption = Annotated[
    bool,
    typer.Option(
        "--protect",
        help="Keep URLs, e-mail addresses, numbers, placeholders such as {name}, paths and tags unchanged.",
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a sentence that is too long for the model. Default: translate it in parts.",
    ),
]
NBestOption = Annotated[
    int | None,
    typer.Option(
        "--n-best",
        metavar="N",
        min=1,
        max=64,
        help="Print the N best translations of each line: rank, score and text, separated by tabs.",
    ),
]
PrefixOption = Annotated[
    str | None,
    typer.Option("--prefix", metavar="TEXT", help="Whole words with which each translation begins."),
]
PrefixesOption = Annotated[
    Path | None,
    typer.Option(
        "--prefixes",
        help="A text file: line N is the --prefix of line N of the input; an empty line means no prefix.",
    ),
]
CometOption = Annotated[
    Path | None,
    typer.Option(
        "--comet",
        metavar="FOLDER",
        help="With decoding.mbr: choose by the COMET model in this folder, not by chrF. Needs unbabel-comet.",
    ),
]
GlossaryOption = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="A file of terms that translations must contain: on each line a source term, a tab, a target term; or CSV, or XLSX.",
    ),
]
MemoryOption = Annotated[
    Path | None,
    typer.Option(
        "--memory",
        help="A table, XLSX, TMX or XLIFF with translations, such as corrected ones: a text that stands there as a whole is not "
        "translated again.",
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
    typer.Option("--details", help="With --json: tokens, their probabilities, and the word alignment."),
]
AttentionOption = Annotated[
    bool,
    typer.Option("--attention", help="With --json: as --details, and the attention weights."),
]
MarkOption = Annotated[
    bool,
    typer.Option(
        "--mark",
        help="Print, after a tab, green if the translation can be trusted as tfm calibrate has found, else -, and after "
        "another tab the estimated probability that it is good; nothing after what needs no translation. In a document: mark what is not green (fuzzy, needs-review; in a table a column behind a new one).",
    ),
]
OnlyGreenOption = Annotated[
    bool,
    typer.Option(
        "--only-green",
        help="Leave out each translation that cannot be trusted, as tfm calibrate has found: its line is empty; in a "
        "document, its source stays.",
    ),
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
ViaOption = Annotated[
    str | None,
    typer.Option(
        "--via",
        metavar="LANGUAGE",
        help="Translate through this language, the pivot: --run names the model into it, a second --run the one that goes on; "
        "or one model that does both.",
    ),
]
SettingsOption = Annotated[Overrides, set_option("decoding.beam_size=8", completion.settings_of_translating)]


def translate_command(
    sentences: SentencesArgument = None,
    run: RunsOption = None,
    via: ViaOption = None,
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
    memory: MemoryOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    alignment: AlignmentOption = False,
    details: DetailsOption = False,
    attention: AttentionOption = False,
    mark: MarkOption = False,
    only_green: OnlyGreenOption = False,
    replace_unknown: ReplaceUnknownOption = False,
    dictionary: DictionaryOption = None,
    resume: ResumeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Translate sentences or a document. Line N of the output is the translation of line N of the input."""
    if sentences and input_file:
        raise UsageError("give either sentences or --input, not both")
    if prefix and prefixes:
        raise UsageError("give either --prefix or --prefixes, not both")
    settings = list(overrides or [])
    if beam_size is not None:
        settings.append(f"decoding.beam_size={beam_size}")
    from transformer_cli.commands.translate_lines import TranslateOptions, translate_lines

    options = TranslateOptions(
        run=run,
        via=via,
        overrides=settings,
        to=to,
        from_=from_,
        num_best=n_best,
        prefix=prefix,
        prefixes=prefixes,
        glossary=glossary,
        memory=memory,
        table_encoding=encoding,
        alignment=alignment,
        details=details,
        attention=attention,
        mark=mark,
        only_green=only_green,
        protects_spans=protect,
        is_strict=strict,
        replace_unknown=replace_unknown,
        dictionary=dictionary,
        comet=comet,
        resume=resume,
        as_json=as_json,
    )
    text_encoding = None if sentences and (memory or glossary) else encoding
    if text_encoding and (memory or glossary) and input_file is not None and input_file.is_file():
        beside = resolve_name(f"{ENCODINGS}:encoding_beside_memory")
        text_encoding = beside(input_file.read_bytes(), encoding)
    if sentences and len(sentences) > 1 and _are_words_of_one(sentences):
        logger.warning("each argument is a sentence of its own: write one sentence in quotation marks")
    if input_file or document_format or columns or values or text_encoding:
        document = resolve_name(f"{DOCUMENTS}:chosen_document")(
            input_file,
            document_format,
            columns=columns,
            values=values or [],
            encoding=text_encoding,
            has_text=bool(sentences),
        )
        if document is not None:
            resolve_name(f"{DOCUMENTS}:translate_document_file")(document, output_file, options)
            return
    if output_file is not None:
        resolve_name(f"{DOCUMENTS}:check_output_of_text")(output_file)
    translate_lines(sentences or input_file, output_file, options)


def _are_words_of_one(sentences: list[str]) -> bool:
    """Whether several arguments look like the words of one sentence without quotation marks; sentences of Chinese have no spaces either."""
    ends = (one[-1:].isalnum() for one in sentences[:-1])
    are_words = not any(" " in one for one in sentences) and any(map(str.isascii, sentences))
    # Of two arguments, the second may be a word of its own or a name; a file is told of elsewhere.
    is_long = len(sentences) > 2 or (sentences[-1][:1].islower() and not any(map(os.path.exists, sentences)))
    return are_words and all(ends) and is_long
