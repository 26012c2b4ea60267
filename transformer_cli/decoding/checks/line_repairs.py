"""Repairs of whole lines: a line whose translation lost a number, a URL, a placeholder or a sign, and a doubtful one in an odd case, is translated again."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.decoding.checks.acronyms import MAY_BE_ACRONYM, with_acronyms_in_place
from transformer_cli.decoding.checks.brackets import (
    MAY_BE_EMPTY,
    loses_any,
    with_empty_brackets,
    without_empty_brackets,
)
from transformer_cli.decoding.checks.copied_words import with_copied_words
from transformer_cli.decoding.checks.dates_in_place import with_dates_in_place
from transformer_cli.decoding.checks.doubts import (
    DATES,
    MARKS,
    NUMBERS,
    UNSEEN,
    doubts_of_small_letters,
    lost_marks,
    with_ampersands,
    with_words_for_ampersands,
    without_words,
)
from transformer_cli.decoding.checks.numbers_in_text import has_joined_numbers
from transformer_cli.decoding.checks.signs import SIGN, has_more_signs
from transformer_cli.decoding.checks.signs_in_place import (
    END_MARKS,
    BareText,
    Link,
    Range,
    SignOfLine,
    pairs_around_words,
    partners_of_signs,
    places_of_signs,
    with_signs,
    without_signs,
)
from transformer_cli.decoding.engine import ExplainingEngine
from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.decoding.translation import SourceText, Translation, joined_translation, with_alternatives
from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.normalization import has_letter, without_line_breaks, word_spans
from transformer_cli.text.quotation_marks import mark_without_partner, plain_quotes, with_pairs_of_quotes
from transformer_cli.text.sentences import as_inner_part, ends_sentence, has_odd_case, with_final_mark_of
from transformer_cli.text.spans import SpanKind, find_spans, has_span_sign, span_texts

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.translator import Translator

_MOST_FOR_NUMBERS = 4.0  # nats, over all pieces; good repairs are at most 2.5 less probable
_BESIDE_WORDS = (SpanKind.WORD, SpanKind.TAG)


def with_lost_parts(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations of lines; those that lost a number, a URL, a placeholder or a sign are made again, if that brings it back.

    Doubtful lines in an odd case, such as "The Dog Is Big", are made again from small letters.
    """
    places = [
        place
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if _may_lose_parts(line.text, found) or translator.pipeline.is_title(line.text)
    ]
    if not places:
        return translations
    # What comes back from the line, such as brackets around nothing, has no line break that the translation may not have.
    lines = [lines[place]._replace(text=without_line_breaks(lines[place].text)) for place in places]
    found = [
        translation if translation.source == line.text else replace(translation, source=line.text)
        for line, translation in zip(lines, map(translations.__getitem__, places), strict=True)
    ]
    if not translator.protects_spans:
        found = _with_lost_spans(translator, lines, found)
    if translator.num_line_repairs:
        found = with_acronyms_in_place(translator, lines, found)
        found = with_dates_in_place(translator, lines, found)
        found = _with_small_signs_in_place(translator, lines, found)
        found = _with_lost_ampersands(translator, lines, found)
        found = _with_lost_empty_brackets(translator, lines, found)
        found = _with_odd_case(translator, lines, found)
        found = _with_signs_in_place(translator, lines, found)
    mended = list(translations)
    for place, translation in zip(places, found, strict=True):
        mended[place] = replace(translation, source=translations[place].source)
    return mended


def _may_lose_parts(line: str, translation: Translation) -> bool:
    """Whether a line has something that one of the repairs here looks for; most lines have nothing."""
    return (
        not {NUMBERS, DATES}.isdisjoint(translation.doubts)
        or has_odd_case(line)
        or MAY_BE_ACRONYM.search(line) is not None
        or has_span_sign(line)
        or SIGN.search(line) is not None
        or MAY_BE_EMPTY.search(line) is not None
    )


