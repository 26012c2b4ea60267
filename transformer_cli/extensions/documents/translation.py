"""Translates a document: all texts in one batch, with the markup moved and everything that must stay checked."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate, chain
from typing import NamedTuple

from transformer_cli.config.data import Direction
from transformer_cli.decoding.translation import BY_GLOSSARY, BY_MEMORY, Estimate, PlacedPiece, least_of
from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.character_references import with_references, without_references
from transformer_cli.extensions.documents.inline_text import (
    DIVISION,
    InlineText,
    has_too_much_markup,
)
from transformer_cli.extensions.documents.mnemonics import (
    KeysOfLabels,
    Mnemonic,
    without_mnemonic,
)
from transformer_cli.extensions.documents.page_templates import MAY_BE_PART, with_statements_apart
from transformer_cli.extensions.documents.segments import (
    Document,
    Markup,
    NamesLanguages,
    Piece,
    Role,
    Segment,
    TranslatedSegment,
    is_text_as_markup,
    merged,
    plain_text,
    with_spaces_at_ranges,
    with_values_around_words,
)
from transformer_cli.extensions.documents.tag_placement import place_markup
from transformer_cli.extensions.documents.translator import (
    DOUBTFUL,
    MAY_BE_WRONG,
    AskedText,
    CheckedAnswer,
    Extent,
    LinkedWords,
    TextTranslator,
    links_by_position,
    moved_links,
    moved_pieces,
    with_kept_spans,
)
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.languages import has_spaces
from transformer_cli.text.normalization import has_letter
from transformer_cli.text.sentences import (
    BRACKETS,
    Sentence,
    gap_between,
    partners_of_brackets,
    text_ranges,
)
from transformer_cli.text.spans import (
    SpanKind,
    code_in,
    find_spans,
    has_codes_of_colours,
    masked,
    may_touch_word,
    spans_at_words,
)

NOT_GREEN = "the translation is not green"
LEFT_OUT = "it was left as it is, because its translation is not green"


class NotGreen(Enum):
    """What a document does with a translation that is not green (`tfm calibrate`)."""

    WRITTEN = "written"
    """It stands there as any other."""
    MARKED = "marked"
    """A person should look at it."""
    LEFT_OUT = "left out"
    """The text stays as it is, and a person should look at it."""


EMPTY = "a tag has no words in the translation, so it is empty there"
TAG_LEFT_OUT = "an emphasis has no words in the translation, so it was left out"
AT_NEAREST = "a link has no words in the translation, so it stands around the nearest word"
UNSURE_PLACE = "a link or format stands at words of a translation from the memory that may be other ones, because the model knows no place for it"
NOT_TEXT = "it has bytes that are no text, so it was left as it is"
_NOT_TEXT = re.compile("[\ud800-\udfff]")  # bytes that are not valid in the encoding, and half characters
TOO_MARKED = "a text with so much markup inside it that it was left as it is"
# Every character that `str.splitlines` takes for the end of a line.
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_AROUND_DIVISION = re.compile(f" *{DIVISION} *")
_COLUMN_ENDS = re.compile(r"(?<=\t)(?!\t)")
# Before its explanation; by itself it would be read as words behind a dash.
_NEAR = 100  # characters
_OPTION = re.compile(r"(?<![^\t\n])[ ]{0,20}--?[A-Za-z][\w-]{0,60}\t{1,9}\Z")


class Doubt(NamedTuple):
    """A segment that a person should look at."""

    place: str
    reason: str
    text: str
    """Of the source."""


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """A document in another language."""

    data: bytes
    num_segments: int
    """How many segments have words to translate, outside of protected spans."""
    doubts: tuple[Doubt, ...]
    """One for each reason to look at a segment, in the order of the segments."""
    estimates: tuple[Estimate, ...] = ()
    """How far the translation of each segment can be trusted, without those of which nothing is known."""
    num_from_memory: int = 0
    """How many of its texts a memory has translated."""
    num_without_model: Mapping[str, int] = field(default_factory=dict)
    """How many segments only a memory has translated, and how many only a glossary, by what stands as their mark."""

    @property
    def messages(self) -> list[str]:
        """One for each segment that a person should look at, also without text to translate, such as [[name]]: its place, the reasons, its text."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for place, reason, text in self.doubts:
            told = reasons.setdefault((place, text), [])
            is_further = reason.startswith(DOUBTFUL) and any(one.startswith(DOUBTFUL) for one in told)
            told.append(reason.removeprefix(MAY_BE_WRONG) if is_further else reason)
        return [
            f"{place}: {'; '.join(dict.fromkeys(told))}: {on_one_line(text, 80)}"
            for (place, text), told in reasons.items()
        ]


