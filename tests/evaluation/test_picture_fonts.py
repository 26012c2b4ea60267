"""The labels of pictures in any language: with fonts that have the characters, and without."""

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.font_manager import FontProperties, fontManager

from transformer_cli.evaluation import picture_fonts
from transformer_cli.evaluation.picture_fonts import USUAL, readable_labels
from transformer_cli.evaluation.validation import draw_attention

TOKENS = {
    "Chinese": ["你好", "世界", "。"],
    "Japanese": ["こんにちは", "世界"],
    "Korean": ["안녕하세요", "세계"],
    "Arabic": ["مرحبا", "بالعالم"],
    "Hindi": ["नमस्ते", "हिन्दी"],
    "Thai": ["สวัสดี", "ชาวโลก"],
    "long words": ["w" * 200, "Donaudampfschifffahrtsgesellschaft", "i"],
    "nothing that has a font": ["\U0010fffd", "\ue123x"],
}
# A mark that two fonts of matplotlib itself have, and its usual font has not.
ONLY_IN_STIX = "a\u20dd"


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    picture_fonts._families.cache_clear()
    picture_fonts._told.clear()


@pytest.fixture(params=["installed fonts", "no other font"])
def fonts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "no other font":
        only = {USUAL: fontManager.findfont(USUAL)}
        monkeypatch.setattr(picture_fonts, "_fonts", lambda: only)
    return str(request.param)


@pytest.mark.heavy
@pytest.mark.parametrize("language", TOKENS)
def test_a_picture_of_any_language_is_drawn_without_a_warning_of_python(
    fonts: str, language: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = TOKENS[language]
    with warnings.catch_warnings(), caplog.at_level(logging.INFO):
        warnings.simplefilter("error")
        for _ in range(2):
            figure = draw_attention(torch.eye(len(tokens)), tokens, tokens)
            FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    is_complete = labels == [token if len(token) <= 24 else token[:23] + "…" for token in tokens]
    assert is_complete or any("U+" in label for label in labels)
    assert len(caplog.messages) == (0 if is_complete else 1), "one line for all pictures"
    if fonts == "no other font" and language != "nothing that has a font":
        package = "cjk" if language in ("Chinese", "Japanese", "Korean") else "core"
        # DejaVu Sans has the Arabic letters.
        assert is_complete or f"the package fonts-noto-{package} has them" in caplog.messages[0]


def test_only_missing_characters_are_shown_as_code_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_fonts, "_fonts", lambda: {USUAL: fontManager.findfont(USUAL)})
    labels, families = readable_labels(["il 你好", "你", "你好你好你好", "gatto"])
    assert families == [USUAL]
    assert labels == ["il U+4F60 U+597D", "U+4F60", "U+4F60 U+597D U+4F60 …", "gatto"]


def test_a_font_that_has_a_missing_character_is_found_among_the_installed_ones() -> None:
    labels, families = readable_labels([ONLY_IN_STIX])
    assert labels == [ONLY_IN_STIX]
    assert families[0] == USUAL
    assert len(families) == 2
    path: Any = fontManager.findfont(FontProperties(family=families[1:]), fallback_to_default=False)
    assert picture_fonts._font(str(path)).get_char_index(0x20DD)


def test_the_usual_font_is_enough_where_it_has_all_characters() -> None:
    labels = ["naïve", "ΑΒΓ", "Привет", "␣"]
    assert readable_labels(labels) == (labels, [USUAL])


def test_a_font_of_boxes_is_not_taken() -> None:
    assert not [family for family in picture_fonts._fonts() if "Last Resort" in family]


def test_control_characters_are_shown_as_codes() -> None:
    figure = draw_attention(torch.eye(2), ["\x1b[2J", "a\u202eb"], ["x", "y"])
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == [r"\x1b[2J", r"a\u202eb"]
