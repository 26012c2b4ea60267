"""A whole search, greedy or with a beam, as one call of a kernel (kernels/search.c), for models that are prepared in 8 bits.

Python takes longer for the operations of one step than a small model does. The bits are those of the same search, step by step.
"""

import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from transformer_cli.acceleration.native_kernels import Kernels, NativeLinear, NativeNorm, in_parts
from transformer_cli.acceleration.prepared_transformer import (
    PreparedAttention,
    PreparedDecoderLayer,
    PreparedEncoderLayer,
    PreparedFeedForward,
    PreparedTransformer,
)
from transformer_cli.model.layers import LearnedPositions, NoPositions, post, pre
from transformer_cli.model.transformer import Transformer
from transformer_cli.text.tokenizer_file import BytePieces

_POINTER, _SIZE, _FLAG, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_float
_Ask = ctypes.CFUNCTYPE(_FLAG)
_STOPPED = 2
# A call cannot be interrupted, so it follows at most this many hypotheses, of one sentence at least: more would not make it faster.
_MOST_ROWS = 64
# Sentences with a shortlist that share an output layer: the fewer they are, the fewer tokens it has.
_MOST_WITH_SHORTLIST = 16
# Multiplications of a single product of one sentence from which on several threads shall share it.
_LARGE_PRODUCT = 20_000_000
_MOST_RULES = 16


# The structures of search.c, field by field.


class _Linear(ctypes.Structure):
    _fields_ = (
        *((name, _POINTER) for name in ("weights", "scales", "bias")),
        ("width", _SIZE),
        ("outputs", _SIZE),
        ("has_relu", _FLAG),
    )


class _Norm(ctypes.Structure):
    _fields_ = (("gain", _POINTER), ("bias", _POINTER), ("epsilon", _FLOAT))


class _Layer(ctypes.Structure):
    _fields_ = (
        *(
            (name, _Linear)
            for name in ("own", "own_output", "source_queries", "source_keys_values", "source_output", "up", "down")
        ),
        *((name, _Norm) for name in ("own_norm", "source_norm", "feed_forward_norm")),
        ("is_recurrent", _FLAG),
    )


class _Transformer(ctypes.Structure):
    _fields_ = (
        *((name, _SIZE) for name in ("width", "hidden", "heads", "groups", "head_width", "placement")),
        ("embedding_factor", _FLOAT),
        *((name, _POINTER) for name in ("source_table", "target_table")),
        *((name, _Norm) for name in ("encoder_norm", "decoder_norm")),
        *((name, _SIZE) for name in ("encoder_layers", "decoder_layers")),
        *((name, _POINTER) for name in ("encoder", "decoder")),
    )


class _Search(ctypes.Structure):
    _fields_ = (
        ("sentences", _SIZE),
        *((name, _POINTER) for name in ("source_ids", "source_lengths", "source_positions", "target_positions")),
        *((name, _POINTER) for name in ("max_lengths", "min_lengths")),
        *((name, _SIZE) for name in ("first_id", "end_id", "num_banned")),
        ("banned", _POINTER),
        ("output", _Linear),
        *((name, _POINTER) for name in ("starts", "translations", "always")),
        *((name, _SIZE) for name in ("num_always", "most_of_token")),
        ("copies", _FLAG),
        *((name, _POINTER) for name in ("next_states", "is_allowed")),
        ("num_limits", _SIZE),
        ("is_unwanted", _POINTER),
        ("ask", _Ask),
        *((name, _SIZE) for name in ("beam", "num_best", "ngram", "longest")),
        *((name, _POINTER) for name in ("penalties", "ids", "lengths", "scores")),
    )


_NO_NORM = _Norm()


class _NotNative(Exception):
    """The kernel does not know a part of the model."""


def _linear(layer: Any) -> _Linear:
    if not isinstance(layer, NativeLinear):
        raise _NotNative
    return _Linear(*layer.addresses, layer.width, layer.num_outputs, layer.has_relu)


def _norm(norm: Any) -> _Norm:
    if isinstance(norm, nn.Identity):
        return _NO_NORM
    if not isinstance(norm, NativeNorm):
        raise _NotNative
    return _Norm(*norm.addresses, norm.epsilon)


