"""What is odd about the first pairs of a corpus, as warnings while it is read: numbers, tokenised text, other languages; and their record."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import islice

from transformer_cli.config import FilesData, HubCorpus, HubData
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.languages import contradicting_language, name_of, primary_language

logger = logging.getLogger(__name__)

Row = tuple[str, str]
"""The source and the target of a pair."""

_NUM_WATCHED = 1000
_NUM_WATCHED_FOR_NUMBERS = 100
_MIN_NUMBERS = 4
_MIN_TOKENISED = 10
_TOKENISED_SHARE = 0.3
# What only a tokenizer writes: do n't, @-@, &apos;s, l&apos;, &quot; alone.
_TOKEN = re.compile(
    r"(?<!\S)(?:n['’]t|@[-,./:]@|&(?:apos|quot|amp|lt|gt|#91|#93|#124);|&apos;\w{1,2}|\w{1,6}&apos;)(?!\S)"  # noqa: RUF001
)
# What a division into subwords writes: subword-nmt, and files that were encoded with SentencePiece.
_SUBWORD = re.compile(r"(?<!\S)\S+@@(?!\S)|(?<!\S)▁\S")
# Marks that stand at a word in every language that has them. (French has a space before ! ? ; and :)
_DETACHED = re.compile(r"\S ,(?!\S)|\w \.$")
_ATTACHED = re.compile(r"\w,(?!\S)|\w\.$")
# Chinese and Japanese have no spaces between words, unless a program has divided the text: then after a few signs each.
_SIGN = "[\u3041-\u30ff\u3400-\u9fff]"
_SIGNS, _DIVIDED = re.compile(_SIGN), re.compile(rf"{_SIGN} (?={_SIGN})")
_LONGEST_WORD = 5


def watched(rows: Iterator[Row], data: FilesData | HubData, index: int) -> Iterator[Row]:
    """The rows of `data.corpora[index]`; when the first ones were read, warnings are logged, each once."""
    first: list[Row] = []
    for row in islice(rows, _NUM_WATCHED):
        first.append(row)
        yield row
    place = _place_of(data, index)
    sides = [[row[side] for row in first] for side in (0, 1)]
    for name, texts in zip(("source", "target"), sides, strict=True):
        _watch_for_numbers(place, name, texts[:_NUM_WATCHED_FOR_NUMBERS])
        _watch_for_subwords(place, name, texts)
        _watch_for_tokens(place, name, texts)
    _watch_for_languages(place, data.directions_of(index)[0], sides)
    yield from rows


def _place_of(data: FilesData | HubData, index: int) -> str:
    corpus = data.corpora[index]
    if isinstance(corpus, HubCorpus):
        return f"data.corpora.{index} ({corpus.dataset})"
    return f"data.corpora.{index} ({corpus.path or corpus.source_path})"


def _watch_for_numbers(place: str, side: str, texts: Sequence[str]) -> None:
    numbers = [text for text in texts if _is_number(text)]
    if len(numbers) > max(_MIN_NUMBERS, len(texts) // 2):
        warn_of_corpus(
            f"{place}: the {side} is a number in {len(numbers)} of the first {len(texts)} pairs, such as {numbers[0]!r}; if these "
            "are ids and no sentences, set source_field and target_field to the columns of the sentences"
        )


def _is_number(text: str) -> bool:
    return any(map(str.isdecimal, text)) and not any(map(str.isalpha, text))


def is_tokenised(text: str) -> bool:
    """Whether the marks of a text stand apart from its words, as the tokenizer of Moses writes them, or its signs are divided into words."""
    if _TOKEN.search(text) or _DETACHED.search(text):
        return True
    num_spaces = len(_DIVIDED.findall(text))
    return num_spaces > 1 and len(_SIGNS.findall(text)) <= _LONGEST_WORD * num_spaces


def _watch_for_subwords(place: str, side: str, texts: Sequence[str]) -> None:
    found = [text for text in texts if _SUBWORD.search(text)]
    if len(found) >= max(_MIN_TOKENISED, _TOKENISED_SHARE * len(texts)):
        warn_of_corpus(
            f"{place}: the {side} is cut into subwords in {len(found):,} of the first {len(texts):,} pairs, such as "
            f"{on_one_line(found[0], 60)!r}: the model would learn such text, and tfm translate gets plain text; give the corpus "
            "before it was cut, or join it: sed 's/@@ //g' FILE > NEW, or spm_decode for SentencePiece"
        )


def _watch_for_tokens(place: str, side: str, texts: Sequence[str]) -> None:
    found = [text for text in texts if is_tokenised(text.strip())]
    num_plain = sum(_ATTACHED.search(text.strip()) is not None for text in texts)
    if len(found) < max(_MIN_TOKENISED, _TOKENISED_SHARE * (len(found) + num_plain)):
        return
    examples = " and ".join(repr(on_one_line(text, 60)) for text in dict.fromkeys(found[:2]))
    warn_of_corpus(
        f"{place}: the {side} is tokenised in {len(found):,} of the first {len(texts):,} pairs, such as {examples}: the model "
        "would learn such text, and tfm translate gets plain text; give the corpus before it was tokenised, or detokenise it "
        "(sacremoses detokenize, or detokenizer.perl of Moses)"
    )


def _watch_for_languages(place: str, languages: tuple[str, str], sides: Sequence[Sequence[str]]) -> None:
    codes = [primary_language(language) for language in languages]
    found = [contradicting_language(code, texts) for code, texts in zip(codes, sides, strict=True)]
    if found == codes[::-1]:
        warn_of_corpus(
            f"{place}: the source looks like {_named(found[0])} and the target like {_named(found[1])}, so the sides are the wrong "
            "way round: exchange source_path and target_path, or source_field and target_field, or data.source_language and "
            "data.target_language"
        )
        return
    for side, code, other, texts in zip(("source", "target"), codes, found, sides, strict=True):
        if other is not None:
            warn_of_corpus(
                f"{place}: the {side} looks like {_named(other)}, such as {on_one_line(texts[0], 60)!r}, and the config says "
                f"{_named(code)}: give other files or columns, or correct data.{side}_language"
            )


def _named(code: str | None) -> str:
    return "" if code is None else f"{name_of(code)} ({code})"


_FOUND: ContextVar[dict[str, None]] = ContextVar("found")


@contextmanager
def recorded_warnings() -> Iterator[dict[str, None]]:
    """The warnings about a corpus that is read in the block, as keys; prepared data keep them, and tell them again."""
    found: dict[str, None] = {}
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def warn_of_corpus(message: str) -> None:
    """Log a warning, once, although a large corpus is read twice; and note it."""
    _FOUND.get({})[message] = None
    _log_once(message)


@cache
def _log_once(message: str) -> None:
    logger.warning("%s", message)
