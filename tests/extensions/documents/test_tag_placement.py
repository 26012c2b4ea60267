"""Markup moves with its words: nothing is lost or doubled, nothing crosses, and ranges cover the right words."""

import random
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.translation import PlacedPiece
from transformer_cli.extensions.documents.inline_text import DIVISION, InlineText
from transformer_cli.extensions.documents.segments import (
    InlinePart,
    Markup,
    Piece,
    Role,
    Segment,
    WithoutWords,
    partners_of,
    plain_text,
    with_paired_points,
    with_spaces_at_ranges,
)
from transformer_cli.extensions.documents.tag_placement import place_markup
from transformer_cli.extensions.documents.translator import LinkedWords, links_by_position


def shown(pieces: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece.raw for piece in pieces)


def segment_of(tagged: str) -> Segment:
    """A segment in which <a> </a> is a range, <1/> a point and {x} a word."""
    pieces: list[Piece] = []
    text = ""
    for part in tagged.replace("<", "\0<").replace(">", ">\0").split("\0"):
        if part.startswith("</"):
            pieces.append(Markup(Role.CLOSE, ord(part[2]), part))
        elif part.endswith("/>"):
            pieces.append(Markup(Role.POINT, 1000 + len(pieces), part))
        elif part.startswith("<"):
            pieces.append(Markup(Role.OPEN, ord(part[1]), part))
        elif part:
            pieces.append(part)
            text += part
    return Segment(tuple(pieces), "here")


def placed(tagged: str, target: str, pairs: str) -> str:
    """The target with markup, by links in the Pharaoh format."""
    inline = InlineText.of(segment_of(tagged))
    words = [_extents(inline.text), _extents(target)]
    links = [
        LinkedWords(words[0][int(source)], words[1][int(number)])
        for source, number in (pair.split("-") for pair in pairs.split())
    ]
    return shown([*inline.before, *place_markup(inline, target, links).pieces, *inline.after])


def _extents(text: str) -> list[tuple[int, int]]:
    ends = [0]
    extents = []
    for word in text.split(" "):
        extents.append((ends[-1], ends[-1] + len(word)))
        ends.append(ends[-1] + len(word) + 1)
    return extents


def test_a_range_moves_with_its_words() -> None:
    assert placed("the <b>red</b> car", "la macchina rossa", "0-0 1-2 2-1") == "la macchina <b>rossa</b>"


def test_a_range_that_is_torn_apart_covers_the_larger_part() -> None:
    found = placed("I <b>do not know</b> that", "io ciò x non so", "0-0 4-1 1-2 2-3 3-4")
    assert found == "io ciò <b>x non so</b>"
    assert placed("<b>a b c</b> d", "a d b c", "0-0 3-1 1-2 2-3") == "a d <b>b c</b>"


def test_ranges_of_which_both_want_a_place_never_cross() -> None:
    assert placed("<a>p q</a> <b>r s</b>", "p r q s", "0-0 1-2 2-1 3-3") in (
        "<a>p</a> <b>r</b> q s",
        "<a>p</a> <b>r q s</b>",
        "<a>p r q</a> <b>s</b>",
        "<a>p</a> r q <b>s</b>",
    )


def test_punctuation_stays_on_its_side_of_a_tag() -> None:
    assert placed("see <b>here</b>, now", "vedi qui, ora", "0-0 1-1 2-2") == "vedi <b>qui</b>, ora"
    assert placed("see <b>here,</b> now", "vedi qui, ora", "0-0 1-1 2-2") == "vedi <b>qui,</b> ora"


def test_a_point_follows_the_word_that_it_touches() -> None:
    assert placed("the car<1/> stops", "si ferma la macchina", "0-2 1-3 2-1 2-0") == "si ferma la macchina<1/>"
    assert placed("the <1/>car stops", "ferma la macchina", "0-1 1-2 2-0") == "ferma la <1/>macchina"


def test_a_range_without_linked_words_is_kept_empty_and_counted() -> None:
    inline = InlineText.of(segment_of("one <b>two</b> three"))
    result = place_markup(inline, "uno tre", [LinkedWords((0, 3), (0, 3)), LinkedWords((8, 13), (4, 7))])
    assert result.num_empty == 1
    assert shown(result.pieces) == "uno <b></b>tre"


def test_markup_around_everything_never_moves() -> None:
    assert placed("<a><b>one two</b></a><1/> ", "due uno", "0-1 1-0") == "<a><b>due uno</b></a><1/> "


