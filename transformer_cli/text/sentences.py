"""Where the text of a line is: its ranges between marks and columns, its sentences and their clauses; and the form of a sentence."""

import re
import unicodedata
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

from sentencex import get_sentence_boundaries

from transformer_cli.text.languages import frequent_words, has_spaces, primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import has_letter, has_word
from transformer_cli.text.quotation_marks import quotation_marks
from transformer_cli.text.spans import Span, find_spans, masked

# Indentation, the times of a line of a song, a log or a transcript ([00:12.50], 00:12 before a capital letter), the quote marks of
# an e-mail (> >), and then at most two marks of a list, with the white space after them: - * • 1. 2) a) (iv) iv. # [x]; or a mark
# of Toolbox, of USFM or of LaTeX, with the number of a verse: \lx \v 12 \item
_TIME = r"\d{1,2}(?::\d{2}){1,2}(?:[.,]\d{1,3})?"
_BEGINNING = lazy_pattern(
    r"\s*(?:\[\d{1,3}(?::\d{2}){1,2}(?:[.,:]\d{1,3})?\]\s*)*"
    rf"(?:{_TIME}(?:\s*(?:[-\u2013]|-->)\s*{_TIME})?:?\s+(?=[^\W\d_a-z\u00df-\u00f6\u00f8-\u00ff])(?!(?:Uhr|[AP]M|GMT|UTC|CES?T)\b))?(?:>\s*)*"
    r"(?:\\(?:[cv]\s+\d{1,3}[a-z]?(?:-\d{1,3}[a-z]?)?|\+?[A-Za-z]{1,9}\d?)(?:\s+(?!(?:is|are|was|has)\s)|\Z))?"
    r"(?:(?:[-*+\u2022\u2023\u25e6\u25aa\u25ab\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7\u2192\u2713\u2717]|\#{1,6}|\(?\d{1,3}[.)]|\(?(?:[A-Za-z]|[ivxIVX]{1,5})\)|(?:i{1,3}|i[vx]|vi{0,3}|x|(?=[IVX]{2})X?(?:I[VX]|V?I{0,3})|XX|[IX](?=\.\s+[A-Z\u00c0-\u00de]))\.(?!\s+(?:e\.|[Cc]hr))|\[[ xX]?\])(?:\s+|\Z)){0,2}"
)
# The dash of somebody who speaks, without white space behind it, as in -Hello. or -I am here.
_DASH_OF_SPEECH = lazy_pattern(r"[-\u2013\u2014](?=[^\W\d_](?:[^\W\d_]|['\u2019 ]))")
# What always separates two columns: tabs, a bar, a row of dots or lines.
_COLUMN_GAP = lazy_pattern(
    r"\s{0,2}(?:\t|\||\.{6}|…{2}|(?:\. ){3}|_{3})[\s|._…]*"
    # Three and more equal signs between white space: *** The house ***
    r"|(?<!\S)([*=#~<>^+\u2022\u2014-])\1{2,}+(?!\S)"
)
# What separates columns, unless a sentence goes on after it.
_WIDE_GAP = lazy_pattern(r"\s{2,}|\s?\.{4,}\s?")
# Full stops and question marks behind which white space stands, without those of Latin, Chinese and Japanese: of Hindi and its
# neighbours, Urdu, Amharic, Khmer, Burmese, Armenian, Mongolian, Santali, Manipuri, Lisu and Tibetan; of Arabic, N'Ko and Amharic.
_OTHER_STOPS = (
    "\u0964\u0965\u06d4\u1362\u17d4\u17d5\u104b\u0589\u1803\u1809\u1c7e\u1c7f\uabeb\ua4ff"
    # Syriac, Samaritan, Cree, Tagalog, Limbu, Tai Tham, Balinese, Lepcha, Coptic, Vai, Bamum, Saurashtra, Kayah Li, Javanese, Cham, Japanese
    "\u0700\u0701\u0702\u0837\u0839\u083d\u166e\u1736\u1944\u1aa8\u1aa9\u1aaa\u1aab\u1b5f\u1c3b\u1c3c\u2cf9"
    "\ua60e\ua6f3\ua8ce\ua8cf\ua92f\ua9c9\uaa5d\uaa5e\uaa5f\uff0e\uff61"
    # Brahmi, Kaithi, Chakma, Sharada, Khojki, Tulu, Newa, Siddham, Modi, Ahom, Kawi, Mro, Bassa Vah, Pahawh Hmong, Kirat Rai, Medefaidrin, SignWriting
    "\U00011047\U00011048\U000110c0\U000110c1\U00011141\U00011142\U000111c5\U000111c6\U00011238\U00011239\U000113d4\U000113d5"
    "\U0001144b\U0001144c\U000115c2\U000115c3\U00011641\U00011642\U0001173c\U0001173d\U0001173e\U00011f43\U00011f44"
    "\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016d6e\U00016d6f\U00016e98\U0001da88"
)
# Of Arabic, N'Ko, Amharic, Limbu, Coptic, Vai, Bamum, Manipuri and Chakma.
_OTHER_QUESTIONS = "\u061f\u07f9\u1367\u1945\u2cfa\u2cfb\ua60f\ua6f7\uaaf1\U00011143"
_OTHER_ENDS = f"{_OTHER_STOPS}{_OTHER_QUESTIONS}\u0f0d\u0f0e\u203c\u203d\u2047\u2048\u2049"
# Of Arabic, Amharic, Mongolian, N'Ko, Burmese, Armenian, Tagalog, Balinese, Vai, Bamum, Lisu, Javanese and Manipuri.
_OTHER_COMMAS = "\u060c\u1363\u1802\u07f8\u104a\u055d\u1735\u1b5e\ua60d\ua6f5\ua4fe\ua9c8\uaaf0"
MARKS_OF_SCRIPTS = f"{_OTHER_ENDS}{_OTHER_COMMAS}"
"""The full stops, question marks and commas that only some scripts have, without those of Chinese and Japanese."""
_SENTENCE_END = frozenset(f".?!…{_OTHER_ENDS}")


