"""Where a text is cut into words and marks, and how the cuts are undone without a trace.

A word owns the one space before it, so `Il gatto dorme.` is cut into ` Il`, ` gatto`, ` dorme`, `.`
and joining the pieces restores the text. Where no space is expected before a word (at the start, in
`l'acqua`, after an opening bracket), one is put in before the cut and taken out after the join, so
that a word has the same entry everywhere. Where a space stands there all the same (`un po' di`), it
is a piece of its own. Both directions look at the same places, which makes them exact inverses.
"""

from functools import cache
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers

UNK, PAD, SOS, EOS = SPECIALS = ("[UNK]", "[PAD]", "[SOS]", "[EOS]")

# Scripts that put no space between words; the two marks lengthen a vowel in both kana scripts.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30FC\uFF70"
_LETTER = rf"[\p{{L}}&&[^{_UNSPACED}]]"
# Joiners shape letters, they part nothing.
_IN_WORD = rf"[\p{{L}}\p{{M}}\u200C\u200D&&[^{_UNSPACED}]]"
_APOSTROPHE = r"['\u2019]"
_CLITIC = rf"(?i:s|t|d|m|re|ve|ll)(?!{_IN_WORD})"  # of English: John's, don't, we'll
_WORD_START = rf"(?:{_LETTER}|\p{{N}}|\[UNK\])"
_QUOTE = r"[\"“'\u2018\u2019]"
_NO_SPACE_INSIDE = "|".join(
    (
        rf"(?<={_LETTER}{_APOSTROPHE})(?!{_CLITIC})",  # dell'acqua
        rf"(?<=[{_LETTER}\p{{N}}][-/\u2013])",  # blue-green
        r"(?<=\p{N}[.,:])(?= *\p{N})",  # 10:30
        r"(?<=[$€£¥])(?= *\p{N})",
        r"(?<=[(„«¿¡])",
        rf"(?<=\A{_QUOTE}|\s{_QUOTE})(?!{_CLITIC})",
    )
)
_BEFORE_WORD = rf"(?= *{_WORD_START})"
_PUT_IN = rf"(?:{_NO_SPACE_INSIDE}){_BEFORE_WORD}"
_TAKE_OUT = rf"(?:\A|{_NO_SPACE_INSIDE}) {_BEFORE_WORD}"
_FIRST_IS_MARK = rf"\A (?! *{_WORD_START})"

_WORD = rf" ?{_LETTER}{_IN_WORD}*(?:{_APOSTROPHE}(?= {_LETTER}))?"  # l' and acqua are two words
_MARK = r"\s|[^\s\p{L}\p{N}]"
_WORDS = "|".join(
    (_WORD, r" ?\p{N}+", rf"[{_UNSPACED}]\p{{M}}*", rf"{_APOSTROPHE}{_CLITIC}", _MARK)
)
_SUBWORDS = "|".join(
    (_WORD, r" ?\p{N}", rf" ?[{_UNSPACED}][{_UNSPACED}\p{{M}}]*", rf"{_APOSTROPHE}{_CLITIC}", _MARK)
)
_SUBWORDS_WITH_MARKS = rf"{_WORD}(?: ?[^\s\p{{L}}\p{{N}}])+|{_SUBWORDS}"


# A word that ends in one of these takes away the space expected before the next word.
_OPENERS = frozenset("'\u2019\u2018\"“„«¿¡(-/\u2013$€£¥")
_SEPARATORS = frozenset(".,:")  # after a digit only


def stands_alone(word: str) -> bool:
    """Whether what follows a word, beyond a space, is cut as if the word were not there.

    False also for some words of which it is true; of no other.
    """
    if word[-1] in _SEPARATORS:
        return word[-2:-1].isalpha()
    return word[-1] not in _OPENERS


def is_byte_level(kind: str) -> bool:
    """Whether pieces are made of bytes, so that no text is unknown."""
    return kind != "wordlevel"


def is_one_piece(piece: str) -> bool:
    """Whether text could be cut so that this is within one piece; `piece` is of a byte-level vocabulary."""
    text = decoders.ByteLevel().decode([piece])
    return (
        len(_subword_cut().pre_tokenize_str(text)) == 1 or "\ufffd" in text
    )  # parts of a character


@cache
def _subword_cut() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(_SUBWORDS), "isolated")


def install(tokenizer: Tokenizer, kind: str, *, keeps_marks_with_words: bool = False) -> None:
    """Give a tokenizer the cut, the join and the special entries that belong to its kind."""
    pattern = _SUBWORDS_WITH_MARKS if keeps_marks_with_words else _split_pattern(kind)
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    join = [decoders.Fuse(), decoders.Replace(Regex(_TAKE_OUT), "")]
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Prepend(" "),
            normalizers.Replace(Regex(_FIRST_IS_MARK), ""),
            normalizers.Replace(Regex(_PUT_IN), " "),
        ]
    )
    if is_byte_level(kind):
        to_bytes = pre_tokenizers.ByteLevel(
            add_prefix_space=False, trim_offsets=True, use_regex=False
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
        join = [decoders.ByteLevel(), decoders.Replace(Regex(_TAKE_OUT), "")]
    else:
        tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.Sequence(join)
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.encode_special_tokens = True  # what a user types is plain text; no file stores this


def components(kind: str) -> dict[str, Any]:
    """The same as it stands in a tokenizer.json: all of that file but the model."""
    split = {
        "type": "Split",
        "pattern": {"Regex": _split_pattern(kind)},
        "behavior": "Isolated",
        "invert": False,
    }
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    normalizers_in_order = [
        {"type": "NFC"},
        {"type": "Prepend", "prepend": " "},
        _replace(_FIRST_IS_MARK, ""),
        _replace(_PUT_IN, " "),
    ]
    is_bytes = is_byte_level(kind)
    # The decoder of bytes ignores these settings, but the file format asks for them.
    first_join = (
        {**byte_level, "add_prefix_space": True, "use_regex": True}
        if is_bytes
        else {"type": "Fuse"}
    )
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(index, text) for index, text in enumerate(SPECIALS)],
        "normalizer": {"type": "Sequence", "normalizers": normalizers_in_order},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]}
        if is_bytes
        else split,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [first_join, _replace(_TAKE_OUT, "")]},
    }


def _split_pattern(kind: str) -> str:
    return _SUBWORDS if is_byte_level(kind) else _WORDS


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _added_token(index: int, text: str) -> dict[str, Any]:
    matching = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": index, "content": text, **matching, "special": True}
