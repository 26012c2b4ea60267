"""What can be told of one pair: its languages, faults of its texts, and which other pairs it is like."""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from html.entities import html5
from pathlib import Path
from typing import NamedTuple

from transformer_cli.config import Direction
from transformer_cli.data.pairs import SentencePair, pair_digest
from transformer_cli.data.selection import DigestSet
from transformer_cli.text.language_detection import LanguageDetector
from transformer_cli.text.languages import LANGUAGE_OF_SCRIPT, plain_code, script_of_letters

REPLACEMENT_CHARACTER = "\ufffd"
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def with_encoding_mended(text: str) -> str:
    """The text, with `perchÃ©` written as `perché`: UTF-8 that was read as another encoding."""
    if text.isascii():
        return text
    import ftfy
    from ftfy.badness import is_bad

    # Curly quotes and other ordinary characters also change under ftfy, where nothing is broken.
    if not is_bad(text):
        return text
    return ftfy.fix_encoding(text)


def without_entities(text: str) -> str:
    """The text, with `&quot;` and other entities of HTML as the characters that they mean; R&D; is no entity, nor is &notit;."""
    if "&" not in text:
        return text
    return _ENTITY.sub(_meaning, text)


def _meaning(entity: re.Match[str]) -> str:
    # `html.unescape` reads &notit; as &not; and two letters more.
    name = entity[0][1:]
    return html.unescape(entity[0]) if name.startswith("#") or name in html5 else entity[0]


_MIN_WORDS = 4
_MIN_COMMON_SHARE = 0.8


class _PlainCharacters(dict[int, str]):
    """For `str.translate`: letters, digits and the marks on them stay, such as the vowels of Hindi; the others become spaces."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_mark = unicodedata.category(character) in ("Mn", "Mc") and "VARIATION" not in unicodedata.name(character, "")
        return self.setdefault(code, character if is_mark or character.isalnum() else " ")


_PLAIN_CHARACTERS = _PlainCharacters()


def plain_form(text: str) -> str:
    """The letters, their marks and the digits of a text in lower case, in Unicode NFKC, with one space between words."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().translate(_PLAIN_CHARACTERS).split())


def plain_digest(*forms: str) -> bytes:
    """A hash of 16 bytes of one or more plain forms."""
    return blake2b("\n".join(forms).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def is_nearly_untranslated(source: str, target: str) -> bool:
    """Whether most words of two plain forms are the same; numbers and codes do not count, and few words never do.

    Args:
        source: the plain form of the source.
        target: the plain form of the target.
    """
    sides = [[word for word in text.split() if _is_of_letters(word)] for text in (source, target)]
    if min(map(len, sides)) < _MIN_WORDS:
        return False
    words = set(sides[0]), set(sides[1])
    return len(words[0] & words[1]) >= _MIN_COMMON_SHARE * max(map(len, words))


def _is_of_letters(word: str) -> bool:
    """Whether a word of a plain form has no digit; it may have marks."""
    return word.isalpha() or all(character.isalpha() or not character.isalnum() for character in word)


class HeldOutForms:
    """Digests of held-out pairs, and of their sources and targets alone.

    Args:
        folder: where to put large tables.
    """

    def __init__(self, folder: Path) -> None:
        def digests(name: str) -> DigestSet:
            (folder / name).mkdir()
            return DigestSet(folder / name)

        self.exact = digests("exact")
        """`pair_digest` of the pairs."""
        self._pairs, self._sources, self._targets = map(digests, ("pairs", "sources", "targets"))

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, pair: SentencePair, forms: tuple[str, str]) -> None:
        """Add a held-out pair; a text without letters and digits counts only as it is."""
        self.exact.add(pair_digest(pair))
        if not all(forms):
            return
        self._pairs.add(plain_digest(*forms))
        self._sources.add(plain_digest(forms[0]))
        self._targets.add(plain_digest(forms[1]))

    def overlaps(self, pair: SentencePair, forms: tuple[str, str]) -> Iterator[str]:
        """How a pair overlaps with held-out pairs, the gravest first: leakage, near_leakage, leaked_source, leaked_target."""
        if pair_digest(pair) in self.exact:
            yield "leakage"
        if not self or not all(forms):
            return
        if plain_digest(*forms) in self._pairs:
            yield "near_leakage"
        if plain_digest(forms[0]) in self._sources:
            yield "leaked_source"
        if plain_digest(forms[1]) in self._targets:
            yield "leaked_target"

    def close(self) -> None:
        """Free the tables."""
        tables: Iterable[DigestSet] = (self.exact, self._pairs, self._sources, self._targets)
        for table in tables:
            table.close()