def translate_document(
    document: Document,
    translator: TextTranslator,
    check: Callable[[], None] = lambda: None,
    *,
    not_green: NotGreen = NotGreen.WRITTEN,
) -> TranslatedDocument:
    """The document in the target language of the translator.

    Each segment is divided into sentences, and the sentences of all segments are translated together. Markup moves
    with its words. Placeholders, URLs, code and other protected spans are in the translation as often as in the
    source: where the model loses one, the sentence is translated in pieces around them, and its segment is marked.

    Args:
        check: called for each segment; it raises an exception to end the work.
        not_green: what is done with a segment one of whose texts is not green.

    Raises:
        DataError: the document names other languages than those of the translator; or its encoding lacks letters of the
            translation. The first, and the second for usual letters of its language, is known before anything is translated.
    """
    if isinstance(document, NamesLanguages):
        document.require_languages(translator.languages)
    content = getattr(document, "content", None)
    if isinstance(content, DecodedText) and document.segments:
        content.require_letters_of(translator.languages.target)
    segments = []
    for segment in document.segments:
        check()
        segments.append(_SegmentInWork.of(segment, translator))
    asked = list(dict.fromkeys(part.asked for each in segments for part in each.all_parts))
    answers = dict(zip(asked, translator.translate(asked), strict=True))
    checked = with_kept_spans(answers, translator)
    translations = []
    keys = KeysOfLabels(translator.languages.target)
    for each in segments:
        check()
        translation = each.translation(checked, translator.languages, keys)
        translations.append(each.with_trust(translation, checked, not_green))
    estimates = (each.estimate(checked) for each in segments)
    return TranslatedDocument(
        document.write(translations, translator.languages),
        num_segments=sum(each.has_words for each in segments),
        doubts=tuple(
            Doubt(each.segment.place, doubt, each.shown)
            for each, translation in zip(segments, translations, strict=True)
            for doubt in translation.doubts
        ),
        estimates=tuple(estimate for estimate in estimates if estimate is not None),
        num_from_memory=sum(
            checked[part.asked].is_from_memory
            for each, translation in zip(segments, translations, strict=True)
            if LEFT_OUT not in translation.doubts
            for part in each.all_parts
        ),
        num_without_model=Counter(each.trust for each in translations if each.trust in (BY_MEMORY, BY_GLOSSARY)),
    )


# Between the entries of a menu. A bar in a line without markup is a column, of which the translator keeps the layout.
_SEPARATOR = re.compile(r"(?<!\s)\s+[\u00b7\u2022\u203a\u00bb\u2192|](?=\s)")
_SEPARATOR_WITHOUT_BAR = re.compile(r"(?<!\s)\s+[\u00b7\u2022\u203a\u00bb\u2192](?=\s)")
# A sound among the words of subtitles; in round brackets only at the beginning of a sentence.
_SOUND = re.compile(r"\[[^\[\]]+\]|(?:\A|(?<=[.!?\u2026]\s))\([^()]+\)")
# A mark behind a sound belongs to it: ANNA [whispering]: Come. (softly):Come.
_BEGINNING_OF_PART = re.compile(r"(?<=[])]):(?=[^\W\d_])|\s*(?:[:;,.!?\u2026\u3002\uff1a]+\s+)?")
_END_OF_SENTENCE = ".!?\u2026:;,\u3002\uff01\uff1f"
_WORD_OF_LETTERS = re.compile(r"[^\W\d_]{2}")
# Directly behind a sentence: It is late.[2] They sleep.
_MARKS_OF_NOTES = re.compile(r"(?:\[\d{1,3}\]|\(\d{1,3}\))+\s+")


