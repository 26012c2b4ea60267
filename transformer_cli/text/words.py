"""Words: text is split into words and marks, and joined into exactly the same text; and two texts are compared word by word.

A word includes the one space before it: `Il gatto dorme.` is split into ` Il`, ` gatto`, ` dorme`, `.`
and joining the pieces restores the text. Where no space is expected before a word (at the start, in
`l'acqua`, after an opening bracket), a space is inserted before splitting and removed after joining,
so that a word has the same vocabulary entry everywhere. If the text has a space there (`un po' di`),
that space is a piece of its own. Inserting and removing use the same patterns, so no space is lost.

Chinese, Japanese, Thai and a few other scripts write no spaces between words. There each sign is a word
of its own, unless the corpus has spaces between the words of such a script (`are_spaced_words`).
"""

import re
import unicodedata
from dataclasses import dataclass

from tokenizers import Regex, decoders, pre_tokenizers

UNK, PAD, SOS, EOS = SPECIALS = ("[UNK]", "[PAD]", "[SOS]", "[EOS]")
TAG = re.compile(r"<2[A-Za-z0-9_-]{1,99}>")
"""A tag before the source, which names the target language (Johnson et al. 2017, section 3)."""
CORPUS_TAG = re.compile("<[A-Za-z][A-Za-z0-9_-]*>")
"""The tag of a corpus in a vocabulary, such as <BT>; no word and no subword looks like that."""

# Scripts without spaces between words; U+30FC and U+FF70 are the long-vowel marks of Japanese kana.
UNSPACED_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30FC\uFF70"
APOSTROPHES = "'\u2019"
# Written with an escape, as in the tokenizer.json of every checkpoint so far: these files are compared as text.
_APOSTROPHE = r"['\u2019]"
_QUOTE = r"[\"“'\u2018\u2019]"
# The same scripts in blocks of code points, because Python's `re` knows no scripts. `re` compiles and keeps a pattern
# at its first use; a translation between European languages uses none of these.
_UNSPACED_SIGN = (
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u3005-\u3007"
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af]"
)
_SIGNS = f"{_UNSPACED_SIGN}+"
_SPACED_SIGNS = f"{_UNSPACED_SIGN} (?={_UNSPACED_SIGN})"
# Segmented text has a space after every two to five signs; ordinary Thai, Lao and Khmer have one between
# phrases, after twenty signs and more.
MAX_SIGNS_PER_SPACE = 10

# After a word that ends in one of these, no space is expected before the next word.
_OPENERS = frozenset("'\u2019\u2018\"“„«¿¡(-/\u2013$€£¥")
_SEPARATORS = frozenset(".,:")  # after a digit only


@dataclass(frozen=True, slots=True)
class SplitPatterns:
    """The regular expressions of the `tokenizers` library that split a text and join it again."""

    words: str
    """A word, a number, a sign or a mark."""
    subwords: str
    """A word, a digit, a run of signs, or a mark: no subword reaches beyond it."""
    subwords_with_marks: str
    """The same, but punctuation stays joined to the word before it."""
    first_is_mark: str
    insert_space: str
    remove_space: str

    @classmethod
    def of(cls, *, has_spaced_words: bool) -> "SplitPatterns":
        """The patterns for a corpus.

        Args:
            has_spaced_words: whether Chinese, Japanese or Thai text comes with spaces between its words, which
                are then words as in any other script.
        """
        unspaced = "" if has_spaced_words else UNSPACED_SCRIPTS
        beside = f"&&[^{unspaced}]" if unspaced else ""
        letter = rf"[\p{{L}}{beside}]"
        # U+200C and U+200D change the shape of letters; they do not separate words.
        in_word = rf"[\p{{L}}\p{{M}}\u200C\u200D{beside}]"
        clitic = rf"(?i:s|t|d|m|re|ve|ll)(?!{in_word})"  # English: John's, don't, we'll
        word_start = rf"(?:{letter}|\p{{N}}|\[UNK\])"
        no_space_inside = "|".join(
            (
                rf"(?<={letter}{_APOSTROPHE})(?!{clitic})",  # dell'acqua
                rf"(?<=[{letter}\p{{N}}][-/\u2013])",  # blue-green
                r"(?<=\p{N}[.,:])(?= *\p{N})",  # 10:30
                r"(?<=[$€£¥])(?= *\p{N})",
                r"(?<=[(„«¿¡])",
                rf"(?<=\A{_QUOTE}|\s{_QUOTE})(?!{clitic})",
            )
        )
        before_word = rf"(?= *{word_start})"
        # l' and acqua are two words
        word = rf" ?{letter}{in_word}*(?:{_APOSTROPHE}(?= {letter}))?"
        marks = (rf"{_APOSTROPHE}{clitic}", r"\s|[^\s\p{L}\p{N}]")
        sign = [rf"[{unspaced}]\p{{M}}*"] if unspaced else []
        signs = [rf" ?[{unspaced}][{unspaced}\p{{M}}]*"] if unspaced else []
        subwords = "|".join((word, r" ?\p{N}", *signs, *marks))
        return cls(
            words="|".join((word, r" ?\p{N}+", *sign, *marks)),
            subwords=subwords,
            subwords_with_marks=rf"{word}(?: ?[^\s\p{{L}}\p{{N}}])+|{subwords}",
            first_is_mark=rf"\A (?! *{word_start})",
            insert_space=rf"(?:{no_space_inside}){before_word}",
            remove_space=rf"(?:\A|{no_space_inside}) {before_word}",
        )