MIN_LETTERS = 20
"""The language of a sentence of fewer letters is not judged."""
_MIN_PROBABILITY = 0.8
_MAX_CHARACTERS = 200
# Scripts in which the model has seen no language, although it knows their languages in other letters.
_UNSEEN_SCRIPTS = frozenset(["JAVANESE", "MONGOLIAN"])
# Languages that are so alike, or so often named by each other's code, that the model does not decide.
_ALIKE = (
    {"no", "nb", "nn", "da"},
    {"hr", "sr", "bs", "sh"},
    {"id", "ms"},
    {"zh", "wuu", "yue"},
    {"tl", "fil", "ceb"},
    {"gl", "pt"},
    {"fa", "tg", "prs"},
)


def has_few_letters(text: str) -> bool:
    """Whether a sentence is too short for its language to be judged."""
    return sum(map(str.isalpha, text[:_MAX_CHARACTERS])) < MIN_LETTERS


class SentenceLanguageDetector(LanguageDetector):
    """Recognises languages; single sentences only if they are long enough and the model is sure."""

    def language_of(self, text: str) -> str | None:
        """The language of a text; None if it is too short, in a script that the model does not know, or the model is not sure."""
        beginning = text[:_MAX_CHARACTERS]
        if has_few_letters(beginning) or not self._knows_script(beginning):
            return None
        return self.most_probable(beginning, at_least=_MIN_PROBABILITY)

    def _knows_script(self, text: str) -> bool:
        script = "LATIN" if text.isascii() else script_of_letters(text)
        return script == "LATIN" or (script not in _UNSEEN_SCRIPTS and LANGUAGE_OF_SCRIPT.get(script) in self.languages)

    def can_tell(self, language: str) -> bool:
        """Whether the model knows a language."""
        return plain_code(language) in self.languages


def are_alike(one: str, other: str) -> bool:
    """Whether two codes name one language, or languages that are easily confused."""
    codes = {plain_code(one), plain_code(other)}
    return len(codes) == 1 or any(codes <= group for group in _ALIKE)


class SpokenPair(NamedTuple):
    """The languages of both sides of a pair."""

    found: tuple[str | None, str | None]
    """None: too short, not sure, or the model does not know the language that is expected."""
    are_wrong: tuple[bool, bool]
    """Whether each side is surely in another language than expected."""
    is_exchanged: bool
    """Whether the source is in the language of the target, and the other way round."""

    @property
    def note(self) -> str:
        """The languages, for people."""
        return " | ".join(language or "?" for language in self.found)


def spoken_pair(detector: SentenceLanguageDetector, pair: SentencePair, expected: Direction) -> SpokenPair:
    """The languages of a pair, compared with the expected ones."""
    source, target = (
        detector.language_of(text) if detector.can_tell(language) else None
        for text, language in zip(pair[:2], expected, strict=True)
    )
    is_other = source is not None and not are_alike(source, expected.source)
    are_wrong = is_other, target is not None and not are_alike(target, expected.target)
    is_exchanged = (
        all(are_wrong) and are_alike(str(source), expected.target) and are_alike(str(target), expected.source)
    )
    return SpokenPair((source, target), are_wrong, is_exchanged)
