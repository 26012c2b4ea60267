"""The tokenizer: text to token ids, and token ids to text; its files; caches of words; where sequences begin and end."""

import logging
import re
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_cli.config import (
    DataConfig,
    FilesData,
    HubData,
    SequencesData,
    TokenizerConfig,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text import tokenizer_file
from transformer_cli.text.normalization import (
    REVERSED,
    SPECIALS,
    UNK,
    continues_word,
    has_word,
    tag_of,
)
from transformer_cli.text.tokenizer_file import (
    BYTE_TOKENS,
    UNLISTED,
    BytePieces,
    ListedIds,
    tokenizer_errors_explained,
    without_surrogates,
)
from transformer_cli.text.vocabulary import learn_model

if TYPE_CHECKING:  # a sentence for another engine does not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    from transformer_cli.text.token_ids import IdLists, WordEdges

logger = logging.getLogger(__name__)

# By the half characters that stand for bytes in Python (PEP 383).
_NAMES_OF_BYTES = {0xDC00 + byte: BYTE_TOKENS[byte] for byte in range(0x80, 0x100)}

# A text with more characters per token of `max_length` than this counts as too long and is not encoded.
MAX_CHARACTERS_PER_TOKEN = 64
# In place of a space inside a text that replaces [UNK]: a noncharacter of Unicode, which no ordinary text contains.
_INNER_SPACE = "\ufdd0"
_MOST_REMEMBERED_TEXTS = 5000


class Tokenizer:
    """A tokenizer with the vocabulary of one language, or a vocabulary shared by both."""

    unk_id, pad_id, sos_id, eos_id = range(len(SPECIALS))

    def __init__(self, parts: tokenizer_file.TokenizerParts) -> None:
        """Build a tokenizer from the parts of a tokenizer.json, which were checked before."""
        self.parts = parts
        """The layout, and the model with its vocabulary; not to be changed."""
        self._engine = tokenizer_file.build(parts)
        layout, self.vocab_size = parts.layout, len(parts.model["vocab"])
        names = [self._engine.id_to_token(i) or "" for i in range(self.vocab_size)]
        self.entries = list(map(layout.entry_of, names))
        """The vocabulary in the order of the ids; not to be changed."""
        self.special_tokens = layout.specials
        """[UNK], [PAD], [SOS], [EOS] and the tags of the target languages, in the order of their ids."""
        # [UNK] is shown with a space before it: most unknown tokens are words.
        num_special = len(self.special_tokens)
        with_brackets = (i for i in range(num_special, self.vocab_size) if names[i].endswith(">") and "<" in names[i])
        corpus_tags = (index for index in with_brackets if layout.is_tag_of_corpus(names[index]))
        self.tag_ids = (*range(len(SPECIALS), num_special), *corpus_tags)
        """The ids of all tags, of languages and of corpora; they stand before sources only."""
        hidden = {*self.special_tokens, *(self.entries[index] for index in self.tag_ids)}
        self._shown = ["" if piece in hidden else piece for piece in self.entries]
        self._shown[self.unk_id] = f" {UNK}"
        self._texts: dict[tuple[int, ...], str] = {}
        self.has_words = layout.kind == "WordLevel"
        """Whether each entry is a whole word or mark; else they are subwords."""
        self._is_word = [self.has_words and any(map(str.isalnum, piece)) for piece in self.entries]
        self._is_word[:num_special] = [False] * num_special
        self._is_written: list[bool] | None = None
        is_listed = UNLISTED in parts.model
        self._listed = ListedIds(layout, parts.model["vocab"]) if is_listed else None
        whole = self._encode_whole
        self._words: WordCache | PieceCache | WholeTexts
        if layout.is_of_library:
            self._words = WholeTexts(whole)
        elif layout.cuts_at_spaces:
            self._words = PieceCache(whole)
        else:
            self._words = WordCache(whole, lambda piece: self._ids_of_word(layout.spelled(piece)))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens; the string `[EOS]` in a text is ordinary text."""
        if self.parts.layout.is_of_library:
            return self._encode_whole(text)
        return memoryview(self._words.encode(text)).cast("I").tolist()

    def knows(self, text: str) -> bool:
        """Whether a text can be encoded without [UNK]."""
        return self.unk_id not in self.encode(text)

    def encode_column(self, texts: Any, *, with_end: bool = False) -> "IdLists":
        """The ids of each text, as `encode` gives them.

        Args:
            texts: an array of strings of pyarrow.
            with_end: whether [EOS] follows the ids of each text.
        """
        from transformer_cli.text.token_ids import IdLists, encode_column

        if not isinstance(self._words, WholeTexts):
            return encode_column(texts, self._words, array("I", [self.eos_id]).tobytes() if with_end else b"")
        end = [self.eos_id] if with_end else []
        return IdLists.of([[*ids, *end] for ids in self._engine.encode_all(texts.to_pylist())])

    def decode(self, ids: Iterable[int], for_unknown: Sequence[str] = ()) -> str:
        """The text of ids; [PAD], [SOS], [EOS] and tags are left out, [UNK] is shown.

        Args:
            ids: of tokens.
            for_unknown: what is shown in place of the first [UNK], the second and so on: a word, a mark or several words.
                A word has a space before it, as `words` spells it; the space goes where none belongs, as after a bracket.
        """
        shown = self._shown
        if not for_unknown:
            # The doubts about a translation, and the translation itself, ask for the same text.
            ids = tuple(ids)
            if (text := self._texts.get(ids)) is None:
                text = self._engine.decoder.decode([shown[index] for index in ids])
                if len(self._texts) >= _MOST_REMEMBERED_TEXTS:
                    self._texts.clear()
                self._texts[ids] = text
            return text
        # The decoder decides about the space before a text, but the spaces inside it stay.
        texts = (text[:1] + text[1:].replace(" ", _INNER_SPACE) for text in for_unknown)
        decoded: str = self._engine.decoder.decode(
            [next(texts, shown[index]) if index == self.unk_id else shown[index] for index in ids]
        )
        return decoded.replace(_INNER_SPACE, " ").removeprefix(" ")

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where in a text each token of `encode(text)` stands, as (start, end) in characters.

        A span may begin with the white space before a word, or with the mark before it. All bytes of a character have
        the span of that character.
        """
        return self._engine.encode(without_surrogates(text), add_special_tokens=False).offsets

    def decoded_spans(self, ids: Sequence[int], for_unknown: Sequence[str] = ()) -> list[tuple[int, int]]:
        """Where in `decode(ids, for_unknown)` the text of each token stands, as (start, end) in characters.

        A token without a text of its own, such as [EOS] or a byte that does not end its character, has an empty span:
        start and end are the place where the text goes on.
        """
        text = self.decode(ids, for_unknown)
        ends = [0]
        for num_tokens in range(1, len(ids) + 1):
            beginning = self.decode(ids[:num_tokens], for_unknown)
            # The beginning may end inside a character, or with a space that goes when the next token comes.
            pairs = enumerate(zip(beginning, text, strict=False))
            length = min(len(beginning), len(text))
            ends.append(max(ends[-1], next((at for at, (x, y) in pairs if x != y), length)))
        return list(pairwise(ends))

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """A short readable name of each token, for pictures and samples."""
        return [self._name(index) for index in ids]

    def marked_tokens(self, ids: Iterable[int]) -> list[str]:
        """As `tokens`, but those of a SentencePiece vocabulary as its files have them, with ▁ in place of a space."""
        if not self.parts.layout.is_of_library:
            return self.tokens(ids)
        num_special = len(self.special_tokens)
        return [self._name(index) if index < num_special else self.entries[index] for index in ids]

    def count_words(self, ids: Iterable[int]) -> int:
        """How many of these ids are known words, not punctuation; 0 for a tokenizer of subwords."""
        return sum(map(self._is_word.__getitem__, ids))

    def count_written(self, ids: Iterable[int]) -> int:
        """How many of these ids are tokens with a letter or digit, without [EOS], [PAD] and [SOS]; [UNK] stands for a word."""
        if self._is_written is None:
            special = self.eos_id, self.pad_id, self.sos_id
            self._is_written = [index not in special and has_word(piece) for index, piece in enumerate(self.entries)]
        return sum(map(self._is_written.__getitem__, ids))

    @property
    def has_spaced_words(self) -> bool:
        """Whether its text has white space between words in every script, also in Chinese, Japanese and Thai."""
        layout = self.parts.layout
        return layout.has_spaced_words or (self.has_words and layout.cuts_at_spaces)

    def unknown_words(self, text: str) -> list[str]:
        """The words and marks of a text that have no entry in the vocabulary, in order."""
        unknown = (word for word in self.words(text) if self._is_unknown(word))
        return [word for word in map(self.parts.layout.unspelled, unknown) if word]

    def words(self, text: str) -> list[str]:
        """The words and marks of a text, in the spelling of the vocabulary, with the space before them."""
        normalizer, splitter = self._engine.normalizer, self._engine.pre_tokenizer
        assert normalizer is not None
        assert splitter is not None
        pieces = splitter.pre_tokenize_str(normalizer.normalize_str(without_surrogates(text)))
        return [piece for piece, _ in pieces]

    def pieces(self, word: str) -> list[str]:
        """The entries of the vocabulary that make up one of `words`; an unknown word is [UNK]."""
        return [token.value for token in self._engine.model.tokenize(word)]

    def id_of(self, entry: str) -> int:
        """The id of an entry, which the vocabulary has."""
        return self.entries.index(entry)

    @cached_property
    def byte_pieces(self) -> BytePieces | None:
        """Which token may follow which, so that no character is broken; None if every token may follow every other."""
        if self.has_words:
            return None
        return BytePieces.of([self.parts.layout.bytes_of(piece) for piece in self.entries])

    def has_whole_characters(self, ids: Iterable[int]) -> bool:
        """Whether the bytes of these tokens are UTF-8, without a broken character."""
        # A special token stands for no bytes, but only between two characters.
        pieces = (self.parts.layout.bytes_of(self.entries[index]) or b" " for index in ids)
        try:
            b"".join(pieces).decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def word_edges(self) -> "WordEdges":
        """Which tokens go on with the word before them, and which end within a word."""
        from transformer_cli.text.token_ids import WordEdges

        layout = self.parts.layout
        pieces = [layout.bytes_of(piece) for piece in self.entries]
        return WordEdges.of(pieces, has_spaced_words=layout.has_spaced_words)

    def encode_inside(self, text: str) -> list[int]:
        """The ids of a text that stands inside a longer one.

        A word has the space before it, as everywhere. A mark, or a sign of a script without spaces between words, has none.
        """
        words, layout = self.words(text), self.parts.layout
        if words and not continues_word(text, has_spaced_words=layout.has_spaced_words):
            words[0] = words[0].removeprefix(layout.spelled(" "))
        return [index for word in words for index in self._ids_of_word(word)]

    @cached_property
    def continuing_ids(self) -> tuple[int, ...]:
        """The tokens that continue a word: they begin with a letter or a digit, and have no space before it.

        A token that begins inside a character is not among them. Words without subwords have no such token.
        """
        layout = self.parts.layout
        if self.has_words:
            return ()
        texts = (layout.bytes_of(piece).decode(errors="replace") for piece in self.entries)
        continues = partial(continues_word, has_spaced_words=layout.has_spaced_words)
        return tuple(index for index, text in enumerate(texts) if continues(text))

    def tag_id(self, tag: str) -> int:
        """The id of the tag of a target language, such as <2it>.

        Raises:
            DataError: the tokenizer does not know this tag.
        """
        if tag not in self.special_tokens[len(SPECIALS) :]:
            raise DataError(
                f"the tokenizer of the source has no tag {tag}",
                hint="another set of target languages needs a new run: another name, or --from-scratch; "
                "if the model was copied from elsewhere, copy its whole checkpoint folder",
            )
        return self.special_tokens.index(tag)

    def to_file(self) -> bytes:
        """The content of the file of this tokenizer: a tokenizer.json, or an .spm file of SentencePiece."""
        layout = self.parts.layout
        return layout.content if layout.is_of_library else tokenizer_file.write(self.parts).encode()

    @classmethod
    def from_file(cls, name: str, content: bytes) -> "Tokenizer":
        """A tokenizer from the content of its file, trusted or not.

        Args:
            name: of the file; it ends in .json or .spm.
            content: of the file.

        Raises:
            DataError: `to_file` cannot have written this content.
            UsageError: the file is of SentencePiece, whose package is not installed.
        """
        with tokenizer_errors_explained("the tokenizer cannot be built"):
            if name.endswith(SPM):
                from transformer_cli.text.sentencepiece_model import library_parts

                return cls(library_parts(content, name))
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError("not UTF-8 text") from error
            return cls(tokenizer_file.read(text))

    @property
    def has_json(self) -> bool:
        """Whether it has a tokenizer.json; of the models of the SentencePiece library, those of kind unigram without bytes and symbols."""
        layout = self.parts.layout
        is_plain = layout.kind == "Unigram" and not layout.has_byte_fallback and not layout.symbols
        return is_plain or not layout.is_of_library

    def to_json(self) -> str:
        """The content of a tokenizer.json, which the `tokenizers` library can load as well; only if it `has_json`.

        For a tokenizer of the SentencePiece library: of one that gives the same ids.
        """
        if not self.parts.layout.is_of_library:
            return tokenizer_file.write(self.parts)
        from transformer_cli.text.sentencepiece_model import as_tokenizer_json

        return tokenizer_file.write(as_tokenizer_json(self.parts))

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """A tokenizer from the content of a tokenizer.json, trusted or not.

        Raises:
            DataError: `to_json` cannot have written this content.
        """
        with tokenizer_errors_explained("the tokenizer cannot be built"):
            return cls(tokenizer_file.read(text))

    def _encode_whole(self, text: str) -> list[int]:
        if not text.isascii():
            text = without_surrogates(text)
        ids = self._engine.encode_batch_fast([text], add_special_tokens=False)[0].ids
        if self._listed is None or self._listed.are_settled(ids):
            return ids
        return self._listed.of(self._engine.encode(text, add_special_tokens=False).tokens, ids)

    def _ids_of_word(self, word: str) -> list[int]:
        tokens = self._engine.model.tokenize(word)
        ids = [token.id for token in tokens]
        return self._listed.of([token.value for token in tokens], ids) if self._listed else ids

    def _is_unknown(self, word: str) -> bool:
        if self._listed or self.parts.layout.is_of_library:
            return self.unk_id in self._ids_of_word(word)
        return self._engine.token_to_id(word) is None

    def _name(self, index: int) -> str:
        if index < len(self.special_tokens):
            return self.special_tokens[index]
        if (piece := self.entries[index]) in BYTE_TOKENS:
            return piece
        text: str = self._engine.decoder.decode([" ", piece])
        if "\ufffd" in text:  # some bytes of a letter
            text = self.parts.layout.bytes_of(piece).decode(errors="surrogateescape").translate(_NAMES_OF_BYTES)
        return text.strip(" ") or "␣"


def train_tokenizer(
    texts: Iterable[str],
    config: TokenizerConfig,
    *,
    composes: bool = True,
    tags: Sequence[str] = (),
) -> Tokenizer:
    """A tokenizer whose vocabulary is learned from texts; the same texts give the same tokenizer.

    Args:
        texts: lines of the training split; of both languages if the vocabulary is shared. They are read
            twice, so an iterator is refused.
        config: the kind of tokenizer, and the limits of its vocabulary.
        composes: whether the tokenizer converts text to the Unicode normal form NFC.
        tags: special tokens that name target languages, such as <2it>.

    Raises:
        ConfigError: `vocab_size` is too small for this kind of tokenizer.
        DataError: the texts give an empty vocabulary.
    """
    with tokenizer_errors_explained("no vocabulary can be learned from this text"):
        tokenizer = Tokenizer(learn_model(texts, config, composes=composes, tags=tags))
    if tokenizer.vocab_size <= len(tokenizer.special_tokens):
        raise DataError(
            "the training text gives an empty vocabulary",
            hint="check the corpus, and tokenizer.min_frequency against the size of the corpus",
        )
    if config.vocab_size is not None and 2 * tokenizer.vocab_size < config.vocab_size:
        logger.warning(
            "tokenizer.vocab_size is %s, but the training text gives a vocabulary of %s only: there are no more words, or "
            "parts of words that occur tokenizer.min_frequency (%d) times",
            f"{config.vocab_size:,}",
            f"{tokenizer.vocab_size:,}",
            config.min_frequency,
        )
    return tokenizer


# The files of the tokenizers of a model.

SHARED = "tokenizer.json"
SOURCE, TARGET = "tokenizer.source.json", "tokenizer.target.json"
SPM = ".spm"
AS_SPM = {name: name.removesuffix(".json") + SPM for name in (SHARED, SOURCE, TARGET)}
"""The name of each of these files where it is that of a tokenizer of the SentencePiece library."""

Tokenizers = tuple[Tokenizer, Tokenizer]
"""Of source and target; one object twice where the vocabulary is shared. Only an imported SentencePiece model
can have one vocabulary and two tokenizers, which split text differently."""


def tokenizer_files(tokenizers: Tokenizers) -> dict[str, bytes]:
    """File names and the content of each file."""
    source, target = tokenizers
    names = {SHARED: source} if source is target else {SOURCE: source, TARGET: target}
    return {AS_SPM[name] if one.parts.layout.is_of_library else name: one.to_file() for name, one in names.items()}


def tokenizer_names(names: Container[str]) -> tuple[str, ...]:
    """Which files of a folder hold the tokenizers: one if the vocabulary is shared, else those of source and target.

    Args:
        names: of the files in the folder.
    """
    shared, source, target = (spm if spm in names else name for name, spm in AS_SPM.items())
    return (shared,) if shared in names else (source, target)


def read_tokenizers(files: Mapping[str, bytes], folder: Path = Path()) -> Tokenizers:
    """The tokenizers of the files that `tokenizer_files` has made, and `tokenizer_names` has found.

    Args:
        files: names and contents; the source comes first.
        folder: for messages.

    Raises:
        DataError: a file is not as tfm writes it.
    """
    loaded = []
    for name, content in files.items():
        try:
            loaded.append(Tokenizer.from_file(name, content))
        except DataError as error:
            raise DataError(f"{folder / name}: {error.message}", hint=error.hint) from error
    return loaded[0], loaded[-1]


# Caches of the ids of words and of pieces.

MAX_CACHED_WORDS = 500_000
MAX_CACHED_CHARACTERS = 40
# Letters that Unicode NFC leaves alone, of scripts with spaces between words.
_LETTERS = "[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u0481\u048a-\u052f]+"
# A word such as cat, l'acqua, don't or mother-in-law, with up to two marks after it. How such a word is split depends on
# nothing around it, so that the library need not split it.
_PLAIN = re.compile(rf"({_LETTERS})(?:(['\u2019])({_LETTERS}))?((?:-{_LETTERS})*)([.,;:!?)]{{0,2}})")
_CLITICS = frozenset({"s", "t", "d", "m", "re", "ve", "ll"})  # as in `normalization.py`


class WordCache:
    """Ids of texts as bytes (uint32 in the byte order of the machine), which are joined faster than lists.

    The ids of a text are those of its words, joined. Splitting a text into pieces looks at most two characters back, and no
    piece crosses the space before a word. So a text is cut at spaces into parts of one word; where a word changes how the text
    after it is split (`can_be_encoded_alone`), a part has several words. The same part always has the same ids, except as the
    first part of a text.

    Args:
        encode_text: the ids of a text that is encoded as a whole.
        encode_piece: the ids of a piece of text that splitting does not cut.
    """

    def __init__(self, encode_text: Callable[[str], list[int]], encode_piece: Callable[[str], list[int]]) -> None:
        self._encode_text = encode_text
        self._num_before: int | None = None
        """The number of ids of the word `a`, when it was asked for."""
        self._pieces = _Bounded(lambda piece: array("I", encode_piece(piece)).tobytes())
        self.later_words = _Bounded(lambda word: self._plain(word) or self._behind_a_word(word), is_of_words=True)
        self.first_words = _Bounded(
            lambda word: self.later_words[word] if _PLAIN.fullmatch(word) else array("I", encode_text(word)).tobytes(),
            is_of_words=True,
        )
        self._later_parts = _Bounded(self._behind_a_word)
        self._first_parts = _Bounded(lambda part: array("I", encode_text(part)).tobytes())

    def __len__(self) -> int:
        words = self.later_words, self.first_words
        caches = *words, self._later_parts, self._first_parts, self._pieces
        return sum(map(len, caches))

    def encode(self, text: str) -> bytes:
        """The ids of a text."""
        words = text.split(" ")
        try:
            remaining = iter(words)
            first = self.first_words[next(remaining)]
            return first + b"".join(map(self.later_words.__getitem__, remaining))
        except KeyError:
            return b"".join(self._part_ids(words))

    def _part_ids(self, words: list[str]) -> Iterator[bytes]:
        """The ids of each part of a text: of a single word, or of several words that must be encoded together."""
        waiting = list[str]()
        is_first = True
        for number, word in enumerate(words, start=1):
            waiting.append(word)
            is_alone = bool(word) and can_be_encoded_alone(word)
            if not is_alone and number < len(words):
                continue
            part = " ".join(waiting)
            if is_first:
                yield self._first_parts[part]
            elif is_alone and len(waiting) == 1 and len(part) <= MAX_CACHED_CHARACTERS:
                yield self.later_words[part]
            else:
                yield self._later_parts[part]
            waiting, is_first = [], False

    def _behind_a_word(self, text: str) -> bytes:
        """The ids of a text that does not begin one: those that follow the ids of a word before it."""
        if self._num_before is None:
            self._num_before = len(self._encode_text("a"))
        return array("I", self._encode_text(f"a {text}")[self._num_before :]).tobytes()

    def _plain(self, word: str) -> bytes | None:
        """The ids of a word of the form `_PLAIN`."""
        found = _PLAIN.fullmatch(word)
        if found is None:
            return None
        letters, apostrophe, rest, others, marks = found.groups()
        pieces = [f" {letters}"]
        if apostrophe and rest.casefold() in _CLITICS:
            pieces.append(apostrophe + rest)
        elif apostrophe:
            pieces = [f" {letters}{apostrophe}", f" {rest}"]
        for other in others.split("-")[1:]:
            pieces += "-", f" {other}"
        return b"".join(map(self._pieces.__getitem__, (*pieces, *marks)))


# After a word that ends in one of these, no space is expected before the next word.
_OPENERS = frozenset("'\u2019\u2018\"“„«¿¡(-/\u2013$€£¥")
_SEPARATORS = frozenset(".,:")  # after a digit only


def can_be_encoded_alone(word: str) -> bool:
    """Whether the word and a space do not change how the text after them is split.

    True is always right; False may be wrong, which costs only time: the word is not cached.
    """
    if word[-1] in _SEPARATORS:
        return word[-2:-1].isalpha()
    return word[-1] not in _OPENERS


class _Bounded(dict[str, bytes]):
    """A cache that encodes a part when it is missing; the cache is emptied when it is full.

    Args:
        encode: the ids of a part.
        is_of_words: each part is a single word; KeyError for one that must be encoded together with its neighbours.
    """

    def __init__(self, encode: Callable[[str], bytes], *, is_of_words: bool = False) -> None:
        super().__init__()
        self._encode, self._is_of_words = encode, is_of_words

    def __missing__(self, part: str) -> bytes:
        if self._is_of_words and not (0 < len(part) <= MAX_CACHED_CHARACTERS and can_be_encoded_alone(part)):
            raise KeyError(part)
        ids = self._encode(part)
        if len(part) <= MAX_CACHED_CHARACTERS:
            if len(self) >= MAX_CACHED_WORDS:
                self.clear()
            self[part] = ids
        return ids


# Letters, digits and common marks; combining marks and format characters are not among them.
_PLAIN_PIECE = re.compile(r"[\w!-/:-@\[-^`{-~«»¡¿°\u2010-\u2015\u2018-\u201e\u2026€£]{1,40}")


class WholeTexts:
    """Ids of texts as bytes, each text encoded as a whole: SentencePiece is fast, and splits a text as it likes."""

    def __init__(self, encode_text: Callable[[str], list[int]]) -> None:
        self._encode_text = encode_text

    def encode(self, text: str) -> bytes:
        """The ids of a text."""
        return array("I", self._encode_text(text)).tobytes()


class PieceCache:
    """Ids of texts as bytes (uint32), as `WordCache` gives them.

    For an imported SentencePiece model, which splits at spaces, after its normalisation. So a text is encoded word by word, if
    no character at the edge of a word can change how the word beside it is normalised: such as a combining mark at its beginning.

    Args:
        encode_text: the ids of a text.
    """

    def __init__(self, encode_text: Callable[[str], list[int]]) -> None:
        self._encode_text = encode_text
        self.first_words = self.later_words = _WordsAtSpaces(encode_text)

    def __len__(self) -> int:
        return len(self.later_words)

    def encode(self, text: str) -> bytes:
        """The ids of a text."""
        try:
            return b"".join(map(self.later_words.__getitem__, text.split(" ")))
        except KeyError:
            return array("I", self._encode_text(text)).tobytes()


class _WordsAtSpaces(dict[str, bytes]):
    """A cache of words; KeyError for a word that must be encoded together with its neighbours."""

    def __init__(self, encode_text: Callable[[str], list[int]]) -> None:
        super().__init__({"": b""})
        self._encode_text = encode_text

    def __missing__(self, word: str) -> bytes:
        if _PLAIN_PIECE.fullmatch(word) is None:
            raise KeyError(word)
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
            self[""] = b""
        ids = self[word] = array("I", self._encode_text(word)).tobytes()
        return ids


# Sequence formats: whether sequences end with [EOS], and what the decoder reads in training.
#
# In the ordinary format (Vaswani et al. 2017) source and target end with [EOS], and the decoder reads the
# target shifted right by one position, behind [SOS]. Two exercises of tutorials differ from it:
# `drop-first` has no [EOS], and in `memorise` the decoder reads the target without the shift, so its input
# contains the token that it must predict. Both deviations are defined here and nowhere else.


@dataclass(frozen=True, slots=True)
class SequenceFormat:
    """The format of source, target and decoder input; the default is the ordinary format."""

    has_end: bool = True
    """Whether source and target end with [EOS]."""
    is_shifted: bool = True
    """Whether the decoder reads [SOS] and then the target; if not, it reads the target itself."""
    length_change: int = 0
    """Without [EOS]: the number of target tokens minus the number of source tokens."""
    tags: tuple[str, ...] = ()
    """For each of `data.directions`, the tag before its sources; empty if there is only one target language, and no `data.target_tag`."""
    corpus_tags: tuple[str | None, ...] = ()
    """In training, the tag before each source of the corpus of this number; empty: no corpus has one. With `data.reversed_epochs` the reversed pairs
    of corpus C are a corpus of their own, with the number C plus the number of corpora."""

    @classmethod
    def of(cls, data: DataConfig) -> "SequenceFormat":
        """The format for the settings under `data`."""
        if not isinstance(data, SequencesData):
            targets = [direction.target for direction in data.directions]
            has_tags = len(set(targets)) > 1 or data.target_tag
            corpora = data.corpora if isinstance(data, FilesData | HubData) else ()
            corpus_tags = tuple(corpus.tag for corpus in corpora)
            if isinstance(data, FilesData | HubData) and data.reversed_epochs is not None:
                corpus_tags += (REVERSED,) * len(corpora)
            return cls(
                tags=tuple(map(tag_of, targets)) if has_tags else (),
                corpus_tags=corpus_tags if any(corpus_tags) else (),
            )
        length_change = -1 if data.task == "drop-first" else 0
        return cls(data.end_symbol, data.shift_target, length_change)

    def with_end(self, ids: Sequence[int], eos_id: int) -> list[int]:
        """The ids of a text, followed by [EOS] if the format has one."""
        return [*ids, eos_id] if self.has_end else [*ids]

    def source(self, ids: Sequence[int], tokenizer: "Tokenizer", direction: int) -> list[int]:
        """The ids of a source text, with the tag of the target language before them and [EOS] behind them.

        Args:
            direction: index into `data.directions`.

        Source: Johnson et al. 2017, section 3.
        """
        ended = self.with_end(ids, tokenizer.eos_id)
        return [tokenizer.tag_id(self.tags[direction]), *ended] if self.tags else ended

    def tags_of(self, corpus: int, direction: int) -> list[str]:
        """The tags before the source of a training pair, in their order.

        Args:
            corpus: index into `data.corpora`.
            direction: index into `data.directions`.
        """
        corpus_tag = self.corpus_tags[corpus] if self.corpus_tags else None
        return [*([corpus_tag] if corpus_tag else []), *self.tags[direction : direction + 1]]

    def decoder_inputs(
        self, target_ids: "NDArray[Any]", is_real: "NDArray[np.bool_]", *, sos_id: int, pad_id: int
    ) -> "NDArray[Any]":
        """The decoder input ids from which the decoder must predict `target_ids`.

        Args:
            target_ids: (B, T), padded at the end.
            is_real: (B, T), True where there is a token.
            sos_id: the id of [SOS].
            pad_id: the id of [PAD].

        Returns:
            (B, T) ids, with padding at the same positions.
        """
        inputs = target_ids.copy()
        if self.is_shifted:
            inputs[:, :1] = sos_id
            inputs[:, 1:] = target_ids[:, :-1]
            inputs[~is_real] = pad_id
        return inputs
