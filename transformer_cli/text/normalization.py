"""Characters and words: Unicode NFC without control characters and invisible characters; text split into words and marks, which join into exactly the same text."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from tokenizers import Regex, decoders, pre_tokenizers

from transformer_cli.config.data import CleaningConfig

# White space stays, also U+0085 and U+001C..U+001F: removing it would join two words into one. A
# byte-order mark inside a text comes from files that were concatenated.
_CONTROL_CHARACTER = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
# Default_Ignorable_Code_Point, from DerivedCoreProperties.txt of the Unicode Character Database: soft hyphen,
# joiners, direction marks, fillers, variation selectors, tags. `unicodedata` does not have this property.
_IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
# Not in that property, but they show nothing either: the empty Braille pattern, the marks of interlinear
# annotation, the musical null notehead.
_EMPTY = r"\u2800\ufff9-\ufffb\U0001d159"
_VISIBLE = re.compile(rf"[^\s{_IGNORABLE}{_EMPTY}]")
_LONG_TEXT = 1000
# Every character that some program takes for the end of a line.
_LINE_BREAKS = dict.fromkeys(map(ord, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")

OTHER_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Every space of Unicode except U+0020, as the inside of a character class: no-break, narrow, wide."""
# Soft hyphen, zero-width space, word joiner and byte-order mark; marks of direction (U+061C, U+200E..U+200F,
# U+202A..U+202E, U+2066..U+206F): the order in which text is shown, not what it says; operators of mathematics that
# nobody writes; selectors of variants of one and the same character (U+FE00..U+FE0D, U+E0100..U+E01EF).
_ALWAYS_REMOVED = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0d\ufeff\U000e0001\U000e0100-\U000e01ef"
)
_TAGS = "\U000e0020-\U000e007f"
_MONGOLIAN_SELECTORS = "\u180b-\u180f"
# Characters that may be followed by U+FE0F and so become an emoji, and the emoji. U+2329 and U+232A are left out: NFC
# makes other characters of them.
EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u2328\u232b-\u23ff\u24c2\u25a0-\u25ff\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Blocks of the scripts whose words may contain joiners, without their punctuation: Arabic to Mandaic, the scripts of
# India, Sinhala, Tibetan, Burmese, Khmer, Mongolian, and others of the same families.
_JOINING = (
    "\u0610-\u061a\u0620-\u06d3\u06d5-\u085b\u0860-\u0963\u0966-\u0df3\u0f00-\u0f84\u0f90-\u0fbc\u1000-\u1049"
    "\u1050-\u109f\u1700-\u1734\u1740-\u17d3\u17dc-\u17e9\u1807\u1810-\u18aa\u1900-\u193b\u1a00-\u1a1b"
    "\u1a20-\u1a99\u1b00-\u1b59\u1b80-\u1bf3\u1c00-\u1c37\u1c40-\u1c7d\u1cd0-\u1cfa\ua800-\ua827\ua840-\ua873"
    "\ua880-\ua8c5\ua8d0-\ua8f7\ua8fb-\ua92d\ua930-\ua953\ua980-\ua9c0\ua9cf-\ua9d9\ua9e0-\uaa59\uaa60-\uaaf6"
    "\uabc0-\uabf9\ufb50-\ufdfc\ufe70-\ufefc\U00010a00-\U00010a48\U00010ac0-\U00010aef\U00010d00-\U00010d39"
    "\U00010f30-\U00010f6f\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
# Signs that say that a consonant has no vowel, or joins the next one (canonical combining class 9).
_VIRAMAS = (
    "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0f84\u1039\u103a\u1714\u1715\u1734\u17d2"
    "\u1a60\u1b44\u1baa\u1bab\u1bf2\u1bf3\ua806\ua82c\ua8c4\ua953\ua9c0\uaaf6\uabed"
)
REMOVALS = (
    f"[{_ALWAYS_REMOVED}]",
    # Selectors of emoji, tags and Mongolian selectors stay behind what they belong to, once.
    f"(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]+|(?<![{EMOJI}0-9#*])[\ufe0e\ufe0f]|(?<=[0-9#*])[\ufe0e\ufe0f](?!\u20e3)"
    f"|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+|(?<![{_MONGOLIAN_SELECTORS}\u1820-\u18aa])[{_MONGOLIAN_SELECTORS}]+",
    "(?<=[\u200c\u200d])[\u200c\u200d]+",
    # The joiner U+200D changes the form of the letter before it, also at the end of a word. The non-joiner U+200C needs
    # a letter on both sides, or a sign before it whose form it changes.
    f"(?<![{_JOINING}])\u200c|(?<![{_VIRAMAS}])\u200c(?![{_JOINING}])"
    f"|(?<![{_JOINING}{EMOJI}\ufe0e\ufe0f])\u200d|(?<=[{EMOJI}\ufe0e\ufe0f])\u200d(?![{EMOJI}])",
)
"""Patterns of what is removed, in this order: the later ones look at what stands beside a character then. They are
also part of exported tokenizers, so they hold the characters themselves: engines differ in how they are escaped."""
_WHITE_SPACE = re.compile("[ \t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")
_MAY_HAVE_WHITE_SPACE = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]|  |\\A | \\Z")
_OTHER_SPACE = re.compile(f"[{OTHER_SPACES}]")
_MAY_BE_INVISIBLE = re.compile(
    f"[{OTHER_SPACES}{_ALWAYS_REMOVED}\u200c\u200d\ufe0e\ufe0f{_TAGS}{_MONGOLIAN_SELECTORS}]"
)


