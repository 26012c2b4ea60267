"""A model of the SentencePiece library: learned by it, checked when it is read, and applied by it.

The file (.spm) is the tokenizer: other programs, such as Marian, read it as it is and get the same ids. Its first entries are
`<unk>`, `<pad>`, `<s>` and `</s>`, then control symbols, one for each tag of a target language.
"""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from transformer_cli.config import TokenizerConfig
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.process.imports import require_extra
from transformer_cli.text.normalization import SPECIALS, TAG
from transformer_cli.text.tokenizer_file import (
    MAX_ENTRIES,
    MAX_PIECE_CHARACTERS,
    SPACE,
    UNLISTED,
    SentencePieceLayout,
    TokenizerParts,
    hidden,
    is_hidden,
    without_surrogates,
)

SPECIAL_PIECES = ("<unk>", "<pad>", "<s>", "</s>")
"""The names of our special tokens in the file, in the order of their ids."""
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
_KINDS = {1: "Unigram", 2: "BPE"}
MAX_LINES = 5_000_000
"""More lines do not make a better vocabulary, and the library keeps all of them in memory."""
# The same number on every machine: the sums of the threads are added up in their order.
_NUM_THREADS = 8


@dataclass(frozen=True, slots=True)
class LibraryLayout(SentencePieceLayout):
    """A tokenizer that the SentencePiece library applies; its model is the content of its file."""

    content: bytes = b""
    """Of the .spm file."""
    symbols: frozenset[str] = frozenset()
    is_of_library: ClassVar[bool] = True
    cuts_at_spaces: ClassVar[bool] = False

    @property
    def is_sentencepiece(self) -> bool:
        """Whether it normalises text itself; with tokenizer.normalization: identity it does not."""
        return bool(self.charsmap)

    def bytes_of(self, piece: str) -> bytes:
        """The bytes for which an entry stands; special tokens stand for none."""
        if self.has_byte_fallback and (byte := byte_of(piece)) is not None:
            return bytes([byte])
        return b"" if piece in self.specials else piece.replace(SPACE, " ").encode()

    def merges(self, model: dict[str, Any]) -> Iterable[Sequence[str]]:
        """Every two pieces that make a third one together; first those that make the piece with the best score."""
        known = model["vocab"]
        for piece in known:  # in the order of their scores
            if not is_hidden(piece):
                for cut in range(1, len(piece)):
                    if piece[:cut] in known and piece[cut:] in known:
                        yield piece[:cut], piece[cut:]


