"""Lines that lose signs are translated again without them, and the signs are put back: beside the words that are linked to their neighbours, or between two parts that are translated by themselves."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.decoding.doubts import MARKS, without_unseen_words
from transformer_cli.decoding.engine import ExplainingEngine
from transformer_cli.decoding.signs import SIGN
from transformer_cli.decoding.translation import Line, Translation, joined, with_alternatives
from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.normalization import word_spans
from transformer_cli.text.sentences import as_inner_part, ends_sentence, with_final_mark_of
from transformer_cli.text.spans import SpanKind, find_spans

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.translator import Translator

# The end of a link of Markdown; emoticons; signs between white space; signs at a word, each by itself, but the marks of sentences.
_SIGNS = re.compile(
    r"(?<=\S)\](?:\([^()\s]{1,200}\)|\[[^\[\]\n]{0,99}\])"
    r"|(?<!\S)[:;=8]['\u2019]?-?[()DPpOo/|\\*3](?!\S)"
    r"|(?<!\S)[^\w\s]+(?!\S)"
    r"|\*{1,3}|~~|!\[|_{1,2}(?=[^\W_])(?<![^\W_]_)(?<![^\W_]__)|(?<=[^\W_])_{1,2}(?![^\W_])"
    r"|\.{3,}(?=\s)|(?<!-)--(?!-)|[-=]>|<-|(?<![\w'\u2018\u2019])['\u2018](?=\S)|(?<=\S)['\u2019](?![\w'\u2019])"
    r"|[^\w\s.,!?'\u2019\u2018-]|(?<![^\W\d_])[\u00b9\u00b2\u00b3\u2070-\u2079]"
)
_PARTNERS = {
    "(": ")", "[": "]", "![": "]", "{": "}", "<": ">", "\u201c": "\u201d", "\u201e": "\u201c", "\u00ab": "\u00bb",
    "\u2039": "\u203a", "\u2018": "\u2019", '"': '"', "'": "'", "*": "*", "**": "**", "***": "***", "~~": "~~", "_": "_", "__": "__",
}  # fmt: skip
_END_MARKS = ".,;:!?\u2026"
_BETWEEN_PARTS = re.compile(r"\s*(?:[:;](?=\s)|[^\w\s.,!?'\"()\[\]*]{1,3})\s*")
_FEW_WORDS = 0.67  # of the translation before
_TAG = re.compile(r"</?([\w:.-]+)[^<>]*>")


class _Sign(NamedTuple):
    """A sign of a line, and its place in the line without signs."""

    text: str
    place: int
    """In the line without signs."""
    is_left: bool
    """Whether it touches the word before it."""
    is_right: bool
    """Whether it touches the word behind it."""
    gap: str = ""
    """Of one that touches none: the white space on one of its sides, which is left out with it."""


class _Bare(NamedTuple):
    """A line without its signs."""

    text: str
    signs: tuple[_Sign, ...]


def _places_of_signs(text: str) -> list[tuple[int, int]]:
    """Where signs stand that a translation can get back; none inside of what is protected as a word or a number."""
    spans = find_spans(text)
    whole = [(each.start, each.end) for each in spans if each.kind in (SpanKind.WORD, SpanKind.NUMBER)]  # fmt: skip
    found = [(each.start, each.end) for each in spans if each.kind in (SpanKind.TAG, SpanKind.MARK)]
    for match in _SIGNS.finditer(text):
        place = match.span()
        is_link = match[0].startswith("](")
        if any(start < place[1] and place[0] < end for start, end in found):
            continue
        if is_link or not any(start < place[1] and place[0] < end for start, end in whole):
            if match[0] in ".?!" and text[: place[0]].strip():
                continue  # the end of a sentence behind white space
            found.append(place)
    links = [place for place in found if text.startswith("](", place[0])]
    return sorted(
        place
        for place in found
        if place in links or not any(start <= place[0] and place[1] <= end for start, end in links)
    )


def without_signs(text: str) -> _Bare:
    """A line without its signs, and their places in it."""
    places = _places_of_signs(text)
    bare, signs, end = "", list[_Sign](), 0
    for number, (start, stop) in enumerate(places):
        bare += text[end:start]
        before = text[start - 1 : start]
        behind = text[stop : stop + 1]
        is_first = not bare.strip()
        # Other signs between it and the next word do not divide them.
        follows = number + 1 < len(places) and places[number + 1][0] == stop
        is_left = bool(before) and not before.isspace() and not is_first
        is_right = bool(behind) and not behind.isspace()
        if follows:
            last = number + 1
            while last + 1 < len(places) and places[last + 1][0] == places[last][1]:
                last += 1
            after = text[places[last][1] : places[last][1] + 1]
            is_right = bool(after) and not after.isspace()
        if is_left and not bare[-1:].strip():
            is_left = bool(signs) and signs[-1].is_left and signs[-1].place == len(bare)
        gap = ""
        end = stop
        if not is_left and not is_right and not follows:
            gap = re.match(r"\s*", text[stop:])[0]  # type: ignore[index]
            end += len(gap)
            if not gap:  # at the end
                gap = bare[len(bare.rstrip()) :]
                bare = bare.rstrip()
        elif is_left and is_right and not follows and behind.isalnum() and bare[-1:].isalnum():
            signs.append(_Sign(text[start:stop], len(bare), is_left, is_right))
            bare += " "
            continue
        signs.append(_Sign(text[start:stop], len(bare), is_left, is_right, gap))
    return _Bare(bare + text[end:], tuple(signs))


def _pairs(signs: Sequence[_Sign]) -> dict[int, int]:
    """The number of the sign that closes what another opens."""
    opened: list[int] = []
    found: dict[int, int] = {}
    for number, sign in enumerate(signs):
        for at in reversed(range(len(opened))):
            if _closes(signs[opened[at]].text, sign.text) and signs[opened[at]].place < sign.place:
                found[opened[at]] = number
                del opened[at:]
                break
        else:
            opened.append(number)
    return found


def _closes(opening: str, closing: str) -> bool:
    if closing.startswith("]"):
        return opening in ("[", "![")
    tags = _TAG.fullmatch(opening), _TAG.fullmatch(closing)
    if tags[0] and tags[1]:
        return closing.startswith("</") and not opening.startswith("</") and tags[0][1] == tags[1][1]  # fmt: skip
    return _PARTNERS.get(opening) == closing or (opening == "\u201e" and closing in "\u201c\u201d")


def with_signs(bare: _Bare, translation: str, links: Mapping[int, int]) -> str:
    """The translation of a line without signs, with the signs.

    A pair stands around the words that are linked to those inside it in the line; any other sign stands where the fewest links reach
    from words before it to words behind it.

    Args:
        links: the number of the word of the line without signs, for words of the translation.
    """
    words, targets = word_spans(bare.text), word_spans(translation)
    if not words or not targets:
        return translation
    bounds = [sum(start < sign.place for start, _ in words) for sign in bare.signs]
    places: dict[int, int] = {}
    pairs = _pairs(bare.signs)
    for opening, closing in pairs.items():
        if bounds[opening] < bounds[closing]:
            places[opening], places[closing] = _range_of(
                bounds[opening], bounds[closing], len(words), len(targets), links
            )
    last = 0
    for number, bound in enumerate(bounds):
        if number in places:
            continue
        if number and bare.signs[number - 1].place == bare.signs[number].place and number - 1 in places:  # fmt: skip
            places[number] = places[number - 1]
            continue
        last = places[number] = _bound_of(bound, len(words), len(targets), links, last)
    inserted: list[tuple[int, int, str, int]] = []
    for number, sign in enumerate(bare.signs):
        bound = places[number]
        place, length, text = _inserted(sign, bound, bare.text, translation, targets)
        inserted.append((place, number, text, length))
    result, end = "", 0
    for place, _, text, length in sorted(inserted):
        if place < end:
            result, length = result + text, 0
            continue
        result += translation[end:place] + text
        end = place + length
    return result + translation[end:]


def _range_of(
    first: int, last: int, num_words: int, num_targets: int, links: Mapping[int, int]
) -> tuple[int, int]:
    """The range of target words with the most that are linked into a range of source words, and the fewest that are linked elsewhere."""
    if (first, last) == (0, num_words):
        return 0, num_targets
    values = [
        -0.1 if word not in links else 1.0 if first <= links[word] < last else -1.0
        for word in range(num_targets)
    ]
    best, found = 0.0, (0, 0)
    for start in range(num_targets):
        total = 0.0
        for end in range(start, num_targets):
            total += values[end]
            if total > best:
                best, found = total, (start, end + 1)
    if best > 0:
        return found
    start = min(round(first * num_targets / num_words), num_targets - 1)
    return start, max(start + 1, round(last * num_targets / num_words))


def _bound_of(bound: int, num_words: int, num_targets: int, links: Mapping[int, int], least: int) -> int:  # fmt: skip
    """Before which target word a sign stands that stands before a source word."""
    if bound in (0, num_words):
        return 0 if bound == 0 else num_targets
    expected = bound * num_targets / num_words

    def cost(place: int) -> tuple[int, float]:
        crossing = sum((word < place) != (source < bound) for word, source in links.items())
        return crossing, abs(place - expected)

    inner = range(max(1, least), num_targets) or range(num_targets, num_targets + 1)
    return min(inner, key=cost)


def _inserted(
    sign: _Sign, bound: int, source: str, translation: str, targets: Sequence[tuple[int, int]]
) -> tuple[int, int, str]:
    """Where a sign is put into a translation, how many characters of white space or a comma it takes the place of, and the text."""
    num_targets = len(targets)
    if sign.is_right and not sign.is_left:
        place = targets[bound][0] if bound < num_targets else len(translation)
        return place, 0, sign.text
    if sign.is_left and sign.is_right and 0 < bound < num_targets and source[sign.place : sign.place + 1] == " ":  # fmt: skip
        end = targets[bound - 1][1]
        return end, targets[bound][0] - end, sign.text
    if bound == 0:
        return 0, 0, sign.text + ("" if sign.is_right else sign.gap)
    start, end = targets[bound - 1]
    is_behind_mark = source[sign.place - 1 : sign.place] in tuple(_END_MARKS) and sign.place > 0
    inner = start + len(translation[start:end].rstrip(_END_MARKS))
    if not is_behind_mark and inner > start:
        is_last = bound == num_targets and not source[sign.place :].strip()
        if sign.text in (";", ":") and translation[inner:end] == ",":
            return inner, 1, sign.text
        end = end if is_last and not sign.is_left and not sign.is_right else inner
    gap = "" if sign.is_left or sign.is_right else sign.gap or " "
    return end, 0, gap + sign.text


class _Candidate(NamedTuple):
    """A way to translate a line again: its texts, and whether they are the two parts beside a sign."""

    place: int
    texts: tuple[str, ...]
    bare: _Bare | None
    gap: str = ""
    parts: tuple[str, ...] = ()
    """As they stand in the line; the model reads each as a sentence, because many models have seen a word by itself only so."""
    is_first_choice: bool = False


def _candidates(place: int, text: str) -> Iterator[_Candidate]:
    """The ways to translate a line again that lost signs."""
    bare = without_signs(text)
    if not bare.signs:
        return
    parts = _in_two_parts(text)
    if parts is not None:
        left, gap, right = parts
        first = right.lstrip("\"'([\u00ab\u201c")
        is_sentence = first[:1].isupper() and not first.startswith(("I ", "I'"))
        asked = tuple(each if ends_sentence(each) else f"{each}." for each in (left, right))
        yield _Candidate(place, asked, None, gap, (left, right), is_sentence)
    if bare.text != text and any(map(str.isalpha, bare.text)):
        yield _Candidate(place, (bare.text,), bare)


def _in_two_parts(text: str) -> tuple[str, str, str] | None:
    """The texts beside the sign that divides a line best, and this sign; None without one."""
    best: tuple[bool, int, tuple[str, str, str]] | None = None
    for start, end in _places_of_signs(text):
        gap = _BETWEEN_PARTS.match(text, len(text[:start].rstrip()))
        if gap is None or gap.end() < end:
            continue
        left, right = text[: gap.start()], text[gap.end() :]
        if gap[0].strip() == gap[0] and gap[0] not in ("\u2014", "\u2013", "--"):
            continue
        sizes = [sum(map(str.isalpha, word)) > 0 for word in (left, right)]
        if not all(sizes):
            continue
        value = (right[:1].isupper(), -abs(len(left) - len(right)))
        if best is None or value > best[:2]:
            best = (*value, (left, gap[0], right))
    return best[2] if best else None


def with_signs_in_place(
    translator: "Translator", lines: Sequence[Line], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses signs is translated again without them, and they are put back where its words tell.

    It counts only if the line has fewer doubts then, and hardly fewer words. Lines with signs that are left as they are, wholly or in part, get the same chance.
    """
    if not all(map(has_spaces, translator.languages)):
        return translations
    before = {
        place: judged
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if SIGN.search(line.given) and not (line.prefix or found.terms)  # a term may have signs
        for judged in [translator.with_doubts_of_line(found)]
        if _may_lack_signs(judged)
    }
    asked = [each for place in before for each in _candidates(place, lines[place].given)]
    if not asked:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    answers = iter(
        plain.translate_window(
            [
                replace(lines[each.place], given=text, number=lines[each.place].number)
                for each in asked
                for text in each.texts
            ]
        )
    )
    of_asked = [[next(answers) for _ in each.texts] for each in asked]
    of_bare = [
        (each.texts[0], found[0].text)
        for each, found in zip(asked, of_asked, strict=True)
        if each.bare
    ]
    links = _links(translator, of_bare)
    language = primary_language(translator.languages.target)
    best: dict[int, tuple[int, bool, Translation]] = {}
    for each, found in zip(asked, of_asked, strict=True):
        whole = translator.with_doubts_of_line(
            _whole(each, found, lines[each.place], links, language)
        )
        rank = _num_faults(whole), not each.is_first_choice
        known = best[each.place][:2] if each.place in best else (_num_faults(before[each.place]),)
        if rank < known and not _loses_words(before[each.place], whole):
            best[each.place] = *rank, whole
    return [best[place][2] if place in best else found for place, found in enumerate(translations)]


