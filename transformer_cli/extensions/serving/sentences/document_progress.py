"""How many sentences of a document are translated so far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents import ModelTranslator
from transformer_cli.extensions.documents.translator import AnsweredText, AskedText
from transformer_cli.text.sentences import Sentence

_SIZE = 32
"""Texts that are translated together; between two such groups the progress is counted."""


@dataclass(slots=True)
class Progress:
    """Numbers that one thread counts and another one reads."""

    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class CountingTranslator:
    """A `TextTranslator` that counts the sentences it has translated."""

    inner: ModelTranslator
    progress: Progress = field(default_factory=Progress)
    check: Callable[[], None] = lambda: None
    """Called often; it raises an exception to end the work."""

    @property
    def languages(self) -> Direction:
        """See `TextTranslator.languages`."""
        return self.inner.languages

    def sentences(self, text: str) -> list[Sentence]:
        """See `TextTranslator.sentences`."""
        self.check()
        return self.inner.sentences(text)

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        """See `TextTranslator.translate`."""
        sizes = [max(1, len(self.sentences(asked.text))) for asked in texts]
        self.progress.total += sum(sizes)
        answers: list[AnsweredText] = []
        for start in range(0, len(texts), _SIZE):
            answers += self.inner.translate(texts[start : start + _SIZE])
            self.progress.done += sum(sizes[start : start + _SIZE])
        return answers