def byte_of(piece: str) -> int | None:
    """The byte for which a piece such as <0xE2> stands; None: it is an ordinary piece."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        try:
            return int(piece[3:5], 16)
        except ValueError:
            return None
    return None


# Learning.


def learn_sentencepiece(
    texts: Iterable[str], config: TokenizerConfig, vocab_size: int, tags: Sequence[str]
) -> TokenizerParts:
    """A model that the library learns from texts; the same texts give the same model.

    Args:
        texts: of at most 10,000 characters each, read twice.
        config: with kind sentencepiece.
        vocab_size: largest number of entries.
        tags: special tokens that name target languages, such as <2it>.

    Raises:
        UsageError: the package sentencepiece is not installed.
        ConfigError: `vocab_size` is too small for the characters of the texts.
        DataError: the texts are empty.

    Source: Kudo and Richardson 2018, "SentencePiece: A simple and language independent subword tokenizer".
    """
    _require_library("tokenizer.kind: sentencepiece")
    from sentencepiece import SentencePieceTrainer

    symbols = [symbol.replace(" ", SPACE) for symbol in config.user_symbols or ()]
    num_texts, num_characters = _counts(texts)
    written = io.BytesIO()
    settings: dict[str, Any] = {
        "model_type": config.algorithm or "unigram",
        "normalization_rule_name": config.normalization or "nmt_nfkc",
        "byte_fallback": bool(config.byte_fallback),
        "user_defined_symbols": symbols,
        "control_symbols": list(tags),
        "vocab_size": vocab_size,
        "character_coverage": character_coverage(num_characters, vocab_size),
        "hard_vocab_limit": False,  # a small corpus gives fewer entries, as with the other kinds
        "num_threads": _NUM_THREADS,
        "max_sentence_length": 1 << 20,
        "minloglevel": 2,
    }
    for index, name in enumerate(("unk", "pad", "bos", "eos")):
        settings |= {f"{name}_id": index, f"{name}_piece": SPECIAL_PIECES[index]}
    try:
        SentencePieceTrainer.train(sentence_iterator=_some_of(texts, num_texts), model_writer=written, **settings)
    except RuntimeError as error:
        raise _explained(str(error), vocab_size) from error
    return library_parts(written.getvalue(), "the learned model")


def character_coverage(num_characters: int, vocab_size: int) -> float:
    """The share of the characters of a corpus that are in the vocabulary; the others are unknown.

    All of them, as the library advises for small alphabets, if they take at most a quarter of the vocabulary; else the library's 0.9995.
    In a corpus of short sentences, 0.9995 leaves out capital letters and letters with accents.

    Args:
        num_characters: how many different ones the corpus has.
        vocab_size: the largest number of entries.
    """
    return 1.0 if 4 * num_characters <= vocab_size else 0.9995


def _counts(texts: Iterable[str]) -> tuple[int, int]:
    """The number of the texts, and of their different characters."""
    num_texts, characters = 0, set[str]()
    for text in texts:
        num_texts += 1
        characters.update(text)
    return num_texts, len(characters)


def _some_of(texts: Iterable[str], num_texts: int) -> Iterator[str]:
    """The texts, or every second, third... one of more than `MAX_LINES`."""
    step = -(-num_texts // MAX_LINES)
    for number, text in enumerate(texts):
        if number % step == 0 and text.strip():
            yield without_surrogates(text)


def _explained(problem: str, vocab_size: int) -> ConfigError | DataError:
    if "smaller than required_chars" in problem:
        needed = problem.partition("required_chars.")[2].partition("Increase")[0].strip(" .")
        return ConfigError(
            f"tokenizer.vocab_size ({vocab_size}) is below the number of different characters, special tokens and "
            f"symbols: {needed}",
            hint="raise tokenizer.vocab_size",
        )
    if "Vocabulary size" in problem:
        return ConfigError(f"tokenizer.vocab_size ({vocab_size}): SentencePiece says: {problem}")
    return DataError(
        f"SentencePiece can learn no vocabulary from this text: {problem}",
        hint="check the corpus; tokenizer.kind: unigram or bpe may work",
    )


# Reading.


class Piece(NamedTuple):
    """An entry of a model."""

    text: str
    score: float
    kind: int
    """As in the file: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 a byte."""


def parsed_model(content: bytes, origin: str) -> Any:
    """The protocol buffer in the content of an .spm file.

    Raises:
        UsageError: the package sentencepiece, or protobuf, is not installed.
        DataError: the content is no model.
    """
    _require_library(f"reading {origin}")
    from google.protobuf.message import DecodeError
    from sentencepiece import sentencepiece_model_pb2

    message_types: Any = sentencepiece_model_pb2
    model = message_types.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise _refusal(origin, "it is no model of SentencePiece, or cut off") from error
    return model


def library_parts(content: bytes, origin: str) -> TokenizerParts:
    """The checked parts of a tokenizer that the library applies.

    Args:
        content: of an .spm file.
        origin: what messages call the file.

    Raises:
        UsageError: the package sentencepiece is not installed.
        DataError: the content is no model, or has parts that would not be safe or that `LibraryEngine` cannot apply.
    """
    from transformer_cli.text.sentencepiece_charsmap import charsmap_text

    model = parsed_model(content, origin)
    pieces = [Piece(one.piece, one.score, one.type) for one in model.pieces]
    if problem := _problem(model, pieces):
        raise _refusal(origin, problem)
    tags = []
    for piece in pieces[len(SPECIALS) :]:
        if piece.kind != _CONTROL or not TAG.fullmatch(piece.text):
            break
        tags.append(piece.text)
    layout = LibraryLayout(
        kind=_KINDS[model.trainer_spec.model_type],
        has_byte_fallback=any(piece.kind == _BYTE for piece in pieces),
        tags=tuple(tags),
        charsmap=charsmap_text(model.normalizer_spec.precompiled_charsmap),
        content=content,
        symbols=frozenset(piece.text for piece in pieces if piece.kind == _USER_DEFINED),
    )
    return TokenizerParts(layout, _learned(layout.kind, pieces))


def _problem(model: Any, pieces: Sequence[Piece]) -> str | None:
    """What is wrong with a model; None if nothing is."""
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    if trainer.model_type not in _KINDS:
        return "it is neither a unigram nor a BPE model"
    first = [(piece.text, piece.kind) for piece in pieces[: len(SPECIALS)]]
    if first != [*zip(SPECIAL_PIECES, (_UNKNOWN, _CONTROL, _CONTROL, _CONTROL), strict=True)]:
        return f"the first entries are not {' '.join(SPECIAL_PIECES)}"
    if len(pieces) > MAX_ENTRIES:
        return f"{len(pieces):,} entries are more than the {MAX_ENTRIES:,} allowed"
    if trainer.treat_whitespace_as_suffix:
        return "it was learned with treat_whitespace_as_suffix: spaces stand behind words"
    for switch in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
        if not getattr(normalizer, switch):
            return f"it was learned without {switch}"
    if model.denormalizer_spec.precompiled_charsmap:
        return "it has a table that changes the output (denormalizer_spec)"
    if len({piece.text for piece in pieces}) != len(pieces):
        return "it holds a piece twice"
    num_bytes = sum(piece.kind == _BYTE for piece in pieces)
    if num_bytes not in (0, 256):
        return f"it has entries for {num_bytes} of the 256 bytes"
    return next((found for piece in pieces if (found := _problem_of(piece))), None)


def _problem_of(piece: Piece) -> str | None:
    if not 0 < len(piece.text) <= MAX_PIECE_CHARACTERS or piece.text in SPECIALS:
        return f"{piece.text[:50]!r} cannot be a piece"
    if not math.isfinite(piece.score):
        return f"the score of {piece.text[:50]!r} is not a finite number"
    if not _NORMAL <= piece.kind <= _BYTE:
        return f"{piece.text[:50]!r} is of the unknown type {piece.kind}"
    if piece.kind == _BYTE and byte_of(piece.text) is None:
        return f"{piece.text[:50]!r} is no name of a byte"
    return None


def _refusal(origin: str, problem: str) -> DataError:
    return DataError(
        f"tokenizer refused: {origin}: {problem}",
        hint="only models that tfm learned or imported are accepted; copy the file from the run again",
    )


def _require_library(purpose: str) -> None:
    require_extra("sentencepiece", ("sentencepiece", "google.protobuf"), purpose=purpose)


def _learned(kind: str, pieces: Sequence[Piece]) -> dict[str, Any]:
    """The `model` of the parts: the entries that stand for their own text, and hidden ones."""
    ordinary = [piece.score for piece in pieces if piece.kind == _NORMAL]
    lowest = min(ordinary, default=0.0)
    scores = [piece.score if piece.kind == _NORMAL else lowest for piece in pieces]
    names = [piece.text if piece.kind in (_NORMAL, _BYTE, _USER_DEFINED) else hidden(piece.text) for piece in pieces]
    names[: len(SPECIALS)] = map(hidden, SPECIALS)
    if kind == "Unigram":
        return {"type": kind, "vocab": [*map(list, zip(names, scores, strict=True))]}
    by_score = sorted(range(len(names)), key=lambda index: -scores[index])
    return {"type": kind, "vocab": {names[index]: index for index in by_score}}


def as_tokenizer_json(parts: TokenizerParts) -> TokenizerParts:
    """The parts of a tokenizer of the `tokenizers` library that gives the same ids, for a unigram model without bytes and symbols."""
    layout = parts.layout
    assert isinstance(layout, LibraryLayout)
    assert layout.kind == "Unigram"
    assert not layout.has_byte_fallback
    assert not layout.symbols
    listed = SentencePieceLayout(tags=layout.tags, charsmap=layout.charsmap)
    learned = {"vocab": parts.model["vocab"], UNLISTED: []}
    return TokenizerParts(listed, listed.empty_model() | learned)


def with_control_symbols(content: bytes, symbols: Iterable[str]) -> bytes:
    """The content of an .spm file with further entries at its end, with which no text is encoded."""
    from sentencepiece import sentencepiece_model_pb2

    message_types: Any = sentencepiece_model_pb2
    added = message_types.ModelProto()
    for symbol in symbols:
        added.pieces.add(piece=symbol, score=0.0, type=_CONTROL)
    # Of two protocol buffers, one behind the other, a reader makes one: its lists are joined.
    longer: bytes = content + added.SerializeToString()
    return longer


# Applying.


class Token(NamedTuple):
    """A token of a text."""

    id: int
    value: str
    """The entry of the vocabulary."""


class Encoding(NamedTuple):
    """A text as tokens."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    """Where each token stands in the text, in characters."""


class _BytesOfEntries(dict[str, bytes]):
    """What `LibraryLayout.bytes_of` says of entries; kept for as many of them as the vocabulary has."""

    def __init__(self, layout: LibraryLayout, most: int) -> None:
        super().__init__()
        self._layout, self._most = layout, most

    def __missing__(self, entry: str) -> bytes:
        found = self._layout.bytes_of(entry)
        if len(self) < self._most:
            self[entry] = found
        return found


class LibraryEngine:
    """The library with a model, as a tokenizer of the `tokenizers` library: with the methods that `Tokenizer` uses."""

    def __init__(self, parts: TokenizerParts) -> None:
        _require_library("the tokenizer of this model")
        from sentencepiece import SentencePieceProcessor

        assert isinstance(parts.layout, LibraryLayout)
        self._layout = parts.layout
        self._library: Any = SentencePieceProcessor(model_proto=parts.layout.content)
        names = parts.model["vocab"]
        if isinstance(names, dict):
            self._names = sorted(names, key=names.__getitem__)
        else:
            self._names = [name for name, _ in names]
        self._ids = {name: index for index, name in enumerate(self._names)}
        self._bytes = _BytesOfEntries(parts.layout, len(self._names))
        self.normalizer = self.pre_tokenizer = self.model = self.decoder = self

    def id_to_token(self, index: int) -> str:
        """The name of an entry; that of a special token or a tag is hidden."""
        return self._names[index]

    def token_to_id(self, name: str) -> int | None:
        """The id of an entry."""
        return self._ids.get(name)

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        """The ids of each text."""
        found: list[list[int]] = self._library.encode(texts, num_threads=1)
        return found

    def encode_batch_fast(self, texts: list[str], *, add_special_tokens: bool = False) -> list[Encoding]:
        """The ids of each text; nothing else is filled in."""
        return [Encoding(self._library.encode(text), [], []) for text in texts]

    def encode(self, text: str, *, add_special_tokens: bool = False) -> Encoding:
        """A text as tokens."""
        from sentencepiece import sentencepiece_pb2

        message_types: Any = sentencepiece_pb2
        found = message_types.SentencePieceText()
        found.ParseFromString(self._library.encode(text, out_type="serialized_proto"))
        place = 0
        ids, tokens, offsets = list[int](), list[str](), list[tuple[int, int]]()
        for piece in found.pieces:
            # The library leaves out spaces at the beginning, and says of a byte only where its character ends.
            start = text.find(piece.surface, place) if piece.surface else place
            start = place if start < 0 else start
            end = start + len(piece.surface)
            ids.append(piece.id)
            tokens.append(self._layout.entry_of(self._names[piece.id]))
            offsets.append((start, end))
            place = end
        return Encoding(ids, tokens, _with_whole_characters(offsets, tokens, self._layout))

    def normalize_str(self, text: str) -> str:
        """The text as the pieces spell it: normalised, with U+2581 in place of spaces and before the first word."""
        found: str = self._library.normalize(text)
        return found

    def pre_tokenize_str(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """The words of a text in the spelling of the pieces, each with the space before it, and where they stand."""
        spelled = text.replace(" ", SPACE)
        if not spelled.startswith(SPACE):
            spelled = SPACE + spelled
        starts = [place for place, sign in enumerate(spelled) if sign == SPACE]
        bounds = zip(starts, [*starts[1:], len(spelled)], strict=True)
        return [(spelled[start:end], (start, end)) for start, end in bounds] if text else []

    def tokenize(self, word: str) -> list[Token]:
        """The tokens of a word in the spelling of the pieces."""
        ids: list[int] = self._plain_library.encode(word)
        return [Token(index, self._layout.entry_of(self._names[index])) for index in ids]

    def decode(self, entries: Iterable[str]) -> str:
        """The text of entries and of other text between them."""
        text = b"".join(map(self._bytes.__getitem__, entries)).decode(errors="replace")
        return text.lstrip(" ")

    @cached_property
    def _plain_library(self) -> Any:
        """The library with the same pieces, which takes text as it is: without normalisation, without a first space."""
        from sentencepiece import SentencePieceProcessor

        model = parsed_model(self._layout.content, "the model")
        for switch in ("add_dummy_prefix", "remove_extra_whitespaces"):
            setattr(model.normalizer_spec, switch, False)
        model.normalizer_spec.precompiled_charsmap = b""
        model.DiscardUnknownFields()  # such as a self-test of the normalisation
        return SentencePieceProcessor(model_proto=model.SerializeToString())


def _with_whole_characters(
    offsets: list[tuple[int, int]], tokens: Sequence[str], layout: LibraryLayout
) -> list[tuple[int, int]]:
    """The offsets in which each byte of a character has the span of that character."""
    if not layout.has_byte_fallback:
        return offsets
    for place in reversed(range(len(offsets) - 1)):
        start, end = offsets[place]
        if start == end and byte_of(tokens[place]) is not None and byte_of(tokens[place + 1]):
            offsets[place] = offsets[place + 1]
    return offsets