def _may_lack_signs(translation: Translation) -> bool:
    """Whether signs are lost, or kept the model from translating the line, or divided it into pieces with doubts."""
    doubts = without_unseen_words(translation.doubts)
    return (
        translation.is_untranslated
        or translation.is_partly_copied
        or bool(translation.is_in_pieces and doubts)
        or any(doubt.startswith(MARKS) for doubt in doubts)
    )


def _loses_words(before: Translation, found: Translation) -> bool:
    """Whether a translation has far fewer words than the one before, which only lacked signs."""
    doubts = without_unseen_words(before.doubts)
    if before.is_untranslated or not all(doubt.startswith(MARKS) for doubt in doubts):
        return False
    num_before, num_found = (len(word_spans(each.text)) for each in (before, found))
    return num_found < _FEW_WORDS * num_before


def _num_faults(translation: Translation) -> int:
    """How much is wrong with a translation of a line with signs; nothing if only words are unseen."""
    return len(without_unseen_words(translation.doubts)) + 2 * (
        translation.is_untranslated or translation.is_partly_copied
    )


def _whole(
    each: _Candidate,
    found: Sequence[Translation],
    line: Line,
    links: Mapping[tuple[str, str], Mapping[int, int]],
    language: str,
) -> Translation:
    if each.bare is None:
        whole = joined(line.given, found, each.gap.join)
        left, right = map(with_final_mark_of, [one.text for one in found], each.parts)
        inner = as_inner_part(right, each.parts[1], target_language=language)
        pairs = [(left + each.gap + inner, whole.score)]
    else:
        [whole] = found
        pairs = [(with_signs(each.bare, whole.text, links[each.texts[0], whole.text]), whole.score)]
    doubts = tuple(doubt for doubt in whole.doubts if not doubt.startswith(MARKS))
    whole = replace(
        whole, source=line.given, is_repaired=True, is_in_pieces=True, doubts=doubts, pieces=()
    )
    return with_alternatives(whole, pairs)


