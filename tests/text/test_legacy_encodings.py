# ruff: noqa: RUF001 - letters of many scripts
"""The encoding of a text that is not UTF-8: what its letters say, and when they do not say enough."""

import pytest

from transformer_cli.config.data import known_encoding
from transformer_cli.text.legacy_encodings import (
    is_mixed,
    is_not_utf_8,
    likely_readings,
    unwritable_letters,
)

TEXTS = {
    "fr": (
        "Le café près de la gare est fermé, où allez-vous ? L'été dernier, c'était très tard, garçon !",
        "windows-1252 mac_roman cp850",
    ),
    "it": (
        "Perché non è venuto in città? La libertà è così bella, più di ciò che può dire.",
        "windows-1252 mac_roman cp850",
    ),
    "de": ("Die Mädchen hören schöne Lieder. Über die Straße läuft ein großer Hund.", "windows-1252 mac_roman cp850"),
    "es": ("¿Dónde está el niño? Mañana iré a la montaña. ¡Qué corazón tan pequeño!", "windows-1252 mac_roman cp850"),
    "pl": (
        "Dzień dobry, proszę o książkę. Żółta łódź płynie. Gdzie są moje śliczne dzieci?",
        "windows-1250 iso-8859-2 cp852",
    ),
    "cs": ("Kůň přišel včera večer k nádraží. Děkuji, že jste přinesl žluté růže.", "windows-1250 iso-8859-2 cp852"),
    "hu": (
        "Köszönöm szépen, hogy eljöttél. Ő is szereti a tejfölös lángost, de nem főz jól.",
        "windows-1250 iso-8859-2",
    ),
    "ru": ("Доброе утро, как ваши дела? Мы живём в большом городе. Где находится вокзал?", "windows-1251 koi8-r cp866"),
    "uk": ("Добрий день, як ваші справи? Ми живемо у великому місті. Де знаходиться їдальня?", "windows-1251 koi8-u"),
    "el": ("Καλημέρα, τι κάνετε; Μένουμε σε μια μεγάλη πόλη. Πού είναι ο σταθμός;", "windows-1253"),
    "tr": ("Günaydın, nasılsınız? Büyük bir şehirde yaşıyoruz. Teşekkür ederim, değil mi?", "windows-1254"),
    "he": ("בוקר טוב, מה שלומך? אנחנו גרים בעיר גדולה. איפה התחנה?", "windows-1255"),
    "ar": ("صباح الخير، كيف حالك؟ نحن نعيش في مدينة كبيرة. أين المحطة؟", "windows-1256"),
    "ja": ("おはようございます。お元気ですか。私たちは大きな町に住んでいます。", "shift_jis euc-jp"),
    "zh": ("早上好，你好吗？我们住在一个大城市。车站在哪里？", "gb18030"),
    "zh-tw": ("早上好，你好嗎？我們住在一個大城市。車站在哪裡？", "big5"),
    "ko": ("안녕하세요. 잘 지내세요? 우리는 큰 도시에 살고 있습니다.", "euc-kr"),
}
CASES = [(text, encoding) for text, encodings in TEXTS.values() for encoding in encodings.split()]