def _with_lost_spans(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses a number, a URL or a placeholder is translated again, with protected spans.

    So is one that was left as it is and has a URL, a tag, an emoji, numbers as in 20 x 30 or the like: the model may read the rest of it.
    """
    lost = [
        place
        for place, (line, translation) in enumerate(zip(lines, translations, strict=True))
        if not line.prefix
        and (
            loses_spans(line.text, translation)
            or _loses_names(translator, line.text, translation)
            or (translation.is_untranslated and _may_read_the_rest(line.text))
        )
    ]
    if not lost:
        return translations
    protecting = replace(translator, protects_spans=True, reports_lines=False, only_green=False)
    found = protecting.translate_window([lines[place] for place in lost])
    better = {
        place: replace(translation, is_repaired=True)
        for place, translation in zip(lost, found, strict=True)
        if not translation.is_partly_copied
        and not loses_spans(lines[place].text, translation)
        and not (translation.is_untranslated and not loses_spans(lines[place].text, translations[place]))
        and not _is_far_less_probable(translations[place], translation)
    }
    return [better.get(place, translation) for place, translation in enumerate(translations)]


def _loses_names(translator: "Translator", line: str, translation: Translation) -> bool:
    """Whether a translation has other words for words in quotation marks that training has not seen, or they kept the model from reading the line."""
    names = translator.pipeline.unseen_names(line)
    return bool(names) and (translation.is_untranslated or not Promise.of(line, names).is_kept_by(translation.text))


def _may_read_the_rest(line: str) -> bool:
    return has_joined_numbers(line) or any(span.kind in _BESIDE_WORDS for span in find_spans(line))


def loses_spans(line: str, translation: Translation) -> bool:
    """Whether a translation has other numbers than its line, or does not hold its URLs, placeholders and tags."""
    if NUMBERS in translation.doubts:
        return True
    # Numbers have a check of their own, because some of them may become words.
    line, _ = plain_quotes(line)
    spans = [span for span in find_spans(line) if span.kind is not SpanKind.NUMBER]
    if not spans:
        return False
    return not Promise.of(line, spans).is_kept_by(plain_quotes(translation.text)[0])


# The raised number of a footnote behind a word, as in word\u00b2 and word<sup>2</sup>, inside a sentence.
_NOTE = re.compile(
    r"(?<=[^\W\d_]{3})(?<!sin|cos|tan|log)"
    r"(?:[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]{1,3}|<sup>[(\[]?\d{1,3}[)\]]?</sup>)(?=,?\s+\w)"
)


def _without_small_signs(text: str) -> BareText | None:
    """A line without the raised numbers of its footnotes, and without a quotation mark that has no partner; None if it has none of them."""
    found = [match.span() for match in _NOTE.finditer(text)]
    mark = mark_without_partner(text)
    if mark is not None and not any(span.start <= mark < span.end for span in find_spans(text)):
        found = sorted([*found, (mark, mark + 1)])
    signs, bare, end = list[SignOfLine](), "", 0
    for start, stop in found:
        bare += text[end:start]
        is_left = bool(bare) and not bare[-1].isspace()
        signs.append(SignOfLine(text[start:stop], len(bare), is_left, is_right=not is_left))
        end = stop
    return BareText(bare + text[end:], tuple(signs)) if found else None


def _with_small_signs_in_place(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line with the raised number of a footnote inside a sentence, or with half a pair of quotation marks, is translated again without it.

    A tag would divide the sentence there, and a model writes a pair of marks. The sign is put back beside the word that is linked
    to the one beside it.
    """
    if not all(map(has_spaces, translator.languages)):
        return translations
    read = {
        place: bare
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if not (line.prefix or found.terms)
        and (bare := _without_small_signs(line.text)) is not None
        and has_letter(bare.text)
    }
    if not read:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window([lines[place]._replace(text=bare.text) for place, bare in read.items()])
    links = _links(translator, [(bare.text, found.text) for bare, found in zip(read.values(), again, strict=True)])
    mended = list(translations)
    for (place, bare), found in zip(read.items(), again, strict=True):
        text = with_signs(bare, found.text, links[bare.text, found.text])
        if (
            text is None
            or _is_left(found)
            or {*found.doubts} - {*translator.with_doubts_of_line(translations[place]).doubts}
        ):
            continue
        whole = replace(found, source=lines[place].text, is_repaired=True, pieces=())
        mended[place] = with_alternatives(whole, [(text, found.score)])
    return mended


def _with_lost_ampersands(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses an & between words is translated again: the model reads "and" there.

    In the translation the sign stands in place of that word again, if it is clear which word that is.
    """
    source = translator.languages.source
    read = {
        place: words
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if "&" in line.text
        and not (line.prefix or found.terms)  # a term may have the sign
        and (words := with_words_for_ampersands(line.text, source)) != line.text
        and (found.is_untranslated or found.text.count("&") < line.text.count("&"))
    }
    if not read:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window([lines[place]._replace(text=words) for place, words in read.items()])
    mended = list(translations)
    for (place, words), found in zip(read.items(), again, strict=True):
        given = lines[place].text
        if found.is_untranslated or lost_marks(given, found.text, translator.languages.target):
            continue
        if not {*without_words(found.doubts)} <= {*translations[place].doubts}:
            continue
        texts = [
            (with_ampersands(text, given, words, translator.languages), score) for text, score in found.alternatives
        ]
        mended[place] = replace(with_alternatives(found, texts), source=given, is_repaired=True)
    return mended


def _with_lost_empty_brackets(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses brackets around nothing, such as (...), is translated again without them.

    A model that has seen few brackets guesses a word for them, and the words around them get worse, too. They are put back
    where the lengths tell, so a person should look at their places.
    """
    read = {
        place: (rest, brackets)
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if MAY_BE_EMPTY.search(line.text) and not (line.prefix or found.terms)
        for rest, brackets in [without_empty_brackets(line.text)]
        if brackets and has_letter(rest) and (found.is_untranslated or loses_any(brackets, found.text))
    }
    if not read:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window([lines[place]._replace(text=rest) for place, (rest, _) in read.items()])
    mended = list(translations)
    for (place, (_, brackets)), found in zip(read.items(), again, strict=True):
        if not (found.is_untranslated or found.is_partly_copied):
            texts = [(with_empty_brackets(text, brackets), score) for text, score in found.alternatives]
            complete = replace(found, source=lines[place].text, is_repaired=True)
            mended[place] = replace(with_alternatives(complete, texts), is_in_pieces=True)
    return mended


def _with_odd_case(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; a doubtful line such as "tHe DoG iS bIg" or "The Dog Is Big" is read again in small letters."""
    odd = {
        place: small
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if (has_odd_case(line.text) or translator.pipeline.is_title(line.text))
        and not (line.prefix or found.terms)
        and (small := translator.pipeline.in_small_letters(line.text)) != line.text
        and _has_only_numbers(line.text, small)
    }
    named = dict(zip(odd, with_copied_words(translator, [translations[place] for place in odd]), strict=True))
    read = {
        place: small
        for place, small in odd.items()
        if named[place].doubts
        or named[place].is_untranslated
        or translator.pipeline.unseen_words(named[place])
        or translator.pipeline.left_words(lines[place].text, named[place].text)
    }
    if not read:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window([lines[place]._replace(text=small) for place, small in read.items()])
    mended = list(translations)
    for place, found in zip(read, again, strict=True):
        before = translator.with_doubts_of_line(translations[place])
        doubts = doubts_of_small_letters(found.doubts, before.source, found.text, translator.languages)
        num_before = len({doubt.partition(":")[0] for doubt in (*before.doubts, *named[place].doubts)})
        if len(doubts) < num_before + before.is_untranslated and not found.is_untranslated:
            mended[place] = replace(found, source=lines[place].text, is_repaired=True, doubts=doubts)
    return mended


def _has_only_numbers(line: str, small: str) -> bool:
    """Whether a line has no protected spans but numbers and letters that its form in small letters has, too."""
    spans = find_spans(line)
    return {span.kind for span in spans} <= {SpanKind.NUMBER, SpanKind.LETTER} and span_texts(
        line, spans
    ) == span_texts(small, find_spans(small))


# Lines that lose signs are translated again without them, and the signs are put back: beside the words that are linked to their
# neighbours, or between two parts that are translated by themselves.

_BETWEEN_PARTS = re.compile(r"\s*(?:[:;](?=\s)|[^\w\s.,!?'\"()\[\]*]{1,3})\s*")
_MOST_SIGNS = 12  # of a line that is translated again
_FEWEST_WORDS = 0.67  # of the translation before


class _Candidate(NamedTuple):
    """A way to translate a line again: its texts, and whether they are the two parts beside a sign."""

    place: int
    texts: tuple[str, ...]
    bare: BareText | None
    gap: str = ""
    parts: tuple[str, ...] = ()
    """As they stand in the line; the model reads each as a sentence, because many models have seen a word by itself only so."""
    inner: tuple[Range, ...] = ()
    """Of a line without signs: the words that are translated by themselves, too; their texts stand behind that of the line."""


def ways_to_keep_signs(place: int, text: str) -> Iterator[_Candidate]:
    """The ways to translate a line again that lost signs, from the best one on."""
    if not 0 < len(places_of_signs(text)) <= _MOST_SIGNS:
        return
    bare = without_signs(text)
    parts = _in_two_parts(text, partners_of_signs(bare.signs))
    if parts is not None:
        left, gap, right = parts
        yield _Candidate(place, (_as_sentence(left), _as_sentence(right)), None, gap, (left, right))
    if bare.text != text and has_letter(bare.text):
        yield _Candidate(place, (bare.text,), bare)
        words = word_spans(bare.text)
        inner = tuple(each for each in pairs_around_words(bare) if each != (0, len(words)))
        if inner:
            texts = (_as_sentence(bare.text[words[first][0] : words[last - 1][1]]) for first, last in inner)
            yield _Candidate(place, (bare.text, *texts), bare, inner=inner)


def _as_sentence(text: str) -> str:
    return text if ends_sentence(text) else f"{text}."


def _in_two_parts(text: str, pairs: Mapping[int, int]) -> tuple[str, str, str] | None:
    """The texts beside the sign that divides a line best, and this sign; None without one. A sign inside of a pair divides none."""
    best: tuple[bool, int, tuple[str, str, str]] | None = None
    for number, (start, end) in enumerate(places_of_signs(text)):
        if any(opening < number < closing for opening, closing in pairs.items()):
            continue
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


def _with_signs_in_place(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses signs is translated again without them, and they are put back where its words tell.

    It counts only if the line has fewer doubts then, hardly fewer words, and no number is lost. Lines whose words the model has seen, but that are left as they are, wholly or in part, get the same chance.
    """
    if not all(map(has_spaces, translator.languages)):
        return translations
    before = {
        place: judged
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if SIGN.search(line.text) and not (line.prefix or found.terms)  # a term may have signs
        for judged in [translator.with_doubts_of_line(found)]
        if _may_lack_signs(judged)
    }
    tries = [iter(ways_to_keep_signs(place, lines[place].text)) for place in before]
    plain = replace(translator, reports_lines=False, only_green=False)
    answers: dict[tuple[int, str], Translation] = {}
    best: dict[int, Translation] = {}
    language = primary_language(translator.languages.target)
    while asked := [
        each
        for line_tries in tries
        for each in islice(line_tries, 1)
        if best.get(each.place) is None or _num_faults(best[each.place])
    ]:
        new = list(
            dict.fromkeys(
                (each.place, text) for each in asked for text in each.texts if (each.place, text) not in answers
            )
        )
        found = plain.translate_window([lines[place]._replace(text=text) for place, text in new])
        answers |= zip(new, found, strict=True)
        replies = [[answers[each.place, text] for text in each.texts] for each in asked]
        links = _links(
            translator,
            [(each.texts[0], reply[0].text) for each, reply in zip(asked, replies, strict=True) if each.bare],
        )
        for each, reply in zip(asked, replies, strict=True):
            whole = _whole(each, reply, lines[each.place], links, language)
            given = lines[each.place].text
            if whole is None or has_more_signs(given, whole.text) or _loses_words(before[each.place], whole):
                continue
            whole = translator.with_doubts_of_line(whole)
            if NUMBERS in whole.doubts and NUMBERS not in before[each.place].doubts:
                continue
            if _is_left(before[each.place]) and _num_faults(whole):
                continue  # the source is more use than a doubtful translation
            if _num_faults(whole) < _num_faults(best.get(each.place, before[each.place])):
                best[each.place] = whole
    return [best.get(place, found) for place, found in enumerate(translations)]


def _may_lack_signs(translation: Translation) -> bool:
    """Whether signs are lost, or kept the model from translating a line whose words it has seen."""
    if _is_left(translation):
        return not any(doubt.startswith(UNSEEN) for doubt in translation.doubts)
    return any(doubt.startswith(MARKS) for doubt in translation.doubts)


def _loses_words(before: Translation, found: Translation) -> bool:
    """Whether a translation has far fewer words than the one before, which only lacked signs."""
    doubts = without_words(before.doubts)
    if before.is_untranslated or not all(doubt.startswith(MARKS) for doubt in doubts):
        return False
    num_before, num_found = (len(word_spans(each.text)) for each in (before, found))
    return num_found < _FEWEST_WORDS * num_before


def _num_faults(translation: Translation) -> int:
    """How much is wrong with a translation of a line with signs; nothing if only words are unseen."""
    return len(without_words(translation.doubts)) + _is_left(translation)


def _is_left(translation: Translation) -> bool:
    """Whether a line, or a part of it, stays as it is."""
    return translation.is_untranslated or translation.is_partly_copied


def _whole(
    each: _Candidate,
    found: Sequence[Translation],
    line: SourceText,
    links: Mapping[tuple[str, str], Collection[Link]],
    language: str,
) -> Translation | None:
    """The translation of a line from those of the texts that were asked; None if the place of a sign is not sure."""
    if each.bare is None:
        whole = joined_translation(line.text, found, each.gap.join)
        left, right = map(with_final_mark_of, [one.text for one in found], each.parts)
        if each.gap.startswith(":") and not each.parts[0].endswith("!"):
            left = left.rstrip("! \u00a0\u202f") or left  # models call names: "Anna !"
        inner = as_inner_part(right, each.parts[1], target_language=language)
        text = with_pairs_of_quotes(line.text, left + each.gap + inner)
    else:
        whole = found[0]
        alone = dict(zip(each.inner, (one.text for one in found[1:]), strict=True))
        text = with_signs(each.bare, whole.text, links[each.texts[0], whole.text], alone)
    if text is None:
        return None
    doubts = tuple(doubt for doubt in whole.doubts if not doubt.startswith(MARKS))
    whole = replace(whole, source=line.text, is_repaired=True, is_in_pieces=True, doubts=doubts, pieces=())
    return with_alternatives(whole, [(text, whole.score)])


def _links(translator: "Translator", pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Collection[Link]]:
    """The links of texts and translations; none if the engine does not tell them."""
    engine = translator.engine
    distinct = list(dict.fromkeys(pairs))
    if not isinstance(engine, ExplainingEngine) or not distinct:
        return dict.fromkeys(distinct, ())
    from transformer_cli.decoding.given_pairs import TextAligner  # numpy

    aligner = TextAligner(translator.pipeline, engine, translator.decoding.batch_tokens)
    result: dict[tuple[str, str], Collection[Link]] = {}
    for pair, pair_links in zip(distinct, aligner.align(distinct), strict=True):
        source_index, target_index = ({span: number for number, span in enumerate(word_spans(text))} for text in pair)
        linked = {
            (source_index[source], target_index[target])
            for source, target in pair_links
            if source in source_index and target in target_index
        }
        result[pair] = _with_equal_words(*pair, linked)
    return result


def _with_equal_words(source: str, translation: str, links: Collection[Link]) -> Collection[Link]:
    """The links, in which words that are protected, such as placeholders, are linked with themselves alone."""
    kept = {
        text.strip(END_MARKS)
        for text in source.split()
        if any(span.kind is not SpanKind.LETTER for span in find_spans(text))
    }
    if not kept:
        return links
    source_cores, target_cores = (
        [(number, core) for number, word in enumerate(text.split()) if (core := word.strip(END_MARKS)) in kept]
        for text in (source, translation)
    )
    equal: dict[int, int] = {}
    for number, core in target_cores:
        same = next(
            (place for place, each in source_cores if each == core and place not in equal.values()),
            None,
        )
        if same is not None:
            equal[number] = same
    taken = {*equal.values()}
    others = {link for link in links if link[0] not in taken and link[1] not in equal}
    return others | {(place, number) for number, place in equal.items()}


def _is_far_less_probable(before: Translation, found: Translation) -> bool:
    """Whether a translation in pieces is no repair of one with other numbers: its words between the numbers are guesses."""
    if NUMBERS not in before.doubts or not found.is_in_pieces or before.score - found.score < _MOST_FOR_NUMBERS:
        return False
    return all(span.kind is SpanKind.NUMBER for span in find_spans(before.source))
