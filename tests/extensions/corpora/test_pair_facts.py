"""The languages of pairs."""

import pytest

from transformer_cli.extensions.corpora.pair_facts import SentenceLanguageDetector

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
