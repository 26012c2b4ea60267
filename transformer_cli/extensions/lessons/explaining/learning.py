"""How a model learns: the same few sentences at each validation, with their translations, probabilities and attention."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.decoding import ExplainingEngine, Request, Translator
from transformer_cli.evaluation import ValidationReport
from transformer_cli.extensions.lessons.explaining.explanation import Numbers, unpacked_numbers
from transformer_cli.process.errors import DataError
from transformer_cli.storage import read_json_lines
from transformer_cli.training.callbacks import Callback, Recorder, translator_of

NUM_WATCHED = 3
"""How many sentences of the validation data are kept at each validation."""
_MAX_CELLS = 10_000  # of attention weights that are kept for a sentence


class WatchedToken(NamedTuple):
    """A token of a translation."""

    piece: str
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class WatchedSentence:
    """A sentence at one validation."""

    source: str
    target: str
    """The reference."""
    translation: str
    source_pieces: tuple[str, ...]
    tokens: tuple[WatchedToken, ...]
    attention: NDArray[Any] | None
    """(T, S): cross-attention of the layer that aligns words, as a mean over heads or of the head that has learned alignments; None for a very long sentence."""

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of the tokens; 0 without tokens."""
        if not self.tokens:
            return 0.0
        logs = [math.log(max(token.probability, 1e-30)) for token in self.tokens]
        return math.exp(sum(logs) / len(logs))

    def to_json(self) -> dict[str, Any]:
        """As it stands in learning.jsonl."""
        return {
            "source": self.source,
            "target": self.target,
            "translation": self.translation,
            "confidence": round(self.confidence, 6),
            "source_pieces": list(self.source_pieces),
            "tokens": [[one.piece, round(one.probability, 6)] for one in self.tokens],
            "attention": None if self.attention is None else Numbers(self.attention).to_json(),
        }


class Moment(NamedTuple):
    """The watched sentences at one validation."""

    step: int
    sentences: tuple[WatchedSentence, ...]

    def to_json(self) -> dict[str, Any]:
        """A line of learning.jsonl."""
        return {"step": self.step, "sentences": [one.to_json() for one in self.sentences]}


def watch(translator: Translator, source: str, target: str, translation: str) -> WatchedSentence | None:
    """The probabilities and the attention of a translation that a validation has found; None if its engine cannot explain it.

    Of a sentence that is too long for the model, only the beginning is read.

    Args:
        translator: in the direction of the sentence.
        source, target: a pair of the validation data.
        translation: what the model made of the source.
    """
    engine, pipeline = translator.engine, translator.pipeline
    if not isinstance(engine, ExplainingEngine):
        return None
    source_ids = pipeline.source_ids(pipeline.normalize_source(source))[: pipeline.max_length]
    target_ids = pipeline.target_ids(translation)[: pipeline.max_length]
    source_pieces = tuple(pipeline.source_tokenizer.marked_tokens(source_ids))
    if not (source_ids and target_ids):
        return WatchedSentence(source, target, translation, source_pieces, (), None)
    batch_tokens = translator.decoding.batch_tokens
    [explanation] = engine.explain([Request(source_ids)], [target_ids], batch_tokens=batch_tokens)
    pieces = pipeline.target_tokenizer.marked_tokens(target_ids)
    tokens = map(WatchedToken, pieces, explanation.token_probs.tolist())
    is_short = explanation.attention.size <= _MAX_CELLS
    weights = explanation.attention if is_short else None
    return WatchedSentence(source, target, translation, source_pieces, tuple(tokens), weights)


def read_moments(file: Path) -> list[Moment]:
    """The moments of a run in the order of their steps.

    Args:
        file: learning.jsonl of a run, which may come from elsewhere.

    Raises:
        DataError: the file has a line that no training has written.
    """
    moments = []
    for number, record in enumerate(read_json_lines(file), start=1):
        try:
            moments.append(_moment(record))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{file}: line {number} is not one that a training has written ({error})",
                hint="move the file away; the next validation of the run begins a new one",
            ) from error
    return sorted(moments, key=lambda moment: moment.step)


def _moment(record: Mapping[str, Any]) -> Moment:
    step = record["step"]
    if not isinstance(step, int):
        raise TypeError("the step is no number")
    if not record["sentences"]:
        raise ValueError("it has no sentence")
    return Moment(step, tuple(map(_sentence, record["sentences"])))


def _sentence(record: Mapping[str, Any]) -> WatchedSentence:
    texts = [_text(record[name]) for name in ("source", "target", "translation")]
    pieces = tuple(map(_text, record["source_pieces"]))
    tokens = tuple(WatchedToken(_text(piece), float(probability)) for piece, probability in record["tokens"])
    attention = None if record["attention"] is None else unpacked_numbers(record["attention"])
    if attention is not None and attention.shape != (len(tokens), len(pieces)):
        raise ValueError("the attention does not fit the tokens")
    if attention is not None and not np.isfinite(attention).all():
        raise ValueError("the attention is not finite")
    if not all(0.0 <= token.probability <= 1.0 for token in tokens):
        raise ValueError("a probability is not between 0 and 1")
    return WatchedSentence(texts[0], texts[1], texts[2], pieces, tokens, attention)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value


def films(moments: Sequence[Moment]) -> list[list[tuple[int, WatchedSentence]]]:
    """For each sentence, its step and state at each validation, in order."""
    by_source: dict[tuple[str, str], list[tuple[int, WatchedSentence]]] = {}
    for moment in moments:
        for one in moment.sentences:
            by_source.setdefault((one.source, one.target), []).append((moment.step, one))
    return list(by_source.values())


@dataclass(frozen=True, slots=True, eq=False)
class LearningRecorder(Callback):
    """Keeps how the model translates the same few sentences at each validation, in learning.jsonl and for TensorBoard.

    Args:
        recorder: of the run; it comes before this callback.
    """

    recorder: Recorder

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        """Record the probabilities and the attention of the first few samples."""
        samples = report.samples[:NUM_WATCHED]
        found = (watch(translator_of(sample, translator), *sample[:3]) for sample in samples)
        sentences = tuple(filter(None, found))
        if not sentences:
            return
        confidences = {f"confidence/{number}": one.confidence for number, one in enumerate(sentences)}
        self.recorder.draw("validation", step, confidences)
        moment = Moment(step, sentences).to_json()
        file = self.recorder.folder.learning_file
        self.recorder.record(moment, file, replaced={"step": step})
