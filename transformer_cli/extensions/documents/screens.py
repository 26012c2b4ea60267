"""Divides a translation among the cues of its sentence, the screens of a cue and the lines of a screen."""

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from transformer_cli.extensions.documents.segments import Markup, Piece, Role
from transformer_cli.text.columns import display_width
from transformer_cli.text.languages import FUNCTION_WORDS, has_spaces, primary_language
from transformer_cli.text.normalization import has_word
from transformer_cli.text.sentences import CONJUNCTIONS, ends_sentence, split_sentences

# Further words behind which a phrase goes on, although a sentence may end with them: "Who am I"; of English also the ends of I'm and don't.
_WORDS_INSIDE_PHRASE = {
    "de": "sehr zu dieser diese dieses diesen diesem jeder jede jedes",
    "en": "i we he she they m re ve ll s t d this these those",
    "es": "no se me te le nos he ha han este esta ese esa cada",
    "fr": "je tu il on ne se me te ce cet cette ces suis es a ai as avons avez ont sommes êtes sont parce chaque quel quelle quelques plusieurs",
    "it": "non mi ti si ci vi sono sei siamo ho hai ha abbiamo avete hanno quel quella quei ogni",
    "nl": "ik wij we deze dit elke elk zeer",
    "pt": "não se me te este esta esse essa cada",
}
LAST_WORD = re.compile(r"[^\W\d_]+\Z")

MAX_WIDTH = 42
"""The characters of a line of subtitles."""
MAX_LINES = 2
_SHORTEST_SCREEN_SECONDS = 1.0
# What ends a clause; a dash is a word of its own, or stands behind two words without white space.
_CLAUSE_ENDS = tuple(",;:!?\u2026\u2013\u2014\u3001\uff0c\uff1b\uff1a\u060c\u061b")
_CLOSING = "\"'\u2019\u201d\u00bb)]\u300d\u300f"
_OPENING = tuple("\u00ab\u201c\u201e([{\u00bf\u00a1\u300c\u300e")
# Titles and initials, of which the division into sentences knows few: "M. Martin".
_TITLE = re.compile(
    r"\W*(?:[^\W\d_]|mm|mmes?|mlles?|mr|mrs|ms|dr|pr|prof|sigg?|sra?|dott|avv|hr|fr|st|dhr|mevr)\.", re.IGNORECASE
)
# How many characters farther away a place may be, to be preferred to a place between two other words.
_AFTER_SENTENCE = 24.0
_AFTER_CLAUSE = 14.0
_BEFORE_CONJUNCTION = 6.0
_INSIDE_PHRASE = -6.0
_BEFORE_MARK = -100.0
# A clause that ends where its cue ends is looked for in the translation from so many times as far.
_ALIGNED = 2.0
# The share of the shorter one of two cues that may be shown in the other one, for a better place: a place that fits the source or
# ends a sentence, or another one.
_LARGEST_MOVE = 0.5
_SMALLER_MOVE = 0.35
# The width of what surely fits on two lines, and the characters that people can read in a second.
_COMFORTABLE_WIDTH = 76.0
_CHARACTERS_PER_SECOND = 25.0
_WORD = re.compile(r"\s*\S+")
_CHARACTER = re.compile(r"\s*(?:[!-~]+|\S)")


class Word(NamedTuple):
    """A word with the markup that touches it."""

    pieces: tuple[Piece, ...]
    gap: str
    """The white space before it."""

    @property
    def text(self) -> str:
        """Without markup."""
        return "".join(piece for piece in self.pieces if isinstance(piece, str))


def words_with_markup(pieces: Sequence[Piece], language: str) -> list[Word]:
    """The words of a text; in a language without spaces, its characters."""
    pattern = _WORD if has_spaces(language) else _CHARACTER
    words: list[Word] = []
    waiting: list[Piece] = []
    gap = ""  # the white space before the next word
    for piece in pieces:
        if isinstance(piece, str):
            end = len(piece.rstrip())  # no word is searched from there on
            for match in pattern.finditer(piece, 0, end):
                text = match[0].lstrip()
                gap += match[0][: len(match[0]) - len(text)]
                if words and not gap and pattern is _WORD:
                    last = words.pop()  # markup stands inside a word
                    words.append(Word((*last.pieces, *waiting, text), last.gap))
                else:
                    words.append(Word((*waiting, text), gap))
                waiting, gap = [], ""
            gap += piece[end:]
        elif piece.role is Role.CLOSE and words and not waiting:
            words[-1] = Word((*words[-1].pieces, piece), words[-1].gap)
        else:
            waiting.append(piece)
    if waiting and words:
        words[-1] = Word((*words[-1].pieces, *waiting), words[-1].gap)
    return words


