"""Translators whose engine is a function from a text to its translations, so that each answer is known."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transformer_cli.config import DecodingConfig, FilesData, TokenizerConfig
from transformer_cli.decoding import Hypothesis, Request, TextPipeline, TokenIds, Translator
from transformer_cli.decoding.engine import Explanation
from transformer_cli.decoding.text_pipeline import KnownSpellings
from transformer_cli.text.sentences import SeenLengths
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

NOUNS = ["hotel", "train", "sister", "doctor", "garden", "house", "letter", "window"]
VERBS = ["sleeps", "waits", "laughs", "works", "falls", "stands", "burns", "speaks"]
CLAUSES = [f"the {noun} {verb}" for noun, verb in zip(NOUNS, VERBS, strict=True)]
_MARKS = "\u3002 , ; : . ! ? ... \u2026 - \u2013 ( ) [ ]"
_TEXT = f"{' '.join(NOUNS)} {' '.join(VERBS)} the The and mute Mute no No action Action"
TOKENIZER = train_tokenizer([f"{_TEXT} {_TEXT.upper()} {_MARKS}"] * 2, TokenizerConfig())
SEEN = SeenLengths(longest=12, smallest_ratio=0.7)
MOST_WORDS = 9
"""A model of `cut_after` writes so many words of a text; longer texts lose their ends."""

Model = Callable[[str], list[str]]


def upper(text: str) -> list[str]:
    """The right translation: the same words in capital letters."""
    return [text.upper()]


def cut_after(most: int = MOST_WORDS) -> Model:
    """A model that translates only the first two words of a text with more than `most` words."""

    def says(text: str) -> list[str]:
        words = text.upper().split()
        return [text.upper() if len(words) <= most else " ".join(words[:2])]

    return says


def silent_about(word: str, instead: str = "") -> Model:
    """A model that says nothing, or only marks, where a text has this word."""
    return lambda text: [instead if word in re.findall(r"\w+", text.lower()) else text.upper()]


@dataclass
class StubEngine:
    """An engine that asks a function; it remembers what it was asked."""

    model: Model
    tokenizer: Tokenizer = TOKENIZER
    asked: list[str] = field(default_factory=list)

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        return [self._hypotheses(request)[: options.num_best] for request in requests]

    def _hypotheses(self, request: Request) -> list[Hypothesis]:
        text = self.tokenizer.decode(request.ids)
        self.asked.append(text)
        return [
            Hypothesis((*self.tokenizer.encode(said), self.tokenizer.eos_id), -1.0 - rank)
            for rank, said in enumerate(self.model(text))
        ]

    def explain(self, requests: Sequence[Request], targets: Sequence[TokenIds], **_: Any) -> list[Explanation]:
        """Each target token attends to the source token in the same place, and is certain."""
        return [
            self._explanation(len(request.ids), len(target)) for request, target in zip(requests, targets, strict=True)
        ]

    @staticmethod
    def _explanation(num_source: int, num_target: int) -> Explanation:
        places = np.minimum(np.arange(num_target), num_source - 1)
        attention = np.eye(num_source, dtype=np.float32)[places]
        none = np.zeros((num_target, 0))
        return Explanation(
            np.zeros(num_target, np.float32),
            attention,
            tuple(places.tolist()),
            none.astype(np.int64),
            none.astype(np.float32),
        )

    def negative_log_likelihood(self, *_: Any, **__: Any) -> float:
        raise NotImplementedError

    def next_token_probabilities(self, *_: Any) -> Any:
        raise NotImplementedError


def stub_translator(
    model: Model,
    *,
    keeps_text: bool = True,
    seen: SeenLengths = SEEN,
    languages: tuple[str, str] = ("en", "it"),
    **decoding: object,
) -> Translator:
    """A translator for a word-level vocabulary of a few English words, each in small and in capital letters."""
    sides = dict(zip(("source_language", "target_language"), languages, strict=True))
    data = FilesData.model_validate({"source": "files", "corpora": [{"source_path": "a", "target_path": "b"}], **sides})
    pipeline = TextPipeline(
        TOKENIZER,
        TOKENIZER,
        data,
        50,
        splits_sentences=True,
        spellings=KnownSpellings(TOKENIZER),
        keeps_text=keeps_text,
        seen=seen,
    )
    settings = DecodingConfig.model_validate({"keep_text": keeps_text, "repair": False, **decoding})
    return Translator(pipeline, StubEngine(model), settings)


def asked_by(translator: Translator) -> list[str]:
    """What the engine of a stub translator was asked so far."""
    assert isinstance(translator.engine, StubEngine)
    return translator.engine.asked
