"""What a model does with one line, as plain values that become JSON: `docs/explaining.md` describes each field."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_LARGEST = 255


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """An array of numbers between two bounds; its JSON has one byte for each number."""

    values: NDArray[Any]
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Numbers":
        """An array whose bounds are its own, the same distance above and below zero."""
        bound = float(np.abs(values).max(initial=0.0)) or 1.0
        return cls(values, -bound, bound)

    def to_json(self) -> dict[str, Any]:
        """Byte b stands for low + (high - low) * b / 255; the numbers are in the order of rows (C order)."""
        shares = (self.values.astype(np.float64) - self.low) / (self.high - self.low)
        codes = np.rint(shares.clip(0.0, 1.0) * _LARGEST).astype(np.uint8)
        return {
            "shape": list(self.values.shape),
            "dtype": "u8",
            "low": self.low,
            "high": self.high,
            "data": base64.b64encode(codes.tobytes()).decode("ascii"),
        }


def unpacked_numbers(packed: dict[str, Any]) -> NDArray[np.float64]:
    """The array of a JSON value that `Numbers.to_json` made, to within half of (high - low) / 255."""
    codes = np.frombuffer(base64.b64decode(packed["data"]), np.uint8).reshape(packed["shape"])
    return packed["low"] + (packed["high"] - packed["low"]) * codes.astype(np.float64) / _LARGEST


FORMAT = 1
"""The version of the JSON; a new number means that a field has changed its meaning."""

Span = tuple[int, int]
"""Start and end in a text, counted in characters (Unicode code points)."""


@dataclass(frozen=True, slots=True)
class SourceToken:
    """A token that the encoder reads."""

    id: int
    piece: str
    """A short readable name."""
    entry: str
    """As it stands in the vocabulary."""
    kind: Literal["text", "tag", "end"]
    start: int | None
    """Its place in the text of the sentence; None for a tag and for [EOS]."""
    end: int | None


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence as the encoder reads it."""

    text: str
    """Normalised."""
    start: int
    """Where it begins in the normalised line."""
    tokens: tuple[SourceToken, ...]
    words: tuple[Span, ...]
    """What white space separates."""


@dataclass(frozen=True, slots=True)
class ProbableToken:
    """A token that might have stood in the place of another one."""

    id: int
    piece: str
    log_probability: float
    probability: float


@dataclass(frozen=True, slots=True)
class TargetToken:
    """A token of a hypothesis."""

    id: int
    piece: str
    entry: str
    start: int
    """Its place in the text of the hypothesis; start and end are equal for [EOS] and for a byte inside a character."""
    end: int
    log_probability: float
    probability: float
    alternatives: tuple[ProbableToken, ...]
    """The most probable tokens in this place, best first, after the tokens before it."""
    log_partitions: tuple[float, ...] = ()
    """For each of the temperatures, log of the sum over the vocabulary of exp(log-probability / temperature)."""


@dataclass(frozen=True, slots=True)
class ExplainedHypothesis:
    """A translation of a sentence."""

    text: str
    score: float
    """Log-probability / length penalty."""
    log_probability: float
    """The sum over the tokens, as the search added it."""
    length_penalty: float
    tokens: tuple[TargetToken, ...]
    alignment: tuple[tuple[int, int, float], ...]
    """Target token, source token, and the attention weight between them, for each token of a text."""
    words: tuple[Span, ...]
    links: tuple[tuple[int, int], ...]
    """Word of the source and word of the hypothesis that translates it."""


@dataclass(frozen=True, slots=True)
class DecoderToken:
    """A token that the decoder reads."""

    id: int
    piece: str


@dataclass(frozen=True, slots=True)
class AttentionWeights:
    """How strongly each position reads each other: the weights of the best hypothesis, before dropout."""

    encoder: Numbers
    """(layers, H, S, S)"""
    decoder: Numbers | None
    """(layers, H, T, T); None if the decoder has SSRUs instead of self-attention"""
    cross: Numbers
    """(layers, H, T, S)"""
    aligning_layer: int
    """The decoder layer from whose cross-attention words are aligned."""


@dataclass(frozen=True, slots=True)
class Masks:
    """Which position may read which: 1 where it may, 0 where it may not."""

    encoder: Numbers
    """(S, S)"""
    decoder: Numbers | None
    """(T, T); None if the decoder has SSRUs instead of self-attention"""
    cross: Numbers
    """(T, S)"""


@dataclass(frozen=True, slots=True)
class Positions:
    """How the model knows the order of tokens."""

    kind: str
    """As in `model.positions`."""
    meaning: Literal["added", "angles", "none"]
    """What the numbers are: vectors that were added to embeddings, or the sines and then the cosines of the rotation."""
    source: Numbers | None
    """(S, columns)"""
    target: Numbers | None
    """(T, columns)"""


@dataclass(frozen=True, slots=True)
class TensorShapes:
    """A use of a module in the forward pass, and the shapes of what went in and came out."""

    name: str
    """The path of the module in the model; empty for the model itself."""
    module: str
    """Its class."""
    operation: str
    """forward: the module was called. embedding: a look-up used its weights, those of a tied table."""
    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    parameters: Mapping[str, tuple[int, ...]]
    """Of the module itself, without those of its parts."""


@dataclass(frozen=True, slots=True)
class BeamNode:
    """A token that beam search considered, after those of its parents."""

    node: int
    parent: int | None
    """None for the root, which is [SOS]."""
    step: int
    """The number of tokens from the root: 1 for a first token."""
    id: int
    piece: str
    log_probability: float
    """Of this token, as the search saw it."""
    total: float
    """The sum over the tokens from the root."""
    length_penalty: float
    score: float
    """total / length_penalty"""
    state: Literal["kept", "dropped", "finished", "chosen"]
    """kept: in the beam, and continued; finished: in the beam, and complete; chosen: on the path of the best hypothesis."""
    hypothesis: int | None = None
    """The index of the hypothesis that ends here."""
    continuation: str | None = None
    """Of a node without children: the whole text, as it ends here or as greedy search goes on; None: not asked for, or not continued."""


@dataclass(frozen=True, slots=True)
class BeamTree:
    """A beam search as a tree: a parent stands before its children, and the root is the first node."""

    beam_size: int
    nodes: tuple[BeamNode, ...]


@dataclass(frozen=True, slots=True)
class ExplainedSentence:
    """One sentence, from its tokens to its translation."""

    source: Source
    hypotheses: tuple[ExplainedHypothesis, ...]
    decoder_input: tuple[DecoderToken, ...]
    """What the decoder reads in order to write the best hypothesis: T tokens."""
    attention: AttentionWeights
    masks: Masks
    positions: Positions
    tensors: tuple[TensorShapes, ...]
    beam: BeamTree


@dataclass(frozen=True, slots=True)
class LineExplanation:
    """One line, from its text to its translation."""

    format: int
    source: str
    """The line as it was given."""
    normalized: str
    """The line as the model reads it."""
    translation: str
    languages: tuple[str | None, str | None]
    """Of the source and of the target."""
    model: Mapping[str, Any]
    """Settings of the model: layers, heads and widths."""
    search: Mapping[str, Any]
    """Settings of the search."""
    temperatures: tuple[float, ...]
    """To which `TargetToken.log_partitions` belong."""
    sentences: tuple[ExplainedSentence, ...]
    """Each was translated by itself; none for a blank line."""

    def to_json(self) -> dict[str, Any]:
        """The whole as dicts, lists, strings and numbers."""
        plain: dict[str, Any] = _plain(self)
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Numbers):
        return value.to_json()
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 6)
    return value