def sentence_units(sentence: Sentence, *, has_markup: bool, has_sounds: bool) -> Iterator[Sentence]:
    """The parts of a sentence that are translated by themselves: the entries of a menu, sounds, and what brackets enclose.

    A model that has seen brackets seldom would lose them. What stands between the parts is in their gaps; the last part
    may be empty.
    """
    text = sentence.text
    visible = masked(text, find_spans(text), "x")
    separator = _SEPARATOR if has_markup else _SEPARATOR_WITHOUT_BAR
    cuts = [match.span() for match in separator.finditer(visible)]
    if has_sounds:
        for match in _SOUND.finditer(visible):
            cuts += [(match.start(), match.start()), (match.end(), match.end())]
    if not cuts:
        yield from _unwrapped(text, visible, sentence.gap, 0, len(text))
        return
    gap, place = sentence.gap, 0
    for start, end in [*sorted(cuts), (len(text), len(text))]:
        part = visible[place:start]
        first, last = 0, 0
        if part.strip():
            beginning = _BEGINNING_OF_PART.match(visible, place, start)
            first = beginning.end() - place if beginning else 0
            last = max(first, len(part.rstrip()))
        yield from _unwrapped(text, visible, gap + part[:first], place + first, place + last)
        gap, place = text[place + last : end], max(place, end)
    if gap:
        yield Sentence("", gap)


def _unwrapped(text: str, visible: str, gap: str, start: int, end: int) -> Iterator[Sentence]:
    """The part text[start:end] without brackets around it."""
    first, last = _inside_brackets(visible, start, end)
    yield Sentence(text[first:last], gap + text[start:first])
    if last < end:
        yield Sentence("", text[last:end])


