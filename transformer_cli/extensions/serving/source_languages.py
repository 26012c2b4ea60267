"""The source language of each text of a request: as the client says, or as it is detected."""

import asyncio
from collections.abc import Sequence

from transformer_cli.config import Direction
from transformer_cli.extensions.serving.language_detection import Detected, LanguageDetector
from transformer_cli.extensions.serving.refusals import bad_request
from transformer_cli.extensions.serving.translation_service import TranslationService

AUTO = "auto"
_SURELY = 0.5


class SourceLanguages:
    """Finds the source languages of texts, among the languages of the server."""

    def __init__(self, service: TranslationService, detector: LanguageDetector) -> None:
        self._service = service
        self._detector = detector

    async def detected(self, text: str, languages: Sequence[str]) -> list[Detected]:
        """The probability of each language, the most probable one first."""
        return await asyncio.to_thread(self._detector.detect, text, languages)

    async def of_texts(self, texts: Sequence[str], source: str, target: str) -> list[Detected]:
        """The language of each text; if it is detected, one from which the server translates into the target language.

        Args:
            source: as the client says; auto: detect the language of each text.
            target: a language of the server. A text that is surely in this language keeps it.

        Raises:
            RefusedRequest: the server does not have the source language.
        """
        if source.lower() != AUTO:
            return [Detected(self._service.language(source), 1.0)] * len(texts)
        runs = self._service.runs
        possible = [each for each in runs.languages if Direction(each, target) in runs.directions]
        if not possible:
            raise bad_request(f"{target} is not available as a target language")
        return await asyncio.to_thread(
            lambda: [self._of_text(text, possible, target) for text in texts]
        )

    def _of_text(self, text: str, possible: list[str], target: str) -> Detected:
        """The most probable language; the target language only if the text is surely in it, because it then stays as it is."""
        best, *others = self._detector.detect(text, [*possible, target])
        if best.language == target and best.probability < _SURELY:
            return others[0]
        return best


def percent(probability: float) -> float:
    """A probability as a confidence from 0 to 100, as in the answers of LibreTranslate."""
    return round(100.0 * probability, 1)
