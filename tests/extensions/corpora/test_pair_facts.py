"""The languages of pairs, their plain forms, and entities in them."""

import unicodedata

import pytest

from transformer_cli.extensions.corpora.pair_facts import (
    SentenceLanguageDetector,
    is_nearly_untranslated,
    plain_form,
    without_entities,
)

JAVANESE = "ꦏꦠꦺ ꦧꦺꦴꦣ ꦡꦸꦠꦺ ꦧꦺꦴꦣ ꦥꦜꦢ ꦢꦺꦴ ꦝꦞꦺꦜ ꦢꦖꦶꦡ ꦚꦶꦜꦙ"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the red house of your brother?", "en"),
        ("Где находится красный дом твоего брата?", "ru"),
        ("あなたの弟の赤い家はどこにありますか。教えてください。", "ja"),
        (JAVANESE, None),
        ("ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ ᠦᠨ ᠵᠠᠰᠠᠭ ᠤᠨ ᠭᠠᠵᠠᠷ", None),
        ("ꯃꯤꯇꯩ ꯃꯌꯦꯛ ꯑꯁꯤ ꯃꯅꯤꯄꯨꯔꯒꯤ ꯂꯣꯟ ꯑꯃꯅꯤ ꯍꯥꯌꯅ", None),
    ],
)
def test_a_text_in_letters_that_the_model_does_not_know_has_no_language(text: str, language: str | None) -> None:
    assert SentenceLanguageDetector().language_of(text) == language


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Dov'è   la Stazione?!", "dov è la stazione"),
        ("वह किताब पढ़ता है।", "वह किताब पढ़ता है"),  # he reads; she reads differs in one vowel, which is a mark
        ("ที่นี่", "ที่นี่"),
        ("❤️ 1️⃣ _-_", "1"),
    ],
)
def test_a_plain_form_has_the_letters_with_their_marks_and_the_digits(text: str, form: str) -> None:
    assert plain_form(text) == unicodedata.normalize("NFKC", form)


def test_words_with_marks_count_as_words_that_are_not_translated() -> None:
    text = plain_form("वह किताब पढ़ता है और सोता है")
    assert is_nearly_untranslated(text, text)
    codes = plain_form("12 a1 b2 c3 d4 e5")
    assert not is_nearly_untranslated(codes, codes)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("&quot;R&amp;D&quot; &#233; &#xE9;", '"R&D" é é'),
        ("&frac12; l, 3 m&sup2;", "½ l, 3 m²"),
        ("R&D; &c. &notit; &parameter;", "R&D; &c. &notit; &parameter;"),
    ],
)
def test_entities_are_those_of_html_as_a_whole(text: str, mended: str) -> None:
    assert without_entities(text) == mended
