"""Letters that Python does not know as such: of Braille, and of scripts that are newer than its Unicode."""

import unicodedata

import pytest

from transformer_cli.config import Direction, TokenizerConfig
from transformer_cli.decoding.checks.doubts import WORDLESS, doubts_about
from transformer_cli.text.normalization import has_letter, is_letter
from transformer_cli.text.sentences import split_sentences, text_ranges
from transformer_cli.text.tokenizer import train_tokenizer

# Sunuwar and Kirat Rai came with Unicode 16, and more Chinese characters with 15.1.
SUNUWAR, KIRAT_RAI, CHINESE = "\U00011bc2\U00011bc6", "\U00016d40\U00016d41", "\U0002ebf0"
BRAILLE, SIGN_WRITING = "\u2820\u281e\u2813", "\U0001d800"


@pytest.mark.parametrize("word", [SUNUWAR, KIRAT_RAI, CHINESE, BRAILLE, SIGN_WRITING, "dog", "\u03b1", "\u4e00"])
def test_a_text_of_any_script_is_translated(word: str) -> None:
    assert all(map(is_letter, word))
    assert has_letter(f"12 {word}")
    assert text_ranges(f"{word} {word}") == [(0, 2 * len(word) + 1)]
    assert len(split_sentences(f"{word} {word}. {word} {word}.", "und")) == 2


# The last ones: an emoji, an emoji of Unicode 16, the space of Braille, a noncharacter, a private sign.
@pytest.mark.parametrize(
    "text", ["12", "->", "\u20ac", "\u2605", "\U0001f600", "\U0001fae9", "\u2800", "\U0001ffff", "\ue000"]
)
def test_other_signs_are_no_letters(text: str) -> None:
    assert not has_letter(text)
    assert text_ranges(text) == []


@pytest.mark.long
def test_nothing_that_python_knows_is_a_letter_but_letters_braille_and_sign_writing() -> None:
    others = {
        unicodedata.name(sign).split()[0]
        for sign in map(chr, range(0x110000))
        if unicodedata.category(sign) != "Cn" and is_letter(sign) and not sign.isalpha()
    }
    assert others == {"BRAILLE", "SIGNWRITING"}


@pytest.mark.parametrize("word", [SUNUWAR, BRAILLE])
def test_what_a_model_writes_in_any_script_are_words(word: str) -> None:
    """Else each translation would have lost the text, and the sentence would stay as it is."""
    tokenizer = train_tokenizer([f"{word} {word}{word} ."] * 9, TokenizerConfig())
    assert tokenizer.count_written(tokenizer.encode(f"{word} .")) == len(tokenizer.encode(word))
    assert WORDLESS not in doubts_about("the dog", f"{word} {word}", Direction("en", "suz"))
    assert doubts_about(f"{word} {word}", "\u2026", Direction("suz", "en")) == (WORDLESS,)
