"""The layout of a tokenizer of the tutorial by hkproj: whole words and runs of marks, cut as `Whitespace` of `tokenizers` cuts.

Its translations are words and marks with a space between all of them, so a text does not come back as it was.
"""

from dataclasses import dataclass
from typing import Any

from transformer_cli.text.tokenizer_layout import Layout

_SPACE = " "


@dataclass(frozen=True, slots=True)
class WhitespaceLayout(Layout):
    """Whole words; each entry stands for a space and the word, as it is shown."""

    kind: str = "WordLevel"
    composes: bool = False

    @property
    def cuts_at_spaces(self) -> bool:
        return True

    def components(self, *, keeps_marks_with_words: bool = False) -> dict[str, Any]:
        """The entries of a tokenizer.json except the model."""
        decoders = [{"type": "Fuse"}, {"type": "Strip", "content": _SPACE, "start": 1, "stop": 0}]
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": self.added_tokens(),
            "normalizer": {"type": "Sequence", "normalizers": []},
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": decoders},
        }

    def entry_of(self, name: str) -> str:
        """The entry that has this name in the file."""
        return name if name in self.specials or self.is_tag_of_corpus(name) else _SPACE + name
