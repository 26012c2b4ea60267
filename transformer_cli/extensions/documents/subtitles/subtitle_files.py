"""SubRip and WebVTT: cues are joined to sentences, translated, divided again, and set in two lines of 42 characters."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from transformer_cli.extensions.documents.character_encoding import DecodedText, decoded
from transformer_cli.extensions.documents.line_numbers import LineNumbers
from transformer_cli.extensions.documents.markup.html_tokens import unescaped_html
from transformer_cli.extensions.documents.markup.nested_ranges import (
    InlinePart,
    nested_runs,
    partners_of,
)
from transformer_cli.extensions.documents.reading_options import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    Languages,
    Markup,
    Piece,
    Role,
    Segment,
    TranslatedSegment,
    has_letter,
    merged,
    plain_text,
)
from transformer_cli.extensions.documents.spliced import Change, rendered, spliced
from transformer_cli.extensions.documents.subtitles.cue_division import (
    Word,
    balanced,
    divided,
    lines_of,
    screens_of,
    words_of,
)
from transformer_cli.extensions.documents.subtitles.cues import (
    Cue,
    cues_of,
    lines_without_times,
    time_of,
)
from transformer_cli.text.sentences import ends_sentence

logger = logging.getLogger(__name__)

_TAG = re.compile(r"<[^<>\r\n]*>|\{\\[^{}\r\n]*\}")
# A sound or music, which is a line of its own.
_SOUND = re.compile(
    r"(?:<[^<>]*>)*(?:\[[^\[\]]*\]|\([^()]*\)|[\u266a\u266b#].*[\u266a\u266b#])(?:<[^<>]*>)*"
)
_DASH = re.compile(r"[-\u2013\u2014][ \t]*|<v[. ][^<>]*>")
_MOST_CUES = 6
_MOST_WARNINGS = 10
# A text with more is none that people read on a screen. It stays in its cues, without a search for the best lines, whose
# time grows with the square of the words.
_MOST_WORDS = 300
_LONGEST_PAUSE_SECONDS = 2.0
_SHORTEST_SCREEN_SECONDS = 1.0
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

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`."""
        return [group.segment for group in self.groups]

    def write(self, translations: Sequence[TranslatedSegment], languages: Languages) -> bytes:
        """See `Document.write`."""
        texts: dict[Cue, list[tuple[_Member, list[str]]]] = {}
        for group, translation in zip(self.groups, translations, strict=True):
            if translation.pieces == group.segment.pieces:
                continue
            screens = _screens(group.members, translation.pieces, languages.target)
            for member, of_member in zip(group.members, screens, strict=True):
                shown = [self._text(pieces) for pieces in of_member]
                texts.setdefault(member.cue, []).append((member, shown))
        changes: list[Change] = []
        num_new = 0
        for cue in self.cues:
            number = None
            if self.is_srt and cue.number is not None:
                number = int(self.content.text[slice(*cue.number)]) + num_new
                if num_new:
                    changes.append(Change(*cue.number, str(number)))
            for member, shown in texts.get(cue, []):
                changes += self._changes(member, shown, number)
                num_new += len(shown) - 1
        return self.content.encoded(spliced(self.content.text, changes))

    def _text(self, pieces: Sequence[Piece]) -> str:
        text = rendered(pieces, str if self.is_srt else lambda piece: escape(piece, quote=False))
        return text.replace("\n", self._line_end)

    @property
    def _line_end(self) -> str:
        return "\r\n" if "\r\n" in self.content.text else "\n"

    def _changes(
        self, member: _Member, texts: Sequence[str], number: int | None
    ) -> Iterator[Change]:
        """What changes in a cue; several texts become several cues, which divide its time by their lengths."""
        whole = [f"{member.before}{text}{member.after}" for text in texts]
        if len(texts) == 1:
            yield Change(member.start, member.end, whole[0])
            return
        cue, end = member.cue, self._line_end
        timing = self.content.text[slice(*cue.timing)]
        times = _TIMES.search(timing)
        assert times is not None
        seconds = cue.end_seconds - cue.start_seconds
        total, place = sum(map(len, texts)), 0
        written = []
        for index, text in enumerate(texts):
            start = cue.start_seconds + seconds * place / total
            place += len(text)
            stop = cue.start_seconds + seconds * place / total
            shown = time_of(start, times[1]) + times[2] + time_of(stop, times[3])
            line = timing[: times.start()] + shown + timing[times.end() :]
            if not index:
                yield Change(*cue.timing, line)
                written.append(whole[0])
                continue
            own_number = "" if number is None else f"{number + index}{end}"
            written.append(f"{own_number}{line.rstrip()}{end}{whole[index]}")
        yield Change(member.start, member.end, (end + end).join(written))


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
    broken = lines_without_times(content.text)
    for start in broken[:_MOST_WARNINGS]:
        logger.warning(
            "line %d: --> without two times such as 00:01:02,500: the text up to the next times stays as it is",
            lines.number_at(start),
        )
    if len(broken) > _MOST_WARNINGS:
        logger.warning("%d more lines are like these", len(broken) - _MOST_WARNINGS)
    groups = []
    for members in options.watch.over(_sentences(cues, content.text, is_srt)):
        pieces: list[Piece] = []
        for number, member in enumerate(members):
            pieces += [" "] if number else []
            # Numbers that were unique in a cue are unique in the file, because each is a place.
            pieces += member.pieces
        if has_letter(plain_text(pieces)):
            place = f"line {lines.number_at(members[0].start)}"
            segment = options.watch.counted(Segment(tuple(merged(pieces)), place))
            groups.append(_Group(tuple(members), segment))
    return Subtitles(content, is_srt, tuple(groups), cues)


