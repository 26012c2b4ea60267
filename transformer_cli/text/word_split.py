"""Splitting text into words and punctuation marks, and joining them into exactly the same text.

A word includes the one space before it: `Il gatto dorme.` is split into ` Il`, ` gatto`, ` dorme`, `.`
and joining the pieces restores the text. Where no space is expected before a word (at the start, in
`l'acqua`, after an opening bracket), a space is inserted before splitting and removed after joining,
so that a word has the same vocabulary entry everywhere. If the text has a space there (`un po' di`),
that space is a piece of its own. Inserting and removing use the same patterns, so no space is lost.
"""

from typing import Any

from tokenizers import Regex, decoders, pre_tokenizers

UNK, PAD, SOS, EOS = SPECIALS = ("[UNK]", "[PAD]", "[SOS]", "[EOS]")

# Scripts without spaces between words; U+30FC and U+FF70 are the long-vowel marks of Japanese kana.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30FC\uFF70"
_LETTER = rf"[\p{{L}}&&[^{_UNSPACED}]]"
# U+200C and U+200D change the shape of letters; they do not separate words.
_IN_WORD = rf"[\p{{L}}\p{{M}}\u200C\u200D&&[^{_UNSPACED}]]"
_APOSTROPHE = r"['\u2019]"
_CLITIC = rf"(?i:s|t|d|m|re|ve|ll)(?!{_IN_WORD})"  # English: John's, don't, we'll
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
_INSERT_SPACE = rf"(?:{_NO_SPACE_INSIDE}){_BEFORE_WORD}"
_REMOVE_SPACE = rf"(?:\A|{_NO_SPACE_INSIDE}) {_BEFORE_WORD}"
_FIRST_IS_MARK = rf"\A (?! *{_WORD_START})"

_WORD = rf" ?{_LETTER}{_IN_WORD}*(?:{_APOSTROPHE}(?= {_LETTER}))?"  # l' and acqua are two words
_MARK = r"\s|[^\s\p{L}\p{N}]"
_WORDS = "|".join(
    (_WORD, r" ?\p{N}+", rf"[{_UNSPACED}]\p{{M}}*", rf"{_APOSTROPHE}{_CLITIC}", _MARK)
)
_SUBWORDS = "|".join(
    (_WORD, r" ?\p{N}", rf" ?[{_UNSPACED}][{_UNSPACED}\p{{M}}]*", rf"{_APOSTROPHE}{_CLITIC}", _MARK)
)
_SUBWORD_CUT = pre_tokenizers.Split(Regex(_SUBWORDS), "isolated")
_SUBWORDS_WITH_MARKS = rf"{_WORD}(?: ?[^\s\p{{L}}\p{{N}}])+|{_SUBWORDS}"

_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}
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


def is_one_piece(piece: str) -> bool:
    """Whether splitting into words keeps this entry of a byte-level vocabulary in one piece."""
    text = decoders.ByteLevel().decode([piece])
    # U+FFFD replaces an incomplete character: the entry has some of its bytes.
    return len(_SUBWORD_CUT.pre_tokenize_str(text)) == 1 or "\ufffd" in text


def components(kind: str, *, keeps_marks_with_words: bool = False) -> dict[str, Any]:
    """The entries of a tokenizer.json for this kind: everything except the model.

    Args:
        keeps_marks_with_words: leave punctuation joined to the word before it; only for learning subwords.
    """
    is_bytes = kind != "WordLevel"  # tokens consist of bytes, so that no text is unknown
    subwords = _SUBWORDS_WITH_MARKS if keeps_marks_with_words else _SUBWORDS
    pattern = {"Regex": subwords if is_bytes else _WORDS}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    to_bytes = {"type": "Sequence", "pretokenizers": [split, _BYTE_LEVEL]}
    normalizers = [
        {"type": "NFC"},
        {"type": "Prepend", "prepend": " "},
        _replace(_FIRST_IS_MARK, ""),
        _replace(_INSERT_SPACE, " "),
    ]
    matching = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    # The ByteLevel decoder ignores these settings, but the file format requires them.
    join_bytes = {**_BYTE_LEVEL, "add_prefix_space": True, "use_regex": True}
    join = join_bytes if is_bytes else {"type": "Fuse"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": index, "content": text, **matching, "special": True}
            for index, text in enumerate(SPECIALS)
        ],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": to_bytes if is_bytes else split,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [join, _replace(_REMOVE_SPACE, "")]},
    }


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
