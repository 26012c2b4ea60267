"""Reads the sentences of subtitles in SubRip (.srt) and WebVTT (.vtt), and divides their translations among the screens of the cues."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import DecodedText, decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.html import unescaped_html
from transformer_cli.extensions.documents.screens import (
    LAST_WORD,
    Word,
    balanced,
    divided_words,
    ends_clause,
    lines_of_screen,
    screens_of,
    words_with_markup,
)
from transformer_cli.extensions.documents.segments import (
    Change,
    InlinePart,
    LineNumbers,
    Markup,
    Piece,
    Role,
    Segment,
    TranslatedSegment,
    language_after,
    merged,
    nested,
    partners_of,
    plain_text,
    rendered,
    spliced,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import (
    FUNCTION_WORDS,
    contradicting_language,
    guess_language,
    name_of_language,
    primary_language,
)
from transformer_cli.text.normalization import has_letter, has_word
from transformer_cli.text.sentences import (
    LANGUAGES_WITH_CAPITAL_NOUNS,
    ends_sentence,
)
from transformer_cli.text.spans import find_spans, masked

# Some programs leave out the milliseconds, and players read such times.
_TIME = r"(?:\d{1,9}:)?\d{1,2}:\d{1,2}(?:[,.]\d{1,3})?"
_BEGINNING_OF_LINE = r"(?:\A|(?<=[\r\n]))"
_TIMING = re.compile(
    rf"{_BEGINNING_OF_LINE}[ \t]*(?P<start>{_TIME})[ \t]*-->[ \t]*"
    rf"(?P<end>{_TIME})(?P<rest>[^\r\n]*)(?:\r\n|\r|\n|\Z)"
)
# Also two times with another sign between them, such as -> or --&gt;. A person may write "10:30 - 11:30", but no parts of seconds.
_SIGN = r"(?:[-=~>\u2010-\u2015\u2192\u21d2 \t]|&(?:gt|rarr|#\w{1,5});)"
_ARROW = re.compile(
    rf"{_BEGINNING_OF_LINE}(?:[^\r\n]*-->|[ \t]*(?:{_TIME}(?<=[,.]\d\d\d){_SIGN}+|{_TIME}{_SIGN}*(?:[>\u2192\u21d2]|&gt;)[ \t]*){_TIME})"
)
# What the captions of YouTube have behind their first line.
_LANGUAGE_LINE = re.compile(r"WEBVTT[^\r\n]*(?:\r\n|\r|\n)(?:[^\r\n]+(?:\r\n|\r|\n))*?Language:[ \t]*(?P<code>[\w-]+)")
# The first word of a block of WebVTT that is no cue.
_NO_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?!\S)")
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_NUMBER_LINE = re.compile(r"(?:\A|(?<=[\r\n]))[ \t]*(\d+)[ \t]*(?:\r\n|\r|\n)\Z")
_LONGEST_NUMBER_LINE = 40
_LINE_END = re.compile(r"\r\n|\r|\n")


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
    is_part: bool = False
    """Whether blank lines divide the text that is shown at these times; then each part is a cue with the same times."""

    @property
    def place(self) -> tuple[int, int]:
        """Where its text stands in the file, without the line end behind it."""
        return self.lines[0][0], self.lines[-1][1]


def cues_of(text: str, watch: ReadingWatch) -> Iterator[Cue]:
    """The cues of a file that have text, in order.

    All text up to the next times belongs to a cue, also behind a blank line: it is text that somebody wrote.

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
        blocks = _blocks_of(text, place, watch)
        for index, lines in enumerate(blocks):
            yield Cue(
                None if index else _number_before(text, match.start()),
                match.span(),
                seconds_of(match["start"]),
                seconds_of(match["end"]),
                match["rest"],
                tuple(lines),
                is_part=len(blocks) > 1,
            )