class TextRange(NamedTuple):
    """The text line[start:end]."""

    start: int
    end: int


def text_ranges(line: str, visible: str | None = None) -> list[TextRange]:
    """The ranges of a line that hold text to translate, in order; everything else stays as it is.

    Each range begins and ends without white space, and holds at least one letter. So the cells of a table that are
    only numbers and symbols belong to no range, and neither do the gaps between its columns.

    Args:
        line: without a line end.
        visible: the line with all letters of protected spans hidden, of the same length; None: nothing is protected.
    """
    visible = line if visible is None else visible
    start = end_of_marks(line)
    dash = _DASH_OF_SPEECH.match(visible, start)
    start += dash is not None and visible[start + 1].isupper()
    if _COLUMN_GAP.search(visible, start) or _WIDE_GAP.search(visible, start):
        cells = list(_cells(visible, start))
    else:
        cells = [_stripped(visible, start, len(visible))]
    return [cell for cell in cells if _has_letter(visible, cell)]


def end_of_marks(line: str) -> int:
    """Where the indentation, the times and the marks of a list at the beginning of a line end."""
    beginning = _BEGINNING.match(line)
    return beginning.end() if beginning else 0


# In this and the following patterns, white space is read once: from its first character on, and as a whole. Else the time for
# many spaces without a mark behind them grows with the square of their number.
DASH = lazy_pattern(r"(?<!\s)\s++[-\u2013\u2014]\s+")
"""Between words; two parts of a heading may stand beside it."""
_TWO_WORDS = lazy_pattern(r"\S+\s+\S")


def titles(line: str, text_range: TextRange) -> list[TextRange]:
    """The parts of a heading on both sides of a dash, as in "The house - A big garden"; else the range itself.

    A heading has no full stop, and its second part begins with a capital letter and has at least two words.
    """
    start, end = text_range
    if line[end - 1] in _SENTENCE_END:
        return [text_range]
    found = []
    for dash in DASH.finditer(line, start, end):
        is_title = line[dash.end()].isupper() and _TWO_WORDS.match(line, dash.end(), end)
        if is_title and _has_letter(line, TextRange(start, dash.start())):
            found.append(TextRange(start, dash.start()))
            start = dash.end()
    return [*found, TextRange(start, end)]


_WORD_OF_LABEL = r"[^\W\d_][\w'\u2019.-]{0,40}"
_LABEL = lazy_pattern(
    rf"(?P<words>{_WORD_OF_LABEL}(?:[ ](?:{_WORD_OF_LABEL}|\d{{1,4}})){{0,3}})(?<!\.):[ \u00a0]+(?=\S)"
)


def end_of_label(line: str, text_range: TextRange) -> int | None:
    """Where the colon of a label stands that begins a range, such as the speaker in "TOM: I am here." or "Note: the dog is big."; None without one.

    A label is one word with a capital letter first, or up to four words that all begin so; numbers may follow it. A text
    stands behind its colon.
    """
    start, end = text_range
    found = _LABEL.match(line, start, end)
    if found is None or not _has_letter(line, TextRange(found.end(), end)):
        return None
    words = found["words"].split()
    return found.end("words") if all(word[0].isupper() or word.isdigit() for word in words) else None


def _cells(line: str, start: int) -> Iterator[TextRange]:
    """The cells of a line from `start` on, without the white space around them."""
    place = start
    for gap in _COLUMN_GAP.finditer(line, start):
        yield from _cells_with_wide_gaps(line, place, gap.start())
        place = gap.end()
    yield from _cells_with_wide_gaps(line, place, len(line))