def _checked(attention: PreparedAttention) -> PreparedAttention:
    module = attention.module
    if not all(isinstance(one, nn.Identity) for one in (module.query_norm, module.key_norm)):
        raise _NotNative
    return attention


def _feed_forward(network: PreparedFeedForward) -> dict[str, _Linear]:
    if not network.has_relu:
        raise _NotNative
    return {"up": _linear(network.first), "down": _linear(network.down)}


def _encoder_layer(layer: PreparedEncoderLayer) -> _Layer:
    own = _checked(layer.attention)
    return _Layer(
        own=_linear(own.project),
        own_output=_linear(own.output),
        own_norm=_norm(layer.attention_norm),
        feed_forward_norm=_norm(layer.feed_forward_norm),
        **_feed_forward(layer.feed_forward),
    )


def _decoder_layer(layer: PreparedDecoderLayer) -> _Layer:
    source, ssru = _checked(layer.cross_attention), layer.ssru
    if ssru is not None:
        own = {"own": _linear(ssru.project), "is_recurrent": True}
    else:
        assert layer.self_attention is not None
        attention = _checked(layer.self_attention)
        own = {"own": _linear(attention.project), "own_output": _linear(attention.output)}
    return _Layer(
        source_queries=_linear(source.project),
        source_keys_values=_linear(source.project_source),
        source_output=_linear(source.output),
        own_norm=_norm(layer.target_norm),
        source_norm=_norm(layer.cross_attention_norm),
        feed_forward_norm=_norm(layer.feed_forward_norm),
        **own,
        **_feed_forward(layer.feed_forward),
    )


def _layers(layers: Sequence[_Layer]) -> Any:
    return (_Layer * len(layers))(*layers)


class Rules(NamedTuple):
    """Which tokens begin, end and are never in a translation."""

    first_id: int
    end_id: int
    banned_ids: Sequence[int]
    byte_pieces: BytePieces | None
    """None if each token consists of whole characters."""


class Shortlisted(NamedTuple):
    """The tokens among which a translation chooses, as in `decoding.shortlist.Shortlist`."""

    starts: NDArray[np.int64]
    """(source vocabulary + 1,): where the translations of each source token begin."""
    translations: NDArray[np.int64]
    always: NDArray[np.int64]
    """The tokens of all sentences."""
    best: int
    """How many translations of each source token are used."""
    copies: bool
    """Whether source tokens are candidates themselves."""


class Following(NamedTuple):
    """Which hypotheses a search follows, and what it says of them."""

    penalties: NDArray[np.float32]
    """The divisors of log-probabilities for all lengths from 0 to the largest one of the search."""
    beam_size: int = 1
    """1: the search is greedy."""
    num_best: int = 1
    """Translations of each sentence, at most `beam_size`."""
    no_repeat_ngram_size: int = 0
    """No hypothesis has an n-gram of this size twice; 0: each may."""


Unwanted = Callable[[], NDArray[np.bool_]]
"""Returns which of the B sentences nobody needs any more, (B,)."""