def _blocks_of(text: str, start: int, watch: ReadingWatch) -> list[list[tuple[int, int]]]:
    """The lines of a cue, in blocks that blank lines divide; without the number or name of the next cue."""
    blocks: list[list[tuple[int, int]]] = [[]]
    for line in watch.over(_LINE.finditer(text, start)):
        if _ARROW.match(text, line.start()):
            _leave_out_name(blocks, text)
            break
        if line[1].strip():
            blocks[-1].append(line.span(1))
        elif blocks[-1]:
            blocks.append([])
        if not line[2]:
            break
    is_webvtt = text.startswith("WEBVTT")
    return [
        block
        for block in blocks
        if block and not (is_webvtt and block[0][0] > start and _NO_CUE.match(text, block[0][0]))
    ]


def _leave_out_name(blocks: list[list[tuple[int, int]]], text: str) -> None:
    """Take away what stands directly before the times of the next cue, or its number before blank lines."""
    last = blocks[-1] or (blocks[-2] if len(blocks) > 1 else [])
    if last and text[slice(*last[-1])].strip().isdecimal():
        last.pop()
    elif len(blocks) > 1 and len(blocks[-1]) == 1 and text.startswith("WEBVTT"):
        blocks.pop()


def lines_without_times(text: str) -> list[int]:
    """Where each line begins that has an arrow or two times, but not both; what stands from there to the next times is in no cue."""
    return [arrow.start() for arrow in _ARROW.finditer(text) if not _TIMING.match(text, arrow.start())]


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
    sign = "." if "." in pattern else ","
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    has_hours = hours > 0 or pattern.count(":") == 2
    width = len(pattern.split(":")[0]) if pattern.count(":") == 2 else 2
    prefix = f"{hours:0{width}d}:" if has_hours else ""
    return f"{prefix}{minutes:02d}:{rest // 1000:02d}{sign}{rest % 1000:03d}"


logger = logging.getLogger(__name__)

# With the reading of a ruby, which is no part of the sentence; but not "2 (<) and 3 (>)".
_TAG = re.compile(r"<rt>[^<>\r\n]*</rt>(?:</ruby>)?|<(?:/?[A-Za-z][^<>\r\n]*|[\d:.]+|/?)>|\{\\[^{}\r\n]*\}")
# A sound or music, which is a line of its own.
_SOUND = re.compile(
    r"(?:<[^<>]*>)*(?:\[[^\[\]]*\]|\([^()]*\)|[\u266a\u266b#].*[\u266a\u266b#])(?:<[^<>]*>)*",
    re.DOTALL,
)
# A line in a tag of its own, which stays a line.
_TAGGED_LINE = re.compile(r"(?:\{\\[^{}]*\})*<(?P<name>[A-Za-z]+)\b[^<>]*>(?:(?!</?(?P=name)\b).)*</(?P=name)>")
_NOTES = ("\u266a", "\u266b")
_TIME_OF_WORD = re.compile(r"<[\d:.]+>")
# A line break or a hard space of another format; C:\home has none.
_BREAK = re.compile(r"\\[Nn]|(?<![:\\])\\h")
_VOICE = re.compile(r"<v[. ][^<>]*>")
# What begins the words of another speaker, also <i>-</i> in a tag of its own; >> does so in captions of television.
_DASH = re.compile(
    rf"[-\u2013\u2014][ \t]*|(?:>|&gt;){{2,3}}[ \t]*|{_VOICE.pattern}|<(?P<name>[A-Za-z]+)\b[^<>]*>[-\u2013\u2014][ \t]*</(?P=name)>[ \t]*"
)
# The name of who speaks.
_SPEAKER = re.compile(r"([^\W\d_][\w.' -]{0,30}):(?=\s|\Z)")
_ANY_WORD = re.compile(r"[^\W\d_]+")
# Of a file in which fewer cues end with the mark of a sentence, a capital letter begins one.
_FEWEST_STOPS = 0.2
_MOST_CUES = 6
_MOST_WARNINGS = 10
# A text with more is none that people read on a screen. It stays in its cues, without a search for the best lines, whose
# time grows with the square of the words.
_MOST_WORDS = 300
_LONGEST_PAUSE_SECONDS = 2.0
_TIMES = re.compile(r"([\d:.,]+)([ \t]*-->[ \t]*)([\d:.,]+)")


