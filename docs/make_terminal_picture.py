"""Makes docs/pictures/prompt.png and its narrow and dark forms: a person at the prompt of `tfm translate`, with the model of docs/run.

    python docs/make_terminal_picture.py

The files are prompt.png, prompt-dark.png, prompt-narrow.png and prompt-narrow-dark.png. The sessions are real ones, over
a pseudo-terminal. A test compares their text with the text that the pictures hold.
"""

from making.pictures import FOLDER
from making.terminal import LOOKS, draw, session

if __name__ == "__main__":
    for name, look in LOOKS.items():
        draw(session(look.columns), look, FOLDER / name)