def tree(generator: random.Random, depth: int, names: Iterator[str]) -> tuple[str, str]:
    """A tagged text, and the same with the parts of each range in another order: no range is torn apart."""
    parts = []
    for _ in range(generator.randint(1, 3)):
        if depth and generator.random() < 0.6:
            name = next(names)
            parts.append(tuple(f"<{name}>{each}</{name}>" for each in tree(generator, depth - 1, names)))
        else:
            word = f"w{generator.randrange(10**9)}"
            parts.append((word, word))
    order = generator.sample(parts, len(parts))
    return " ".join(part[0] for part in parts), " ".join(part[1] for part in order)


@given(st.integers(0, 10**6))
def test_words_that_stay_together_get_exactly_their_tags(seed: int) -> None:
    generator = random.Random(seed)
    names = map(chr, range(0x61, 0x250))
    source, wanted = tree(generator, 3, names)
    inline = InlineText.of(segment_of(f"first {source} last"))
    target = plain_text(segment_of(f"last {wanted} first").pieces)
    places = {target[start:end]: (start, end) for start, end in _extents(target)}
    links = [LinkedWords(place, places[inline.text[slice(*place)]]) for place in _extents(inline.text)]
    assert shown(place_markup(inline, target, links).pieces) == f"last {wanted} first"


@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(0, 20))
def test_with_any_links_all_markup_comes_back_once_and_nested(seed: int, num_words: int, num_links: int) -> None:
    generator = random.Random(seed)
    names = map(chr, range(0x61, 0x250))
    source = f"first, {tree(generator, 3, names)[0]}<1/> x<1/>y <1/> last."
    segment = segment_of(source)
    inline = InlineText.of(segment)
    target = " ".join(f"t{number}" for number in range(num_words))
    words = _extents(target) if target else []
    sources = _extents(inline.text)
    links = [LinkedWords(generator.choice(sources), generator.choice(words)) for _ in range(num_links) if words]
    pieces = place_markup(inline, target, links).pieces
    markup = [piece for piece in pieces if isinstance(piece, Markup)]
    given_markup = [piece for piece in segment.pieces if isinstance(piece, Markup)]
    assert sorted(map(str, markup)) == sorted(map(str, given_markup))
    assert plain_text(pieces).split() == target.split()
    opened: list[int] = []
    for piece in markup:
        if piece.role is Role.OPEN:
            opened.append(piece.number)
        elif piece.role is Role.CLOSE:
            assert opened.pop() == piece.number


def test_links_by_position_cover_every_word() -> None:
    links = links_by_position("a b", "x y z w")
    assert [link.target for link in links] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [link.source for link in links] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert links_by_position("", "x") == ()


def test_punctuation_behind_a_range_stays_behind_it_after_punctuation_in_it() -> None:
    links = "0-0 1-1 2-2 3-3"
    assert placed("a <b>house (BH)</b>, which", "una casa (BH), che", links) == "una <b>casa (BH)</b>, che"
    assert placed("a <b>real 'house'</b>. Yes", "una vera 'casa'. Sì", links) == "una <b>vera 'casa'</b>. Sì"
    assert placed("he <b>said (so)</b>! Yes", "lui dice (così). Sì", links) == "lui <b>dice (così)</b>. Sì"
    assert placed("a, <b>'big house'</b> is", "una, 'grande casa' è", links) == "una, <b>'grande casa'</b> è"
    assert placed("a <b>house (BH)</b>, which", "che (BH), casa una", "0-3 1-2 2-1 3-0") == "che <b>(BH), casa</b> una"


def test_a_range_of_marks_alone_takes_no_word() -> None:
    links = "0-0 1-2 2-1"
    assert placed("the red house<b>\u203a</b>", "la casa\u203a rossa", links) == "la casa<b>\u203a</b> rossa"
    assert placed("the red (house<b>)</b>", "la (casa) rossa", links) == "la (casa<b>)</b> rossa"
    assert placed("the red house<b>\u203a</b>", "la casa rossa", links) == "la casa<b></b> rossa"


def test_a_range_inside_a_word_leaves_what_stands_before_and_behind_it() -> None:
    assert placed("1-<b>London</b> now", "1-Londra adesso", "0-0 1-1") == "1-<b>Londra</b> adesso"
    assert placed("at <b>London</b>/2 now", "a Londra/2 adesso", "0-0 1-1 2-2") == "a <b>Londra</b>/2 adesso"


def test_a_note_behind_a_bracket_stays_behind_it() -> None:
    assert placed("a (word)<1/>. Yes", "una (parola). Si", "0-0 1-1 2-2") == "una (parola)<1/>. Si"