class _Member(NamedTuple):
    """A cue, or a line of a dialogue, of which a segment is made."""

    cue: Cue
    start: int
    """Where its text stands in the file."""
    end: int
    before: str
    """Markup around the whole text, which stays."""
    pieces: tuple[Piece, ...]
    after: str
    is_line: bool
    """Whether it is one line of a cue, which stays one line."""


class _Repeat(NamedTuple):
    """A line that stood in the cue before, too: automatic captions move up line by line."""

    place: tuple[int, int]
    first: int
    """Where the line begins that it repeats."""


class _Group(NamedTuple):
    """The cues of a sentence."""

    members: tuple[_Member, ...]
    segment: Segment


@dataclass(frozen=True, slots=True)
class Subtitles:
    """A `Document` of cues."""

    content: DecodedText
    is_srt: bool
    groups: tuple[_Group, ...]
    cues: tuple[Cue, ...]
    repeats: tuple[_Repeat, ...]
    line_end: str

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`."""
        return [group.segment for group in self.groups]

    def write(self, translations: Sequence[TranslatedSegment], languages: Direction) -> bytes:
        """See `Document.write`."""
        # By the place of the first line of a cue: to hash a cue takes as long as it has lines.
        texts: dict[tuple[int, int], list[tuple[_Member, list[str]]]] = {}
        for group, translation in zip(self.groups, translations, strict=True):
            if translation.pieces == group.segment.pieces:
                continue
            pieces = _with_times_in_order(translation.pieces, group.segment.pieces)
            screens = _screens(group.members, pieces, languages.target)
            for member, member_screens in zip(group.members, screens, strict=True):
                shown = [self._text(pieces) for pieces in member_screens]
                texts.setdefault(member.cue.lines[0], []).append((member, shown))
        changes: list[Change] = []
        num_new = 0
        for cue in self.cues:
            number = None
            if self.is_srt and cue.number is not None:
                number = int(self.content.text[slice(*cue.number)]) + num_new
                if num_new:
                    changes.append(Change(*cue.number, str(number)))
            for member, shown in texts.get(cue.lines[0], []):
                changes += self._changes(member, shown, number)
                num_new += len(shown) - 1
        written = {change.start: change.text for change in changes} if self.repeats else {}
        changes += [Change(*each.place, written[each.first]) for each in self.repeats if each.first in written]
        if (named := _LANGUAGE_LINE.match(self.content.text)) is not None:
            changes.append(Change(*named.span("code"), language_after(named["code"], languages)))
        return self.content.encoded(spliced(self.content.text, changes))

    def _text(self, pieces: Sequence[Piece]) -> str:
        text = rendered(pieces, str if self.is_srt else lambda piece: escape(piece, quote=False))
        return text.replace("\n", self.line_end)

    def _changes(self, member: _Member, texts: Sequence[str], number: int | None) -> Iterator[Change]:
        """What changes in a cue; several texts become several cues, which divide its time by their lengths."""
        whole = [f"{member.before}{text}{member.after}" for text in texts]
        if len(texts) == 1:
            yield Change(member.start, member.end, whole[0])
            return
        cue, end = member.cue, self.line_end
        timing = self.content.text[slice(*cue.timing)]
        times = _TIMES.search(timing)
        assert times is not None
        seconds = cue.end_seconds - cue.start_seconds
        lengths = [len(text.replace(end, " ")) for text in texts]
        place = 0
        written = []
        for index in range(len(texts)):
            start = cue.start_seconds + seconds * place / sum(lengths)
            place += lengths[index]
            stop = cue.start_seconds + seconds * place / sum(lengths)
            shown = f"{self._time_of(start, times[1])}{times[2]}{self._time_of(stop, times[3])}"
            line = timing[: times.start()] + shown + timing[times.end() :]
            if not index:
                yield Change(*cue.timing, line)
                written.append(whole[0])
                continue
            own_number = "" if number is None else f"{number + index}{end}"
            written.append(f"{own_number}{line.rstrip()}{end}{whole[index]}")
        yield Change(member.start, member.end, (end + end).join(written))

    def _time_of(self, seconds: float, pattern: str) -> str:
        has_milliseconds = "." in pattern or "," in pattern
        return time_of(seconds, pattern if has_milliseconds or self.is_srt else f"{pattern}.0")


def read_srt(data: bytes, options: ReadingOptions = DEFAULTS) -> Subtitles:
    """Subtitles in the format SubRip."""
    return _read(data, options, is_srt=True)


def read_vtt(data: bytes, options: ReadingOptions = DEFAULTS) -> Subtitles:
    """Subtitles in the format WebVTT; notes, styles and the settings of cues stay."""
    return _read(data, options, is_srt=False)


def _read(data: bytes, options: ReadingOptions, *, is_srt: bool) -> Subtitles:
    content = decoded(data, given=options.encoding)
    cues = tuple(cues_of(content.text, options.watch))
    lines = LineNumbers(content.text)
    if not options.is_repeated:
        _warn(content.text, cues)
    groups = []
    language = primary_language(options.language or "")
    new, repeats = _lines_that_move_up(cues, content.text)
    position = None
    if repeats:
        cues = new
    else:
        position = _line_in_language(cues, content.text, language, is_told=not options.is_repeated)
    cue_sentences = _sentences(cues, content.text, is_srt, language, position)
    for members in options.watch.over(cue_sentences):
        members = [_without_tags(member) for member in members] if repeats else members
        pieces: list[Piece] = []
        for number, member in enumerate(members):
            pieces += [" "] if number else []
            # Numbers that were unique in a cue are unique in the file, because each is a place.
            pieces += member.pieces
        if has_letter(plain_text(pieces)):
            place = f"line {lines.number_at(members[0].start)}"
            segment = Segment(tuple(merged(pieces)), place, has_sounds=True, has_references=is_srt)
            groups.append(_Group(tuple(members), options.watch.counted(segment)))
    ends = _LINE_END.search(content.text)
    return Subtitles(content, is_srt, tuple(groups), cues, repeats, "\n" if ends is None else ends[0])


def _lines_that_move_up(cues: Sequence[Cue], text: str) -> tuple[tuple[Cue, ...], tuple[_Repeat, ...]]:
    """Of captions in which lines move up, as the automatic ones of YouTube: each new line as a cue, and the lines that repeat one.

    Of all others, nothing is a repeat. There, most cues begin with the last line of the cue before, and a new one follows below.
    """
    new: list[Cue] = []
    repeats: list[_Repeat] = []
    before, first, num_moved = "", 0, 0
    for cue in cues:
        for number, line in enumerate(cue.lines):
            shown = _shown(text, line)
            if not number and shown == before:
                repeats.append(_Repeat(line, first))
                num_moved += len(cue.lines) > 1
            else:
                new.append(replace(cue, lines=(line,), is_part=False))
                before, first = shown, line[0]
    return (tuple(new), tuple(repeats)) if num_moved > 1 and 2 * len(repeats) >= len(cues) else ((), ())


def _warn(text: str, cues: Sequence[Cue]) -> None:
    """Name the lines that should be times, and the cues that end before they begin."""
    lines = LineNumbers(text)
    broken = lines_without_times(text)
    for start in broken[:_MOST_WARNINGS]:
        logger.warning(
            "line %d: it is no line of two times such as 00:01:02,500 --> 00:01:04,000: the text up to the next times stays as it is",
            lines.number_at(start),
        )
    # The parts of a cue have the same times.
    backwards = {cue.timing: cue.number for cue in reversed(cues) if cue.end_seconds < cue.start_seconds}
    reported = sorted(backwards)
    for timing in reported[:_MOST_WARNINGS]:
        number = backwards[timing]
        logger.warning(
            "line %d: %s ends before it begins: %s; its times stay, and players may not show it",
            lines.number_at(timing[0]),
            "a cue" if number is None else f"cue {text[slice(*number)]}",
            text[slice(*timing)].strip(),
        )
    num_more = sum(max(0, len(each) - _MOST_WARNINGS) for each in (broken, reported))
    if num_more:
        logger.warning("%d more lines are like these", num_more)


def _without_tags(member: _Member) -> _Member:
    """A line without the times of its words, which its translation does not have."""
    before, after = _TAG.sub("", member.before), _TAG.sub("", member.after)
    return member._replace(before=before, pieces=(plain_text(member.pieces),), after=after, is_line=True)


def _line_in_language(cues: Sequence[Cue], text: str, language: str, *, is_told: bool) -> int | None:
    """Of subtitles in two languages, one above the other: which line of a cue is translated, 0 or 1; None for all others.

    A person who knows one of them reads the other line, which therefore stays.
    """
    pairs = [[text[slice(*line)] for line in cue.lines] for cue in cues if len(cue.lines) == 2]
    if 2 * len(pairs) <= len(cues):
        return None
    columns = [list(column) for column in zip(*pairs, strict=True)]
    languages = [guess_language(_TAG.sub("", line) for line in column) for column in columns]
    if contradicting_language(languages[0], columns[1]) != languages[1] or languages[0] == languages[1]:
        return None
    position = languages.index(language) if language in languages else None
    names = [name_of_language(each) for each in languages]
    if is_told and position is None:
        logger.warning("the cues have lines in two languages, %s and %s; a cue is read as one text", *names)
    elif is_told and position is not None:
        logger.warning(
            "the cues have lines in two languages: those in %s are translated, and those in %s stay as they are",
            names[position],
            names[1 - position],
        )
    return position


def _sentences(
    cues: Sequence[Cue], text: str, is_srt: bool, language: str, position: int | None = None
) -> Iterator[list[_Member]]:
    """The cues of each sentence; the lines of a dialogue are sentences of their own.

    Args:
        position: of the line that is translated of a cue with two lines; None: both are.
    """
    num_stops = sum(ends_sentence(_shown(text, cue.place)) for cue in cues)
    has_stops = num_stops >= _FEWEST_STOPS * len(cues)
    group: list[_Member] = []
    for cue in cues:
        if group and not _may_go_on(group, cue, text, language, has_stops=has_stops):
            yield group
            group = []
        if lines := _lines_alone(cue, text, position):
            if group:
                yield group
                group = []
            for line in lines:
                is_line = _LINE_END.search(text, *line) is None
                yield [_member(cue if is_line else replace(cue, is_part=True), line, text, is_srt, is_line=is_line)]
            continue
        for member in _members(cue, text, is_srt):
            if group and group[-1].cue is cue and _ends_sentence(group[-1]):
                yield group
                group = []
            group.append(member)
        shown = _shown(text, cue.place)
        ends = _ends_sentence(group[-1]) or shown.endswith(_NOTES)
        if ends or cue.is_part or _SOUND.fullmatch(shown):
            yield group
            group = []
    if group:
        yield group


def _lines_alone(cue: Cue, text: str, position: int | None) -> Sequence[tuple[int, int]]:
    """The lines of a cue that are texts of their own: those of a dialogue, and the one that is translated of two languages.

    What follows the name of a speaker is one text up to the next name.
    """
    if position is not None and len(cue.lines) == 2:
        return [cue.lines[position]]
    lines = [text[slice(*line)].strip() for line in cue.lines]
    has_dash = any(_DASH.match(line) or _DASH.match(_TAG.sub("", line).lstrip()) for line in lines[1:])
    is_dialogue = has_dash or any(map(_SOUND.fullmatch, lines))
    if len(lines) > 1 and is_dialogue:
        return cue.lines
    speakers = [_SPEAKER.match(_TAG.sub("", line).lstrip()) for line in lines]
    have_all_names = all(speaker and speaker[1][0].isupper() for speaker in speakers)
    starts = [at for at, each in enumerate(speakers) if not at or (each and (have_all_names or each[1].isupper()))]
    ends = [*starts[1:], len(lines)]
    turns = [(cue.lines[at][0], cue.lines[end - 1][1]) for at, end in zip(starts, ends, strict=True)]
    return turns if len(turns) > 1 else ()


def _members(cue: Cue, text: str, is_srt: bool) -> Iterator[_Member]:
    """A cue, or its lines if each is in a tag of its own."""
    lines = [text[slice(*line)].strip() for line in cue.lines]
    if len(lines) > 1 and all(map(_TAGGED_LINE.fullmatch, lines)):
        for line in cue.lines:
            yield _member(cue, line, text, is_srt, is_line=True)
    else:
        yield _member(cue, cue.place, text, is_srt, is_line=False)


def _ends_sentence(member: _Member) -> bool:
    return ends_sentence(plain_text(member.pieces).strip())


def _shown(text: str, place: tuple[int, int]) -> str:
    """The text of a cue without its tags."""
    return _TAG.sub("", text[slice(*place)]).strip()


def _may_go_on(group: Sequence[_Member], cue: Cue, text: str, language: str, *, has_stops: bool) -> bool:
    """Whether the sentence of some cues can go on in the next one: that begins no sentence, sound or speech of its own."""
    last = group[-1].cue
    if len(group) == _MOST_CUES or cue.start_seconds - last.end_seconds > _LONGEST_PAUSE_SECONDS:
        return False
    before, shown = _shown(text, last.place), _shown(text, cue.place)
    if cue.is_part or _SOUND.fullmatch(shown) or shown.startswith(_NOTES):
        return False
    voices = [_VOICE.match(text[slice(*each.place)].lstrip()) for each in (last, cue)]
    if voices[1] is not None and (voices[0] is None or voices[0][0] != voices[1][0]):
        return False
    speaker = _SPEAKER.match(shown)
    if speaker and speaker[1].isupper():
        return False
    letters = shown.lstrip("-\u2013\u2014.\u2026\"'([{ \t")
    if _DASH.match(shown) and not (_start_of_last_dash(before) is not None and letters[:1].islower()):
        return False
    if before.isupper() and not shown.isupper() and letters[:1].isupper():
        return False  # a title
    if before.startswith(_NOTES) and not shown.endswith(_NOTES):
        return False  # no music any more
    if _is_span(before) or _is_span(shown):
        return False
    if not letters[:1].isupper():
        return True
    return has_stops and _is_unfinished(before, letters, language)


def _is_span(text: str) -> bool:
    """Whether a text is nothing but addresses, numbers and the like."""
    visible = masked(text, find_spans(text), " ")
    return visible != text and not has_word(visible)


def _is_unfinished(before: str, following: str, language: str) -> bool:
    """Whether a text with a capital letter may be the rest of a sentence: a name, a noun of German, or the English I.

    Args:
        before: the cue before it, which no mark ends.
        following: the text.
        language: of both; empty: not known.
    """
    last = before.rstrip("\"'\u201d\u2019\u00bb)]")
    if last.endswith((",", ";")) or _start_of_last_dash(before) is not None:
        return True
    word = LAST_WORD.search(last.casefold())
    function_words = FUNCTION_WORDS.get(language)
    known = " ".join(FUNCTION_WORDS.values()) if function_words is None else function_words
    if word is not None and word[0] in known.split():
        return True
    # What follows belongs to a clause, and to no name or heading such as "Anna" or "Rome, 1984".
    words = _ANY_WORD.findall(before)
    if all(each[0].isupper() for each in words):
        return False
    if words[0][0].islower() or language in LANGUAGES_WITH_CAPITAL_NOUNS:
        return True
    return language == "en" and re.match(r"I\b", following) is not None


def _start_of_last_dash(text: str) -> int | None:
    """Where the dash at the end of a cue begins, with the white space before it: the sentence goes on, or is broken off.

    A regular expression would look at each white space of a long run, and search from there to its end.
    """
    shown = text.rstrip()
    if shown.endswith("--"):
        before = shown[:-2]
    elif shown.endswith("\u2014") or (shown.endswith(("-", "\u2013")) and shown[-2:-1].isspace()):
        before = shown[:-1]
    else:
        return None
    return len(before.rstrip())


def _member(cue: Cue, place: tuple[int, int], text: str, is_srt: bool, *, is_line: bool) -> _Member:
    """A text of a cue, without the markup around the whole of it, and without the dashes at its ends."""
    start, end = place
    dash = _DASH.match(text, start, end)
    core_start = dash.end() if dash else start
    last_dash = _start_of_last_dash(text[core_start:end])
    core_end = end if last_dash is None else core_start + last_dash
    parts = list(_parts(text, core_start, core_end, is_srt))
    inner = nested(parts[slice(*_core(parts))])
    before = text[start : inner[0].start] if inner else text[start:end]
    after = text[inner[-1].end : end] if inner else ""
    pieces = tuple(part.piece for part in inner)
    return _Member(cue, start, end, before, pieces, after, is_line)


def _parts(text: str, start: int, end: int, is_srt: bool) -> Iterator[InlinePart]:
    """The text and the tags of a cue."""
    place = start
    for match in [*_TAG.finditer(text, start, end), None]:
        stop = match.start() if match else end
        if stop > place:
            shown = text[place:stop]
            # Players of SubRip know these, too.
            shown = _BREAK.sub(" ", shown) if is_srt else unescaped_html(shown)
            yield InlinePart(shown, place, stop)
        if match:
            place = match.end()
            is_reading = match[0].endswith("</rt>") and match[0].startswith("<rt>")
            name = None if is_reading else re.search(r"</?([A-Za-z]+)[^<>]*>\Z", match[0])
            role = Role.CLOSE if name and name[0].startswith("</") else Role.OPEN
            piece = Markup(role if name else Role.POINT, match.start(), match[0])
            yield InlinePart(piece, match.start(), place, name[1].lower() if name else "")


def _core(parts: Sequence[InlinePart]) -> tuple[int, int]:
    """The parts without the markup around all of them, such as the italics of a whole cue."""
    partners = partners_of(parts)
    first, last = 0, len(parts)
    while first < last:
        opening, closing = parts[first], parts[last - 1]
        if _is_edge(opening) or (_has_role(opening, Role.OPEN) and first not in partners):
            first += 1
        elif _is_edge(closing) or (_has_role(closing, Role.CLOSE) and last - 1 not in partners):
            last -= 1
        elif _has_role(opening, Role.OPEN) and partners[first] == last - 1:
            first, last = first + 1, last - 1
        else:
            break
    return first, last


def _with_times_in_order(pieces: Sequence[Piece], source: Sequence[Piece]) -> list[Piece]:
    """Pieces in which the times of words, such as <00:00:01.500>, come in the order of the source: words may not."""
    times = [piece.raw for piece in source if isinstance(piece, Markup) and _is_time(piece)]
    in_order = iter(times)
    return [
        piece._replace(raw=next(in_order)) if isinstance(piece, Markup) and _is_time(piece) else piece
        for piece in pieces
    ]


def _is_time(piece: Piece) -> bool:
    return isinstance(piece, Markup) and _TIME_OF_WORD.fullmatch(piece.raw) is not None


def _is_edge(part: InlinePart) -> bool:
    piece = part.piece
    return not piece.strip() if isinstance(piece, str) else piece.role is Role.POINT


def _has_role(part: InlinePart, role: Role) -> bool:
    return isinstance(part.piece, Markup) and part.piece.role is role


def _screens(members: Sequence[_Member], pieces: Sequence[Piece], language: str) -> list[list[list[Piece]]]:
    """What each member shows: one text, or several one after the other, if two lines are not enough."""
    words = words_with_markup(pieces, language)
    if len(words) < len(members):
        shares: list[list[Word]] = [words for _ in members]  # a short text stays for all cues
    else:
        lengths = [max(1, len(plain_text(member.pieces))) for member in members]
        shown = [_TAG.sub("", plain_text(member.pieces) + member.after).strip() for member in members]
        seconds = [member.cue.end_seconds - member.cue.start_seconds for member in members]
        shares = divided_words(
            words, lengths, language, ends_clause=[ends_clause(each) for each in shown], seconds=seconds
        )
    screens: list[list[list[Word]]] = []
    counts = []
    for member, share in zip(members, shares, strict=True):
        if member.is_line or len(words) > _MOST_WORDS:
            member_screens = [[share]]
        elif member.cue.is_part:
            member_screens = [lines_of_screen(share, language)]
        else:
            parts = screens_of(share, member.cue.end_seconds - member.cue.start_seconds, language)
            member_screens = [lines_of_screen(part, language) for part in parts]
        counts.append(len(member_screens))
        screens += member_screens
    texts = iter(balanced(screens))
    return [[next(texts) for _ in range(count)] for count in counts]
