"""A line from its reading to its writing: its texts, their parts as token ids, and its translation; how parts are joined; and what is told of translations: doubts, unknown words, terms."""

import hashlib
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.doubts import doubts_about
from transformer_cli.decoding.engine import Explanation, Request, TokenIds
from transformer_cli.decoding.glossary import AppliedTerm, RequiredTerm
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.normalization import is_blank
from transformer_cli.text.sentences import TextRange
from transformer_cli.text.spans import Span

logger = logging.getLogger(__name__)

BY_MEMORY, BY_GLOSSARY = "memory", "glossary"
"""The marks of translations that no model has made."""
MAX_SHOWN_CHARACTERS = 40
"""As many line numbers, or words, are named; of the others, how many there are."""


class Alternative(NamedTuple):
    """One of the best translations of a line."""

    text: str
    score: float


def distinct(found: Iterable[tuple[str, float]]) -> tuple[Alternative, ...]:
    """Texts with their scores, best first, as alternatives; of equal texts, the first one stays."""
    scores: dict[str, float] = {}
    for text, score in found:
        scores.setdefault(text, score)
    return tuple(Alternative(text, score) for text, score in scores.items())


def nth_best_of_all(part_alternatives: Sequence[Sequence[Alternative]]) -> list[list[Alternative]]:
    """The best translation of each part, then the second best of each, and so on.

    A part that has fewer than others goes on with its last one; one that has none is empty.
    """
    most = max(map(len, part_alternatives), default=0)
    filled = [alternatives or (Alternative("", 0.0),) for alternatives in part_alternatives]
    return [[each[min(n, len(each) - 1)] for each in filled] for n in range(most)]


class Link(NamedTuple):
    """A word of the source and a word of the target that translates it; both are counted from zero."""

    source: int
    target: int


class Estimate(NamedTuple):
    """What a calibration says about one translation; see `quality.Quality`."""

    probability: float
    """That the translation is good, 0 to 1."""
    is_green: bool
    """Whether the promise of the calibration counts for it."""


def least_of(estimates: Iterable[Estimate]) -> Estimate | None:
    """The estimate of a text from those of its parts: the smallest probability, green if all are; None for no part."""
    found = list(estimates)
    if not found:
        return None
    return Estimate(min(each.probability for each in found), all(each.is_green for each in found))


class TranslatedPiece(NamedTuple):
    """A piece of a text that was translated by itself, or that stays; and what stands for it in the translation."""

    source: str
    """As the model reads it: perhaps with other letters in upper case, or with other white space, than in the text."""
    text: str
    """Perhaps with another case of its first letter, or with other marks at its ends, than in the translation."""


class PartDetails(NamedTuple):
    """The details of one part of a line: of a sentence, or of a piece of a long one."""

    source_ids: TokenIds
    """S source tokens, with [EOS] and a tag where the model reads these."""
    target_ids: TokenIds
    """T target tokens, with [EOS] if the search reached it."""
    explanation: Explanation
    """Probabilities and attention of these tokens."""
    agreement: float | None = None
    """The mean chrF against samples of the model for this source, 0 to 1; only for an estimate that reads it."""


