"""A tokenizer.json: the layouts of tokenizers, what the bytes of their entries mean, and the check of a file from elsewhere.

A layout is what is not learned. Only the vocabulary, the merges, the scores and the normalisation table of a SentencePiece
model may differ between files. Every other part must be equal to what this package writes, so a regular expression from
elsewhere never runs.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tokenizers import Tokenizer as HuggingFaceTokenizer

from transformer_cli.process.errors import DataError, TfmError, TryAgainError, is_out_of_memory
from transformer_cli.process.messages import shortened
from transformer_cli.storage.filesystem import without_duplicates
from transformer_cli.text.normalization import CORPUS_TAG, SPECIALS, SPLIT_PATTERNS, TAG, UNK

if TYPE_CHECKING:  # a sentence for another engine does not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

# Layouts of tokenizers.


KINDS = ("WordLevel", "BPE", "Unigram")
BYTE_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
_BYTE_OF_TOKEN = {token: byte for byte, token in enumerate(BYTE_TOKENS)}
# Radford et al. 2019: a byte that is a visible character of Latin-1 stands for itself, the others follow U+00FF.
_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
_BYTES = {chr(byte): byte for byte in _VISIBLE}
_BYTES |= {chr(0x100 + place): byte for place, byte in enumerate(_HIDDEN)}
BYTE_LEVEL_ALPHABET = sorted(_BYTES)
_CHARACTERS = {byte: character for character, byte in _BYTES.items()}
_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Which kind of model a tokenizer has, and how text is prepared for it.

    It says of which units a text consists. Words are known or unknown. Subwords consist of characters, and of bytes where a
    character is not in the vocabulary (byte fallback); or, in the byte-level layout of Radford et al. 2019, of bytes only.
    """

    kind: str
    """WordLevel, BPE or Unigram."""
    has_byte_fallback: bool = False
    """Subwords: characters with bytes as a fallback; if not, the byte-level layout."""
    composes: bool = True
    """Whether the tokenizer converts text to the Unicode normal form NFC."""
    has_spaced_words: bool = False
    """Whether Chinese, Japanese or Thai text has spaces between its words; not in the byte-level layout."""
    tags: tuple[str, ...] = ()
    """The tags of the target languages, such as <2it>: special tokens that no text contains."""
    mark: ClassVar[str] = ""
    """What stands in the file before the names of special tokens and tags, and of others with which no text is encoded."""
    cuts_at_spaces: ClassVar[bool] = False
    """Whether a text is cut at each space, and nothing around a word changes how it is cut."""
    is_of_library: ClassVar[bool] = False
    """Whether the SentencePiece library applies the tokenizer, which is then an .spm file."""

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens, which are the first entries of the vocabulary."""
        return (*SPECIALS, *self.tags)

    @property
    def is_byte_level(self) -> bool:
        """Whether each token stands for bytes."""
        return self.kind != "WordLevel" and not self.has_byte_fallback

    @property
    def is_sentencepiece(self) -> bool:
        """Whether it is one of SentencePiece, which normalises text itself."""
        return False

    @property
    def content(self) -> bytes:
        """The content of the .spm file of such a tokenizer."""
        return b""

    @property
    def symbols(self) -> frozenset[str]:
        """The entries of `tokenizer.user_symbols`, which no sampling cuts."""
        return frozenset()

    def merges(self, model: dict[str, Any]) -> Iterable[Sequence[str]]:
        """The merges of a BPE model, each as the two pieces that it joins, in their order."""
        return model["merges"]

    def empty_model(self) -> dict[str, Any]:
        """The model before learning; `vocab` and `merges` are what it learns."""
        if self.kind == "WordLevel":
            return {"type": "WordLevel", "unk_token": UNK, "vocab": {}}
        if self.kind == "Unigram":
            # The library refuses a Unigram model without an entry; `unk_id` is an index into `vocab`.
            fallback = {"byte_fallback": self.has_byte_fallback}
            return {"type": "Unigram", "unk_id": 0, **fallback, "vocab": [[UNK, 0.0]]}
        return {
            "type": "BPE",
            "dropout": None,
            "unk_token": UNK,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": self.has_byte_fallback,
            "ignore_merges": False,
            "vocab": {},
            "merges": [],
        }

    def components(self, *, keeps_marks_with_words: bool = False) -> dict[str, Any]:
        """The entries of a tokenizer.json except the model.

        Args:
            keeps_marks_with_words: leave punctuation joined to the word before it; only for learning subwords.
        """
        patterns = SPLIT_PATTERNS[self.has_spaced_words]
        subwords = patterns.subwords_with_marks if keeps_marks_with_words else patterns.subwords
        pattern = patterns.words if self.kind == "WordLevel" else subwords
        split = {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Isolated",
            "invert": False,
        }
        to_bytes = {"type": "Sequence", "pretokenizers": [split, _BYTE_LEVEL]}
        without_first, with_spaces, without_spaces = (
            {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
            for pattern, content in (
                (patterns.first_is_mark, ""),
                (patterns.insert_space, " "),
                (patterns.remove_space, ""),
            )
        )
        normalizers = [
            *([{"type": "NFC"}] if self.composes else []),
            {"type": "Prepend", "prepend": " "},
            without_first,
            with_spaces,
        ]
        # What makes one text of the tokens.
        joining: list[dict[str, Any]] = [{"type": "Fuse"}]
        if self.is_byte_level:
            # The ByteLevel decoder ignores these settings, but the file format requires them.
            joining = [{**_BYTE_LEVEL, "add_prefix_space": True, "use_regex": True}]
        elif self.has_byte_fallback:
            joining = [{"type": "ByteFallback"}, {"type": "Fuse"}]
        decoders = [*joining, without_spaces]
        matching = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        added_tokens = [
            {"id": index, "content": text, **matching, "special": True} for index, text in enumerate(self.specials)
        ]
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added_tokens,
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": to_bytes if self.is_byte_level else split,
            "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": decoders},
        }

    def entry_of(self, name: str) -> str:
        """The entry that has this name in the file."""
        return name.removeprefix(self.mark)

    def is_tag_of_corpus(self, name: str) -> bool:
        """Whether the entry of this name is the tag of a corpus, such as <BT>."""
        return name.startswith(self.mark) and CORPUS_TAG.fullmatch(name.removeprefix(self.mark)) is not None

    def bytes_of(self, piece: str) -> bytes:
        """The bytes for which an entry of the vocabulary stands; special tokens stand for none."""
        if piece in SPECIALS or piece in self.tags:  # `specials` would be made anew for each entry
            return b""
        if self.has_byte_fallback and piece in _BYTE_OF_TOKEN:
            return bytes([_BYTE_OF_TOKEN[piece]])
        try:
            return bytes(map(_BYTES.__getitem__, piece)) if self.is_byte_level else piece.encode()
        except KeyError:  # a character that stands for no byte, as in the tag of a corpus
            return piece.encode()

    def spelled(self, piece: str) -> str:
        """A piece of text, spelled with the characters of the vocabulary."""
        if not self.is_byte_level:
            return piece
        return piece.encode().decode("latin-1").translate(_CHARACTERS)

    def unspelled(self, word: str) -> str:
        """A word as people write it, from one in the spelling of the vocabulary; without the space before it."""
        return word.strip()


_SPACE = " "


@dataclass(frozen=True, slots=True)
class WhitespaceLayout(Layout):
    """Whole words; each entry stands for a space and the word, as it is shown.

    The layout of the tutorial by hkproj: whole words and runs of marks, cut as `Whitespace` of `tokenizers` cuts. Its
    translations are words and marks with a space between all of them, so a text does not come back as it was.
    """

    kind: str = "WordLevel"
    composes: bool = False
    cuts_at_spaces: ClassVar[bool] = True

    def components(self, *, keeps_marks_with_words: bool = False) -> dict[str, Any]:
        """The entries of a tokenizer.json except the model."""
        decoders = [{"type": "Fuse"}, {"type": "Strip", "content": _SPACE, "start": 1, "stop": 0}]
        return {
            **Layout.components(self),
            "normalizer": {"type": "Sequence", "normalizers": []},
            "pre_tokenizer": {"type": "Whitespace"},
            "decoder": {"type": "Sequence", "decoders": decoders},
        }

    def entry_of(self, name: str) -> str:
        """The entry that has this name in the file."""
        return name if name in self.specials or self.is_tag_of_corpus(name) else _SPACE + name


SPACE = "\u2581"
"""What stands for a space in a piece."""
UNLISTED = "unlisted"
"""The key of the pieces without an entry, each with its score."""
_MARK_OF_HIDDEN = " "
_FIXED_NORMALIZERS = [
    {"type": "Replace", "pattern": {"Regex": r"\A +| +\z"}, "content": ""},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
]
_SPLITTER = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
_DECODERS = [
    {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
    {"type": "Fuse"},
    # Not the decoder Strip, which panics at an empty text.
    {"type": "Replace", "pattern": {"Regex": r"\A | \z"}, "content": ""},
]


@dataclass(frozen=True, slots=True)
class SpaceLayout(Layout):
    """Whole words that stand between spaces, as in the default vocabulary of Marian: something else has cut the text before.

    Each entry is a space and a word, so that no word is taken for a special token.
    """

    kind: str = "WordLevel"
    composes: bool = False

    cuts_at_spaces: ClassVar[bool] = True

    def components(self, *, keeps_marks_with_words: bool = False) -> dict[str, Any]:
        """The entries of a tokenizer.json except the model."""
        before = [*_FIXED_NORMALIZERS, {"type": "Prepend", "prepend": _SPACE}]
        split = {
            "type": "Split",
            "pattern": {"String": _SPACE},
            "behavior": "MergedWithNext",
            "invert": False,
        }
        return {
            **WhitespaceLayout(tags=self.tags).components(),
            "normalizer": {"type": "Sequence", "normalizers": before},
            "pre_tokenizer": split,
        }


@dataclass(frozen=True, slots=True)
class SentencePieceLayout(Layout):
    """A unigram model of SentencePiece.

    The `tokenizers` library splits text as that model does. It is a unigram model over pieces, in which U+2581 stands for a
    space. Its normalisation is a table from strings to strings, which is data of the model (`checked_charsmap`). All
    other parts are fixed here.

    Three kinds of entries are hidden: no text is ever encoded with them. Their names in the file begin with a space, and the
    text has no spaces when it is looked up in the vocabulary. They are the special tokens, the tags, and the pieces that the
    model of the other side has in a vocabulary that both sides share.

    A piece without an entry (`unlisted`) takes part in the segmentation, and then counts as unknown.
    """

    kind: str = "Unigram"
    composes: bool = False
    charsmap: str = ""
    """The normalisation table in base64; empty: text stays as it is."""
    mark: ClassVar[str] = _MARK_OF_HIDDEN
    cuts_at_spaces: ClassVar[bool] = True

    @property
    def is_byte_level(self) -> bool:
        """A token stands for characters."""
        return False

    @property
    def is_sentencepiece(self) -> bool:
        return True

    def empty_model(self) -> dict[str, Any]:
        """The model without pieces."""
        vocabulary = [[hidden(UNK), 0.0]]
        return {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": vocabulary, UNLISTED: []}

    def components(self, *, keeps_marks_with_words: bool = False) -> dict[str, Any]:
        """The entries of a tokenizer.json except the model."""
        table = {"type": "Precompiled", "precompiled_charsmap": self.charsmap}
        normalizers = [*([table] if self.charsmap else []), *_FIXED_NORMALIZERS]
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": _SPLITTER,
            "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": _DECODERS},
        }

    def bytes_of(self, piece: str) -> bytes:
        """The bytes for which an entry stands; special tokens stand for none."""
        return b"" if piece in self.specials else piece.replace(SPACE, " ").encode()

    def spelled(self, piece: str) -> str:
        """A piece of text, spelled with the characters of the vocabulary."""
        return piece.replace(" ", SPACE)

    def unspelled(self, word: str) -> str:
        """A word as people write it, from one in the spelling of the vocabulary; without the space before it."""
        return word.replace(SPACE, " ").strip()


def hidden(entry: str) -> str:
    """The name of an entry with which no text is encoded."""
    return _MARK_OF_HIDDEN + entry


def is_hidden(name: str) -> bool:
    """Whether no text is encoded with the entry of this name."""
    return name.startswith(_MARK_OF_HIDDEN)


def layout_in_file(found: dict[str, Any]) -> SentencePieceLayout:
    """The layout that a tokenizer.json with unlisted pieces must have; the reader compares all other parts.

    Raises:
        DataError: its normalisation table is not one.
    """
    vocabulary = found["model"].get("vocab")
    names = [entry[0] for entry in vocabulary[len(SPECIALS) :]] if _has_names(vocabulary) else []
    tags = []
    for name in names:
        if not (is_hidden(name) and TAG.fullmatch(name[1:])):
            break
        tags.append(name[1:])

    from transformer_cli.text.sentencepiece_charsmap import checked_charsmap  # needs numpy

    return SentencePieceLayout(tags=tuple(tags), charsmap=checked_charsmap(_charsmap(found)))


def _has_names(vocabulary: Any) -> bool:
    return isinstance(vocabulary, list) and all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) for entry in vocabulary
    )


def _charsmap(found: dict[str, Any]) -> Any:
    """What stands in the place of the table; an empty text if there is none."""
    normalizer = found.get("normalizer")
    steps = normalizer.get("normalizers") if isinstance(normalizer, dict) else None
    first = steps[0] if isinstance(steps, list) and steps else None
    is_table = isinstance(first, dict) and first.get("type") == "Precompiled"
    return first.get("precompiled_charsmap") if is_table and first is not None else ""


class ListedIds:
    """The ids of the tokens of a SentencePiece model, whose vocabulary need not be the same list.

    As in Marian, an unknown run of characters that is an entry of the vocabulary, such as a piece of the other language, gets
    the id of that entry.

    Args:
        layout: of the tokenizer.
        vocabulary: the listed pieces with their scores, in the order of their ids.
    """

    def __init__(self, layout: Layout, vocabulary: Sequence[Sequence[Any]]) -> None:
        self._unk_id, self._vocab_size = 0, len(vocabulary)
        first = len(layout.specials)
        names = [name for name, _ in vocabulary]
        self._hidden = {
            layout.entry_of(name): index for index, name in enumerate(names) if index >= first and is_hidden(name)
        }

    def are_settled(self, ids: Iterable[int]) -> bool:
        """Whether all ids stand for listed pieces, so that `of` would change nothing."""
        return all(0 < index < self._vocab_size for index in ids)

    def of(self, tokens: Iterable[str], ids: Iterable[int]) -> list[int]:
        """The ids of tokens; unlisted pieces are unknown.

        Args:
            tokens: the pieces; an unknown run of characters is one of them.
            ids: as the library gives them.
        """
        return [
            index
            if 0 < index < self._vocab_size
            else self._hidden.get(token, self._unk_id)
            if index == self._unk_id
            else self._unk_id
            for token, index in zip(tokens, ids, strict=True)
        ]


# What the bytes of entries mean: which token may follow which.


BETWEEN_CHARACTERS = 0
FORBIDDEN = -1


# For each state, the bytes that it allows and the state after them. States 1 to 3 require 1 to 3 continuation bytes. In states
# 4 to 7 the first of them has a narrower range, which rules out overlong forms, surrogates, and code points above U+10FFFF.
_STATES: tuple[dict[int, int], ...] = (
    {
        **dict.fromkeys(range(0x80), 0),
        **dict.fromkeys(range(0xC2, 0xE0), 1),
        0xE0: 4,
        **dict.fromkeys(range(0xE1, 0xED), 2),
        0xED: 5,
        **dict.fromkeys(range(0xEE, 0xF0), 2),
        0xF0: 6,
        **dict.fromkeys(range(0xF1, 0xF4), 3),
        0xF4: 7,
    },
    dict.fromkeys(range(0x80, 0xC0), 0),
    dict.fromkeys(range(0x80, 0xC0), 1),
    dict.fromkeys(range(0x80, 0xC0), 2),
    dict.fromkeys(range(0xA0, 0xC0), 1),
    dict.fromkeys(range(0x80, 0xA0), 1),
    dict.fromkeys(range(0x90, 0xC0), 2),
    dict.fromkeys(range(0x80, 0x90), 2),
)
_NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class BytePieces:
    """The tokens of a vocabulary as steps between states.

    The bytes of all tokens together are UTF-8. A state is what the bytes so far require of the next byte (RFC 3629, section 4):
    nothing, because a character has just ended, or one of several ranges of continuation bytes. Each token leads from a state
    to another, or is not allowed in it.
    """

    next_states: "NDArray[np.int64]"
    """(states, V): the state after a token, or -1 if the token is not allowed."""
    is_allowed: "NDArray[np.bool_]"
    """(states, limits, V): whether a token is allowed if at most `limit` tokens may follow it. The last limit stands
    for all larger ones."""

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> "BytePieces | None":
        """The steps of the tokens, or None if each token consists of whole characters.

        Args:
            pieces: the bytes of each token; empty for a special token, which may stand between characters only.
        """
        import numpy as np

        next_states = np.full((len(_STATES), len(pieces)), FORBIDDEN, dtype=np.int64)
        next_states[BETWEEN_CHARACTERS] = BETWEEN_CHARACTERS
        for index, piece in enumerate(pieces):
            if piece.isascii():  # it stands between characters only
                continue
            for first in range(len(_STATES)):
                state = first
                for byte in piece:
                    state = FORBIDDEN if state == FORBIDDEN else _STATES[state].get(byte, FORBIDDEN)
                next_states[first, index] = state
        if not next_states[BETWEEN_CHARACTERS].any():
            return None
        # (states,): the smallest number of tokens that end the character.
        to_end = np.full(len(_STATES), _NEVER, dtype=np.int64)
        to_end[BETWEEN_CHARACTERS] = 0
        for _ in _STATES:  # a shortest path visits no state twice
            after = np.where(next_states == FORBIDDEN, _NEVER, to_end[next_states])  # (states, V)
            to_end[1:] = np.minimum(to_end, after.min(axis=1) + 1)[1:]
        limits = np.arange(1 + to_end[to_end < _NEVER].max())
        after = np.where(next_states == FORBIDDEN, _NEVER, to_end[next_states])
        return cls(next_states, after[:, None, :] <= limits[:, None])


# The file: written, and checked when it is read.


MAX_CHARACTERS = 150_000_000
MAX_ENTRIES = 1_000_000
MAX_PIECE_CHARACTERS = 1_000_000
_SURROGATE = re.compile("[\ud800-\udfff]")
LEARNED = frozenset({"vocab", "merges", UNLISTED})


class TokenizerParts(NamedTuple):
    """A tokenizer as a value: what is fixed, and what was learned."""

    layout: Layout
    model: dict[str, Any]
    """The `model` entry of a tokenizer.json."""


@contextmanager
def tokenizer_errors_explained(what: str) -> Iterator[None]:
    """Turn errors of the `tokenizers` library into `TfmError`; its Rust panics are no `Exception`."""
    try:
        yield
    except TfmError:
        raise
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        if is_out_of_memory(error):
            raise TryAgainError(f"{what}: out of memory", hint="close other programs") from error
        raise DataError(f"{what}: {error}") from error


def without_surrogates(text: str) -> str:
    """UTF-8 has no lone surrogates: each becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def build(parts: TokenizerParts, *, keeps_marks_with_words: bool = False) -> Any:
    """A tokenizer of the `tokenizers` library, or one with its methods; the model was checked by `read`, or is made here."""
    if parts.layout.is_of_library:
        from transformer_cli.text.sentencepiece_model import LibraryEngine

        return LibraryEngine(parts)
    fixed = parts.layout.components(keeps_marks_with_words=keeps_marks_with_words)
    model = parts.model
    if UNLISTED in model:  # these pieces follow the listed ones
        rest = {name: value for name, value in model.items() if name != UNLISTED}
        model = rest | {"vocab": [*model["vocab"], *model[UNLISTED]]}
    tokenizer = HuggingFaceTokenizer.from_str(json.dumps({**fixed, "model": model}))
    tokenizer.encode_special_tokens = True  # `[EOS]` in a text is plain text; not stored in files
    return tokenizer


