"""The cues of subtitles in SubRip (.srt) and WebVTT (.vtt): where each stands in its file, when it is shown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from transformer_cli.extensions.documents.guards.reading_limits import ReadingWatch
from transformer_cli.process.errors import DataError

_TIMING = re.compile(
    r"^[ \t]*(?P<start>(?:\d{1,9}:)?\d{1,2}:\d{2}[,.]\d{1,3})[ \t]*-->[ \t]*"
    r"(?P<end>(?:\d{1,9}:)?\d{1,2}:\d{2}[,.]\d{1,3})(?P<rest>[^\r\n]*)(?:\r\n|\r|\n|\Z)",
    re.MULTILINE,
)
_ARROW = re.compile(r"^[^\r\n]*-->", re.MULTILINE)
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_NUMBER_LINE = re.compile(r"(?:\A|(?<=[\r\n]))[ \t]*(\d+)[ \t]*(?:\r\n|\r|\n)\Z")
_LONGEST_NUMBER_LINE = 40


@dataclass(frozen=True, slots=True)
class Cue:
    """A text that is shown for some time."""

    number: tuple[int, int] | None
    """Where its number stands in the file, if it has one."""
    timing: tuple[int, int]
    """Where the line of its times stands in the file, with its line end."""
    start_seconds: float
    end_seconds: float
    rest: str
    """What stands behind its times, such as the settings of WebVTT."""
    lines: tuple[tuple[int, int], ...]
    """Where each line of its text stands in the file, without line ends."""

    @property
    def place(self) -> tuple[int, int]:
        """Where its text stands in the file, without the line end behind it."""
        return self.lines[0][0], self.lines[-1][1]


def cues_of(text: str, watch: ReadingWatch) -> Iterator[Cue]:
    """The cues of a file that have text, in order.

    Raises:
        DataError: the file has text, but no times: its text would stay as it is.
    """
    if text.strip() and not text.startswith("WEBVTT") and not _TIMING.search(text):
        raise DataError(
            "no line with two times, such as 00:01:02,500 --> 00:01:04,000, was found, so these are no subtitles",
            hint="translate it as plain text: --format txt",
        )
    place = 0
    while match := _TIMING.search(text, place):
        place = match.end()
        lines = []
        for line in watch.over(_LINE.finditer(text, place)):
            if not line[1].strip() or "-->" in line[1]:
                break
            lines.append(line.span(1))
            place = line.end()
            if not line[2]:
                break
        # Without a blank line between two cues, the number of the next one is no text.
        following = _TIMING.match(text, place)
        if following and lines and text[slice(*lines[-1])].strip().isdecimal():
            place = lines.pop()[0]
        if lines:
            number = _number_before(text, match.start())
            yield Cue(
                number,
                match.span(),
                seconds_of(match["start"]),
                seconds_of(match["end"]),
                match["rest"],
                tuple(lines),
            )


def lines_without_times(text: str) -> list[int]:
    """Where each line begins that has an arrow, but not two times; what stands from there to the next times is in no cue."""
    return [
        arrow.start() for arrow in _ARROW.finditer(text) if not _TIMING.match(text, arrow.start())
    ]


def _number_before(text: str, place: int) -> tuple[int, int] | None:
    """Where the number stands that is alone on the line before a place."""
    first = max(0, place - _LONGEST_NUMBER_LINE)
    match = _NUMBER_LINE.search(text[first:place])
    if match is None or (first > 0 and match.start() == 0):
        return None
    return first + match.start(1), first + match.end(1)


def seconds_of(time: str) -> float:
    """A time such as 00:01:02,500 in seconds."""
    *hours, minutes, seconds = time.replace(",", ".").split(":")
    return 3600 * int(hours[0] if hours else 0) + 60 * int(minutes) + float(seconds)


def time_of(seconds: float, pattern: str) -> str:
    """Seconds as a time in the form of another one: with a comma or a point, with or without hours."""
    sign = "," if "," in pattern else "."
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    has_hours = hours > 0 or pattern.count(":") == 2
    width = len(pattern.split(":")[0]) if pattern.count(":") == 2 else 2
    prefix = f"{hours:0{width}d}:" if has_hours else ""
    return f"{prefix}{minutes:02d}:{rest // 1000:02d}{sign}{rest % 1000:03d}"