def normalize(text: str, rules: CleaningConfig, *, removes_invisible: bool) -> str:
    """Normalised text, the same in training and translation; normalising it again changes nothing.

    Args:
        removes_invisible: whether `normalize_invisible` is applied too, which is for source text.
    """
    if rules.remove_control_characters and not text.isprintable():
        text = remove_control_characters(text)
    if text.isascii():  # nothing to compose, and nothing that nobody sees
        return text
    if removes_invisible and may_be_invisible(text):
        return _without_invisible(text, compose if rules.normalize_unicode else str)
    return compose(text) if rules.normalize_unicode else text


def _without_invisible(text: str, compose: Callable[[str], str]) -> str:
    # NFC follows, because a letter and its accent become one without the character between them. It may also bring another
    # mark beside a joiner, which then goes.
    while (changed := compose(normalize_invisible(text))) != text:
        text = changed
    return text


def reads_without_invisible(rules: CleaningConfig, *, is_sentencepiece: bool) -> bool:
    """Whether a trained model reads source text without invisible characters, and with plain spaces.

    Runs of earlier versions do not have the setting (None): their models have hardly seen such characters, so they read
    text without them, too.

    Args:
        is_sentencepiece: whether the tokenizer is one of SentencePiece that has its own normalisation.
    """
    return rules.normalize_invisible is not False and not is_sentencepiece


def normalize_invisible(text: str) -> str:
    """Text whose spaces are all U+0020, without the characters that nobody sees.

    Joiners stay in words of the scripts that are spelled with them, and inside emoji; selectors stay behind emoji and in
    Mongolian words.
    """
    return with_plain_spaces(without_invisible(text)) if may_be_invisible(text) else text


def may_be_invisible(text: str) -> bool:
    """Whether the text has a character that `normalize_invisible` looks at; most texts have none."""
    return not text.isascii() and _MAY_BE_INVISIBLE.search(text) is not None


def with_plain_spaces(text: str) -> str:
    """Text with U+0020 in place of every other space; its length is the same."""
    return _OTHER_SPACE.sub(" ", text)


def without_invisible(text: str) -> str:
    """Text without the characters that nobody sees; every space stays as it is."""
    for pattern in _removal_patterns():
        text = pattern.sub("", text)
    return text


@cache
def _removal_patterns() -> tuple[re.Pattern[str], ...]:
    """Compiled at their first use, because most texts need none of them."""
    return tuple(map(re.compile, REMOVALS))