def _cells_with_wide_gaps(line: str, start: int, end: int) -> Iterator[TextRange]:
    parts: list[TextRange] = []
    for gap in [*_WIDE_GAP.finditer(line, start, end), None]:
        parts.append(_stripped(line, start, gap.start() if gap else end))
        start = gap.end() if gap else end
    cells: list[TextRange] = []
    for part, goes_on in zip(parts, _go_on(line, parts), strict=True):
        if cells and (_is_one_text(line, cells[-1], part) or goes_on):
            part = TextRange(cells.pop().start, part.end)
        cells.append(part)
    yield from cells


def _is_one_text(line: str, left: TextRange, right: TextRange) -> bool:
    """Whether a sentence goes on after a wide gap: some people type two spaces after a sentence, or several in it."""
    gap = line[left.end : right.start]
    goes_on = len(gap) < 3 or "." in gap or line[right.end - 1 : right.end] in _SENTENCE_END
    return goes_on and _has_letter(line, left) and _has_letter(line, right)


def _go_on(line: str, parts: list[TextRange]) -> list[bool]:
    """For each part, whether it and all that follow continue a sentence: with small letters first, up to a mark."""
    ends = [part.end for part in parts if part.start < part.end]
    goes_on = bool(ends) and line[ends[-1] - 1] in _SENTENCE_END
    found = []
    for left, part in zip([*reversed(parts[:-1]), None], reversed(parts), strict=True):
        first = line[part.start : min(part.start + 1, part.end)]
        goes_on = goes_on and (not first or first.islower())
        found.append(bool(first) and goes_on and left is not None and _has_letter(line, left))
    return found[::-1]


