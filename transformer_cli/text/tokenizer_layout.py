"""The layout of a tokenizer: all entries of a tokenizer.json that are not learned.

A layout says of which units a text consists. Words are known or unknown. Subwords consist of characters,
and of bytes where a character is not in the vocabulary (byte fallback); or, in the byte-level layout of
Radford et al. 2019, of bytes only.
"""

from dataclasses import dataclass, replace
from typing import Any

from transformer_cli.text.word_split import SPECIALS, UNK, SplitPatterns, is_corpus_tag

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
    """Which kind of model a tokenizer has, and how text is prepared for it."""

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

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens, which are the first entries of the vocabulary."""
        return (*SPECIALS, *self.tags)

    @property
    def is_byte_level(self) -> bool:
        """Whether each token stands for bytes."""
        return self.kind != "WordLevel" and not self.has_byte_fallback

    @property
    def cuts_at_spaces(self) -> bool:
        """Whether a text is cut at each space, and nothing around a word changes how it is cut."""
        return False

    @property
    def is_sentencepiece(self) -> bool:
        """Whether it is the layout of an imported SentencePiece model."""
        return False

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

    def engine_model(self, model: dict[str, Any]) -> dict[str, Any]:
        """The `model` entry with which the library splits text."""
        return model

    def components(self, *, keeps_marks_with_words: bool = False) -> dict[str, Any]:
        """The entries of a tokenizer.json except the model.

        Args:
            keeps_marks_with_words: leave punctuation joined to the word before it; only for learning subwords.
        """
        patterns = SplitPatterns.of(has_spaced_words=self.has_spaced_words)
        subwords = patterns.subwords_with_marks if keeps_marks_with_words else patterns.subwords
        pattern = patterns.words if self.kind == "WordLevel" else subwords
        split = {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Isolated",
            "invert": False,
        }
        to_bytes = {"type": "Sequence", "pretokenizers": [split, _BYTE_LEVEL]}
        normalizers = [
            *([{"type": "NFC"}] if self.composes else []),
            {"type": "Prepend", "prepend": " "},
            _replace(patterns.first_is_mark, ""),
            _replace(patterns.insert_space, " "),
        ]
        decoders = [*self._joining(), _replace(patterns.remove_space, "")]
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": self.added_tokens(),
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": to_bytes if self.is_byte_level else split,
            "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": decoders},
        }

    def added_tokens(self) -> list[dict[str, Any]]:
        """The special tokens and the tags, as a tokenizer.json lists them."""
        matching = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        return [
            {"id": index, "content": text, **matching, "special": True}
            for index, text in enumerate(self.specials)
        ]

    def entry_of(self, name: str) -> str:
        """The entry that has this name in the file."""
        return name

    def name_of_special(self, entry: str) -> str:
        """The name of a special token or a tag in the file."""
        return entry

    def is_tag_of_corpus(self, name: str) -> bool:
        """Whether the entry of this name is the tag of a corpus, such as <BT>."""
        return is_corpus_tag(name)

    def bytes_of(self, piece: str) -> bytes:
        """The bytes for which an entry of the vocabulary stands; special tokens stand for none."""
        if piece in self.specials:
            return b""
        if self.is_byte_level and all(character in _BYTES for character in piece):
            return bytes(_BYTES[character] for character in piece)
        if self.has_byte_fallback and piece in _BYTE_OF_TOKEN:
            return bytes([_BYTE_OF_TOKEN[piece]])
        return piece.encode()

    def spelled(self, piece: str) -> str:
        """A piece of text, spelled with the characters of the vocabulary."""
        if not self.is_byte_level:
            return piece
        return piece.encode().decode("latin-1").translate(_CHARACTERS)

    def unspelled(self, word: str) -> str:
        """A word as people write it, from one in the spelling of the vocabulary; without the space before it."""
        return word.strip()

    def _joining(self) -> list[dict[str, Any]]:
        """The decoders that make one text of the tokens."""
        if self.is_byte_level:
            # The ByteLevel decoder ignores these settings, but the file format requires them.
            return [{**_BYTE_LEVEL, "add_prefix_space": True, "use_regex": True}]
        fuse = {"type": "Fuse"}
        return [{"type": "ByteFallback"}, fuse] if self.has_byte_fallback else [fuse]


def layouts_of(kind: str, tags: tuple[str, ...] = ()) -> list[Layout]:
    """All layouts of a kind that a file may have, the first one for messages."""
    plain = Layout(kind, tags=tags)
    fallback = replace(plain, has_byte_fallback=kind != "WordLevel")
    spaced = replace(fallback, has_spaced_words=True)
    layouts = list(dict.fromkeys([plain, fallback, spaced]))
    return [*layouts, *(replace(layout, composes=False) for layout in layouts)]


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