def remove_control_characters(text: str) -> str:
    """Text without control characters and byte-order marks; white space stays."""
    return text if text.isprintable() else _CONTROL_CHARACTER.sub("", text)


def with_single_spaces(text: str) -> str:
    """Text with one space in place of each run of spaces, tabs and line ends, and none at its ends; fixed spaces stay."""
    return _WHITE_SPACE.sub(" ", text).strip(" ") if _MAY_HAVE_WHITE_SPACE.search(text) else text


def is_clean_ascii(text: str) -> bool:
    """Whether a text is printable ASCII, with single spaces inside and none at its ends: no rule of cleaning changes it."""
    return text.isascii() and text.isprintable() and _MAY_HAVE_WHITE_SPACE.search(text) is None


def compose(text: str) -> str:
    """Text in Unicode NFC; thousands of combining marks in a row do not take quadratic time."""
    if text.isascii():
        return text
    if len(text) > _LONG_TEXT:
        text = _order_marks(text)
    return unicodedata.normalize("NFC", text)


def is_blank(text: str) -> bool:
    """Whether the text has no visible character."""
    return _VISIBLE.search(text) is None


def _order_marks(text: str) -> str:
    """Canonically equivalent text with every run of combining marks in canonical order.

    `unicodedata.normalize` uses an insertion sort, which takes hours on a megabyte of unsorted marks.
    """
    ordered: list[str] = []
    marks: list[str] = []
    decomposed = (unicodedata.normalize("NFD", character) for character in text)
    for character in chain.from_iterable(decomposed):
        if unicodedata.combining(character):
            marks.append(character)
            continue
        ordered.extend(sorted(marks, key=unicodedata.combining))
        marks.clear()
        ordered.append(character)
    ordered.extend(sorted(marks, key=unicodedata.combining))
    return "".join(ordered)


def without_line_breaks(text: str) -> str:
    """A text with a space in place of each line break."""
    return text if text.isprintable() else text.translate(_LINE_BREAKS)


# Words: text is split into words and marks, and joined into exactly the same text.
#
# A word includes the one space before it: `Il gatto dorme.` is split into ` Il`, ` gatto`, ` dorme`, `.`
# and joining the pieces restores the text. Where no space is expected before a word (at the start, in
# `l'acqua`, after an opening bracket), a space is inserted before splitting and removed after joining,
# so that a word has the same vocabulary entry everywhere. If the text has a space there (`un po' di`),
# that space is a piece of its own. Inserting and removing use the same patterns, so no space is lost.
#
# Chinese, Japanese, Thai and a few other scripts write no spaces between words. There each sign is a word
# of its own, unless the corpus has spaces between the words of such a script (`are_spaced_words`).


UNK, PAD, SOS, EOS = SPECIALS = ("[UNK]", "[PAD]", "[SOS]", "[EOS]")
TAG = re.compile(r"<2[A-Za-z0-9_-]{1,99}>")
"""A tag before the source, which names the target language (Johnson et al. 2017, section 3)."""
CORPUS_TAG = re.compile("<[A-Za-z][A-Za-z0-9_-]*>")
"""The tag of a corpus in a vocabulary, such as <BT>; no word and no subword looks like that."""
REVERSED = "<REVERSED>"
"""The tag before the source of a pair that is read the other way round (`data.reversed_epochs`)."""

# Scripts without spaces between words; U+30FC and U+FF70 are the long-vowel marks of Japanese kana.
UNSPACED_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30FC\uFF70"
APOSTROPHES = "'\u2019"
TYPED_MARKS = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u00ab": '"',
    "\u00bb": '"',
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\u2026": "...",
}
"""Typographic marks, and how they are typed on a keyboard."""
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


SPLIT_PATTERNS = {spaced: SplitPatterns.of(has_spaced_words=spaced) for spaced in (False, True)}
"""Whether Chinese, Japanese or Thai text comes with spaces between its words -> the patterns."""
_SUBWORD_CUT = pre_tokenizers.Split(Regex(SPLIT_PATTERNS[False].subwords), "isolated")


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
    num_signs = sum(map(len, re.findall(_SIGNS, text)))
    return num_signs, len(re.findall(_SPACED_SIGNS, text)) if num_signs else 0


