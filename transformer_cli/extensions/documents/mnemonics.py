"""Mnemonics: the mark of the key in a label of a program, such as &File, _Cancel and Cancel(&C), taken out and put in again."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from transformer_cli.text.languages import primary_language
from transformer_cli.text.spans import SpanKind, find_spans, masked

# Behind a label in a script without keys, before an ellipsis or a colon.
_BEHIND = re.compile(r"[ \u3000]?\((?P<sign>[&_])(?P<key>[A-Za-z0-9])\)(?=(?:\.{3}|[\u2026:\uff1a])?\s*\Z)")
# Before a letter, at the beginning of a word or inside one; before a number only at the beginning, as in a list of files: &1 a.txt.
_BEFORE = re.compile(
    r"(?<![\w&])(?P<sign>[&_])(?P<key>[^\W\d_]|(?<=\A.)\d)(?![A-Za-z0-9]{0,31};)"
    r"|(?<=[^\W\d_])(?P<inner_sign>[&_])(?P<inner_key>[^\W\d_])"
)
_END_OF_LABEL = re.compile(r"(?:\.{3}|[\u2026:\uff1a])?\s*\Z")
_WITHOUT_KEYS = frozenset(["zh", "ja", "ko"])
_LONGEST_LABEL = 200
_LETTERS = re.compile(r"[^\W_]*")
_LETTERS_AT_END = re.compile(r"[^\W_]*\Z")
_SHORT_PART = 3
# Of English, the language of most labels of Qt; "b&w" and "m&m" are none.
_SHORTEST_WORDS = frozenset(["as", "at", "by", "do", "go", "if", "in", "is", "it", "no", "of", "on", "or", "to", "up"])
# Behind a mark, letters with which no word and hardly a name of a program begins: sca_nning
_INSIDE_WORD = re.compile(r"(?:([b-df-hj-np-tv-z])\1|ck|mb|n[dgkt]|r[dkt])[a-z]*[aeiouy][a-z]")


class Mnemonic(NamedTuple):
    """The mark of a key."""

    sign: str
    """& or _."""
    key: str
    is_behind: bool
    """Whether it stands in brackets behind the label."""


def without_mnemonic(
    label: str, is_word: Callable[[str], bool] = lambda word: False, *, is_of_qt: bool = False
) -> tuple[str, Mnemonic] | None:
    """A label without the mark of its key, and the mark; None if it has none, or several signs that could be one.

    Args:
        is_word: whether letters are known to be a word. A sign inside one of small letters marks a key of it: Save a_ll. A name of a
            program has words on both sides of the sign: file_name.
        is_of_qt: whether every & that is not doubled is such a mark, but for those that join two words: drag&drop.
    """
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
    if match["inner_sign"] and not (key.islower() and _is_inside_one_word(label, place, is_word, is_of_qt)):
        return None  # black&white, R&D, GM_cookie
    if sign == "_" and match["sign"] and not (key.isupper() or " " in label.strip()):
        return None  # _id
    return label[:place] + label[place + 1 :], Mnemonic(sign, key, is_behind=False)


def with_mnemonic(label: str, mnemonic: Mnemonic, language: str, taken: Collection[str] = ()) -> str:
    """A label with the mark before a word that begins with the key, else before the first word.

    In a language that is written without such letters it stands in brackets behind the label.

    Args:
        taken: the keys of the labels beside it, in small letters. A word that begins with one of them is marked at another
            letter, if there is one that is free.
    """
    visible = masked(label, [span for span in find_spans(label) if span.kind is not SpanKind.LETTER], " ")
    places = [at for at, sign in enumerate(visible) if sign.isalnum()]
    if mnemonic.is_behind or primary_language(language) in _WITHOUT_KEYS or not places:
        end = _END_OF_LABEL.search(label)
        place = end.start() if end else len(label)
        return f"{label[:place]}({mnemonic.sign}{mnemonic.key.upper()}){label[place:]}"
    starts = [at for at in places if at == 0 or not visible[at - 1].isalnum()]
    same = [at for at in starts if visible[at].casefold() == mnemonic.key.casefold()]
    wanted = [*same, *starts, *places]
    place = next((at for at in wanted if visible[at].casefold() not in taken), wanted[0])
    return f"{label[:place]}{mnemonic.sign}{label[place:]}"


@dataclass(slots=True)
class KeysOfLabels:
    """Marks the labels of a document in order, so that those beside each other have different keys, as in their source.

    No file says which labels are in one menu. Labels whose keys differ in the source may be, up to the one that has the key
    of an earlier one, or another sign.
    """

    language: str
    """Of the labels."""
    _sign: str = ""
    _source_keys: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)

    def marked(self, label: str, mnemonic: Mnemonic) -> str:
        """A translated label with its mark; see `with_mnemonic`."""
        self._begin(mnemonic)
        found = with_mnemonic(label, mnemonic, self.language, self._taken)
        place = next(at for at, sign in enumerate(found) if label[at : at + 1] != sign)
        start = place + found[place:].index(mnemonic.sign) + 1
        self._taken.add(found[start].casefold())
        return found

    def keep(self, mnemonic: Mnemonic) -> None:
        """Note the key of a label that stays as it is."""
        self._begin(mnemonic)
        self._taken.add(mnemonic.key.casefold())

    def _begin(self, mnemonic: Mnemonic) -> None:
        key = mnemonic.key.casefold()
        if key in self._source_keys or mnemonic.sign != self._sign:
            self._source_keys, self._taken = set(), set()
        self._sign = mnemonic.sign
        self._source_keys.add(key)


def _is_inside_one_word(label: str, place: int, is_word: Callable[[str], bool], is_of_qt: bool) -> bool:
    """Whether a sign inside a word marks a key of it: E&xit, e&xit, a_ll, in labels of Qt too&lbar and u&p; GM_cookie and m&m are names."""
    before, after = _LETTERS_AT_END.search(label[:place]), _LETTERS.match(label, place + 1)
    first, second = (found[0] if found else "" for found in (before, after))
    if first[:1].isupper():
        return first[1:] == first[1:].lower()
    if (label[place] == "&" or " " in label.strip()) and _are_of_word(first, second, is_word):
        return True
    shorter, longer = sorted((len(first), len(second)))
    is_likely = shorter <= _SHORT_PART if is_of_qt else len(first) == 1
    is_long = longer > 1 or (is_of_qt and first + second in _SHORTEST_WORDS)
    return label[place] == "&" and is_likely and is_long


def _are_of_word(first: str, second: str, is_word: Callable[[str], bool]) -> bool:
    """Whether two parts of small letters are one word, and not both words of a name."""
    if not (first + second).islower() or len(first + second) < _SHORT_PART:
        return False
    are_words = [(len(part) >= _SHORT_PART or part in _SHORTEST_WORDS) and is_word(part) for part in (first, second)]
    if is_word(first + second):
        return not all(are_words)
    return not any(are_words) and _INSIDE_WORD.match(second) is not None


def _is_inside_span(label: str, place: int, sign: str) -> bool:
    """Whether a sign belongs to a URL, a placeholder and the like; a word such as E_xit looks like the name of a program."""
    for span in find_spans(label):
        if span.start <= place < span.end:
            text = label[span.start : span.end]
            return not (sign == "_" and text.replace("_", "", 1).isalpha())
    return False
