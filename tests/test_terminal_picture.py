"""The picture of a session at the prompt shows what `tfm translate` says today."""

import os

import pytest
from making.pictures import FOLDER
from making.terminal import LOOKS, session, transcript
from PIL import Image

pytestmark = pytest.mark.heavy  # a session at a terminal, with a model and PyTorch


def words_of(session_text: str) -> str:
    """The letters of a session without the table of `:why`: its tokens differ by processor, and its width and all line ends by terminal."""
    lines = session_text.splitlines()
    kept = [line for line in lines if not line.startswith(("  ", "probability "))]
    return "".join("".join(kept).split())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_the_pictures_of_the_prompt_have_the_lines_of_a_session_today() -> None:
    today = transcript(session(columns=106))
    for name, look in LOOKS.items():
        with Image.open(FOLDER / name) as picture:
            drawn = str(picture.info["Description"])
        assert words_of(drawn) == words_of(today), "run: python docs/make_terminal_picture.py"
        if look.columns == 106:
            assert len(drawn.splitlines()) == len(today.splitlines())
