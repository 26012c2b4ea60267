"""The languages of a model folder: as the user says, or as its files or its name say."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from transformer_cli.config import FileCorpus, FilesData
from transformer_cli.config.data import CleaningConfig
from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes
from transformer_cli.extensions.exchange.porting.importing.model_folder import (
    ModelFolder,
    text_setting,
)
from transformer_cli.process.errors import UsageError
from transformer_cli.text.languages import meant_among

CORPUS = "corpus.tsv"
"""The name of the corpus in the config of an imported run, which the user replaces."""
_PAIR_IN_NAME = re.compile(r"(?:^|[-_.])([A-Za-z]{2,8})-([A-Za-z]{2,8})$")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*")


@dataclass(frozen=True, slots=True)
class Languages:
    """The directions of a model."""

    source: str
    targets: tuple[str, ...]
    tagged: tuple[str, ...]
    """The same as `targets` if a tag before the source names the target language; else empty."""


def languages_of(folder: ModelFolder, wishes: Wishes, *, codes: Sequence[str]) -> Languages:
    """The languages of a model.

    Args:
        folder: of the model.
        wishes: what the user says.
        codes: the target languages for which the vocabulary has an entry such as >>fra<<; with two or more of them, such an
            entry must stand before each source.

    Raises:
        UsageError: nothing says what the languages are, or the model does not have one that the user names.
    """
    found = _pair_in_files(folder) or _pair_in_name(folder)
    source = wishes.source_language or (found and found[0])
    usable = [code for code in codes if _LANGUAGE.fullmatch(code)]
    if len(usable) > 1:
        targets = tuple(_code_of(wish, usable) for wish in wishes.target_languages) or (*usable,)
    elif len(wishes.target_languages) > 1:
        raise UsageError(
            f"--to {' --to '.join(wishes.target_languages)}: the vocabulary of this model has no entries for several "
            "target languages, such as >>fra<<",
            hint="give one --to",
        )
    else:
        targets = (*wishes.target_languages,) or ((found[1],) if found else ())
    if source is None or not targets:
        missing = "--from" if source is None else "--to"
        raise UsageError(
            f"{folder}: no file in it says between which languages the model translates",
            hint=f"add {missing} with a language, such as {missing} en",
        )
    for language in (source, *targets):
        if not _LANGUAGE.fullmatch(language):
            raise UsageError(f"{language!r} is not the code of a language, such as en or pt-BR")
    return Languages(source, targets, targets if len(usable) > 1 else ())


def imported_data(languages: Languages, *, normalize_unicode: bool = True) -> FilesData:
    """The data section of an imported run: where its corpus for fine-tuning would be."""
    [first, *others] = languages.targets
    corpora = [FileCorpus(path=CORPUS)]
    if others:
        corpora = [
            FileCorpus(path=f"{target}-{CORPUS}", target_language=target)
            for target in languages.targets
        ]
    return FilesData(
        source="files",
        source_language=languages.source,
        target_language=first,
        cleaning=CleaningConfig(normalize_unicode=normalize_unicode, normalize_invisible=None),
        target_tag=bool(languages.tagged) and not others,
        corpora=tuple(corpora),
    )


def _code_of(wish: str, codes: Sequence[str]) -> str:
    if (meant := meant_among(wish, codes)) is not None:
        return meant
    shown = ", ".join(codes[:20]) + (", ..." if len(codes) > 20 else "")
    raise UsageError(f"--to {wish}: this model translates into: {shown}")


def _pair_in_files(folder: ModelFolder) -> tuple[str, str] | None:
    settings = folder.json_or_empty("tokenizer_config.json")
    source, target = (text_setting(settings, f"{side}_lang") for side in ("source", "target"))
    if source and target and _LANGUAGE.fullmatch(source) and _LANGUAGE.fullmatch(target):
        return source, target
    return None


def _pair_in_name(folder: ModelFolder) -> tuple[str, str] | None:
    found = _PAIR_IN_NAME.search(folder.path.absolute().name)
    return (found[1], found[2]) if found else None