def _links(
    translator: "Translator", pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Mapping[int, int]]:
    """The links of texts and translations, as numbers of words; by their positions if the engine does not tell them."""
    engine = translator.engine
    distinct = list(dict.fromkeys(pairs))
    if isinstance(engine, ExplainingEngine) and distinct:
        from transformer_cli.decoding.given_pairs import TextAligner  # numpy

        aligner = TextAligner(translator.pipeline, engine, translator.decoding.batch_tokens)
        found = aligner.align(distinct)
    else:
        found = [[] for _ in distinct]
    result: dict[tuple[str, str], Mapping[int, int]] = {}
    for pair, of_pair in zip(distinct, found, strict=True):
        of_source, of_target = (
            {span: number for number, span in enumerate(word_spans(text))} for text in pair
        )
        linked = {
            of_target[target]: of_source[source]
            for source, target in of_pair
            if source in of_source and target in of_target
        }
        linked = _with_equal_words(*pair, linked)
        if not linked and of_target:
            share = len(of_source) / len(of_target)
            linked = {word: int(word * share) for word in of_target.values()}
        result[pair] = linked
    return result


def _with_equal_words(source: str, translation: str, links: Mapping[int, int]) -> dict[int, int]:
    """The links, in which words that are protected, such as placeholders, are linked with themselves alone."""
    kept = {text.strip(_END_MARKS) for text in source.split() if find_spans(text)}
    if not kept:
        return dict(links)
    of_source, of_target = (
        [
            (number, core)
            for number, word in enumerate(text.split())
            if (core := word.strip(_END_MARKS)) in kept
        ]
        for text in (source, translation)
    )
    equal: dict[int, int] = {}
    for number, core in of_target:
        same = next(
            (place for place, each in of_source if each == core and place not in equal.values()),
            None,
        )
        if same is not None:
            equal[number] = same
    return {word: at for word, at in links.items() if at not in equal.values()} | equal