@dataclass(frozen=True, slots=True)
class LineDetails:
    """The details of the best translation of a line."""

    parts: tuple[PartDetails, ...]
    """What was translated by itself, in order."""
    links: tuple[Link, ...]
    """The word alignment: for each word of the translation, the word of the line to which it is linked, both counted
    from zero. A word without a link is missing."""

    @property
    def confidence(self) -> float | None:
        """The geometric mean of the probabilities of all tokens, 0 to 1; None if there are no tokens.

        Source: Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine Translation", section 3.1:
        its logarithm is called TP there.
        """
        log_probs = [float(each) for part in self.parts for each in part.explanation.token_log_probs]
        return math.exp(math.fsum(log_probs) / len(log_probs)) if log_probs else None


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one line; `text` never contains a line break."""

    source: str
    text: str
    score: float
    """Log-probability / length penalty of what the model has read and written; for a line of several sentences or parts, the sum
    over them. A part that no model has translated counts 0."""
    alternatives: tuple[Alternative, ...]
    """At most `decoding.num_best`, all different, best first; the first is the translation itself. Empty for a
    blank line."""
    unknown_words: tuple[str, ...] = ()
    """The words and marks of the source that are not in the vocabulary, in order; the model read each as [UNK]."""
    num_words: int = 0
    """Number of words of the source, plus its unknown marks; 0 for subwords, which can encode every text."""
    terms: tuple[AppliedTerm, ...] = ()
    """The terms of the glossary that stand in the line, in order, and whether the translation contains their target terms."""
    details: LineDetails | None = None
    """Tokens, probabilities, attention and word alignment of the best translation; None unless they were asked for. For an
    estimate of the quality, they are without alignment."""
    estimate: Estimate | None = None
    """How far it can be trusted; None unless it was asked for, without a calibration, and for what no model has translated."""
    pivot: "Translation | None" = None
    """The translation into a third language that a second model has read; None for a line of one model."""
    is_cut: bool = False
    """Whether a sentence had more tokens than the model can read, and was translated in parts."""
    is_partly_copied: bool = False
    """Whether a sentence stands here as in the source, because the model lost protected spans of it."""
    is_in_pieces: bool = False
    """Whether a sentence was translated in several pieces, around protected spans that the model cannot place itself."""
    is_divided: bool = False
    """Whether a sentence was translated clause by clause, because it is longer than those of the training, or because its
    translation as a whole lost text or had other doubts."""
    is_untranslated: bool = False
    """Whether a sentence or clause stands here as in the source, because its translation was empty or far too short."""
    doubts: tuple[str, ...] = ()
    """What the text shows to be wrong: members of `doubts.DOUBTS`; `UNSEEN`, `MADE_UP`, `MARKS` and others with a colon and what they are
    about; nothing without `decoding.repair`."""
    is_repaired: bool = False
    """Whether a sentence was searched again, because its first translation was doubtful, and has fewer doubts now."""
    confidences: tuple[float, ...] = ()
    """For each sentence, or part of one, the geometric mean of the probabilities of its tokens in the search, 0 to 1; nothing
    for what no model has translated, and only with `Translator.estimates`."""
    reverse_log_prob: float | None = None
    """The mean log-probability of the tokens of its source after it, in nats, by a model of the reverse direction; None unless an
    estimate reads it."""
    is_from_memory: bool = False
    """Whether a translation memory had it, so that no model has translated it; its score is 0."""
    is_of_terms: bool = False
    """Whether the whole line is terms of the glossary, so that no model has translated it; its score is 0."""
    pieces: tuple[TranslatedPiece, ...] = ()
    """In order, with only white space and marks between them; nothing for a text that was translated as a whole. A word of one
    piece has no counterpart in another."""

    @property
    def is_not_green(self) -> bool:
        """Whether `only_green` leaves it out; what needs no translation, such as a number, stays."""
        return self.estimate is not None and not self.estimate.is_green

    @property
    def least_confidence(self) -> float | None:
        """The smallest of `confidences`; None if there is none."""
        return min(self.confidences, default=None)

    @property
    def confidence(self) -> float | None:
        """The geometric mean of the probabilities of its tokens, 0 to 1; None without details, and for a blank line."""
        return self.details.confidence if self.details is not None else None


class TextPart(NamedTuple):
    """What the engine translates by itself: a sentence, a clause of one, or a piece of one that is too long for the model."""

    request: Request
    """Its token ids, and what holds for its translation alone."""
    text: str
    """Normalised, as the model reads it: with unknown words in known spellings. Only white space stands between two parts, or
    marks between clauses."""
    given: str
    """The same in the spelling of the line."""
    gap: str = ""
    """The white space before its translation, with the marks between two clauses; empty for the first part."""
    terms: tuple[RequiredTerm, ...] = ()
    """What the glossary requires of its translation."""
    starts_inside: bool = False
    """Whether words of the same sentence stand before it."""
    ends_inside: bool = False
    """Whether words of the same sentence follow it."""
    closing: str = ""
    """The mark that ends the sentence, if words follow: the model reads it behind the clause, as it knows sentences."""
    ellipses: tuple[str, ...] = ()
    """For each comma that the model reads: the ellipsis that stands there in the line; nothing for a comma of the line."""
    is_kept: bool = False
    """Whether it stays as it was given, because its translation loses text, or because the model cannot read it."""


class SourceText(NamedTuple):
    """A text that is translated by itself: a line as it was read, or one of the texts in it; and what is known of it on its way.

    `TextPipeline.prepared` gives it its parts, repairs change them, and `TextPipeline.restore` makes its translation.
    """

    text: str
    """As the model gets it; a line is without its end."""
    prefix: str = ""
    """The words with which its translation begins; empty: any."""
    line_number: int = 0
    """From 0."""
    line_end: str = "\n"
    """Of a line: its line feed, after a carriage return if it has one."""
    first_part: int = 0
    """The number of its first part in its line; other texts of the line have other numbers."""
    gap: str = ""
    """The white space between it and the text before it."""
    written: str = ""
    """The text as it stands in the line, if the model gets it otherwise: one in capitals in small letters, a label with a full stop."""
    spans: tuple[Span, ...] = ()
    """The protected spans in it, whose texts its translation must contain."""
    range_index: int = 0
    """The index of its range in its line (`SplitLine.ranges`)."""
    parts: tuple[TextPart, ...] = ()
    """What the engine translates, in order; none for a blank text."""
    read: str = ""
    """The whole text as the model reads it: normalised, and with unknown words in known spellings."""
    is_cut: bool = False
    """Whether a sentence was too long for the model."""
    unknown_words: tuple[str, ...] = ()
    """As in `Translation`."""
    num_words: int = 0
    """As in `Translation`."""
    doubts: tuple[str, ...] = ()
    """As in `Translation`; known after a repair."""
    is_repaired: bool = False
    """As in `Translation`."""

    @property
    def requests(self) -> list[Request]:
        """What the engine translates, one for each part."""
        return [part.request for part in self.parts]


@dataclass(frozen=True, slots=True)
class SplitLine:
    """A line with the texts in it that are translated; `LineForm.split` makes it, and `LineForm.join` puts the translations in their places."""

    given: str
    """As it was read."""
    text: str
    """Without control characters; if the pipeline removes invisible characters, without those too, and with plain spaces in its
    ranges. Protected spans and what stands outside of the ranges keep their spaces."""
    written_quotes: Mapping[str, str]
    """How the line writes quotes and apostrophes, which `text` has as signs; see `plain_quotes`."""
    spans: Sequence[Span]
    ranges: Sequence[TextRange]
    texts: Sequence[SourceText]
    """The texts of the ranges, in order."""


def seeded(source: SourceText, seed: int) -> SourceText:
    """The text whose parts have seeds, so that equal lines and equal sentences of a line get other samples.

    Args:
        source: with its parts.
        seed: of the whole input.
    """
    parts = (
        part._replace(request=part.request._replace(seed=request_seed(seed, source.line_number, number)))
        for number, part in enumerate(source.parts, source.first_part)
    )
    return source._replace(parts=tuple(parts))


def request_seed(seed: int, line: int, part: int) -> int:
    """A number of 63 bits; different arguments give unrelated numbers, the same on every machine."""
    digest = hashlib.blake2b(f"{seed} {line} {part}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def joined_translation(source: str, parts: Sequence[Translation], join: Callable[[list[str]], str]) -> Translation:
    """The translation of a text from those of its parts; the n-th best joins the n-th best of each part.

    Args:
        source: the text.
        parts: at least one.
        join: puts one text per part together.
    """
    part_alternatives = [part.alternatives or (Alternative(part.text, part.score),) for part in parts]
    alternatives = distinct(
        (join([each.text for each in nth_best]), sum(each.score for each in nth_best))
        for nth_best in nth_best_of_all(part_alternatives)
    )
    return Translation(
        source,
        *alternatives[0],
        alternatives,
        unknown_words=tuple(word for part in parts for word in part.unknown_words),
        num_words=sum(part.num_words for part in parts),
        terms=tuple(term for part in parts for term in part.terms),
        is_cut=any(part.is_cut for part in parts),
        is_partly_copied=any(part.is_partly_copied for part in parts),
        is_in_pieces=any(part.is_in_pieces for part in parts),
        is_divided=any(part.is_divided for part in parts),
        is_untranslated=any(part.is_untranslated for part in parts),
        doubts=tuple(dict.fromkeys(doubt for part in parts for doubt in part.doubts)),
        is_repaired=any(part.is_repaired for part in parts),
        confidences=tuple(confidence for part in parts for confidence in part.confidences),
        details=_joined_details(parts),
        pieces=tuple(piece for part in parts for piece in pieces_of(part)),
    )


def pieces_of(translation: Translation) -> tuple[TranslatedPiece, ...]:
    """The pieces of a translation; a text that was translated as a whole is one."""
    return translation.pieces or (TranslatedPiece(translation.source, translation.text),)


def _joined_details(parts: Sequence[Translation]) -> LineDetails | None:
    """The details of all parts, without links: their words have other numbers in the whole."""
    found = [part.details for part in parts if part.details is not None]
    if not found:
        return None
    return LineDetails(tuple(each for details in found for each in details.parts), ())


Place = tuple[int, int]


class PlacedPiece(NamedTuple):
    """A piece of a text, by its place in it, and what stands for it in the translation: text[start:end]."""

    source: Place
    target: Place
    is_kept: bool = False
    """Whether its words stand in the translation as in the source."""

    def texts(self, translation: Translation) -> tuple[str, str]:
        """Its text in the source and in the translation."""
        return translation.source[slice(*self.source)], translation.text[slice(*self.target)]


def placed_pieces(translation: Translation) -> list[PlacedPiece]:
    """Where the pieces of a translation stand, in order; those that cannot be found are one with their neighbours.

    A piece has the marks that touch its ends; one without letters and digits is left out.
    """
    pieces = [each for each in translation.pieces if any(map(_core, each))]
    source, text = translation.source, translation.text
    places = zip(
        _places_in_order([each.source for each in pieces], source),
        _places_in_order([each.text for each in pieces], text),
        strict=True,
    )
    found: list[tuple[Place, Place]] = []
    end, begin = 0, 0
    is_known = True
    for source_extent, target_extent in [*places, ((len(source),) * 2, (len(text),) * 2)]:
        if source_extent is None or target_extent is None:
            is_known = False
            continue
        if not is_known:
            between = slice(end, source_extent[0]), slice(begin, target_extent[0])
            found.append((_words_in(source, between[0]), _words_in(text, between[1])))
        found.append((source_extent, target_extent))
        end, begin = source_extent[1], target_extent[1]
        is_known = True
    sources, targets = zip(*found[:-1], strict=True) if found[:-1] else ((), ())
    return [
        PlacedPiece(*extents, _core(source[slice(*extents[0])]) == _core(text[slice(*extents[1])]))
        for extents in zip(_with_marks(sources, source), _with_marks(targets, text), strict=True)
    ]


def _words_in(text: str, part: slice) -> Place:
    """A part of a text from its first to its last letter or digit; its end if it has none."""
    match = _CORE.search(text, part.start, part.stop)
    return match.span() if match else (part.stop, part.stop)


def _with_marks(places: Sequence[Place], text: str) -> list[Place]:
    """Places of a text, with the marks that touch them; one between two places belongs to the first."""
    found: list[Place] = []
    for (start, end), (following, _) in pairwise([*places, (len(text),) * 2]):
        before = found[-1][1] if found else 0
        while start > before and not text[start - 1].isspace():
            start -= 1
        while end < following and not text[end].isspace():
            end += 1
        found.append((start, end))
    return found


_CORE = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)


def _core(text: str) -> str:
    """A text from its first to its last letter or digit; empty if it has none."""
    match = _CORE.search(text)
    return match[0] if match else ""


def _places_in_order(parts: Sequence[str], whole: str) -> list[tuple[int, int] | None]:
    """Where each part stands in a text behind the one before it, whatever its case and white space; None if it does not.

    Only marks stand between two parts, so a part behind other words is found only if these can be the part before it.
    """
    found: list[tuple[int, int] | None] = []
    place, is_known = 0, True
    for part in parts:
        words = map(re.escape, _core(part).split())
        pattern = re.compile(r"\s+".join(words), re.IGNORECASE)
        match = pattern.search(whole, place) if pattern.pattern else None
        if match and is_known and _core(whole[place : match.start()]):
            match = None
        is_known = match is not None
        found.append(match.span() if match else None)
        place = match.end() if match else place
    return found


def copied(source: str, text: str | None = None) -> Translation:
    """A text that no model has translated, as its own translation with the score 0."""
    text = source if text is None else text
    return Translation(source, text, 0.0, () if is_blank(text) else (Alternative(text, 0.0),))


def with_alternatives(translation: Translation, found: Iterable[tuple[str, float]]) -> Translation:
    """The translation with other texts and their scores, best first; without any text, it is empty."""
    alternatives = distinct(found)
    if alternatives == translation.alternatives:
        return translation
    best = alternatives[0] if alternatives else Alternative("", 0.0)
    return replace(translation, text=best.text, score=best.score, alternatives=alternatives)


def through_pivot(first: Translation, second: Translation, languages: Direction) -> Translation:
    """The translation of a text by two models.

    Args:
        first: into the pivot language.
        second: of the text of `first`. If `first` has left the whole text as it is, nothing of `second` is used.
        languages: of the source of `first` and the text of `second`.
    """
    if first.is_untranslated and first.text == first.source:
        second = with_alternatives(second, [(first.text, 0.0)])
        doubts: tuple[str, ...] = ()
    else:
        doubts = doubts_about(first.source, second.text, languages)
    pieces = _pieces_through(first, second)
    flags = "is_cut", "is_partly_copied", "is_in_pieces", "is_divided", "is_untranslated", "is_repaired"
    return replace(
        second,
        source=first.source,
        unknown_words=first.unknown_words,
        num_words=first.num_words,
        **{name: getattr(first, name) or getattr(second, name) for name in flags},
        doubts=tuple(dict.fromkeys((*first.doubts, *second.doubts, *doubts))),
        pivot=first,
        pieces=pieces,
    )


def _pieces_through(first: Translation, second: Translation) -> tuple[TranslatedPiece, ...]:
    """The pieces of a source and of the text that a second model gives: both steps are divided at the ends of each."""
    source, text = first.source, second.text
    pieces: list[TranslatedPiece] = []
    start = begin = 0
    for left, right in pairwise(placed_pieces(first)):
        for before, behind in pairwise(placed_pieces(second)):
            # Both steps have an end between the same two words of the pivot.
            if left.target[1] <= behind.source[0] and before.source[1] <= right.target[0]:
                end, stop = left.source[1], before.target[1]
                pieces.append(TranslatedPiece(source[start:end], text[begin:stop]))
                start, begin = right.source[0], behind.target[0]
    return (*pieces, TranslatedPiece(source[start:], text[begin:])) if pieces else ()


# What is told of translations.


@dataclass(slots=True)
class UnknownWords:
    """A count over translations; the model reads each such word as [UNK], so it cannot translate it."""

    num_unknown: int = 0
    num_words: int = 0
    first: str = ""

    def add(self, translation: Translation) -> None:
        """Count the words of one line."""
        if not self.num_unknown and translation.unknown_words:
            self.first = translation.unknown_words[0]
        self.num_unknown += len(translation.unknown_words)
        self.num_words += translation.num_words

    def report(self) -> None:
        """Log the count if there are unknown words, and start again from zero."""
        if self.num_unknown:
            logger.warning(
                "unknown words: %d of %d are not in the vocabulary of the model, which read them as [UNK]; the first: %s%s",
                self.num_unknown,
                self.num_words,
                _shown(self.first),
                "; was this run meant? --run NAME chooses another" if self.num_unknown == self.num_words else "",
            )
        self.num_unknown = self.num_words = 0


def _shown(word: str) -> str:
    """A word for a terminal: shortened, and without control characters."""
    short = word if len(word) <= MAX_SHOWN_CHARACTERS else f"{word[:MAX_SHOWN_CHARACTERS]}..."
    return "".join(character if character.isprintable() else "\ufffd" for character in short)


@dataclass(slots=True)
class GlossaryUse:
    """A count over the translations of lines, in their order."""

    num_lines: int = 0
    num_lines_with_terms: int = 0
    num_terms: int = 0
    num_missing: int = 0
    unit: str = "lines"
    """What is counted, for the message. Of a text of a document, the message about a missing term would need its place, so there is none."""

    def add(self, translation: Translation) -> None:
        """Count the terms of the next line; warn of a term that is not in its translation."""
        self.num_lines += 1
        self.num_lines_with_terms += bool(translation.terms)
        self.num_terms += len(translation.terms)
        for term in translation.terms:
            if not term.is_applied:
                self.num_missing += 1
                if self.unit != "lines":
                    continue
                logger.warning(
                    "line %d: the translation does not contain %s, which the glossary gives for %s",
                    self.num_lines,
                    on_one_line(term.target, MAX_SHOWN_CHARACTERS),
                    on_one_line(term.source, MAX_SHOWN_CHARACTERS),
                )

    def report(self) -> None:
        """Log the count."""
        if not self.num_terms:
            logger.info("glossary: no term was found")
            return
        logger.info(
            "glossary: terms found: %d, in %d of %d %s; %s",
            self.num_terms,
            self.num_lines_with_terms,
            self.num_lines,
            self.unit,
            f"{self.num_missing} missing in the translations"
            if self.num_missing
            else "all of them are in the translations",
        )


def left_out(translation: Translation) -> Translation:
    """A translation without its text; the facts about it stay, but the links of its words."""
    details = translation.details and replace(translation.details, links=())
    return replace(translation, text="", alternatives=(), details=details)