def write(parts: TokenizerParts) -> str:
    """The content of a tokenizer.json."""
    content = {**parts.layout.components(), "model": parts.model}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def read(text: str) -> TokenizerParts:
    """The checked parts of a tokenizer.json.

    Raises:
        DataError: the text is no tokenizer.json, or has a part that this package does not write.
    """
    if len(text) > MAX_CHARACTERS:
        raise _refusal(f"{len(text):,} characters are more than the {MAX_CHARACTERS:,} allowed")
    try:
        found = json.loads(text, object_pairs_hook=without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _refusal(f"not JSON, or cut off: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("model"), dict):
        raise _refusal("there is no model in it")
    model = found["model"]
    kind = model.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise _refusal(f"a model of type {_short(kind)}, only {', '.join(KINDS)} are known")
    layout = _layout_of(kind, found)
    expected = {name: model.get(name) if name in LEARNED else value for name, value in layout.empty_model().items()}
    _check_equal(expected, model, "model.")
    _check_pieces(model, layout)
    if kind == "BPE":
        merges, vocabulary = model["merges"], model["vocab"]
        if not isinstance(merges, list) or len(merges) > len(vocabulary):
            raise _refusal("model.merges is not a list of at most one merge per entry")
        for merge in merges:
            if not isinstance(merge, list) or [*map(type, merge)] != [str, str]:
                raise _refusal(f"model.merges holds {_short(merge)}, not two pieces")
            left, right = merge
            if not (left in vocabulary and right in vocabulary and left + right in vocabulary):
                raise _refusal(f"model.merges joins {_short(merge)}, which the vocabulary does not hold")
    return TokenizerParts(layout, model)


def _layout_of(kind: str, found: dict[str, Any]) -> Layout:
    """The layout that equals all fixed parts; if none does, the error is about the most similar one."""
    added = found.get("added_tokens")
    behind = added[len(SPECIALS) :] if isinstance(added, list) else []
    contents = [token.get("content") if isinstance(token, dict) else None for token in behind]
    tags = tuple(text for text in contents if isinstance(text, str) and TAG.fullmatch(text))
    # There are tags only if nothing else follows the special tokens.
    plain = Layout(kind, tags=tags if len(tags) == len(set(tags)) == len(behind) else ())
    fallback = replace(plain, has_byte_fallback=kind != "WordLevel")
    spaced = replace(fallback, has_spaced_words=True)
    composing = list(dict.fromkeys([plain, fallback, spaced]))
    layouts = [*composing, *(replace(layout, composes=False) for layout in composing)]
    if kind == "Unigram" and UNLISTED in found["model"]:
        layouts = [layout_in_file(found)]
    if kind == "WordLevel":
        layouts += [layout(tags=plain.tags) for layout in (WhitespaceLayout, SpaceLayout)]
    fixed = {name: value for name, value in found.items() if name != "model"}
    wanted = [layout.components() for layout in layouts]
    similar = [sum(fixed.get(name) == parts[name] for name in parts) for parts in wanted]
    best = similar.index(max(similar))
    _check_equal(wanted[best], fixed, "")
    return layouts[best]


def _check_equal(expected: dict[str, Any], found: dict[str, Any], where: str) -> None:
    for name in sorted({*expected, *found}):
        if name not in found:
            raise _refusal(f"{where}{name} is missing")
        # Compared as text, because 1 == True in Python but not in JSON.
        if name not in expected or (
            expected[name] is not found[name]
            and json.dumps(expected[name], sort_keys=True) != json.dumps(found[name], sort_keys=True)
        ):
            raise _refusal(f"{where}{_short(name)} is not what tfm writes: {_short(found[name])}")


def _check_pieces(model: dict[str, Any], layout: Layout) -> None:
    vocabulary = model["vocab"]  # below, the pieces are in the order of their ids, with the unlisted ones behind them
    if layout.kind == "Unigram":
        pieces = _pieces_with_scores(vocabulary, layout, model.get(UNLISTED, []))
    elif not isinstance(vocabulary, dict):
        raise _refusal("model.vocab is not a mapping of pieces to ids")
    elif any(type(index) is not int for index in vocabulary.values()):
        raise _refusal("model.vocab holds an id that is not a whole number")
    elif sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise _refusal("the ids of model.vocab are not 0, 1, 2, ... without gaps and duplicates")
    else:
        pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    specials = tuple(layout.mark + special for special in layout.specials)
    if tuple(pieces[: len(specials)]) != specials:
        raise _refusal(f"the first entries are not {' '.join(layout.specials)}")
    if len(pieces) > MAX_ENTRIES:
        raise _refusal(f"{len(pieces):,} entries are more than the {MAX_ENTRIES:,} allowed")
    for piece in pieces:
        if not 0 < len(piece) <= MAX_PIECE_CHARACTERS or _SURROGATE.search(piece):
            raise _refusal(f"{_short(piece)} cannot be a piece of text")
    if layout.has_byte_fallback and not set(BYTE_TOKENS) <= set(pieces):
        raise _refusal("model.vocab does not hold a token for each byte")


def _pieces_with_scores(vocabulary: Any, layout: Layout, unlisted: Any) -> list[str]:
    if not isinstance(vocabulary, list) or not isinstance(unlisted, list):
        raise _refusal("model.vocab is not a list of pieces with scores")
    for entry in vocabulary + unlisted:
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)):
            raise _refusal(f"model.vocab holds {_short(entry)}, not a piece and its score")
        if type(entry[1]) not in (int, float) or not math.isfinite(entry[1]):
            raise _refusal(f"the score of {_short(entry[0])} is not a finite number")
    pieces = [piece for piece, _ in vocabulary + unlisted]
    if len(set(map(layout.entry_of, pieces))) != len(pieces):
        raise _refusal("model.vocab holds a piece twice")
    return pieces


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _short(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=True, default=str), 80)


def _refusal(problem: str) -> DataError:
    return DataError(
        f"tokenizer refused: {problem}",
        hint="only files that tfm wrote are accepted; copy the file from the run again",
    )