def width_of(words: Sequence[Word]) -> int:
    """The width of words on one line."""
    text = "".join(word.gap + word.text for word in words)
    return display_width(text.strip())


def divided_words(
    words: Sequence[Word],
    shares: Sequence[float],
    language: str,
    *,
    ends_clause: Sequence[bool] = (),
    seconds: Sequence[float] = (),
    preference: float = 1.0,
) -> list[list[Word]]:
    """Words in as many parts as there are shares; a part has at least one word, as long as there are enough words.

    Args:
        shares: how long each part is to be; only their proportions count.
        language: of the words.
        ends_clause: whether each part ends a clause in the source; empty: not known.
        seconds: how long each part is shown; empty: as its length needs.
        preference: how much the ends of sentences and clauses count; 0: only the shares count, and that no phrase is divided.
    """
    ends = _ends(words)
    merits = _merits(words, language)
    scale = ends[-1] / sum(shares) if ends else 0.0
    limits = [min(_COMFORTABLE_WIDTH, _CHARACTERS_PER_SECOND * each) for each in seconds]
    limits = limits or [_COMFORTABLE_WIDTH] * len(shares)
    parts: list[list[Word]] = []
    first, passed = 0, 0.0
    for number, share in enumerate(shares):
        passed += share
        num_left = len(shares) - number - 1
        if not num_left:
            parts.append(list(words[first:]))
            break
        is_aligned = bool(ends_clause) and ends_clause[number]
        shorter = preference * scale * min(share, shares[number + 1])
        start, wanted = ends[first - 1] if first else 0, scale * passed
        stop = wanted + scale * shares[number + 1]
        costs = {
            place: abs(ends[place - 1] - wanted)
            + max(0.0, ends[place - 1] - start - limits[number])
            + max(0.0, stop - ends[place - 1] - limits[number + 1])
            - _worth(merits[place - 1], shorter, is_aligned=is_aligned)
            for place in range(first + 1, max(first + 2, len(words) - num_left + 1))
            if place < len(words)
        }
        last = min(costs, key=lambda place: costs[place], default=len(words))
        parts.append(list(words[first:last]))
        first = last
    return parts


def _worth(merit: float, shorter: float, *, is_aligned: bool) -> float:
    """How many characters farther away a place may be between two parts, the shorter one of which has some width."""
    if merit <= 0:
        return merit
    ends_well = is_aligned and merit >= _AFTER_CLAUSE
    share = _LARGEST_MOVE if ends_well or merit == _AFTER_SENTENCE else _SMALLER_MOVE
    return min(merit * (_ALIGNED if ends_well else 1.0), share * shorter)


def lines_of_screen(words: Sequence[Word], language: str) -> list[list[Word]]:
    """Words on one line, or on two of about the same width."""
    if width_of(words) <= MAX_WIDTH or len(words) < 2:
        return [list(words)]
    merits = _merits(words, language)
    best = min(
        range(1, len(words)),
        key=lambda place: (
            max(MAX_WIDTH, width_of(words[:place]), width_of(words[place:])),
            abs(width_of(words[:place]) - width_of(words[place:])) - merits[place - 1],
        ),
    )
    return [list(words[:best]), list(words[best:])]


