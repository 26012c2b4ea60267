"""The languages of a server: how clients call them, and the language of a text that comes without one."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from transformer_cli.text.language_detection import LanguageDetector
from transformer_cli.text.languages import primary_language

# The codes of LibreTranslate before it took those of BCP 47, and the same languages in BCP 47.
_OTHER_CODES = {"pb": "pt-br", "zh": "zh-hans", "zt": "zh-hant", "nb": "no"}


def served_language(given: str, served: Iterable[str]) -> str | None:
    """The language of a server that a client means; None if the server does not have it.

    Args:
        given: such as it, IT, it-IT or pb.
        served: the languages of the server, as its runs call them.
    """
    by_code = {_plain(language): language for language in served}
    code = _plain(given)
    back = {new: old for old, new in _OTHER_CODES.items()}
    for name in (code, _OTHER_CODES.get(code), back.get(code), primary_language(code)):
        if name in by_code:
            return by_code[name]
    # A language without a region also means the only one that the server has of it.
    regional = [language for name, language in by_code.items() if primary_language(name) == code]
    return regional[0] if len(regional) == 1 else None


def _plain(code: str) -> str:
    primary, dash, region = code.strip().replace("_", "-").lower().partition("-")
    return f"{primary_language(primary)}{dash}{region}"


AUTO = "auto"
"""In place of a source language: it is detected."""
_SURELY = 0.5
# More text does not make the detection better, but slower.
_MAX_CHARACTERS = 1000


class Detected(NamedTuple):
    """A language in which a text may be written."""

    language: str
    probability: float
    """As the detector says: not made larger because only some languages are possible."""


class TextLanguageDetector(LanguageDetector):
    """Detects the language of a text among those of a server."""

    def detect(self, text: str, languages: Sequence[str]) -> list[Detected]:
        """The probability of each of some languages, the most probable one first.

        A text without letters has no language: all probabilities are 0, and the order is that of `languages`.
        """
        if not any(character.isalpha() for character in text):
            return [Detected(language, 0.0) for language in languages]
        found = self.probabilities(text[:_MAX_CHARACTERS])
        detected = [Detected(language, found.get(primary_language(language), 0.0)) for language in languages]
        return sorted(detected, key=lambda one: -one.probability)

    def source_of(self, text: str, possible: Sequence[str], target: str) -> Detected:
        """The most probable language; the target language only if the text is surely in it, because it then stays as it is."""
        best, *others = self.detect(text, [*possible, target])
        if best.language == target and best.probability < _SURELY:
            return others[0]
        return best


def percent(probability: float) -> int:
    """A probability as a confidence from 0 to 100, as in the answers of LibreTranslate: a whole number, as some of its clients read no other."""
    return round(100.0 * probability)
