"""Codes and names of languages, as people write them above columns."""

import pytest

from transformer_cli.text.languages import code_of_language, name_of, named_language


@pytest.mark.long
@pytest.mark.parametrize(
    ("title", "code"),
    [
        ("km", "km"),
        ("xmf", "xmf"),
        ("am", "am"),
        ("pt-BR", "pt"),
        ("zh_Hans", "zh"),
        ("English", "en"),
        ("Mingrelian", "xmf"),
        ("Kiswahili", "sw"),
        ("français", "fr"),
        ("עברית", "he"),
        ("אנגלית", "en"),
        ("ქართული", "ka"),
        ("ინგლისური", "en"),
        ("中文", "zh"),
        ("英文", "en"),
        ("英语", "en"),
        ("العربية", "ar"),
        ("اللغة الإنجليزية", "en"),
        ("русский", "ru"),
        ("Английский язык", "en"),
        ("አማርኛ", "am"),
        ("እንግሊዝኛ", "en"),
        ("ខ្មែរ", "km"),
        ("हिन्दी", "hi"),
        ("अंग्रेज़ी", "en"),
        ("ไทย", "th"),
        ("อังกฤษ", "en"),
        ("ελληνικά", "el"),
        ("Αγγλικά", "en"),
        ("한국어", "ko"),
        ("영어", "en"),
    ],
)
def test_a_language_is_known_by_its_code_or_a_name_in_any_script(title: str, code: str) -> None:
    assert named_language(title) == code


@pytest.mark.parametrize(
    "text", ["", "phrase", "hello world", "source_text", "tok", "src", "Où est la gare ?", "你好吗"]
)
def test_other_words_name_no_language(text: str) -> None:
    assert named_language(text) is None


def test_a_code_has_the_form_of_one_and_a_known_language() -> None:
    assert code_of_language("xmf") == "xmf"
    for text in ("the", "Km", "zzz", "km en", "k"):
        assert code_of_language(text) is None
    assert name_of("xmf") == "Mingrelian"
    assert name_of("zzz") == "zzz"