@dataclass(frozen=True, slots=True, eq=False)
class NativeSearch:
    """The search of one model. Several threads may use it at the same time."""

    kernels: Kernels
    prepared: PreparedTransformer
    """Owns the weights to which the structures point."""
    structure: _Transformer
    layers: tuple[Any, Any]
    """Of encoder and decoder."""
    num_weights: int
    """Multiplications for a token of a source and one of a target, about."""
    positions: dict[tuple[nn.Module, int], tuple[int, NDArray[np.float32]]]
    """What modules add to embeddings, for numbers of positions, and where it stands in memory."""
    searches: dict[tuple[Any, ...], tuple[_Search, list[Any]]]
    """What `_search` has found for rules; see there."""

    @classmethod
    def of(cls, prepared: PreparedTransformer) -> "NativeSearch | None":
        """The search of a prepared model; None if there are no kernels, or if they do not know one of its parts.

        They know plain attention, SSRU, layer normalisation and feed-forward networks with ReLU.
        """
        model: Transformer = prepared.model
        config, kernels = model.config, prepared.kernels
        if kernels is None or config.positions == "rotary" or config.embedding_norm:
            return None
        try:
            encoder = _layers([_encoder_layer(one) for one in prepared.encoder])
            decoder = _layers([_decoder_layer(one) for one in prepared.decoder])
            _linear(prepared.output)
            attention = prepared.decoder[0].cross_attention
            placement = model.decoder.layers[0].residual
            tables = [
                (model.output if one is None else one).weight
                for one in (model.source_embedding, model.target_embedding)
            ]
            structure = _Transformer(
                width=config.d_model,
                hidden=prepared.decoder[0].feed_forward.first.num_outputs,  # type: ignore[attr-defined]
                heads=attention.num_groups * attention.group_size,
                groups=attention.num_groups,
                head_width=attention.width,
                placement=0 if placement is pre else 1 if placement is post else 2,
                embedding_factor=config.d_model**0.5 if config.scale_embeddings else 1.0,
                source_table=tables[0].data_ptr(),
                target_table=tables[1].data_ptr(),
                encoder_norm=_norm(prepared.encoder_norm),
                decoder_norm=_norm(prepared.decoder_norm),
                encoder_layers=len(encoder),
                decoder_layers=len(decoder),
                encoder=ctypes.addressof(encoder),
                decoder=ctypes.addressof(decoder),
            )
        except _NotNative:
            return None
        num_weights = sum(one.numel() for one in model.parameters() if one.dim() == 2)
        return cls(kernels, prepared, structure, (encoder, decoder), num_weights, {}, {})

    def is_worth_it(self, lengths: Sequence[int], beam_size: int = 1) -> bool:
        """Whether the kernel is faster for such a batch: it gives each sentence to one thread, PyTorch shares large products.

        Args:
            lengths: of the sources.
            beam_size: of the search.
        """
        num_threads = torch.get_num_threads()
        largest = max(*lengths, beam_size) * self.structure.width * self.structure.hidden
        return num_threads == 1 or len(lengths) >= num_threads or largest < _LARGE_PRODUCT

    def translate(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[tuple[int, int]],
        rules: Rules,
        following: Following,
        *,
        shortlist: Shortlisted | None = None,
        unwanted: Unwanted | None = None,
    ) -> list[list[tuple[tuple[int, ...], float]]]:
        """The tokens and the score of the best translations of each source, best first.

        A greedy search takes the best token at each step, up to the end or the largest length. A score is a log-probability
        over its penalty.

        Args:
            sources: B token ids each, none empty.
            limits: the smallest and largest number of tokens of each translation, the end included.
            rules: for its tokens.
            following: the beam.
            shortlist: restricts the tokens; None: the whole vocabulary.
            unwanted: is asked at every fourth step, in the calling thread.

        Raises:
            DataError: a source is longer than the positions that the model has learned.
            MemoryError: there was no memory.
        """
        num_sentences = len(sources)
        lengths = [*map(len, sources)]
        smallest, largest = zip(*limits, strict=True)
        longest = max(1, *largest)
        penalties, beam_size, num_best, ngram_size = following
        num_found, num_ids = num_sentences * num_best, sum(lengths)
        # Few arrays, of the standard library: for one short sentence, those of numpy take longer than the search.
        given = array("q", chain(lengths, smallest, largest, *sources))
        room = array("q", bytes(8 * num_found * (1 + longest)))  # the lengths, then the ids
        scores = array("f", bytes(4 * num_found))
        given_address, room_address, scores_address = map(_address, (given, room, scores))
        penalties_address = penalties.__array_interface__["data"][0]
        whole, owners = self._search(rules, shortlist)
        most = max(1, _MOST_ROWS // beam_size)
        if shortlist is not None:
            most = min(most, _MOST_WITH_SHORTLIST)
        model = self.prepared.model
        source_positions = self._positions(model.source_positions, max(lengths))
        target_positions = self._positions(model.target_positions, longest)
        question = None if unwanted is None else _Question(unwanted, num_sentences)

        def compute(first: int, end: int) -> int:
            place = sum(lengths[:first])
            for start in range(first, end, most):
                stop = min(end, start + most)
                what = _Search.from_buffer_copy(whole)
                what.sentences, what.longest = stop - start, longest
                what.beam, what.num_best, what.ngram = beam_size, num_best, ngram_size
                what.penalties = penalties_address
                what.source_positions, what.target_positions = source_positions, target_positions
                what.source_lengths = given_address + 8 * start
                what.min_lengths = given_address + 8 * (num_sentences + start)
                what.max_lengths = given_address + 8 * (2 * num_sentences + start)
                what.source_ids = given_address + 8 * (3 * num_sentences + place)
                what.lengths = room_address + 8 * start * num_best
                what.ids = room_address + 8 * (num_found + start * num_best * longest)
                what.scores = scores_address + 4 * start * num_best
                if question is not None:
                    what.is_unwanted = question.is_unwanted[start:stop].ctypes.data
                    if first == 0:  # this part is computed in the calling thread
                        what.ask = question.callback
                code = self.kernels.search(ctypes.addressof(self.structure), ctypes.addressof(what))
                if code:
                    return int(code != _STOPPED)
                place += sum(lengths[start:stop])
            return 0

        in_parts(num_sentences, num_ids * self.num_weights * beam_size, compute)
        del owners
        if question is not None and question.problem is not None:
            raise question.problem
        starts = range(num_found, len(room), longest)
        found = [
            (tuple(room[start : start + length]), score)
            for start, length, score in zip(starts, room[:num_found], scores, strict=True)
        ]
        found_by_sentence = (found[first : first + num_best] for first in range(0, num_found, num_best))
        return [[one for one in each if one[0]] for each in found_by_sentence]

    def _search(self, rules: Rules, shortlist: Shortlisted | None) -> tuple[_Search, list[Any]]:
        """What is the same for all sentences, and the owners of the memory to which it points.

        It is kept, because each call with the same rules needs it.
        """
        pieces = rules.byte_pieces
        shortlist_key = () if shortlist is None else (*map(id, shortlist[:3]), *shortlist[3:])
        key = (rules.first_id, rules.end_id, *rules.banned_ids, id(pieces), *shortlist_key)
        if (found := self.searches.get(key)) is not None:
            return found
        banned = array("q", rules.banned_ids)
        owners: list[Any] = [banned, pieces, shortlist]
        what = _Search(
            first_id=rules.first_id,
            end_id=rules.end_id,
            num_banned=len(banned),
            banned=_address(banned),
            output=_linear(self.prepared.output),
        )
        if shortlist is not None:
            tables = [np.ascontiguousarray(one, np.int64) for one in shortlist[:3]]
            owners += tables
            what.starts, what.translations, what.always = (one.ctypes.data for one in tables)
            what.num_always, what.most_of_token = len(shortlist.always), shortlist.best
            what.copies = shortlist.copies
        if pieces is not None:
            next_states, is_allowed = map(np.ascontiguousarray, (pieces.next_states, pieces.is_allowed))
            owners += next_states, is_allowed
            what.next_states, what.is_allowed = next_states.ctypes.data, is_allowed.ctypes.data
            what.num_limits = is_allowed.shape[1]
        if len(self.searches) >= _MOST_RULES:
            self.searches.clear()
        self.searches[key] = what, owners
        return what, owners

    def _positions(self, module: nn.Module, num_positions: int) -> int | None:
        """Where the (at least `num_positions`, width) numbers stand that are added to the embeddings; None: nothing is added.

        Raises:
            DataError: the model has learned fewer positions.
        """
        if isinstance(module, NoPositions):
            return None
        size = max(512, 1 << (num_positions - 1).bit_length())
        if isinstance(module, LearnedPositions):
            size = max(num_positions, min(size, len(module.weight)))
        found = self.positions.get((module, size))
        if found is None:
            with torch.inference_mode():
                table = module(torch.zeros(1, size, self.structure.width))[0]
            numbers = table.contiguous().numpy()
            found = self.positions[module, size] = numbers.ctypes.data, numbers
        return found[0]


class _Question:
    """Asks which sentences nobody needs any more, in the middle of a search."""

    def __init__(self, unwanted: Unwanted, num_sentences: int) -> None:
        self.problem: BaseException | None = None
        self.is_unwanted = np.zeros(num_sentences, bool)
        self._unwanted = unwanted
        self.callback = _Ask(self._ask)

    def _ask(self) -> int:
        """Called by the kernel, which knows no exceptions; 1: the search stops."""
        try:
            self.is_unwanted |= self._unwanted()
        except BaseException as error:
            self.problem = error
        return int(self.problem is not None)


def _address(numbers: "array[Any]") -> int:
    """Of the first number."""
    return numbers.buffer_info()[0]
