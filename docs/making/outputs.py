"""Outputs of commands: each is what the command prints with the committed model of docs/run."""

import json
import re
import shlex
from collections.abc import Sequence

from making.blocks import ROOT, Block, MarkerError, cut
from making.jobs import answers_of

OPTION = re.compile(r' (from|to|before) ("(?:[^"\\]|\\.)*")')
GREYS = " ·░▒▓█"
VERSION = re.compile(r"(?<=version:)[\w.]+")
NUMBER = re.compile(r"-?\d+\.\d+")


def outputs_of(blocks: Sequence[Block]) -> list[str]:
    """The contents of blocks whose marker is `output: ...`; one process runs all their commands.

    Raises:
        MarkerError: a command fails, or a marker is wrong.
    """
    jobs = [_job(block) for block in blocks]
    different = [job for number, job in enumerate(jobs) if job not in jobs[:number]]
    answers = answers_of(different)
    made = [answers[different.index(job)] for job in jobs]
    contents = []
    for block, answer in zip(blocks, made, strict=True):
        if answer["failure"]:
            raise MarkerError(f"{block.place}: {answer['failure']}")
        contents.append(_content(block, answer["output"]))
    return contents


def _job(block: Block) -> dict[str, object]:
    """What the runner shall run: the arguments of tfm, or a program in Python."""
    command, _ = _parsed(block)
    if command == "python":
        if not block.program:
            raise MarkerError(f"{block.place}: there is no Python block before this marker")
        return {"python": block.program, "page": block.page.relative_to(ROOT).as_posix()}
    name, *arguments = shlex.split(command)
    if name != "tfm":
        raise MarkerError(f"{block.place}: {name!r} is neither tfm nor python")
    return {"tfm": arguments}


def _parsed(block: Block) -> tuple[str, dict[str, str]]:
    """The command of a marker, and its options."""
    command, _, rest = block.text.partition(" | ")
    options = {name: json.loads(text) for name, text in OPTION.findall(f" {rest}")}
    if OPTION.sub("", f" {rest}").strip():
        raise MarkerError(f'{block.place}: after " | " there are: from "...", to "...", before "..."')
    return command, options


def _content(block: Block, output: str) -> str:
    command, options = _parsed(block)
    lines = [line.rstrip() for line in output.rstrip("\n").splitlines()]
    shown = cut(lines, options, block.place, "...")
    head = [] if command == "python" else [f"$ {command}"]
    return "\n".join([*head, *shown]) + "\n"


def is_same(shown: str, made: str) -> bool:
    """Whether two outputs are equal up to rounding.

    Processors add floating-point numbers in different orders. So a number with a decimal point may differ by one in its
    last digit or by a ten-thousandth, and a block that stands for a number by one step of grey or of length. The version of a library in a
    signature does not count.
    """
    first, second = (shown.splitlines(), made.splitlines())
    return len(first) == len(second) and all(map(_is_same_line, first, second))


def _is_same_line(shown: str, made: str) -> bool:
    shown, made = (VERSION.sub("", line) for line in (shown, made))
    numbers = [NUMBER.findall(line) for line in (shown, made)]
    if len(numbers[0]) != len(numbers[1]) or not all(map(_are_near, *numbers)):
        return False
    texts = [re.sub(rf" *{NUMBER.pattern}", "#", line) for line in (shown, made)]
    longer = max(map(len, texts))
    pairs = zip(*(text.ljust(longer) for text in texts), strict=True)
    other = [pair for pair in pairs if pair[0] != pair[1]]
    num_of_bars = sum({*pair} == {" ", "█"} for pair in other)
    return num_of_bars <= 1 and all({*pair} == {" ", "█"} or _are_near_greys(*pair) for pair in other)


def _are_near(a: str, b: str) -> bool:
    digits = [len(number.partition(".")[2]) for number in (a, b)]
    allowed = max(1.5 * 10.0 ** -digits[0], 1e-4 * abs(float(a)))
    return digits[0] == digits[1] and abs(float(a) - float(b)) < allowed


def _are_near_greys(a: str, b: str) -> bool:
    return a in GREYS and b in GREYS and abs(GREYS.index(a) - GREYS.index(b)) == 1