def _inside_brackets(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the text inside brackets begins and ends, if they enclose the whole of text[start:end], or go on beside it."""
    first, last = start, end
    while first < last and text[first].isspace():
        first += 1
    while last > first and text[last - 1].isspace():
        last -= 1
    stop = last
    while stop > first and text[stop - 1] in _END_OF_SENTENCE:
        stop -= 1
    partners = partners_of_brackets(text, first, last)
    opens = text[first : first + 1] in BRACKETS
    closes = text[stop - 1 : stop] in BRACKETS.values() and stop > first
    if opens and partners.get(first) == stop - 1:
        inner_start, inner_end = first + 1, stop - 1
    else:
        opens, closes = opens and first not in partners, closes and stop - 1 not in partners
        inner_start, inner_end = first + opens, stop - 1 if closes else last
    if not (opens or closes) or not _WORD_OF_LETTERS.search(text, inner_start, inner_end):
        return start, end
    return inner_start, inner_end


class _Initial(NamedTuple):
    """The tags around the first letter of a text alone, which is larger than the others or has another colour."""

    opening: tuple[Piece, ...]
    closing: tuple[Piece, ...]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> "tuple[_Initial, tuple[Piece, ...]] | None":
        """The tags, and the pieces without them; None if the first letter is as the others of its word."""
        letter = next((at for at, piece in enumerate(pieces) if isinstance(piece, str)), 0)
        opening, closing = pieces[:letter], pieces[letter + 1 : 2 * letter + 1]
        behind = pieces[2 * letter + 1 : 2 * letter + 2]
        tags_of_letter = [piece for piece in (*opening, *closing) if isinstance(piece, Markup)]
        if not letter or len(tags_of_letter) != 2 * letter:
            return None
        if not any(_LOOK_OF_LETTER.match(piece.raw) for piece in tags_of_letter[:letter]):
            return None
        numbers = [
            [piece.number for piece in tags if isinstance(piece, Markup) and piece.role is role]
            for tags, role in ((opening, Role.OPEN), (closing[::-1], Role.CLOSE))
        ]
        text, rest = str(pieces[letter]), behind[0] if behind else ""
        is_one = isinstance(rest, str) and _ONE_LETTER.fullmatch(text) and rest[:1].isalpha()
        is_one = is_one and not any(span.start <= 1 for span in find_spans(f"{text}{rest}"))
        if not is_one or len(numbers[0]) < letter or numbers[0] != numbers[1]:
            return None
        return cls(tuple(opening), tuple(closing)), (f"{text}{rest}", *pieces[2 * letter + 2 :])

    def around(self, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
        """The pieces of a translation, with the tags around its first letter."""
        for at, piece in enumerate(pieces):
            if isinstance(piece, str) and (match := _FIRST_LETTER.match(piece)):
                rest = piece[match.end() :]
                word_pieces = (*self.opening, match[0], *self.closing, *((rest,) if rest else ()))
                return (*pieces[:at], *word_pieces, *pieces[at + 1 :])
        return (*self.opening, *self.closing, *pieces)


# Of an office document (empty), with a class or style, or of another size; <b>O</b>nce is a word of which a part is bold.
_LOOK_OF_LETTER = re.compile(r"\Z|<(?:big|font)\b|<[^<>]*\b(?:class|style|style-name)=", re.IGNORECASE)
_ONE_LETTER = re.compile(r"\W?[^\W\d_]")
_FIRST_LETTER = re.compile(r"[^\w\s]*\w")


class _Part(NamedTuple):
    """A sentence or line of a segment, or a part of one."""

    gap: str
    """What stands before it."""
    start: int
    """Where its text begins in the text of the segment."""
    asked: AskedText


@dataclass(frozen=True, slots=True)
class _SegmentInWork:
    segment: Segment
    inline: InlineText
    parts: tuple[_Part, ...]
    end: str
    """What stands behind the last part."""
    doubts: tuple[str, ...] = ()
    mnemonic: Mnemonic | None = None
    """The mark of a key, which is in no part."""
    initial: _Initial | None = None
    """Tags that are in no part."""
    inner: "dict[int, tuple[_SegmentInWork, ...]]" = field(default_factory=dict)
    """The texts inside each markup that has some, by its number."""
    has_text_as_markup: bool = False
    """Whether text of the segment moves as markup: placeholders that touch words, and statements of templates."""
    references: Mapping[str, str] = field(default_factory=dict)
    """How characters of the text are written, where the segment has references to them."""

    @classmethod
    def of(cls, segment: Segment, translator: TextTranslator) -> "_SegmentInWork":
        if segment.has_references:
            pieces, references = without_references(segment.pieces)
            read = replace(segment, pieces=pieces, has_references=False)
            return replace(cls.of(read, translator), segment=segment, references=references)
        inner = {
            piece.number: tuple(cls.of(each, translator) for each in piece.inner.document.segments)
            for piece in segment.pieces
            if isinstance(piece, Markup) and piece.inner is not None
        }
        if inner:
            return replace(cls._of(segment, translator), inner=inner)
        if segment.is_label and len(segment.pieces) == 1 and isinstance(segment.pieces[0], str):
            found = None
            if not translator.knows(segment.pieces[0]) and not has_codes_of_colours(segment.pieces[0]):
                found = without_mnemonic(segment.pieces[0], translator.has_read, is_of_qt=segment.is_of_qt)
            if found is not None:
                label, mnemonic = found
                plain = cls._of(replace(segment, pieces=(label,)), translator)
                return replace(plain, segment=segment, mnemonic=mnemonic)
        if has_spaces(translator.languages.source):
            spaced = with_spaces_at_ranges(segment.pieces)
            if spaced != segment.pieces:
                return replace(cls.of(replace(segment, pieces=spaced), translator), segment=segment)
        divided = _Initial.of(segment.pieces)
        if divided is not None:
            initial, rest = divided
            plain = cls._of(replace(segment, pieces=rest), translator)
            return replace(plain, segment=segment, initial=initial)
        raws = (piece if isinstance(piece, str) else piece.raw for piece in segment.pieces)
        apart = with_statements_apart(segment) if any(map(MAY_BE_PART.search, raws)) else segment
        is_known = len(apart.pieces) == 1 and translator.knows(plain_text(apart.pieces))
        kept = apart.pieces if is_known else _with_code_apart(apart.pieces)
        moving = replace(apart, pieces=with_values_around_words(kept, _values_at_words))
        if moving.pieces != segment.pieces:
            return replace(cls._of(moving, translator), segment=segment, has_text_as_markup=True)
        return cls._of(segment, translator)

    @classmethod
    def _of(cls, segment: Segment, translator: TextTranslator) -> "_SegmentInWork":
        if has_too_much_markup(segment.pieces):
            plain = Segment.plain(plain_text(segment.pieces), segment.place, keeps_spaces=False)
            return cls(segment, InlineText.of(plain), (), "", (TOO_MARKED,))
        inline = InlineText.of(segment)
        has_markup = bool(inline.ranges or inline.points)
        parts, place, gap = [], 0, ""
        lines = _lines(inline.text) if segment.keeps_spaces else [inline.text]
        if _NOT_TEXT.search(inline.text):
            return cls(segment, inline, (), inline.text)
        for line in lines:
            text = line.rstrip(_LINE_ENDS + "\t") if segment.keeps_spaces else line
            text = text.rstrip() if has_markup else text  # white space before a division
            beginning = _beginning(text) if has_markup and segment.keeps_spaces else ""
            gap, place = gap + beginning, place + len(beginning)
            divide = translator.sentences if has_markup else None
            rest = text[len(beginning) :]
            is_known = translator.knows(rest)
            units = [Sentence(rest, "")] if is_known else _texts_of_line(rest, divide, segment.has_sounds)
            for unit in units:
                gap += unit.gap
                place += len(unit.gap)
                if is_known or has_letter(inline.without_labels(unit.text, " ")):
                    parts.append(_Part(gap, place, AskedText(unit.text, has_markup)))
                    gap = ""
                else:
                    gap += unit.text
                place += len(unit.text)
            gap += line[len(text) :]
            place += len(line) - len(text)
        return cls(segment, inline, tuple(parts), gap)

    @property
    def all_parts(self) -> Iterator[_Part]:
        """Its parts, and those of the texts inside its markup."""
        yield from self.parts
        for each in chain.from_iterable(self.inner.values()):
            yield from each.all_parts

    @property
    def has_words(self) -> bool:
        """Whether it has letters outside of protected spans, such as {name}."""
        texts = (self.inline.without_labels(part.asked.text, " ") for part in self.all_parts)
        return any(has_letter(masked(text, find_spans(text), " ")) for text in texts)

    @property
    def shown(self) -> str:
        """The text for a message, with what stands in the place of words."""
        if self.has_text_as_markup:
            return "".join(
                piece if isinstance(piece, str) else piece.shown * (piece.role is Role.WORD)
                for piece in self.segment.pieces
            )
        pieces = self.inline.with_words(self.inline.text)
        text = "".join(piece if isinstance(piece, str) else piece.shown for piece in pieces)
        return _AROUND_DIVISION.sub(" ", text)

    def estimate(self, answers: Mapping[AskedText, CheckedAnswer]) -> Estimate | None:
        """That of its least probable text; green if all are. None if nothing is known of any."""
        part_estimates = (answers[part.asked].estimate for part in self.all_parts)
        return least_of(estimate for estimate in part_estimates if estimate is not None)

    def with_trust(
        self,
        translation: TranslatedSegment,
        answers: Mapping[AskedText, CheckedAnswer],
        not_green: NotGreen,
    ) -> TranslatedSegment:
        """Its translation, marked or left out if it is not green; marked, too, if a memory or a glossary has it, and no model."""
        estimate = self.estimate(answers)
        if not_green is NotGreen.WRITTEN:
            return translation
        if estimate is None:
            found = [answers[part.asked] for part in self.all_parts]
            if any(answer.is_from_memory for answer in found):
                return replace(translation, trust=BY_MEMORY)
            return (
                replace(translation, trust=BY_GLOSSARY) if any(answer.is_of_terms for answer in found) else translation
            )
        if not_green is NotGreen.LEFT_OUT:
            return translation if estimate.is_green else TranslatedSegment(self.segment.pieces, (LEFT_OUT,))
        trust = f"{'green' if estimate.is_green else 'not green'} {estimate.probability:.3f}"
        if estimate.is_green:
            return replace(translation, trust=trust)
        # What has other doubts says with them why it is not green.
        reasons = () if translation.doubts else (answers[part.asked].why_not_green for part in self.all_parts)
        reason = next(filter(None, reasons), "")
        said = f"{NOT_GREEN}: {reason}" if reason else NOT_GREEN
        return replace(translation, doubts=(*translation.doubts, said), trust=trust)

    def translation(
        self, answers: dict[AskedText, CheckedAnswer], languages: Direction, keys: KeysOfLabels
    ) -> TranslatedSegment:
        """The segment with the translations of its parts, and the mark of its key."""
        found = self._own_translation(answers, languages)
        if not self.inner:
            if self.initial is not None and found.pieces != self.segment.pieces:
                return replace(found, pieces=self.initial.around(found.pieces))
            if self.mnemonic is None:
                return found
            if found.pieces == self.segment.pieces:
                keys.keep(self.mnemonic)
                return found
            return replace(found, pieces=(keys.marked(found.text, self.mnemonic),))
        doubts, pieces = list(found.doubts), []
        for piece in found.pieces:
            if isinstance(piece, Markup) and piece.inner is not None:
                texts = [each.translation(answers, languages, keys) for each in self.inner[piece.number]]
                doubts += chain.from_iterable(text.doubts for text in texts)
                doubts += [piece.inner.fault] if piece.inner.fault else []
                written = piece.inner.document.translated_text(texts, languages)
                piece = piece._replace(raw=piece.inner.finish(written))
            pieces.append(piece)
        return TranslatedSegment(tuple(pieces), tuple(dict.fromkeys(doubts)))

    def _own_translation(self, answers: dict[AskedText, CheckedAnswer], languages: Direction) -> TranslatedSegment:
        if _NOT_TEXT.search(self.inline.text):
            return TranslatedSegment(self.segment.pieces, (NOT_TEXT,))
        found = [answers[part.asked] for part in self.parts]
        doubts = tuple(dict.fromkeys(doubt for answer in found for doubt in answer.doubts))
        doubts += self.doubts
        if all(answer.text == part.asked.text for answer, part in zip(found, self.parts, strict=True)):
            return TranslatedSegment(self.segment.pieces, doubts)
        text = ""
        links: list[LinkedWords] = []
        unsure: list[Extent] = []
        pieces: list[PlacedPiece] = []
        known: dict[int, int] = {}
        for part, answer in zip(self.parts, found, strict=True):
            gap = _gap(part.gap, self.inline.text[: part.start], text, languages)
            # A gap can hold sentences without letters, such as numbers, which have markup as others do.
            links += moved_links(links_by_position(part.gap, gap), part.start - len(part.gap), len(text))
            text += gap
            links += moved_links(answer.links, part.start, len(text))
            unsure += ((start + part.start, end + part.start) for start, end in answer.unsure)
            whole = PlacedPiece((0, len(part.asked.text)), (0, len(answer.text)))
            pieces += moved_pieces(answer.pieces or [whole], part.start, len(text))
            # What stands between two sentences stays there.
            known[part.start] = len(text)
            text += answer.text
            if not part.asked.text[-1:].isalnum():
                known[part.start + len(part.asked.text)] = len(text)
        end_of_source = len(self.inline.text) - len(self.end)
        links += moved_links(links_by_position(self.end, self.end), end_of_source, len(text))
        text += self.end
        inner: list[Piece] = self.inline.with_words(text)
        if self.inline.ranges or self.inline.points:
            placed = place_markup(self.inline, text, links, known, pieces)
            inner = placed.pieces
            found_without_words = {
                EMPTY: placed.num_empty,
                TAG_LEFT_OUT: placed.num_left_out,
                AT_NEAREST: placed.num_at_nearest,
            }
            doubts += tuple(doubt for doubt, number in found_without_words.items() if number)
            if any(start < each.end and each.start < end for start, end in unsure for each in self.inline.ranges):
                doubts += (UNSURE_PLACE,)
        written = [*self.inline.before, *inner, *self.inline.after]
        if self.has_text_as_markup:
            written = [piece.raw if is_text_as_markup(piece) else piece for piece in written]
            written = [piece.replace(DIVISION, "") if isinstance(piece, str) else piece for piece in written]
        result = tuple(merged(written))
        return TranslatedSegment(with_references(result, self.references) if self.references else result, doubts)


def _values_at_words(text: str) -> Iterator[tuple[int, int]]:
    if may_touch_word(text):
        for span in spans_at_words(text, find_spans(text)):
            yield span.start, span.end


def _texts_of_line(text: str, divide: Callable[[str], list[Sentence]] | None, has_sounds: bool) -> Iterator[Sentence]:
    """The texts of a line that are translated by themselves, with what stands before each of them.

    Args:
        divide: into sentences; None: the text has no markup, so the translator itself divides it and keeps its layout.
    """
    has_markup = divide is not None
    for unit in sentence_units(Sentence(text, ""), has_markup=has_markup, has_sounds=has_sounds):
        if divide is None or not unit.text:
            yield unit
            continue
        gap = unit.gap
        for number, sentence in enumerate(divide(unit.text)):
            rest, before = sentence.text, gap + sentence.gap
            if number and not sentence.gap and (marks := _MARKS_OF_NOTES.match(rest)):
                before, rest = before + marks[0], rest[marks.end() :]
            inside = Sentence(rest, before)
            yield from sentence_units(inside, has_markup=has_markup, has_sounds=has_sounds)
            gap = ""


def _lines(text: str) -> list[str]:
    """The lines of a text, and of each its columns, which tabs divide; not those inside of code, as in `a\\tb`."""
    return [column for line in text.splitlines(keepends=True) for column in _columns(line) if column]


def _columns(line: str) -> Iterator[str]:
    visible = masked(line, find_spans(line), "0") if "\t" in line and "`" in line else line
    ends = [end.start() for end in _COLUMN_ENDS.finditer(visible)]
    ends = [end for end in ends if not _OPTION.search(visible, max(0, end - _NEAR), end)]
    for start, end in zip([0, *ends], [*ends, len(line)], strict=True):
        yield line[start:end]


def _beginning(line: str) -> str:
    """What stands before the text of a line: white space, marks of quotations, and the mark of a list or title."""
    ranges = text_ranges(line, masked(line, find_spans(line), "0"))
    return line[: ranges[0].start] if ranges else ""


# Marks behind which Chinese and Japanese have no white space between two sentences.
_NUM_LAST_SIGNS = 5
_WIDE_END = re.compile(r"[\u3002\uff01\uff1f\uff0e\uff61][\u300d\u300f\uff09\u201d\u2019]*\Z")


def _gap(source_gap: str, before: str, text: str, languages: Direction) -> str:
    """What stands before a translated sentence; white space as the target language has it.

    Args:
        before: the source up to this sentence.
        text: the translation up to it.
    """
    is_white = source_gap.isspace() or (not source_gap and _WIDE_END.search(before[-_NUM_LAST_SIGNS:]) is not None)
    if not is_white or "\n" in source_gap or not text:
        return source_gap
    return gap_between(source_gap, *languages)


# What stands for other markup while a text is searched; tags around words stand for nothing.
_SHOWN = {Role.WORD: "\ue000", Role.POINT: " "}


def _with_code_apart(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces in which what stays is markup that stands for text of the segment (`is_text_as_markup`)."""
    found: list[Piece] = []
    number = min(0, *(piece.number for piece in pieces if isinstance(piece, Markup)), 0)
    # Over all pieces: an address whose parts stand in several tags is one.
    shown = [piece if isinstance(piece, str) else _SHOWN.get(piece.role, "") for piece in pieces]
    parts = code_in("".join(shown))
    if not parts:
        return tuple(pieces)
    for piece, text, behind in zip(pieces, shown, accumulate(map(len, shown)), strict=True):
        if not isinstance(piece, str):
            found.append(piece)
            continue
        first = behind - len(text)
        place = 0
        for start, end, kind in parts:
            if first <= start and end <= behind:
                number -= 1
                role = Role.WORD if kind is SpanKind.WORD else Role.POINT
                found += [piece[place : start - first], Markup(role, number, piece[start - first : end - first])]
                place = end - first
        found.append(piece[place:])
    return tuple(piece for piece in found if piece)
