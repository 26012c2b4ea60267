"""Whether a sentence goes on behind a line break inside a block, such as <br>."""

from dataclasses import dataclass

from transformer_cli.text.sentences import ends_sentence

MAX_CHARACTERS = 300
"""A text without an end of a sentence that is longer is a poem or a list, and no sentence."""
_OPENING = "\"'([{\u00ab\u2018\u201c\u201e-\u2013\u2014 "


@dataclass(slots=True)
class SentenceInWork:
    """The end of a text that is read from its beginning: the last words, and the length of the sentence they are in."""

    last: str = ""
    """The last part that is not blank."""
    num_characters: int = 0

    def add(self, text: str) -> None:
        """Read the next part of the text."""
        if text.strip():
            self.last = text.rstrip()
            self.num_characters += len(text)

    def goes_on(self, after: str) -> bool:
        """Whether a line break stands inside a sentence: the text before it ends none, and a small letter follows.

        Scripts without small letters do not tell; there a line break is the end of a text.

        Args:
            after: the text of the next line.
        """
        if not self.last or ends_sentence(self.last):
            self.num_characters = 0
            return False
        is_inside = after.lstrip(_OPENING)[:1].islower() and self.num_characters < MAX_CHARACTERS
        if not is_inside:
            self.num_characters = 0
        return is_inside