def _stripped(line: str, start: int, end: int) -> TextRange:
    text = line[start:end]
    return TextRange(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def _has_letter(line: str, cell: TextRange) -> bool:
    return has_letter(line[cell.start : cell.end])


# Brackets.


BRACKETS = {"(": ")", "[": "]"}
"""Opening bracket -> closing bracket."""


def partners_of_brackets(text: str, start: int, end: int) -> dict[int, int]:
    """The place of the partner of each bracket in text[start:end] that has one."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for place in range(start, end):
        sign = text[place]
        if sign in BRACKETS:
            opened.append(place)
        elif sign in BRACKETS.values():
            while opened:
                last = opened.pop()
                if BRACKETS[text[last]] == sign:
                    partners |= {last: place, place: last}
                    break
    return partners


# Where sentences end.


_NUMBER = lazy_pattern(r"\s*\(?\d+[.)]*")
# " ' and the closing quotes of English, French and Japanese.
_CLOSING_QUOTES = frozenset("\"'\u201d\u2019\u00bb\u300d\u300f")
_CLOSING_RUN = lazy_pattern(r"[)\]}*_\"'\u201d\u2019\u00bb\u201c\u00ab]+\s+")
# `sentencex` panics at white space of several bytes, and refuses lone surrogates. Both become one character.
_UNREADABLE = lazy_pattern(r"[^\S\n ]|[\ud800-\udfff]")
_MAY_END = re.compile(r"[^\w ,'\"()-]")
_ASCII_MARKS = "".join(sign for sign in map(chr, range(128)) if not sign.isalnum())
# Full stops of Khmer, and shads of Tibetan and Dzongkha, of which `sentencex` knows nothing.
_FURTHER_ENDS = lazy_pattern(r"[\u17d4\u17d5]\s+|[\u0f0d-\u0f12\u0f14]\s+(?![\u0f0d-\u0f12\u0f14])")
# `sentencex` takes a time that grows with the square of a text without white space.
MAX_CHARACTERS_AT_ONCE = 5000


class Sentence(NamedTuple):
    """One sentence of a line."""

    text: str
    gap: str
    """The white space before the sentence; empty for the first one, whose text keeps it."""


def is_one_sentence(text: str) -> bool:
    """Whether a text is surely one sentence: it is ASCII, and no mark stands before the end of its last word that may end one."""
    return text.isascii() and _MAY_END.search(text.rstrip(_ASCII_MARKS)) is None


def split_sentences(text: str, language: str) -> list[Sentence]:
    """The sentences of a line, in order; their gaps and texts joined are the line.

    A part without a letter or digit is no sentence of its own: it stays with the sentence before it, or with the
    first. The number of a list (`1.`) ends no sentence, and neither does a closing quote without white space after
    it: 「行こう」と言った.

    Args:
        text: a line.
        language: of the text, such as en or zh-CN. The library `sentencex` has rules for about 300 languages; for
            others it uses those of English.
    """
    if is_one_sentence(text):
        return [Sentence(text, "")]
    sentences: list[Sentence] = []
    start, gap = 0, ""
    has_words = False  # whether the sentence that begins at `start` has a letter or digit
    places = [0, *_sentence_ends(text, primary_language(language)), len(text)]
    for first, place, following in zip(places, places[1:], places[2:], strict=False):
        part = text[first:place].rstrip()
        has_words = has_words or has_word(part)
        next_gap = text[first + len(part) : place]
        is_open = (first == start and _NUMBER.fullmatch(part)) or (
            # A sentence goes on behind the dots of a name: choose Open file..., and wait
            not next_gap and (part[-1:] in _CLOSING_QUOTES or text[place : place + 2] in (", ", "; "))
        )
        if has_words and not is_open and has_word(text[place:following]):
            sentences.append(Sentence(text[start : first + len(part)], gap))
            start, gap, has_words = place, next_gap, False
    return [*sentences, Sentence(text[start:], gap)]


# The words around an end without a space behind it, as in big.please; behind a capital letter split_sentences finds it.
# sig.ra and dott.ssa are words, whose parts a training has seen, too.
_END_IN_WORDS = lazy_pattern(
    r"(?<![\w.@/])(?!(?:sigg?|dott|prof|avv|ing|arch|rag|geom|egr|gent|spett|pag|nr|ca|bzw|vgl|etc|ecc|tel|dr|mrs?)\.)"
    r"([^\W\d_]{2,40}[.!?])(?=([^\W\d_]{2,40})(?![\w.@/(]))",
    re.IGNORECASE,
)


def split_at_missing_spaces(sentence: Sentence, known: Container[str]) -> list[Sentence]:
    """A sentence in parts where a space is missing behind its end, as in "The dog is big.please come": both words are known, so they are no name.

    Args:
        sentence: of `split_sentences`.
        known: the words that a model has seen.
    """
    sentences, start, gap = [], 0, sentence.gap
    for found in _END_IN_WORDS.finditer(sentence.text):
        if found[1][:-1] in known and found[2] in known and found[2].islower():
            sentences.append(Sentence(sentence.text[start : found.end()], gap))
            start, gap = found.end(), ""
    return [*sentences, Sentence(sentence.text[start:], gap)]


def split_sentences_around(spans: Sequence[Span], text: str, language: str) -> list[Sentence]:
    """The sentences of a text, none of which ends inside one of its protected spans."""
    sentences, place = [], 0
    # Letters in place of the spans.
    for sentence in split_sentences(masked(text, spans, "x"), language):
        start = place + len(sentence.gap)
        place = start + len(sentence.text)
        sentences.append(Sentence(text[start:place], sentence.gap))
    return sentences


def gap_between(source_gap: str, source_language: str, target_language: str, second: str = "x") -> str:
    """The white space between two translations; `source_gap` is the one between their source sentences.

    Two words get a space if the source has none; a placeholder or bracket at the beginning of the second sentence, as in "It is big.{n}", gets none.

    Args:
        second: the second source sentence.
    """
    if has_spaces(target_language):
        needs_space = second[:1].isalnum() or not has_spaces(source_language)
        return source_gap or " " * needs_space
    return "" if has_spaces(source_language) else source_gap


def _sentence_ends(text: str, language: str) -> list[int]:
    """Where the second sentence and all later ones begin."""
    readable = _UNREADABLE.sub(" ", text)
    opening = set()
    if marks := [*quotation_marks(readable)]:
        # `sentencex` takes a mark that opens a quotation for one that closes the sentence before it, unless it finds a partner,
        # and takes any two straight quotes for a pair: so it reads none that have no partner.
        opening = {mark.place for mark in marks if mark.opens}
        signs = list(readable)
        for mark in marks:
            if not mark.has_partner:
                signs[mark.place] = " " if mark.opens else "\u201d"
        readable = "".join(signs)
    places: list[int] = []
    start = 0
    while len(readable) - start > MAX_CHARACTERS_AT_ONCE:
        window = _sentence_ends_of_window(readable[start : start + MAX_CHARACTERS_AT_ONCE], language)
        # The text after a place decides whether a sentence ends there. So the next window starts one sentence earlier,
        # and finds the last place again.
        start_of_next = window[-2] if len(window) > 2 else MAX_CHARACTERS_AT_ONCE
        places += [start + place for place in window if place <= start_of_next]
        start += start_of_next
    places += [start + place for place in _sentence_ends_of_window(readable[start:], language)]
    if not text.isascii():
        places += [match.end() for match in _FURTHER_ENDS.finditer(readable)]
    return sorted({_beside_marks(text, place, opening) for place in places} - {0, len(text)})


def _beside_marks(text: str, place: int, opening: Container[int]) -> int:
    """The place between two sentences, before the marks that open the second one, and behind those that close the first one."""
    if not text[place - 1].isspace() and (closing := _CLOSING_RUN.match(text, place)):
        return place if any(each in opening for each in range(place, closing.end())) else closing.end()
    first = start = place
    while start > 0 and (start - 1 in opening or text[start - 1].isspace()):
        start -= 1
        first = start if start in opening else first
    return first


def _sentence_ends_of_window(text: str, language: str) -> list[int]:
    try:
        boundaries = get_sentence_boundaries(language, text)
    except BaseException as error:
        # A Rust panic is no `Exception`. Without boundaries the text is translated as one sentence.
        if type(error).__name__ != "PanicException":
            raise
        return []
    places = (boundary["start_index"] for boundary in boundaries)
    return [place for place in places if place > 0 and not _is_in_name(text, place, language)]


# Before and behind a full stop without white space.
_WORD_BEFORE_STOP = lazy_pattern(r"\S*\Z")
_WORD_BEHIND_STOP = lazy_pattern(r"[^\W_](?:\w|\.(?=\w))*")
_WORDS_OF_NAME = lazy_pattern(r"\w+")
_LONGEST_NAME = 100


def _is_in_name(text: str, place: int, language: str) -> bool:
    """Whether a full stop directly before a word is a part of a name: .NET, ASP.NET, Node.JS, System.Text.Json.

    The stop begins a word, or the word behind it has capital letters after its first letter, or another full stop stands inside
    the same name. Else, and before a frequent word, white space is missing between two sentences: "It is big.The cat is small."
    """
    behind = _WORD_BEHIND_STOP.match(text, place)
    if behind is None or text[place - 1] != "." or text[place - 2 : place - 1] == ".":
        return False
    before = _WORD_BEFORE_STOP.search(text, max(0, place - _LONGEST_NAME), place - 1)
    words_before = _WORDS_OF_NAME.findall(before[0]) if before else []
    first, *others = _WORDS_OF_NAME.findall(behind[0])
    frequent = frequent_words(language)
    if first.casefold() in frequent:
        return False
    if not words_before or (any(map(str.isupper, first[1:])) and not is_in_capitals(text)):
        return True
    has_several = len(words_before) > 1 or others
    return bool(has_several) and frequent.isdisjoint(map(str.casefold, (*words_before, *others)))


# Cuts inside a sentence that is long.


_CAPITALS = "".join(sign for sign in map(chr, range(0x530)) if sign.isupper())
"""Of the Latin, Greek, Cyrillic and related scripts."""
LABEL = rf"[^\W\d_]{{1,3}}\s?[:=](?=\s?[{_CAPITALS}])"
"""A pattern of a label before a sentence, as of "x:We go." and "l = We go."; what follows in "example.com:8080" and "config.max=10" is none."""
_SPACES = r"(?:(?<!\s)\s++)?"
# Places for a cut, best first; the group holds the marks and the white space that stand between the two parts.
_CLAUSE_MARKS = tuple(
    re.compile(pattern)
    for pattern in (
        # The end of a sentence inside brackets, or one that the division into sentences did not take for an end.
        rf"(?:[!?\u2026{_OTHER_ENDS}]|\.\.|\w{{4}}\.|\.[)\]\u201d\u00bb])[)\]\"'\u201d\u00bb]*(\s+)|[\u3002\uff01\uff1f]()",
        rf"({_SPACES}[;\u061b]\s+|:\s+|(?<!\s)\s++[-\u2013\u2014/|]\s+|{_SPACES}\u2014\s*|[\uff1b\uff1a])",
        rf"([,{_OTHER_COMMAS}]\s+|[\uff0c\u3001])",
        # The end of a sentence that a label follows without a space: "It is late.x:We go.", "It is late.l = We go."
        rf"(?<=\w{{2}})[.!?]()(?={LABEL})",
    )
)
INNER_END = re.compile(r"(?:[.!?][)\]]|\u2026|\.\.\.)(\s+)(?=\w)")
"""A bracket or an ellipsis that may end a sentence inside a text."""
_BETWEEN_WORDS = lazy_pattern(r"(\s+)")
CONJUNCTIONS = {
    "de": "und aber oder weil denn dass wenn während",
    "en": "and but or because while although so that which please",
    "es": "y e pero o porque cuando aunque que",
    "fr": "et mais ou car parce quand pendant qui que",
    "it": "e ed ma o perché quando mentre che",
    "nl": "en maar of omdat want terwijl die",
    "pt": "e mas ou porque quando enquanto que",
}
# Words with which a clause can begin, beside the conjunctions: subjects.
_SUBJECTS = {
    "de": "ich du er sie es wir ihr man",
    "en": "i you he she it we they there this that",
    "es": "yo tú él ella nosotros vosotros ellos ellas usted ustedes",
    "fr": "je tu il elle on nous vous ils elles",
    "it": "io tu lui lei noi voi loro",
    "nl": "ik jij je hij zij ze het wij we jullie u",
    "pt": "eu tu ele ela nós eles elas você vocês",
}
# The share of a text that each of its parts has at least.
_SMALLEST_SHARE = {"marks": 0.1, "words": 0.25}
# Between two words without a mark, only a text of so many words is divided.
_FEWEST_WORDS = 6


class Cut(NamedTuple):
    """A text in two parts; together with the marks between them, they are the text."""

    left: str
    marks: str
    """Marks and white space between the two; the marks that end a sentence stay with the left part."""
    right: str


def begins_clause(text: str, language: str) -> bool:
    """Whether the first word of a part of a sentence shows that it is a clause: a conjunction, or a pronoun that is its subject.

    False for a language whose words are not known.
    """
    code = primary_language(language)
    words = f"{CONJUNCTIONS.get(code, '')} {_SUBJECTS.get(code, '')}".split()
    first = _FIRST_WORD.search(text)
    return first is not None and first[0].lower() in words


def cut_after_sentence(text: str) -> Cut | None:
    """The text after its first inner sentence, which a bracket or an ellipsis ends and a capital letter follows; else None.

    The division into sentences does not end a sentence there: "(It is late.) We go." A single word before the cut, as in
    "Well... We go.", is no sentence.
    """
    for match in INNER_END.finditer(text):
        start, end = match.span(1)
        cut = Cut(text[:start], text[start:end], text[end:])
        if cut.right[:1].isupper() and len(cut.left.split()) > 1 and has_word(cut.left):
            return cut
    return None


def cut_in_two(text: str, share: float, language: str, *, anywhere: bool = False) -> Cut | None:
    """The text in two parts, at the best place; None if there is none.

    The best place is at a mark that ends a sentence, else at a semicolon, a colon or a dash, else at a comma, else before
    a conjunction of the language. Of several, the one nearest to `share` counts. Both parts have a letter or digit, and no
    protected span, as of "example.com: The first page", is divided.

    Args:
        text: a sentence or a clause.
        share: how much of the text the left part shall hold, 0 to 1.
        language: of the text.
        anywhere: whether a text without such a place may be divided between any two words.
    """
    levels = [(mark, "marks") for mark in _CLAUSE_MARKS]
    if conjunctions := CONJUNCTIONS.get(primary_language(language)):
        joined = "|".join(conjunctions.split())
        levels.append((re.compile(rf"(?<!\s)(\s++)(?=(?:{joined})\s)", re.IGNORECASE), "words"))
    if anywhere and len(text.split()) >= _FEWEST_WORDS:
        levels.append((_BETWEEN_WORDS, "words"))
    first = next((place for place, sign in enumerate(text) if sign.isalnum()), len(text))
    last = next((place for place in range(len(text) - 1, -1, -1) if text[place].isalnum()), -1)
    for boundary, kind in levels:
        least = len(text) * min(_SMALLEST_SHARE[kind], share / 2)
        places = [
            (start, end)
            for start, end in (match.span(match.lastindex or 0) for match in boundary.finditer(text))
            if max(least, first + 1) <= start <= len(text) - least and end <= last
        ]
        if any(start == end for start, end in places):  # no white space shows that two words meet there
            spans = find_spans(text)
            places = [place for place in places if not _is_inside(place[0], spans)]
        if places:
            start, end = min(places, key=lambda place: abs(place[0] - share * len(text)))
            return Cut(text[:start], text[start:end], text[end:])
    return None


def _is_inside(place: int, spans: Sequence[Span]) -> bool:
    return any(span.start < place < span.end for span in spans)


# An ellipsis inside a sentence.


ELLIPSIS = re.compile(r"\.\.|\u2026")
# Dots between digits are a range, and those of "../x" belong to a path.
_INNER_ELLIPSIS = lazy_pattern(r"(?<=[\w)\]\"'\u201d\u2019\u00bb])\s*(?:\.{3,}|\u2026+)\s*(?=[^\W_])(?!\d)")
_COMMA = lazy_pattern(rf"{_SPACES}(?:,(?!\d)|[\uff0c\u3001{_OTHER_COMMAS}])\s*")


def num_inner_ellipses(text: str) -> int:
    """How often words follow an ellipsis within a text."""
    return len(_INNER_ELLIPSIS.findall(text)) if ELLIPSIS.search(text) else 0


def with_commas(text: str, comma: str) -> tuple[str, tuple[str, ...]]:
    """A text in which a comma stands for each inner ellipsis; and for each of all its commas, the ellipsis, or nothing.

    Args:
        comma: as the language of the text writes it, with the white space behind it.
    """
    pieces, ellipses, place = [], [], 0
    for match in _INNER_ELLIPSIS.finditer(text):
        before = text[place : match.start()]
        ellipses += [""] * len(_COMMA.findall(before)) + [match[0]]
        pieces += [before, comma]
        place = match.end()
    ellipses += [""] * len(_COMMA.findall(text, place))
    return "".join([*pieces, text[place:]]), tuple(ellipses)


def with_ellipses(translation: str, ellipses: Sequence[str]) -> str:
    """The translation of a text of `with_commas`, with its ellipses; as it is, if it has more or fewer commas."""
    commas = _COMMA.findall(translation)
    if len(commas) != len(ellipses):
        return translation
    found = iter(ellipses)
    return _COMMA.sub(lambda match: next(found) or match[0], translation)


# Parts of a line that is too long for the model.


# Full-width punctuation of Chinese and Japanese; no white space follows it.
_WIDE_STOPS = "\u3002\uff01\uff1f"
_WIDE_PAUSES = "\u3001\uff0c\uff1a\uff1b"
# Places for a cut, best first: after a sentence, after a comma or colon, between words. The white
# space in the group is removed.
_BOUNDARIES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"[.!?…{_OTHER_ENDS}][\"'»”)\]]*(\s+)|[{_WIDE_STOPS}](\s*)",
        rf"[,;:\u061b{_OTHER_COMMAS}](\s+)|[{_WIDE_PAUSES}](\s*)",
        r"(\s+)",
    )
)


_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
"""Two of these make a flag."""
_JOINED_TO_THE_LEFT = frozenset(["\u200c", "\u200d", *map(chr, range(0x1F3FB, 0x1F400))])
"""Joiners, and the skin colours of emoji."""


def split_line(text: str, is_short: Callable[[str], bool]) -> Iterator[str]:
    """Yield short parts of a text in order; each part that is too long is cut in two, repeatedly.

    A cut lies in the middle half of a part: after a sentence if possible, else after a comma,
    colon or semicolon, else at white space, else in the middle, beside no sign that belongs to the
    one before it. White space at a cut is removed.

    Args:
        text: a line.
        is_short: says whether a part is short enough; a single character always is.
    """
    waiting = [text]
    while waiting:
        part = waiting.pop()
        if len(part) < 2 or is_short(part):
            yield part
            continue
        left, right = _halves(part)
        waiting += [half for half in (right, left) if half]


def _halves(text: str) -> tuple[str, str]:
    """The two parts of a text of two or more characters; one of them is empty if it was blank."""
    middle = len(text) // 2
    start, end = len(text) // 4, len(text) - len(text) // 4
    for boundary in _BOUNDARIES:
        matches = boundary.finditer(text, start, end)
        cuts = [match.span(match.lastindex or 0) for match in matches]
        cuts = [cut for cut in cuts if 0 < cut[1] < len(text)]
        if cuts:
            cut = min(cuts, key=lambda span: abs(span[1] - middle))
            return text[: cut[0]].rstrip(), text[cut[1] :].lstrip()
    places = sorted(range(max(1, start), end), key=lambda place: abs(place - middle))
    place = next((one for one in places if not _is_in_cluster(text, one)), middle)
    return text[:place], text[place:]


def _is_in_cluster(text: str, place: int) -> bool:
    """Whether one sign for a reader stands on both sides of a place: a letter and its mark, an emoji of several characters."""
    if text[place] in _FLAG_LETTERS:
        letters = text[:place]
        return (len(letters) - len(letters.rstrip(_FLAG_LETTERS))) % 2 == 1
    sign = text[place]
    return text[place - 1] == "\u200d" or unicodedata.category(sign)[0] == "M" or sign in _JOINED_TO_THE_LEFT


# The form of a sentence: its final mark and its capital letters.


_FULL_STOPS = tuple(f".\u3002{_OTHER_STOPS}")
# The shad of Tibetan is none: it ends headings and parts of sentences, too.
_QUESTION_MARKS = tuple(f"?\uff1f{_OTHER_QUESTIONS}")
_SENTENCE_ENDS = tuple(f".!?\u2026\u3002\uff01\uff1f{_OTHER_ENDS}")
_CLOSING = "\"')]\u2019\u201d\u00bb"
_PAUSES = frozenset(",;:")
SPACED_PAUSES = {"fr": ":;"}  # with a space before them
_WIDE_PAUSE_MARKS = frozenset(f"\u3001\uff0c\uff1a\uff1b\u061b{_OTHER_COMMAS}")
_FEWEST_CAPITAL_WORDS = 3
_THREE_CAPITALS = lazy_pattern(r"(?:[^A-Z]*+[A-Z]){3}")
_FIRST_WORD = lazy_pattern(r"[^\W\d_]+")
LANGUAGES_WITH_CAPITAL_NOUNS = ("de", "lb")
"""Capital letters of nouns belong to the spelling of these languages."""


# The end of nearly every sentence; a full stop behind another one is an ellipsis.
PLAIN_END = re.compile(r"(?:[^.]\.|[^?!][?!])\Z")


def ends_sentence(text: str) -> bool:
    """Whether a text ends with a full stop, question mark or exclamation mark; quotes and brackets may follow it."""
    return text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)


def closing_mark(text: str) -> str:
    """The full stop, question mark or exclamation mark that ends a text; a full stop for an ellipsis; else nothing."""
    last = text.rstrip(_CLOSING)[-1:]
    if last == "\u2026":
        return "."
    return last if last in _SENTENCE_ENDS else ""


def without_closing_mark(text: str) -> str:
    """A text without the marks that end a sentence, if other words follow it."""
    return text.rstrip("".join(_SENTENCE_ENDS)).rstrip()


def with_final_mark_of(translation: str, source: str, *, target_language: str = "") -> str:
    """The translation with the end of its source, if that ends no sentence.

    A model adds a full stop, or a question mark, to a heading or a cell of a table, and loses the comma of "Dear Anna," or
    the colon of a title: the mark is taken away, and the comma or colon is put back. An ellipsis, of which a model makes a
    full stop, is put back, too; so is a row of marks such as "?!" and "!!". French has a space before a colon.
    """
    row = source[len(source.rstrip("?!")) :]
    if len(row) > 1 and translation.endswith(("!", ".", "?")) and not translation.endswith(row):
        return translation.rstrip("!?. ") + row
    is_ellipsis = translation.endswith(("..", "\u2026"))
    ellipsis = next((each for each in ("\u2026", "...") if source.endswith(each)), "")
    if ellipsis and translation.endswith(".") and not is_ellipsis:
        return translation[:-1].rstrip() + ellipsis
    before_pause = next((each for each in ("\u2026", "...") if source[:-1].endswith(each)), "")  # Wait...,
    if not has_word(translation) or not source or ends_sentence(source) or (is_ellipsis and not before_pause):
        return translation  # a text of marks only would vanish with its mark
    if source[-1] in _PAUSES:
        if translation[-1] in _WIDE_PAUSE_MARKS:
            return translation
        if translation.endswith(source[-1]) and translation[-2:-1].isspace():
            return translation
        gap = " " if source[-1] in SPACED_PAUSES.get(target_language, "") else ""
        return (
            translation.rstrip("".join({" \u00a0\u202f", *_PAUSES, *_SENTENCE_ENDS})) + before_pause + gap + source[-1]
        )
    is_added = translation.endswith((*_FULL_STOPS, *_QUESTION_MARKS))
    return translation[:-1].rstrip() if is_added else translation


def is_in_capitals(text: str) -> bool:
    """Whether a text of several words has capital letters only; two words may be abbreviations, such as EU GDP."""
    num_words = sum(len(word) > 1 for word in _FIRST_WORD.findall(text))
    return text.isupper() and num_words >= _FEWEST_CAPITAL_WORDS


def has_odd_case(text: str) -> bool:
    """Whether at least two thirds of the words of a text, and three, have capital letters, as those of titles in English do, or "tHe DoG iS".

    A text in capital letters alone is another thing: see `is_in_capitals`.
    """
    if text.isascii() and _THREE_CAPITALS.match(text) is None:  # most texts need no further look
        return False
    if text[1:].islower() or text.isupper():
        return False
    words = _FIRST_WORD.findall(text)
    num_odd = sum(word != word.lower() for word in words)
    return num_odd >= _FEWEST_CAPITAL_WORDS and 3 * num_odd >= 2 * len(words)


def in_sentence_case(text: str) -> str:
    """A text in small letters, whose first letter is a capital."""
    small = text.lower()
    first = next((place for place, sign in enumerate(small) if sign.isalpha()), 0)
    return small[:first] + small[first : first + 1].upper() + small[first + 1 :]


def as_inner_part(translation: str, source: str, *, target_language: str) -> str:
    """The translation of words within a sentence, without the capital letter that begins a sentence.

    Args:
        translation: of the words.
        source: the words. If they begin with a capital letter, nothing changes.
        target_language: such as de, whose nouns keep their capital letters.
    """
    first = _FIRST_WORD.match(translation)
    is_capitalised = first is not None and first[0].istitle() and first[0] not in source
    if is_capitalised and source[0].islower() and target_language not in LANGUAGES_WITH_CAPITAL_NOUNS:
        return translation[0].lower() + translation[1:]
    return translation


# The lengths of the texts that a model has seen.


SEEN_LENGTHS = "seen_lengths"
"""The key of these lengths in state.json."""
FEWEST_TOKENS = 6
"""Ratios are those of sources with at least so many tokens: the lengths of shorter texts differ too much."""


class SeenLengths(NamedTuple):
    """Lengths of the training pairs, in tokens as the model reads and writes them: with [EOS] and tags."""

    longest: int | None = None
    """99 % of the sources have at most so many tokens; None: not known."""
    smallest_ratio: float | None = None
    """99 % of the pairs have at least so many target tokens for each source token; None: not known."""

    def joined(self, other: "SeenLengths") -> "SeenLengths":
        """The lengths of a model that has seen two corpora; a length that is not known of one is not known."""
        longest, ratio = None, None
        if self.longest is not None and other.longest is not None:
            longest = max(self.longest, other.longest)
        if self.smallest_ratio is not None and other.smallest_ratio is not None:
            ratio = min(self.smallest_ratio, other.smallest_ratio)
        return SeenLengths(longest, ratio)


UNKNOWN_LENGTHS = SeenLengths()