def screens_of(words: Sequence[Word], seconds: float, language: str) -> list[list[Word]]:
    """Words in parts that fit on two lines each; fewer and wider ones, if there is no time for as many.

    Args:
        seconds: that are divided among the parts by their lengths.
    """
    max_screens = max(1, int(seconds / _SHORTEST_SCREEN_SECONDS))
    word_widths = [display_width(word.text) for word in words]
    most = max(1, min(max_screens, len(words)))
    if max(word_widths, default=0) > MAX_WIDTH:
        return divided_words(words, [1.0] * most, language, preference=0.0)
    fewest = max(1, -(-sum(word_widths) // (MAX_LINES * MAX_WIDTH)))
    for number in range(fewest, most + 1):
        for preference in (1.0, 0.5, 0.0) if number > 1 else (0.0,):
            parts = divided_words(words, [1.0] * number, language, preference=preference)
            widths = list(map(width_of, parts))
            is_long_enough = not preference or min(widths) * seconds >= _SHORTEST_SCREEN_SECONDS * sum(widths)
            if is_long_enough and all(_fits(part, language) for part in parts):
                return parts
    return divided_words(words, [1.0] * most, language, preference=0.0)


def _fits(words: Sequence[Word], language: str) -> bool:
    return all(width_of(line) <= MAX_WIDTH for line in lines_of_screen(words, language))


def balanced(screens: Sequence[Sequence[Sequence[Word]]]) -> list[list[Piece]]:
    """The pieces of each screen, with its line breaks; a range that goes on is closed and opened again."""
    result: list[list[Piece]] = []
    opened: list[Markup] = []
    every = [piece for lines in screens for line in lines for word in line for piece in word.pieces]
    closing = {piece.number: piece for piece in every if isinstance(piece, Markup) and piece.role is Role.CLOSE}
    for lines in screens:
        pieces: list[Piece] = list(opened)
        for line_number, line in enumerate(lines):
            pieces += ["\n"] if line_number else []
            for number, word in enumerate(line):
                pieces += [" "] if number and word.gap else []
                pieces += word.pieces
                opened = _still_open(opened, word)
        pieces += [closing[each.number] for each in reversed(opened)]
        result.append(pieces)
    return result


def _still_open(opened: Sequence[Markup], word: Word) -> list[Markup]:
    """The ranges that are open after a word."""
    result = list(opened)
    for piece in word.pieces:
        if isinstance(piece, Markup) and piece.role is Role.OPEN:
            result.append(piece)
        elif isinstance(piece, Markup) and piece.role is Role.CLOSE:
            result.pop()
    return result


def _ends(words: Sequence[Word]) -> list[int]:
    """The width of the words up to each of them."""
    ends, total = [], 0
    for word in words:
        total += display_width(word.gap + word.text)
        ends.append(total)
    return ends


def _merits(words: Sequence[Word], language: str) -> list[float]:
    """How good the place behind each word but the last one is to divide them: in characters, negative for a bad one."""
    code = primary_language(language)
    conjunctions = CONJUNCTIONS.get(code, "").split()
    unfinished = f"{FUNCTION_WORDS.get(code, '')} {_WORDS_INSIDE_PHRASE.get(code, '')}".split()
    starts = _starts_of_sentences("".join(word.gap + word.text for word in words), language)
    merits, place = [], 0
    for word, following in itertools.pairwise(words):
        place += len(word.gap + word.text)
        last = LAST_WORD.search(word.text.casefold())
        if _TITLE.fullmatch(word.text):
            merit = _INSIDE_PHRASE
        elif place + len(following.gap) in starts:
            merit = _AFTER_SENTENCE
        elif following.text and not has_word(following.text) and not following.text.endswith(_OPENING):
            merit = _BEFORE_MARK  # as of "Où est-il ?"
        elif not has_word(word.text) and word.text.endswith(_OPENING):
            merit = _BEFORE_MARK
        elif ends_clause(word.text):
            merit = _AFTER_CLAUSE
        elif word.text.endswith(".") or (last is not None and last[0] in unfinished):
            merit = _INSIDE_PHRASE  # an abbreviation, or as "of the"
        else:
            merit = _BEFORE_CONJUNCTION if following.text.casefold() in conjunctions else 0.0
        merits.append(merit)
    return merits


def ends_clause(text: str) -> bool:
    """Whether a text ends with a mark of a clause or sentence, but a single full stop; quotes and brackets may follow it."""
    shown = text.rstrip(_CLOSING)
    return shown.endswith((*_CLAUSE_ENDS, "..", " -")) or text == "-" or (ends_sentence(shown) and shown[-1] != ".")


def _starts_of_sentences(text: str, language: str) -> set[int]:
    """Where the second sentence of a text and all later ones begin."""
    starts, place = set(), 0
    for sentence in split_sentences(text, language):
        place += len(sentence.gap)
        starts.add(place)
        place += len(sentence.text)
    return starts - {0}