@pytest.mark.long
@pytest.mark.parametrize(("text", "encoding"), CASES)
def test_a_short_text_is_read_as_it_was_written(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    assert is_not_utf_8(data)
    [reading] = likely_readings(data)
    assert data.decode(reading.encoding) == text
    assert 1 <= len(reading.words) <= 3
    assert all(word in text and not word.isascii() for word in reading.words)


@pytest.mark.long
@pytest.mark.parametrize(("text", "encoding"), CASES)
def test_an_english_translation_beside_the_text_changes_nothing(text: str, encoding: str) -> None:
    data = f"Good morning, how are you?\t{text}\n".encode(encoding)
    [reading] = likely_readings(data)
    assert data.decode(reading.encoding).endswith(f"{text}\n")


def test_two_languages_of_one_encoding_are_read_together() -> None:
    text = f"{TEXTS['de'][0]}\t{TEXTS['pl'][0]}\n"
    assert [one.encoding for one in likely_readings(text.encode("windows-1250"))] == ["windows-1250"]


def test_frequent_words_without_accents_speak_for_both_languages_of_a_text() -> None:
    text = "Nie wiem, co to jest, ale ju\u017c jest w domu\tEz egy nagy h\xe1z \xe9s nem is az\n"
    assert [one.encoding for one in likely_readings(text.encode("cp852"))] == ["cp852"]


def test_both_readings_of_a_text_that_does_not_decide_are_given() -> None:
    readings = likely_readings("Prosim \u010d.".encode("windows-1250"))  # a single letter: \u010d or \u00e8
    assert {"windows-1252", "windows-1250"} <= {one.encoding for one in readings}
    assert {word for one in readings for word in one.words} >= {"\u010d", "\u00e8"}


def test_a_few_damaged_lines_are_no_other_encoding() -> None:
    text = "Perch\u00e9 no?\n".encode() * 30
    assert not is_not_utf_8(text)
    assert not is_not_utf_8(text + b"caf\xe9\n")
    assert not is_not_utf_8(b"only ASCII\n")
    half = text + b"caf\xe9\n" * 30
    assert is_not_utf_8(half)
    assert is_mixed(half)
    assert not is_mixed(b"caf\xe9\n" * 30)


@pytest.mark.parametrize(
    ("encoding", "language", "lacks"),
    [
        ("cp1251", "it", True),
        ("cp1252", "it", False),
        ("cp1252", "ru", True),
        ("koi8-r", "ru", False),
        ("cp1251", "en", False),
        ("cp1251", "nl", False),
        ("iso8859-2", "fr", True),
        ("shift_jis", "ja", False),
    ],
)
def test_an_encoding_that_cannot_write_a_language_is_known(encoding: str, language: str, *, lacks: bool) -> None:
    assert bool(unwritable_letters(encoding, language)) is lacks


def test_only_encodings_of_files_of_text_are_known() -> None:
    assert known_encoding("Windows-1252") == "cp1252"
    for name in ("rot13", "hex", "idna", "unicode_escape", "utf-7", "nonsense", ""):
        assert known_encoding(name) is None


@pytest.mark.parametrize(("text", "encoding"), [("\xfcber", "cp850"), ("\u010cech \u017elut\xe9", "iso-8859-2")])
def test_small_letters_are_likelier_than_capitals_so_the_most_likely_reading_is_first(text: str, encoding: str) -> None:
    assert likely_readings(text.encode(encoding))[0].encoding == encoding


@pytest.mark.parametrize("joint", "\u2026\u2014")
def test_dots_and_dashes_between_two_words_are_read_too(joint: str) -> None:
    readings = likely_readings(f"The car is red{joint}but the house is big.".encode("windows-1252"))
    assert f"red{joint}but" in {word for one in readings if one.encoding == "windows-1252" for word in one.words}


def test_the_words_that_are_shown_have_different_letters() -> None:
    text = "perch\xe9 poich\xe9 bench\xe9 cos\xec citt\xe0 libert\xe0 pi\xf9"
    assert text.encode("windows-1252").decode("windows-1252") == text
    readings = {one.encoding: one.words for one in likely_readings(text.encode("windows-1252"))}
    assert readings["windows-1252"] == ("perch\xe9", "cos\xec", "citt\xe0")


def test_a_reading_with_signs_that_nobody_writes_is_none_beside_one_without() -> None:
    # EUC-JP reads the sign of the euro as a control character and cannot read the others.
    signs = "".join(f"<p>Sign: {sign}</p>\n" for sign in "\u20ac\u00a9\u00ae\u00b0\u00b1")
    assert [one.encoding for one in likely_readings(signs.encode("windows-1252"))] == ["windows-1252"]