def tag_of(language: str) -> str:
    """The tag for translation into a language, such as <2it>."""
    return f"<2{language}>"


_SUBWORD_CUT = pre_tokenizers.Split(
    Regex(SplitPatterns.of(has_spaced_words=False).subwords), "isolated"
)


def can_be_encoded_alone(word: str) -> bool:
    """Whether the word and a space do not change how the text after them is split.

    True is always right; False may be wrong, which costs only time: the word is not cached.
    """
    if word[-1] in _SEPARATORS:
        return word[-2:-1].isalpha()
    return word[-1] not in _OPENERS


def continues_word(piece: str, *, has_spaced_words: bool) -> bool:
    """Whether a piece of text that stands behind a word belongs to it: the word includes the space before it.

    Args:
        piece: the text of a token.
        has_spaced_words: as in `SplitPatterns.of`; if False, each sign of Chinese, Japanese or Thai begins a word.
    """
    if not piece or unicodedata.category(piece[0])[0] not in "LMN":
        return False
    return has_spaced_words or re.match(_SIGNS, piece) is None


def is_one_piece(piece: str) -> bool:
    """Whether splitting into words keeps this entry of a byte-level vocabulary in one piece."""
    text = decoders.ByteLevel().decode([piece])
    # U+FFFD replaces an incomplete character: the entry has some of its bytes.
    return len(_SUBWORD_CUT.pre_tokenize_str(text)) == 1 or "\ufffd" in text


def count_signs_and_spaces(text: str) -> tuple[int, int]:
    """Two numbers: signs of scripts without spaces in a text, and single spaces between two such signs."""
    if text.isascii():
        return 0, 0
    num_signs = sum(map(len, re.findall(_SIGNS, text)))
    return num_signs, len(re.findall(_SPACED_SIGNS, text)) if num_signs else 0


def are_spaced_words(num_signs: int, num_spaces: int) -> bool:
    """Whether a corpus with these counts has spaces between the words of a script that usually has none."""
    return num_spaces * MAX_SIGNS_PER_SPACE > num_signs


# U+200C and U+200D change the shape of letters; they do not separate words.
_IN_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}\u200C\u200D&&[^{UNSPACED_SCRIPTS}]]"
_CUT = pre_tokenizers.Split(
    Regex(rf"{_IN_WORD}+|[{UNSPACED_SCRIPTS}]\p{{M}}*|\s+|[^\s]"), "isolated"
)
_ASCII = re.compile(r"[A-Za-z0-9]+|\s+|[^\s]", re.ASCII)


def word_sequence(text: str) -> list[str]:
    """The words, marks and runs of white space of a text, in order; joined, they are the text.

    A word is a run of letters, digits and combining marks. In a script without spaces between words, such as Chinese, each
    sign is a word.
    """
    if text.isascii():
        return _ASCII.findall(text)
    return [piece for piece, _ in _CUT.pre_tokenize_str(text)]
