"""A session at a terminal: what a person types at the prompt of `tfm translate`, what is answered, and pictures of both."""

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from making.blocks import ROOT
from making.jobs import ENVIRONMENT

ROWS = 60
LIMIT_SECONDS = 60.0
COMMAND = "tfm translate --run docs/demonstration"
TYPED = (
    "Where is the station?",
    ":why",
    ":beam 8",
    "The red cars are here.",
    ":quit",
)
"""What the person types."""
PROMPT = "en> "
_POINTS_PER_LINE, _FONT_POINTS, _MARGIN_POINTS = 17.0, 12.0, 16.0
_POINTS_PER_COLUMN = 0.602 * _FONT_POINTS  # the advance of DejaVu Sans Mono
_PIXELS_PER_POINT = 1.5


class Look(NamedTuple):
    """A window of a terminal: how many characters a line has, and the colours."""

    columns: int
    background: str
    text: str
    prompts: str
    talk: str


_LIGHT = "#ffffff", "#1c1c22", "#00637d", "#55555f"
_DARK = "#1f1f28", "#e8e6e3", "#7fdbff", "#a8a8b3"
LOOKS = {
    "prompt.png": Look(106, *_LIGHT),
    "prompt-dark.png": Look(106, *_DARK),
    "prompt-narrow.png": Look(48, *_LIGHT),
    "prompt-narrow-dark.png": Look(48, *_DARK),
}
"""By the file of the picture. On a telephone of 360 pixels, 48 characters are large enough to be read."""


class Line(NamedTuple):
    """A line of the terminal."""

    prompt: str
    text: str
    is_typed: bool


def session(columns: int) -> list[Line]:
    """The lines of a session with the model that comes along: the command, what is typed, and all answers.

    A longer answer goes on in the next line, as a terminal of this width shows it.
    """
    command = [sys.executable, "-m", "transformer_cli", *COMMAND.split()[1:]]
    shown = _conversation(command, columns)
    lines = [Line("$ ", COMMAND, True)]
    left = [*TYPED]
    for text in shown.splitlines():
        prompt, _, typed = text.partition(PROMPT)
        if not prompt and text.startswith(PROMPT) and left and typed.rstrip() == left[0]:
            lines.append(Line(PROMPT, left.pop(0), True))
        else:
            found = re.match(r"[a-z]{2}> ", text)
            label = found[0] if found else ""
            first, *others = _cut(text, columns)
            lines.append(Line(label, first.removeprefix(label), False))
            lines.extend(Line("", other, False) for other in others)
    assert not left, f"the session has ended early:\n{shown}"
    return lines


def _cut(text: str, columns: int) -> list[str]:
    return [text[start : start + columns] for start in range(0, max(1, len(text)), columns)]


def transcript(lines: Sequence[Line]) -> str:
    """The session as text; every number as #, because processors round differently."""
    text = "\n".join(f"{line.prompt}{line.text.rstrip()}" for line in lines)
    return re.sub(r"\d+(?:\.\d+)?", "#", text)


def _conversation(command: Sequence[str], columns: int) -> str:
    """What a terminal shows while a person types each line after a prompt."""
    import fcntl
    import struct
    import termios

    person, program = os.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    environment = {**os.environ, **ENVIRONMENT, "TERM": "dumb", "COLUMNS": str(columns)}
    with subprocess.Popen(command, stdin=program, stdout=program, stderr=program, cwd=ROOT, env=environment) as process:
        os.close(program)
        shown = b""
        try:
            for number, typed in enumerate(TYPED, start=1):
                shown = _read_until(person, shown, number)
                os.write(person, f"{typed}\n".encode())
            shown = _read_until(person, shown, None)
        finally:
            process.kill()
            os.close(person)
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode()
    return text.replace("\r\n", "\n").replace("\r", "")


def _read_until(person: int, shown: bytes, num_prompts: int | None) -> bytes:
    """Read until this many prompts are shown; None: until the program ends."""
    stop_at = time.monotonic() + LIMIT_SECONDS
    while num_prompts is None or shown.count(PROMPT.encode()) < num_prompts:
        assert time.monotonic() < stop_at, shown.decode(errors="replace")
        try:
            piece = os.read(person, 1 << 16)
        except OSError:  # Linux reports the end of the program so
            piece = b""
        if not piece:
            assert num_prompts is None, shown.decode(errors="replace")
            break
        shown += piece
    return shown


def draw(lines: Sequence[Line], look: Look, path: Path) -> None:
    """Write the picture of a session as PNG; its field Description holds the transcript."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    from transformer_cli.evaluation.curve_pictures import drawing_settings

    width = 2 * _MARGIN_POINTS + look.columns * _POINTS_PER_COLUMN
    height = 2 * _MARGIN_POINTS + len(lines) * _POINTS_PER_LINE
    pixels = [round(points * _PIXELS_PER_POINT) for points in (width, height)]
    dpi = 72 * _PIXELS_PER_POINT
    figure = Figure(figsize=(pixels[0] / dpi, pixels[1] / dpi), facecolor=look.background)
    with rc_context(), drawing_settings():
        for number, line in enumerate(lines):
            y = 1 - (_MARGIN_POINTS + (number + 0.5) * _POINTS_PER_LINE) / height
            is_answer = bool(line.prompt) or line.is_typed
            pieces = (
                (0, line.prompt, look.prompts, "bold"),
                (
                    len(line.prompt),
                    line.text,
                    look.text if is_answer else look.talk,
                    "bold" if line.is_typed else "normal",
                ),
            )
            for column, text, color, weight in pieces:
                x = (_MARGIN_POINTS + column * _POINTS_PER_COLUMN) / width
                figure.text(
                    x,
                    y,
                    text,
                    color=color,
                    weight=weight,
                    size=_FONT_POINTS,
                    family="DejaVu Sans Mono",
                    va="center",
                    parse_math=False,
                )
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=dpi, facecolor=look.background)
    described = PngInfo()
    described.add_itxt("Description", transcript(lines))
    with Image.open(drawn) as picture:  # it has few colours, and the file becomes a third as large
        few = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
        few.save(path, optimize=True, pnginfo=described)