def _sentences(cues: Sequence[Cue], text: str, is_srt: bool) -> Iterator[list[_Member]]:
    """The cues of each sentence; the lines of a dialogue are sentences of their own."""
    group: list[_Member] = []
    for cue in cues:
        if group and (
            len(group) == _MOST_CUES
            or cue.start_seconds - group[-1].cue.end_seconds > _LONGEST_PAUSE_SECONDS
        ):
            yield group
            group = []
        lines = [text[slice(*line)].strip() for line in cue.lines]
        if any(map(_DASH.match, lines[1:])) or (
            len(lines) > 1 and any(map(_SOUND.fullmatch, lines))
        ):
            if group:
                yield group
                group = []
            for line in cue.lines:
                yield [_member(cue, line, text, is_srt, is_line=True)]
            continue
        member = _member(cue, cue.place, text, is_srt, is_line=False)
        group.append(member)
        if ends_sentence(plain_text(member.pieces).strip()):
            yield group
            group = []
    if group:
        yield group


def _member(cue: Cue, place: tuple[int, int], text: str, is_srt: bool, *, is_line: bool) -> _Member:
    """A text of a cue, without the markup around the whole of it."""
    start, end = place
    dash = _DASH.match(text, start, end)
    core_start = dash.end() if dash else start
    parts = list(_parts(text, core_start, end, is_srt))
    inner = _nested(parts[slice(*_core(parts))])
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
            yield InlinePart(shown if is_srt else unescaped_html(shown), place, stop)
        if match:
            place = match.end()
            name = re.match(r"</?([A-Za-z]+)", match[0])
            role = Role.CLOSE if match[0].startswith("</") else Role.OPEN
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


def _nested(parts: Sequence[InlinePart]) -> list[InlinePart]:
    """The parts; if their ranges do not fit together, all tags are points."""
    runs = nested_runs(parts)
    if len(runs) == 1 and len(runs[0]) == len(parts):
        return runs[0]
    return [
        part._replace(piece=part.piece._replace(role=Role.POINT))
        if isinstance(part.piece, Markup)
        else part
        for part in parts
    ]


def _is_edge(part: InlinePart) -> bool:
    piece = part.piece
    return not piece.strip() if isinstance(piece, str) else piece.role is Role.POINT


def _has_role(part: InlinePart, role: Role) -> bool:
    return isinstance(part.piece, Markup) and part.piece.role is role


def _screens(
    members: Sequence[_Member], pieces: Sequence[Piece], language: str
) -> list[list[list[Piece]]]:
    """What each member shows: one text, or several one after the other, if two lines are not enough."""
    words = words_of(pieces, language)
    if len(words) < len(members):
        shares: list[list[Word]] = [words for _ in members]  # a short text stays for all cues
    else:
        lengths = [max(1, len(plain_text(member.pieces))) for member in members]
        shares = divided(words, lengths)
    screens: list[list[list[Word]]] = []
    counts = []
    for member, share in zip(members, shares, strict=True):
        if member.is_line or len(words) > _MOST_WORDS:
            of_member = [[share]]
        else:
            seconds = member.cue.end_seconds - member.cue.start_seconds
            parts = screens_of(share, max(1, int(seconds / _SHORTEST_SCREEN_SECONDS)))
            of_member = [lines_of(part) for part in parts]
        counts.append(len(of_member))
        screens += of_member
    texts = iter(balanced(screens))
    return [[next(texts) for _ in range(count)] for count in counts]
