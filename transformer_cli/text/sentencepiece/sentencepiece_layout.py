"""The layout of an imported SentencePiece model: how the `tokenizers` library splits text as that model does.

The model is a unigram model over pieces, in which U+2581 stands for a space. Its normalisation is a table from strings to strings, which
is data of the model (`charsmap.py`). All other parts are fixed here.

Three kinds of entries are hidden: no text is ever encoded with them. Their names in the file begin with a space, and the
text has no spaces when it is looked up in the vocabulary. They are the special tokens, the tags, and the pieces that the model of
the other side has in a vocabulary that both sides share.

A piece without an entry (`unlisted`) takes part in the segmentation, and then counts as unknown.
"""

from dataclasses import dataclass
from typing import Any

from transformer_cli.text.tokenizer_layout import Layout
from transformer_cli.text.word_split import SPECIALS, TAG, UNK, is_corpus_tag

SPACE = "\u2581"
"""What stands for a space in a piece."""
UNLISTED = "unlisted"
"""The key of the pieces without an entry, each with its score."""
_HIDDEN = " "
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
class SentencePieceLayout(Layout):
    """A unigram model of SentencePiece."""

    kind: str = "Unigram"
    composes: bool = False
    charsmap: str = ""
    """The normalisation table in base64; empty: text stays as it is."""

    @property
    def is_byte_level(self) -> bool:
        """A token stands for characters."""
        return False

    @property
    def cuts_at_spaces(self) -> bool:
        return True

    @property
    def is_sentencepiece(self) -> bool:
        return True

    def empty_model(self) -> dict[str, Any]:
        """The model without pieces."""
        vocabulary = [[hidden(UNK), 0.0]]
        return {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": vocabulary, UNLISTED: []}  # fmt: skip

    def engine_model(self, model: dict[str, Any]) -> dict[str, Any]:
        """The `model` entry with which the library splits text: the unlisted pieces follow the listed ones."""
        rest = {name: value for name, value in model.items() if name != UNLISTED}
        return rest | {"vocab": [*model["vocab"], *model[UNLISTED]]}

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

    def entry_of(self, name: str) -> str:
        """The entry that has this name in the file."""
        return name.removeprefix(_HIDDEN)

    def name_of_special(self, entry: str) -> str:
        """The name of a special token or a tag in the file."""
        return hidden(entry)

    def is_tag_of_corpus(self, name: str) -> bool:
        """Whether the entry of this name is the tag of a corpus, such as <BT>."""
        return is_hidden(name) and is_corpus_tag(name[1:])

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
    return _HIDDEN + entry


def is_hidden(name: str) -> bool:
    """Whether no text is encoded with the entry of this name."""
    return name.startswith(_HIDDEN)


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
    from transformer_cli.text.sentencepiece.charsmap import checked_charsmap  # needs numpy

    return SentencePieceLayout(tags=tuple(tags), charsmap=checked_charsmap(_charsmap(found)))


def _has_names(vocabulary: Any) -> bool:
    return isinstance(vocabulary, list) and all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)
        for entry in vocabulary
    )


def _charsmap(found: dict[str, Any]) -> Any:
    """What stands in the place of the table; an empty text if there is none."""
    normalizer = found.get("normalizer")
    steps = normalizer.get("normalizers") if isinstance(normalizer, dict) else None
    first = steps[0] if isinstance(steps, list) and steps else None
    is_table = isinstance(first, dict) and first.get("type") == "Precompiled"
    return first.get("precompiled_charsmap") if is_table and first is not None else ""
