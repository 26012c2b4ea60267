"""Mnemonics: the mark of the key in a label of a program, such as &File, _Cancel and Cancel(&C), taken out and put in again."""

import re
from typing import NamedTuple

from transformer_cli.text.languages import primary_language
from transformer_cli.text.sentences import find_spans, masked

# Behind a label in a script without keys, before an ellipsis or a colon.
_BEHIND = re.compile(
    r"[ \u3000]?\((?P<sign>[&_])(?P<key>[A-Za-z0-9])\)(?=(?:\.{3}|[\u2026:\uff1a])?\s*\Z)"
)
# Before a letter: at the beginning of a word, or inside one that begins with a capital letter, but not in R&D.
_BEFORE = re.compile(
    r"(?<![\w&])(?P<sign>[&_])(?P<key>[^\W_])(?![A-Za-z0-9]{0,31};)"
    r"|(?:(?<=\b[A-Z])|(?<=\b[A-Z][a-z])|(?<=[a-z]{3}))(?P<inner_sign>[&_])(?P<inner_key>[a-z])"
)
_END_OF_LABEL = re.compile(r"(?:\.{3}|[\u2026:\uff1a])?\s*\Z")
_WITHOUT_KEYS = frozenset(["zh", "ja", "ko"])
_LONGEST_LABEL = 200


class Mnemonic(NamedTuple):
    """The mark of a key."""

    sign: str
    """& or _."""
    key: str
    is_behind: bool
    """Whether it stands in brackets behind the label."""


def without_mnemonic(label: str) -> tuple[str, Mnemonic] | None:
    """A label without the mark of its key, and the mark; None if it has none, or several signs that could be one."""
    if len(label) > _LONGEST_LABEL or ("&" not in label and "_" not in label):
        return None
    behind = _BEHIND.search(label)
    if behind:
        found = Mnemonic(behind["sign"], behind["key"], is_behind=True)
        return label[: behind.start()] + label[behind.end() :], found
    matches = list(_BEFORE.finditer(label))
    if len(matches) != 1:
        return None
    [match] = matches
    sign, key = match["sign"] or match["inner_sign"], match["key"] or match["inner_key"]
    place = match.start("sign") if match["sign"] else match.start("inner_sign")
    if label.count(sign) != 1 or _is_inside_span(label, place, sign):
        return None
    if match["inner_sign"] and not _word_before(label, place)[:1].isupper():
        return None
    if sign == "_" and match["sign"] and not (key.isupper() or " " in label.strip()):
        return None  # _id
    return label[:place] + label[place + 1 :], Mnemonic(sign, key, is_behind=False)


def with_mnemonic(label: str, mnemonic: Mnemonic, language: str) -> str:
    """A label with the mark before a word that begins with the key, else before the first word.

    In a language that is written without such letters it stands in brackets behind the label.
    """
    visible = masked(label, find_spans(label), " ")
    places = [at for at, sign in enumerate(visible) if sign.isalnum()]
    if mnemonic.is_behind or primary_language(language) in _WITHOUT_KEYS or not places:
        end = _END_OF_LABEL.search(label)
        place = end.start() if end else len(label)
        return f"{label[:place]}({mnemonic.sign}{mnemonic.key.upper()}){label[place:]}"
    starts = [at for at in places if at == 0 or not visible[at - 1].isalnum()]
    same = [at for at in starts if visible[at].casefold() == mnemonic.key.casefold()]
    place = (same or starts)[0]
    return f"{label[:place]}{mnemonic.sign}{label[place:]}"


def _word_before(label: str, place: int) -> str:
    start = place
    while start and label[start - 1].isalnum():
        start -= 1
    return label[start:place]


def _is_inside_span(label: str, place: int, sign: str) -> bool:
    """Whether a sign belongs to a URL, a placeholder and the like; a word such as E_xit looks like the name of a program."""
    for span in find_spans(label):
        if span.start <= place < span.end:
            text = label[span.start : span.end]
            return not (sign == "_" and re.fullmatch(r"[A-Z][a-z]*_[a-z]+", text))
    return False
