"""Stand-ins: names and numbers that a model copies, in place of spans that it has never seen."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from transformer_cli.text import Tokenizer
from transformer_cli.text.protected.spans import SpanKind

# Names that many languages spell alike, and round numbers. A model may still change one of them. So each translation
# is checked, and a sentence whose stand-ins did not come back is translated in pieces.
_CANDIDATES: Mapping[SpanKind, tuple[str, ...]] = {
    SpanKind.WORD: ("Anna", "Marco", "Maria", "Laura", "Paolo", "Sara", "Peter", "Martin"),
    SpanKind.NUMBER: ("20", "30", "15", "12", "50", "10", "40", "25"),
}


@dataclass(frozen=True, slots=True)
class StandIns:
    """The stand-ins that both vocabularies of a model know."""

    of_kind: Mapping[SpanKind, tuple[str, ...]]

    @classmethod
    def of(
        cls,
        source: Tokenizer,
        target: Tokenizer,
        is_usable: Callable[[str], bool] = lambda word: True,
    ) -> "StandIns":
        """The stand-ins for a model with these tokenizers.

        Args:
            is_usable: false for a word that stands for something else, such as a term of a glossary.
        """

        def is_stand_in(word: str) -> bool:
            return knows(source, word) and knows(target, word) and is_usable(word)

        return cls({kind: tuple(filter(is_stand_in, words)) for kind, words in _CANDIDATES.items()})

    def choose(self, kinds: Iterable[SpanKind], text: str) -> list[str | None]:
        """A different stand-in for each span, none of which the text has; None for a span if there are too few.

        Args:
            kinds: of each span.
            text: the sentence around the spans.
        """
        folded = text.casefold()
        free = {
            kind: iter([word for word in words if word.casefold() not in folded])
            for kind, words in self.of_kind.items()
        }
        return [next(free[kind], None) for kind in kinds]


def put_back(text: str, spans: Mapping[str, str]) -> str | None:
    """A translation with each stand-in replaced by its span; None if one does not stand there exactly once.

    Args:
        text: the translation.
        spans: the span of each stand-in.
    """
    if not spans:
        return text
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, spans))})(?![^\W_])")
    if sorted(pattern.findall(text)) != sorted(spans):
        return None
    return pattern.sub(lambda match: spans[match[0]], text)


def knows(tokenizer: Tokenizer, text: str) -> bool:
    """Whether a tokenizer can encode a text without [UNK]."""
    return tokenizer.unk_id not in tokenizer.encode(text)
