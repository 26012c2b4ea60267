"""Makes docs/pictures/prompt.png: a person at the prompt of `tfm translate`, with the model of docs/run.

    python docs/make_terminal_picture.py

The session is a real one, over a pseudo-terminal. A test compares its text with the text that the picture holds.
"""

from making.pictures import FOLDER
from making.terminal import draw, session

if __name__ == "__main__":
    draw(session(), FOLDER / "prompt.png")