def test_no_tag_comes_into_a_placeholder() -> None:
    links = "0-0 1-1 2-2"
    assert placed("Hi {{name}}, <b>you</b>", "Ciao te, {{name}}!", "0-0 1-1 2-2") == "Ciao te, <b>{{name}}</b>!"
    assert placed("Hi <b>{{name}}</b>, you", "Ciao {{name}}, te", links) == "Ciao <b>{{name}}</b>, te"
    assert placed("see <b>(http://a.b/)</b>, you", "vedi (http://a.b/), te", links) == "vedi <b>(http://a.b/)</b>, te"


def test_a_point_before_a_full_stop_stays_behind_the_word_before_it() -> None:
    assert placed("the car is red <1/>.", "la macchina rossa.", "0-0 1-1 3-2 4-2") == "la macchina rossa<1/>."


def test_many_ranges_without_words_have_one_empty_place_each() -> None:
    """Their places once doubled with each of them, so that a text with forty of them never ended."""
    tags = "".join(f"<{letter}>x</{letter}>" for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN")
    found = placed(f"{tags} car", "auto", "1-0")
    assert found.count("</") == 40
    assert found.endswith("auto")


def test_a_range_does_not_begin_or_end_with_white_space() -> None:
    found = placed("for <b>the cars \u2026</b>: now", "adesso \u2026: macchine le per", "0-4 1-3 2-2 3-1 4-0")
    assert "<b> " not in found
    assert " </b>" not in found


def test_no_range_begins_or_ends_inside_a_protected_part() -> None:
    """Whatever the attention says: words of the range are linked to each part of a tag that is text."""
    opening, closing = Markup(Role.OPEN, 1, "[b]"), Markup(Role.CLOSE, 1, "[/b]")
    source = Segment(("Open <var x> and ", opening, "the car", closing, " now."), "here")
    inline = InlineText.of(source)
    target = "Apri <var x> e ora."
    words = _extents(target)
    for first in words:
        for last in words:
            links = [LinkedWords((17, 20), first), LinkedWords((21, 24), last)]
            text = shown(place_markup(inline, target, links).pieces)
            assert "<var x>" in text, (first, last)


def test_a_range_around_one_protected_part_stays_around_it() -> None:
    text = "See <a>https://example.org</a> and <b>the house</b>."
    target = "Vedi https://example.org e la casa."
    assert placed(text, target, "0-0 1-0 2-2 3-1 4-4") == ("Vedi <a>https://example.org</a> e la <b>casa</b>.")


def test_a_range_that_must_not_be_empty_is_left_out_without_words_and_keeps_what_stands_for_text() -> None:
    links = [LinkedWords((0, 3), (0, 3)), LinkedWords((8, 13), (4, 7))]
    for tagged, wanted in (
        ("one <b>two</b> three", "uno tre"),
        ("one <b><i>two</i></b> three", "uno tre"),
        ("one <b>two<1/></b> three", "uno <b><1/></b>tre"),
    ):
        given_pieces = segment_of(tagged).pieces
        pieces = (
            piece._replace(without_words=WithoutWords.LEFT_OUT) if isinstance(piece, Markup) else piece
            for piece in given_pieces
        )
        result = place_markup(InlineText.of(Segment(tuple(pieces), "here")), "uno tre", links)
        assert shown(result.pieces) == wanted
        assert (result.num_empty, bool(result.num_left_out)) == (0, "<1/>" not in tagged)


def test_a_range_that_needs_words_stands_around_the_nearest_free_word() -> None:
    def linked(tagged: str, target: str, links: list[LinkedWords]) -> str:
        pieces = (
            piece._replace(without_words=WithoutWords.AT_NEAREST) if isinstance(piece, Markup) else piece
            for piece in segment_of(tagged).pieces
        )
        return shown(place_markup(InlineText.of(Segment(tuple(pieces), "here")), target, links).pieces)

    links = [LinkedWords((0, 3), (0, 3)), LinkedWords((8, 13), (4, 7))]
    assert linked("one <a>two</a> three", "uno tre", links) == "uno <a>tre</a>"
    # The only word belongs to another range.
    assert linked("<a>one</a> <b>two</b>", "uno", [LinkedWords((0, 3), (0, 3))]) == "<a>uno</a><b></b>"


@pytest.mark.parametrize("without_words", WithoutWords)
def test_letters_that_are_younger_than_the_tables_of_python_are_letters_of_words(without_words: WithoutWords) -> None:
    """Those of Garay came with Unicode 16; Python 3.11 knows Unicode 14."""
    garay = str.maketrans({letter: chr(0x10D70 + number) for number, letter in enumerate("acehinort")})
    results = []
    for script in ({}, garay):
        pieces = (
            piece._replace(without_words=without_words) if isinstance(piece, Markup) else piece.translate(script)
            for piece in segment_of("one <b>actor</b> teach").pieces
        )
        # The word inside the range has none in the translation.
        links = [LinkedWords((0, 3), (0, 3)), LinkedWords((10, 15), (4, 7))]
        text = InlineText.of(Segment(tuple(pieces), "here"))
        found = place_markup(text, "hat tea".translate(script), links)
        numbers = found.num_empty, found.num_left_out, found.num_at_nearest
        results.append((shown(found.pieces).replace("<b>", "<>").replace("</b>", "<>"), numbers))
    (latin, numbers), (other, other_numbers) = results
    assert (other, other_numbers) == (latin.translate(garay), numbers)
    assert sum(map(bool, numbers)) == 1


def test_words_with_a_mark_but_no_white_space_between_them_are_two() -> None:
    for mark in ("\u2014", "\u2013", "--", "/", "...", "\u2026", ",", ': "'[:1]):
        found = placed(f"a <b>dog</b>{mark}a cat", f"un cane{mark}il gatto", "0-0 1-1 2-2")
        assert found == f"un <b>cane</b>{mark}il gatto"
        found = placed(f"a dog{mark}<b>a cat</b>", f"un cane{mark}il gatto", "0-0 1-1 2-2")
        assert found == f"un cane{mark}<b>il gatto</b>"
    # A mark that the translation has lost, and one that it has added.
    assert placed("a <b>dog</b>/cat", "un cane gatto", "0-0 1-1 1-2") == "un <b>cane gatto</b>"
    assert placed("<b>dog</b> cat", "cane/gatto", "0-0 1-0") == "<b>cane/gatto</b>"
    assert placed("the <b>well-known</b> dog", "il cane ben-noto", "0-0 1-2 2-1") == "il cane <b>ben-noto</b>"


@pytest.mark.parametrize(
    ("tagged", "target", "pairs", "expected"),
    [
        ("dog<a>[edit]</a>", "cane[modifica]", "0-0", "cane<a>[modifica]</a>"),
        ("dog<a>[<b>edit</b>]</a>", "cane[modifica]", "0-0", "cane<a>[<b>modifica</b>]</a>"),
        ("dog<a><b>=</b>cat</a>", "cane=gatto", "0-0", "cane<a><b>=</b>gatto</a>"),
        ("<a>dog=</a>cat", "cane=gatto", "0-0", "<a>cane=</a>gatto"),
        ("dog<a>= big cat</a>", "cane= gatto grande", "0-0 1-2 2-1", "cane<a>= gatto grande</a>"),
        ("<a>big dog =</a>cat", "cane grande =gatto", "0-1 1-0 2-2", "<a>cane grande =</a>gatto"),
        ("dog<a>=</a>cat", "cane=gatto", "0-0", "cane<a>=</a>gatto"),
        ("dog=<a>cat</a>", "cane=gatto", "0-0", "cane=<a>gatto</a>"),
    ],
)
def test_a_mark_between_two_words_stays_in_the_range_that_it_begins_or_ends(
    tagged: str, target: str, pairs: str, expected: str
) -> None:
    assert placed(tagged, target, pairs) == expected


def test_a_tag_of_a_word_that_comes_back_as_it_is_stays_at_it_without_links() -> None:
    wrong = "0-3 1-0 2-1 3-2"
    assert placed("on the 5<a>th</a> street", "via la 5th strada", wrong) == "via la 5<a>th</a> strada"
    assert (
        placed("we have <b>3x</b> rooms", "abbiamo stanze con 3x", "0-1 1-0 2-1 3-2") == "abbiamo stanze con <b>3x</b>"
    )
    assert (
        placed("we have <b>NATO</b> rooms", "abbiamo stanze della NATO", "0-1 1-0 2-1 3-2")
        == "abbiamo stanze della <b>NATO</b>"
    )
    # The Italian a is another word, and so may be one that the translation has more often.
    assert placed("we see <b>a</b> dog", "un cane vediamo a", "0-2 1-2 2-0 3-1") == "<b>un</b> cane vediamo a"
    assert placed("we see <b>3x</b> dog", "3x cane 3x vediamo", "0-3 1-3 2-2 3-1") == "3x cane <b>3x</b> vediamo"


def test_a_tag_of_a_word_with_marks_inside_that_stays_holds_the_whole_of_it() -> None:
    for word in ("house:dog.zip", "user#2", "commit:c6f4d0fd"):
        inline = InlineText.of(segment_of(f"I see <a>{word}</a> (the cat)."))
        target = f"Qui vedo {word} (il gatto)."
        # Attention reads such a word part by part, and here only the first one.
        first = re.match(r"\w+", word)
        assert first
        links = [
            LinkedWords((6, 6 + first.end()), (9, 9 + first.end())),
            LinkedWords((2, 5), (4, 8)),
        ]
        found = shown([*inline.before, *place_markup(inline, target, links).pieces, *inline.after])
        assert found == f"Qui vedo <a>{word}</a> (il gatto)."


def placed_in_pieces(tagged: str, target: str, pairs: str, pieces: list[tuple[str, str]]) -> str:
    """As `placed`, for a text that was translated in pieces, each given by its text and its translation."""
    inline = InlineText.of(segment_of(tagged))
    words = [_extents(inline.text), _extents(target)]
    links = [
        LinkedWords(words[0][int(source)], words[1][int(number)])
        for source, number in (pair.split("-") for pair in pairs.split())
    ]
    extents = []
    for source, text in pieces:
        start, begin = inline.text.index(source), target.index(text)
        extents.append(PlacedPiece((start, start + len(source)), (begin, begin + len(text))))
    found = place_markup(inline, target, links, pieces=extents).pieces
    return shown([*inline.before, *found, *inline.after])


def test_markup_of_a_piece_stands_in_the_translation_of_this_piece() -> None:
    pieces = [("We like PEP 8.", "Ci piace PEP 8."), ("We go.", "Andiamo.")]
    target = "Ci piace PEP 8. Andiamo."
    # Links into another piece, as attention may give them, and none at all.
    for pairs in ("2-4 3-4", "0-4", ""):
        for tagged in ("We like <a>PEP 8</a>. We go.", "We <a>like</a> PEP 8. We go."):
            found = placed_in_pieces(tagged, target, pairs, pieces)
            assert found.endswith(" Andiamo."), (found, pairs)
        found = placed_in_pieces("We like PEP 8. <a>We</a> go.", target, pairs, pieces)
        assert found.startswith("Ci piace PEP 8."), (found, pairs)
        found = placed_in_pieces("We like PEP 8.<1/> We go.", target, pairs, pieces)
        assert found == "Ci piace PEP 8.<1/> Andiamo."
    # One that reaches over both pieces may have words of both.
    found = placed_in_pieces("We <a>like PEP 8. We</a> go.", target, "1-1 2-2 3-3 4-4", pieces)
    assert found.startswith("Ci <a>piace PEP 8. Andiamo")


def test_a_line_break_stays_behind_a_bracket_that_was_put_back_behind_a_piece() -> None:
    source, target = f"Dog (a@b.com)<1/>{DIVISION}The house", f"Cane (a@b.com){DIVISION}La casa"
    pieces = [("Dog", "Cane"), ("a@b.com", "a@b.com"), ("The house", "La casa")]
    assert placed_in_pieces(source, target, "0-0 2-2", pieces) == f"Cane (a@b.com)<1/>{DIVISION}La casa"
    pieces = [("Dog (a@b.com)", "Cane (a@b.com"), ("The house", "La casa")]
    assert placed_in_pieces(source, target, "0-0 2-2", pieces) == f"Cane (a@b.com)<1/>{DIVISION}La casa"


def test_nested_markup_and_siblings_stay_in_their_pieces() -> None:
    pieces = [("a b,", "B A,"), ("c d", "D C")]
    found = placed_in_pieces("<a>a <b>b</b>,</a> <c>c</c> d", "B A, D C", "0-3 1-2 2-0 3-1", pieces)
    before, _, behind = found.partition("D")
    assert all(tag in before for tag in ("<a>", "<b>", "</b>", "</a>")), found
    assert "<c>" in found[found.index("A") :], (before, behind)


@pytest.mark.long
@given(st.randoms(use_true_random=False))
def test_no_markup_leaves_its_piece(random_numbers: random.Random) -> None:
    choose = random_numbers.choice
    num_pieces = random_numbers.randint(1, 4)
    tagged, target, pieces = "", "", []
    for number in range(num_pieces):
        letter = "pqrs"[number]
        words = [letter * random_numbers.randint(1, 3) for _ in range(random_numbers.randint(1, 5))]
        first = random_numbers.randrange(len(words))
        last = random_numbers.randint(first, len(words) - 1)
        source = " ".join(words) + "."
        words[first] = f"<{'abcd'[number]}>" + words[first]
        words[last] += f"</{'abcd'[number]}>"
        text = " ".join(letter.upper() * 2 for _ in range(random_numbers.randint(1, 5))) + "."
        tagged += (" " if tagged else "") + " ".join(words) + "."
        pieces.append((len(target) + bool(target), text, source))
        target += (" " if target else "") + text
    inline = InlineText.of(segment_of(tagged))
    sources, targets = _extents(inline.text), _extents(target)
    links = [LinkedWords(choose(sources), word) for word in targets if random_numbers.random() < 0.8]
    place, extents = 0, []
    for begin, text, source in pieces:
        extents.append(PlacedPiece((place, place + len(source)), (begin, begin + len(text))))
        place += len(source) + 1
    found = shown([*inline.before, *place_markup(inline, target, links, pieces=extents).pieces, *inline.after])
    for number, (begin, text, _) in enumerate(pieces):
        for tag in (f"<{'abcd'[number]}>", f"</{'abcd'[number]}>"):
            place = len(re.sub("<[^<>]*>", "", found[: found.index(tag)]))
            assert begin <= place <= begin + len(text), found


def num_operations(work: Callable[[], object]) -> int:
    """How many operations of Python's machine some work takes: the same on each computer, however busy it is."""
    counted = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal counted
        frame.f_trace_opcodes = True
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted


PARAGRAPHS = {
    "ranges": "the <a>red</a> dog sleeps ",
    "ranges of several words": "see<a>the red</a> dog ",
    "links without words": "the <a>\u2192</a> dog ",
    "points": "the dog <1/> sleeps ",
    "words": "the {x} dog ",
    "compounds": "see <a>dog-2x</a> now ",
}


@pytest.mark.long
@pytest.mark.parametrize("place", [0, 1], ids=["linked", "not linked"])
@pytest.mark.parametrize("kind", PARAGRAPHS)
def test_the_work_grows_with_the_markup_and_not_with_its_square(kind: str, place: int) -> None:
    counts = []
    for number in (12, 96):
        segment = segment_of(PARAGRAPHS[kind] * number)
        source = InlineText.of(segment)
        target = source.text.upper() if not source.words else source.text
        links = () if place else links_by_position(source.text, target)

        def work() -> None:
            with_spaces_at_ranges(segment.pieces)  # noqa: B023
            InlineText.of(segment)  # noqa: B023
            place_markup(source, target, links)  # noqa: B023

        work()  # what is made once, such as patterns, does not count
        counts.append(num_operations(work))
    # Eight times as much markup: eight times the work, and the searches in sorted lists; its square is 64.
    assert counts[1] < 20 * counts[0]


PARTS = st.lists(
    st.tuples(st.sampled_from([Role.OPEN, Role.CLOSE, Role.POINT]), st.sampled_from("abc")),
    max_size=14,
)


@given(PARTS, PARTS)
def test_of_two_points_a_range_is_made_unless_it_crosses_another(
    ranges: list[tuple[Role, str]], points: list[tuple[Role, str]]
) -> None:
    parts = []
    mixed: list[tuple[Role, str, Role | None]] = [(role, name, None) for role, name in ranges]
    mixed += [(Role.POINT, name.upper(), role) for role, name in points if role is not Role.POINT]
    random.Random(len(mixed)).shuffle(mixed)
    for at, (role, name, pair) in enumerate(mixed):
        parts.append(InlinePart(Markup(role, at, ""), at, at, name, pair))
    found = with_paired_points(parts)
    # Each pair in turn, against all ranges.
    opened: dict[str, list[int]] = {}
    all_ranges = [each for each in partners_of(parts).items() if each[0] < each[1]]
    for at, part in enumerate(parts):
        if part.pair is Role.OPEN:
            opened.setdefault(part.name, []).append(at)
        elif part.pair is Role.CLOSE and opened.get(part.name):
            first = opened[part.name].pop()
            crosses = any(first < start < at < end or start < first < end < at for start, end in all_ranges)
            all_ranges += [] if crosses else [(first, at)]
            begin = found[first].piece
            assert isinstance(begin, Markup)
            assert (begin.role is Role.OPEN) is not crosses
            assert (begin.partner == at) is crosses
