"""The picture of a session at the prompt shows what `tfm translate` says today."""

import os

import pytest
from making.pictures import FOLDER
from making.terminal import session, transcript
from PIL import Image

pytestmark = pytest.mark.pages


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_the_picture_of_the_prompt_has_the_lines_of_a_session_today() -> None:
    """Less likely tokens and translations may differ by processor, so the tables of `:why` are not compared."""
    with Image.open(FOLDER / "prompt.png") as picture:
        drawn = str(picture.info["Description"])
    today = transcript(session())

    def without_tables(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith(" ")]

    assert without_tables(drawn) == without_tables(today), (
        "run: python docs/make_terminal_picture.py"
    )
    assert len(drawn.splitlines()) == len(today.splitlines())