def are_spaced_words(num_signs: int, num_spaces: int) -> bool:
    """Whether a corpus with these counts has spaces between the words of a script that usually has none."""
    return num_spaces * MAX_SIGNS_PER_SPACE > num_signs


# What white space separates, for alignments of words.


Span = tuple[int, int]
_WORD = re.compile(r"\S+")


def word_spans(text: str) -> list[Span]:
    """Where the words of a text stand; they are those of `text.split()`."""
    return [match.span() for match in _WORD.finditer(text)]


@cache
def _unit() -> re.Pattern[str]:
    """A sign of a script without spaces with the marks on it, or what stands between such signs and white space."""
    marks = "".join(c for c in map(chr, range(0x300, 0x3100)) if unicodedata.category(c)[0] == "M")
    unseen = rf"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{_IGNORABLE}"
    return re.compile(rf"[{unseen}]*{_UNSPACED_SIGN}[{marks}{unseen}]*|(?:(?!{_UNSPACED_SIGN})\S)+")


def unit_spans(text: str, *, has_spaced_words: bool) -> list[Span]:
    """Where the units of a text stand, between which word alignments link: words, or signs of a script without spaces.

    A unit is what white space separates. In Chinese, Japanese, Thai, Lao, Khmer and Burmese each sign is one, together with the
    vowels and tones that are written on it.

    Args:
        has_spaced_words: whether text in these scripts comes with spaces between its words; then the words are the units.
    """
    if has_spaced_words or text.isascii():
        return word_spans(text)
    return [match.span() for match in _unit().finditer(text)]


def words_at(tokens: Iterable[Span], words: Sequence[Span]) -> list[range]:
    """For each token, the indices of the words that it overlaps; none for white space.

    Args:
        tokens: an empty span belongs to the character that follows it.
        words: as of `word_spans`, in order.
    """
    starts, ends = [start for start, _ in words], [end for _, end in words]
    return [range(bisect_right(ends, start), bisect_left(starts, max(end, start + 1))) for start, end in tokens]


def without_accents(text: str) -> str:
    """A text without the accents of its letters: e for é."""
    decomposed = unicodedata.normalize("NFD", text)
    letters = (sign for sign in decomposed if not unicodedata.combining(sign))
    return unicodedata.normalize("NFC", "".join(letters))


# Of a text that Python calls unassigned: a script that is newer than its Unicode, such as Sunuwar and new Chinese characters.
# From U+1F000 on stand new emoji.
_UNASSIGNED = ((0x10000, 0x1EFFF), (0x20000, 0x3FFFD))


def is_letter(sign: str) -> bool:
    """Whether a character is a letter, a pattern of Braille, a sign of SignWriting, or a letter of a script that this Python does not know."""
    return sign.isalpha() or (not sign.isascii() and _is_further_letter(sign))


def is_part_of_word(sign: str) -> bool:
    """Whether a character is a letter, a digit or a mark on one, such as the vowels of Hindi and Thai, and their joiners."""
    return sign.isalnum() or (
        not sign.isascii()
        and (sign in "\u200c\u200d" or unicodedata.category(sign)[0] == "M" or _is_further_letter(sign))
    )


def has_letter(text: str) -> bool:
    """Whether there is anything to translate in a text."""
    return any(map(str.isalpha, text)) or (not text.isascii() and any(map(_is_further_letter, text)))


def has_word(text: str) -> bool:
    """Whether a text has a letter or a digit."""
    return any(map(str.isalnum, text)) or (not text.isascii() and any(map(_is_further_letter, text)))


def _is_further_letter(sign: str) -> bool:
    # The pattern without dots is the space of Braille.
    if "\u2801" <= sign <= "\u28ff" or "\U0001d800" <= sign <= "\U0001da8b":
        return True
    code = ord(sign)
    return any(first <= code <= last for first, last in _UNASSIGNED) and unicodedata.category(sign) == "Cn"
