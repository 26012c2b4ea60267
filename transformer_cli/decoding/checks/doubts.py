"""Doubts about a translation that need no reference: what its text shows to be wrong, compared with the text of its source.

Each check is a plain function of the two texts and their languages. A check that does not know a language says nothing.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.coordination import JOINING, lacks_joined
from transformer_cli.decoding.checks.imperatives import IMPERATIVES, lacks_imperative
from transformer_cli.decoding.checks.invented_units import has_invented_unit
from transformer_cli.decoding.checks.months_and_days import NAMES, has_other_months_or_days
from transformer_cli.decoding.checks.names_in_text import lost_names
from transformer_cli.decoding.checks.numbers_in_text import (
    counted_words,
    has_number_sign,
    has_other_numbers,
    word_list,
)
from transformer_cli.decoding.checks.opposites import BEGINNINGS, NUM_FIRST_LETTERS, lacks_limit, says_opposite
from transformer_cli.decoding.checks.signs import WORDS_OF_SIGNS, lost_signs
from transformer_cli.decoding.checks.titles_in_text import TITLES, lacks_title
from transformer_cli.text.languages import (
    frequent_words,
    has_spaces,
    is_plain,
    plain_words,
    primary_language,
    scripts_of_language,
    small_words,
)
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import has_word
from transformer_cli.text.sentences import num_inner_ellipses
from transformer_cli.text.spans import SpanKind, find_spans, masked
from transformer_cli.text.units import has_other_units, with_units

WORDLESS = "has no words"
UNFINISHED = "does not end"
REPEATS = "repeats itself"
TWICE = "says a word twice that its source says once"
TOO_LONG = "is far too long"
COPIES = "copies the source"
OTHER_LANGUAGE = "is in the language of the source"
OTHER_SCRIPT = "has letters of another script"
UNREADABLE = "has a source in a script that the model cannot read"
UNSURE = "is less probable than 99 % of those of the calibration"
UNSEEN = "guesses what training has not seen"
"""Followed by a colon and the words."""
MADE_UP = "has words that neither its training text nor its source has"
"""Followed by a colon and the words."""
NUMBERS = "has other numbers or units"
DATES = "has other months or days of the week"
LACKS_NAME = "lacks a name of its source"
LACKS_TITLE = "lacks a title of its source, such as Mrs or Dr"
MARKS = "lacks a sign of its source"
"""Followed by a colon and what it lacks: signs, an ellipsis inside a sentence, an abbreviation such as e.g., a question mark."""
BESIDE_PLACEHOLDER = "lacks words beside a placeholder of its source"
ENCLOSED = "leaves the words inside [[ ]], { } or < > as they are: they look like a placeholder, or the name of a page"
LABEL = "leaves the words before its colon as they are: training has not seen all of them"
ACRONYM = "lacks an abbreviation of its source"
"""Followed by a colon and the abbreviations."""
LEAVES = "leaves words of its source as they are"
"""Followed by a colon and the words."""
NEGATION = "has a negation more or less than its source"
OPPOSITE = "says the opposite of a word of its source, such as 'at most' for 'at least'"
LACKS_LIMIT = "lacks a limit of its source, such as 'at least' or 'up to'"
LACKS_JOINED = "lacks a word such as 'and' or 'or' of its source, so perhaps a part of a list"
VERBLESS = "begins with no verb, as its source does"
OMITS = "has nothing for words of its source"
"""Followed by a colon and the words."""
DOUBTS = (
    WORDLESS,
    UNFINISHED,
    REPEATS,
    TOO_LONG,
    COPIES,
    OTHER_LANGUAGE,
    OTHER_SCRIPT,
    UNREADABLE,
    UNSURE,
    UNSEEN,
    MADE_UP,
    NUMBERS,
    DATES,
    LACKS_NAME,
    LACKS_TITLE,
    ACRONYM,
    TWICE,
    NEGATION,
    OPPOSITE,
    LACKS_LIMIT,
    LACKS_JOINED,
    VERBLESS,
    MARKS,
    BESIDE_PLACEHOLDER,
    ENCLOSED,
    LABEL,
    LEAVES,
    OMITS,
)
"""All doubts, from the one that says most about a translation to the one that says least."""
DOUBTS_WITH_WORDS = (OMITS, ACRONYM, LEAVES, UNSEEN, MADE_UP)
"""Those that name words; messages about lines name the words of several lines together."""


_TOKEN = re.compile(r"[^\W\d_]+|\d+")
_WORD = lazy_pattern(r"[^\W\d_]+")
_DIGIT = lazy_pattern(r"\d")
_END_OF_LATIN = 0x250
_PUNCTUATION = range(0x2000, 0x2070)
_LONGEST_LOOP = 12  # tokens
_SHORTEST_LONG_LOOP = 3  # words: so many stand twice in a row by mistake only
_FEWEST_TRIGRAMS = 12
_FEW_DIFFERENT = 0.6
_MOST_EQUAL_CHARACTERS = 6
_TWO_WORDS_TWICE = lazy_pattern(r"(?<!\w)([^\W\d_]{1,40} [^\W\d_]{2,40}) \1(?!\w)", re.IGNORECASE)
_FEWEST_LETTERS_OF_NAME = 3
_WORD_TWICE = lazy_pattern(r"(?<![\w'\u2019.-])([^\W\d_]{2,}) (\1)(?![\w'\u2019-])", re.IGNORECASE)
_TWICE_IN_SOURCE = lazy_pattern(r"(?<!\w)([^\W\d_]+)[\s,.!?-]+\1(?!\w)", re.IGNORECASE)
# Words that may follow themselves where those of the source do not: pronouns of verbs, relative pronouns, and emphasis.
_MAY_STAND_TWICE = {
    "de": "das dem den denen der die eine einer ihr ihnen sehr sie viel viele waren was zu",
    "en": "bye do for had ha her his in is it many much no on over really so that there this very was you",
    "es": "ja muy se",
    "fr": "bien en faire ha nous si toute tout très un une va vous",
    "it": "ciao lecca man molto pian piano poco si se via vicino dritto così",
    "nl": "dat die een het heel is zeer zijn",
    "pt": "muito se",
}
# Words with a meaning that sentences of people say twice, too: "de moins en moins", "quelqu'un ... quelque chose".
_MAY_COME_AGAIN = {
    "de": "",
    "en": "hours people think",
    "fr": "aurais aurait autre autres avaient avais avait chose heure heures moins personne savais savait sommes temps étaient étais",
    "it": "delle dalle degli nelle stata stati stato sulla",
}
_SHORTEST_THAT_COMES_AGAIN = 5  # letters
_LONGEST_WITHOUT_ONE_WORD_TWICE = 12  # words
_MANY_EQUAL = re.compile(r"([^\s\d.])\1\1\1\1\1\1")  # faster than \1{6}
_SHORTEST_COPY = 4  # words
_FEWEST_SHARED = 2  # of these, with the marks that touch them
_FEWEST_WORDS = 5
_LONGEST_SENTENCE = 25  # words, of which the doubts about negations and repeated names know enough
_MANY_FREQUENT = 0.25
_FEW_FREQUENT = 0.05
_LARGEST_RATIO = 3.0
_ALLOWED_CHARACTERS = 40  # beyond the ratio
# ..., isn't it?; question no 5, n. 5, No. A-5; n'est-ce pas, n'importe où; facture n A44
_NO_NEGATION = lazy_pattern(
    r",? \w+n['\u2019]t (?:i|you|he|she|it|we|they|there) *(?=\?)|\b(?:n[o\u00b0\u00ba]\.?:?|n\.(?:[o\u00ba])?) ?#?(?=[a-z]{,3}[-/]?\d)|\bn['\u2019](?:est-ce pas|importe)\b|\bn\b(?! ?['\u2019])"
    # A step: un pas, 3 pas, pas \u00e0 pas
    r"|\b(?:ce|le|un|[mts]on|[nv]otre|leurs?|[cdlmts]es|[nv]os|deux|trois|quatre|cinq|dix|chaque|quelques|premiers?|derniers?|petits?|grands?|faux"
    r"|\d+) pas\b|\bpas \u00e0 pas\b"
)

# "No." for number: one is no negation where the other text says it, too; a name or placeholder may stand behind it, or nothing.
_NUMBER = lazy_pattern(r"\b(?:no|n)[.\u00b0\u00ba]")
_SAYS_NUMBER = lazy_pattern(
    r"(?i:\bnrs?\b|\bn[\u00b0\u00ba]|\bn\.|\bno\.|\bn[uú]m\.|\b(?:numm?[eé]ro?|número)s?\b|\bnumbers?\b|№|#)"
)

# "For example" and "that is" in several languages; models that have not seen them leave them out.
_FOR_EXAMPLE = r"(?<!\w)(?:[eE]\.\s?g|[zZ]\.\s?B|[pP]\.\s?(?:ex|es|ej))(?!\w)"
_THAT_IS = r"(?<!\w)(?:[iI]\.\s?e|[dD]\.\s?(?:h|w\.\s?z)|[cC]\.?-à-d)(?!\w)"
_MAY_ABBREVIATE = lazy_pattern(r"(?<!\w)\w\.|-\u00e0-")

# What may stand for each of the two abbreviations, as patterns of whole words; the abbreviations themselves may, too.
_WORDS_OF_ABBREVIATIONS = {
    "de": (
        "beispiel|beispielsweise|bspw|bsp|zb|etwa|wie",
        "das heißt|das heisst|nämlich|also|sprich|beziehungsweise|bzw|genauer",
    ),
    "en": (
        "example|examples|instance|eg|such as|like|including|say",
        "that is|namely|which means|meaning|in other words|ie",
    ),
    "es": ("ejemplo|ejemplos|ej|como", "es decir|o sea|esto es|a saber"),
    "fr": (
        "exemple|exemples|ex|comme|notamment|tels? que|telles? que",
        "est[- ]à[- ]dire|à savoir|soit|autrement dit|cad",
    ),
    "it": ("esempio|esempi|es|come|quali|tipo", "cioè|ossia|ovvero|vale a dire|in altre parole"),
    "nl": (
        "bijvoorbeeld|voorbeeld|bijv|bv|zoals",
        "dat wil zeggen|dat is|dwz|namelijk|oftewel|ofwel",
    ),
    "pt": ("exemplo|exemplos|ex|como", "isto é|ou seja|quer dizer|a saber"),
}


# unhappy, dishonest, careless, wertlos, inaccettabile
_NEGATIVE_FORM = lazy_pattern(r"(?:un|dis)\w{4,}|\w{3,}(?:los|less|lose[mnrs]?)|i[mn]\w+(?:[ai]bil[ei]|able|ible)")

# The words that turn a statement into its opposite, and those that may; apostrophes end words.
_NEGATIONS = {
    "de": "nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden niemandem nichts nirgends ohne nein "
    "weder nirgendwo keinerlei keinesfalls keineswegs",
    "en": "not no never nobody nothing none nowhere nor neither without cannot cant dont doesnt didnt isnt wont",
    "es": "no nunca jamás nada nadie ningún ninguno ninguna ni sin tampoco",
    "fr": "ne n pas jamais rien aucun aucune sans non ni nulle nul",
    "it": "non no mai nulla niente nessuno nessuna nessun senza né neanche nemmeno neppure",
    "nl": "niet geen nooit niemand niets zonder nee nergens noch",
    "pt": "não nunca jamais nada ninguém nenhum nenhuma sem nem tampouco",
}
# Words with a negative sense without being in the list above, and turns with a negation that is none.
_MAY_NEGATE = {
    "de": "kaum un fehlt fehlen unmöglich sonst verboten nackt nacktem egal",
    "en": "t ever hardly barely few little unable impossible un unless lack lacks refuse refused fail failed stop else only until but "
    "any anything anyone anybody forbidden prohibited otherwise non incorrect insufficient outside wrong rather",
    "es": "apenas imposible sino falta menos",
    "fr": "personne guère interdit interdite impossible plus moins peu manque absence sauf",
    "it": "impossibile appena manca mancano poco meno smettere smesso finché vietato vietata altrimenti mancanza "
    "assenza nient senz evitare "
    "inutile contrario privo priva prive privi piuttosto",
    "nl": "nauwelijks onmogelijk weinig anders",
    "pt": "impossível senão falta menos pouco",
}


_LONG_WORD = lazy_pattern(r"(?<![\w'\u2019])[^\W\d_]{3,}")


def _is_wordless(source: str, translation: str) -> bool:
    """Whether a translation has marks only, or nothing but the numbers of a source with words: *1* for *1 second*."""
    if not has_word(translation):
        return True
    if re.fullmatch(r"[\d\s.,:!?]+", translation) is None or _LONG_WORD.search(source) is None:
        return False
    return re.findall(r"\d+", source) == re.findall(r"\d+", translation)


def doubts_about(source: str, translation: str, languages: Direction, *, is_finished: bool = True) -> tuple[str, ...]:
    """What is wrong with a translation, as members of `DOUBTS`; nothing for a source that is blank.

    Args:
        source: what the model has read.
        translation: what it has written.
        languages: of the two texts.
        is_finished: whether the model has written the end of the translation; false: the search was cut off.
    """
    # Most texts are plain, which answers many questions.
    is_read_plain, is_written_plain = is_plain(source), is_plain(translation)
    if not is_written_plain and has_word(source) and _is_wordless(source, translation):
        return (WORDLESS,)
    if not translation.strip() or not source.strip():
        return ()
    # The words are found once. Before most tests stands a cheap question to which nearly all good translations say no.
    here, there = map(_known_of, languages)
    read = plain_words(source.casefold()) if is_read_plain else _tokens(source)
    written = plain_words(translation.casefold()) if is_written_plain else _tokens(translation)
    words = set(written)
    is_all_plain = is_read_plain and is_written_plain
    has_digit = not is_all_plain and (_DIGIT.search(source) is not None or _DIGIT.search(translation) is not None)
    has_number = (
        has_digit
        or not here.numbers.isdisjoint(read)
        or not there.numbers.isdisjoint(words)
        or (
            not is_all_plain
            and not (source.isascii() and translation.isascii())
            and has_number_sign(source, translation)
        )
    )
    is_negated = _negates(source, read, here.negations, has_digit=has_digit)
    is_there_negated = _negates(translation, written, there.negations, has_digit=has_digit)
    has_opposite = not here.opposites.isdisjoint([word[:NUM_FIRST_LETTERS] for word in read])
    found = {
        UNFINISHED: not is_finished,
        REPEATS: (
            repeats := (
                len(words) < len(written)
                and (
                    _repeats_words(read, written, translation)
                    or _repeats_a_name(source, translation, read, written)
                    or _doubles_a_word(source, translation, there.code)
                )
            )
            or (_MANY_EQUAL.search(translation) is not None and _repeats_a_sign(source, translation))
        ),
        TOO_LONG: len(translation) - _ALLOWED_CHARACTERS > _LARGEST_RATIO * len(source)
        and _is_far_too_long(source, translation),
        COPIES: not words.isdisjoint(read) and _copies_source(source, translation, languages),
        OTHER_LANGUAGE: not words.isdisjoint(here.frequent) and _is_in_source_language(written, here, there),
        OTHER_SCRIPT: not (
            is_written_plain or translation.isascii() or _letters_of(languages.target).issuperset(translation)
        )
        and _has_foreign_letters(source, translation, languages.target),
        UNREADABLE: not (is_read_plain or source.isascii() or _letters_of(languages.source).issuperset(source))
        and _is_in_other_scripts(source, languages.source),
        NUMBERS: has_number
        and (
            has_other_numbers(source, translation, languages, read, written)
            or (has_digit and has_other_units(source, translation, languages.target, SpanKind.NUMBER))
            or (has_digit and has_invented_unit(source, translation, languages))
        ),
        DATES: not (here.dates.isdisjoint(read) and there.dates.isdisjoint(words))
        and has_other_months_or_days(source, translation, languages),
        LACKS_NAME: not (source.islower() or source[1:].islower()) and bool(lost_names(source, translation, languages)),
        LACKS_TITLE: not here.titles.isdisjoint(read) and lacks_title(source, translation, languages),
        TWICE: not repeats
        and len(words) < len(written) <= _LONGEST_WITHOUT_ONE_WORD_TWICE
        and _says_a_word_twice(read, written, here.code, there.code),
        NEGATION: is_negated != is_there_negated
        and _has_other_negation(source, translation, here.code, there.code, is_negated=is_negated),
        OPPOSITE: has_opposite and is_negated == is_there_negated and says_opposite(source, translation, languages),
        LACKS_LIMIT: has_opposite and lacks_limit(source, translation, languages),
        LACKS_JOINED: not here.joining.isdisjoint(read) and lacks_joined(read, written, languages),
        VERBLESS: not here.imperatives.isdisjoint(read[:1]) and lacks_imperative(source, translation, there.code),
    }
    return tuple([doubt for doubt, is_there in found.items() if is_there])


class _Known(NamedTuple):
    """What is known of a language; each set is empty where nothing is."""

    code: str
    frequent: frozenset[str]
    """Words."""
    numbers: frozenset[str]
    """The words of which numbers from two on consist, casefolded."""
    dates: frozenset[str]
    """The words of which names of months and days of the week consist, casefolded."""
    titles: frozenset[str]
    negations: frozenset[str]
    imperatives: frozenset[str]
    joining: frozenset[str]
    opposites: frozenset[str]
    """The first letters of words with an opposite."""


@cache
def _known_of(language: str) -> _Known:
    code = primary_language(language)
    return _Known(
        code,
        frequent_words(code),
        frozenset(_TOKEN.findall(" ".join(counted_words(code)))),
        frozenset(form for name in _TOKEN.findall(NAMES.get(code, "").casefold()) for form in (name, f"{name}s")),
        word_list(" ".join(TITLES.get(code, ())).casefold()),
        word_list(_NEGATIONS.get(code, "")),
        word_list(IMPERATIVES.get(code, "")),
        word_list(JOINING[code][0]) if code in JOINING else frozenset(),
        BEGINNINGS.get(code, frozenset()),
    )


@cache
def _letters_of(language: str) -> frozenset[str]:
    """Signs of a text in Latin letters, without the letters of scripts that the language does not use."""
    scripts, signs = scripts_of_language(language), map(chr, (*range(_END_OF_LATIN), *_PUNCTUATION))
    return frozenset(sign for sign in signs if not sign.isalpha() or _script(sign) in scripts)


def without_unseen_words(doubts: Sequence[str]) -> tuple[str, ...]:
    """The doubts without the one that names words which training has not seen."""
    return tuple(doubt for doubt in doubts if not doubt.startswith(UNSEEN))


def without_words(doubts: Sequence[str]) -> tuple[str, ...]:
    """The doubts without those that name words of the source or the translation."""
    return tuple(doubt for doubt in doubts if not doubt.startswith(DOUBTS_WITH_WORDS))


def doubts_of_small_letters(
    doubts: Sequence[str], source: str, translation: str, languages: Direction
) -> tuple[str, ...]:
    """The doubts about the translation of a source that was read in small letters, with those about its names and titles."""
    with_capitals = doubts_about(source, translation, languages)
    return (*doubts, *(each for each in (LACKS_NAME, LACKS_TITLE) if each in with_capitals and each not in doubts))


def _is_far_too_long(source: str, translation: str) -> bool:
    """Whether a translation has more than three times as many characters as its source, and forty.

    A sign of Chinese, Japanese or Korean counts as three, because it says as much.
    """
    length = len(source) + 2 * sum(sign > "\u2e7f" for sign in source)
    return len(translation) - _ALLOWED_CHARACTERS > _LARGEST_RATIO * length


def _repeats_words(read: Sequence[str], written: Sequence[str], translation: str) -> bool:
    """Whether words follow each other again and again where the source does not do so.

    That is one to twelve words that stand three times in a row (three or more: twice; two, too, without a mark between or at the end,
    if the source has no two words twice), or few different sequences of three words.
    """
    is_twice = _ends_twice(written) or _TWO_WORDS_TWICE.search(translation) is not None
    if is_twice and _loops(read, 2).get(2, 1) == 1:
        return True
    for size, most in _loops(written).items():
        allowed = 1 if size >= _SHORTEST_LONG_LOOP else 2
        if most > max(allowed, _loops(read, size).get(size, 1)):
            return True
    different = _share_of_different(written)
    return different < _FEW_DIFFERENT and different < _share_of_different(read) - 0.2


def _repeats_a_name(source: str, translation: str, read: Sequence[str], written: Sequence[str]) -> bool:
    """Whether a word with a capital letter stands more often than in the source: *Oui, c'est Peter que Peter* for *Yes, this is Peter Miller*.

    People do that in long sentences only.
    """
    return len(written) <= _LONGEST_SENTENCE and any(
        len(word) >= _FEWEST_LETTERS_OF_NAME
        and word.isalpha()
        and (name := word.capitalize()) in source
        and translation.count(name) >= written.count(word) > read.count(word)
        for word in {*written}.intersection(read)
    )


def _doubles_a_word(source: str, translation: str, language: str) -> bool:
    """Whether a word stands twice in a row where the source has no such word: *Pourquoi pourquoi est-ce vrai ?* for *Why is it true?*

    People write so by mistake, but for some words. Two spellings, as in *dem jungen Jungen*, are two words inside a sentence.
    """
    allowed = _MAY_STAND_TWICE.get(language)
    if allowed is None:
        return False
    found = [
        match[1]
        for match in _WORD_TWICE.finditer(translation)
        if match[1] == match[2] or (match.start() == 0 and match[1][1:] == match[2][1:])
    ]
    if not found or _TWICE_IN_SOURCE.search(source) is not None:
        return False
    return not word_list(allowed).issuperset(map(str.casefold, found))


def _says_a_word_twice(read: Sequence[str], written: Sequence[str], here: str, there: str) -> bool:
    """Whether a word stands twice, and the source has none twice: *la musique ou la musique* for *books or music*.

    That is how a small model adds to a source: the second one stands for another word, or for nothing. Of pairs of people, 0.05 % of
    everyday sentences do so, and 0.3 % of captions; in long ones it is ordinary.
    """
    allowed = _MAY_COME_AGAIN.get(there)
    if allowed is None or here not in _MAY_STAND_TWICE:
        return False
    again = {word for word in written if len(word) >= _SHORTEST_THAT_COMES_AGAIN and written.count(word) > 1}
    if again.issubset(small_words(there) | word_list(allowed)):
        return False
    beginnings = [word[:4].removesuffix("s") for word in read if len(word) > 2]
    return len({*beginnings}) == len(beginnings)


def without_loops(source: str, translation: str) -> str:
    """A translation in which words follow themselves only as often as words of its source do: the other copies are left out.

    The words of the first copy stay, and the marks behind the last one. A beginning of a further copy at the end of the
    translation, where the search was cut off, is left out, too.
    """
    read, words = _tokens(source), translation.split()
    keys = ["".join(_TOKEN.findall(word.casefold())) or word for word in words]
    for size in range(1, _LONGEST_LOOP + 1):
        allowed = _loops(read, size).get(size, 1)
        place = 0
        while place + size <= len(words):
            group, end = keys[place : place + size], place + size
            while keys[end : end + size] == group:
                end += size
            kept = place + allowed * size
            if end > kept:
                last = words[end - 1]
                rest = keys[end:]
                if len(rest) < size and "".join(group).startswith("".join(rest)):
                    end = len(words)
                words[kept - 1 : end], keys[kept - 1 : end] = [last], [keys[kept - 1]]
            # A group that begins inside these copies follows itself no more often than they do.
            place = max(place, min(end, kept) - size) + 1
    return " ".join(words)


def _ends_twice(written: Sequence[str]) -> bool:
    """Whether the last two words are those before them, as in "è grande è grande"."""
    return len(written) > 4 and written[-2:] == written[-4:-2] and written[-1] != written[-2]


def _repeats_a_sign(source: str, translation: str) -> bool:
    """Whether one character stands more than six times in a row where the source does not have so many."""
    return _most_equal(translation) > max(_MOST_EQUAL_CHARACTERS, 2 * _most_equal(source))


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _loops(tokens: Sequence[str], *sizes: int) -> dict[int, int]:
    """Size of a group of tokens -> how often such a group follows itself, itself included; only sizes of loops."""
    found = {}
    for size in sizes or _distances(tokens):
        most = run = 0
        for place in range(size, len(tokens)):
            run = run + 1 if tokens[place] == tokens[place - size] else 0
            most = max(most, run)
        if most >= size:
            found[size] = 1 + most // size
    return found


def _distances(tokens: Sequence[str]) -> list[int]:
    """How far apart equal tokens stand, if loops of this size are looked for."""
    most = min(_LONGEST_LOOP, len(tokens) // 2)
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token, []).append(place)
    found = {
        place - earlier
        for token_places in places.values()
        for number, place in enumerate(token_places)
        for earlier in token_places[max(0, number - most) : number]
    }
    return sorted(size for size in found if size <= most)


def _share_of_different(tokens: Sequence[str]) -> float:
    """The share of sequences of three tokens that are different; 1 for a short text."""
    trigrams = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return len(set(trigrams)) / len(trigrams) if len(trigrams) >= _FEWEST_TRIGRAMS else 1.0


def _most_equal(text: str) -> int:
    """The length of the longest run of one character that is no space, digit or full stop."""
    runs = (found.end() - found.start() for found in re.finditer(r"([^\s\d.])\1+", text))
    return max(runs, default=1)


def _copies_source(source: str, translation: str, languages: Direction) -> bool:
    """Whether four words in a row, or all of at least three, are those of the source; names and numbers do not count."""
    if primary_language(languages.source) == primary_language(languages.target):
        return False
    if len({*source.split()} & {*translation.split()}) < _FEWEST_SHARED:
        return False
    read, written = _WORD.findall(source), _WORD.findall(translation)
    num_lower = sum(word[0].islower() for word in read)
    if read == written:
        return num_lower >= _SHORTEST_COPY - 1
    if min(len(read), len(written)) < _SHORTEST_COPY:
        return False
    # The words of names begin with a capital letter; a sentence in capitals has no lower-case word at all.
    runs = zip(*(written[first:] for first in range(_SHORTEST_COPY)), strict=False)
    known = set(zip(*(read[first:] for first in range(_SHORTEST_COPY)), strict=False))
    return any(run in known and all(word[0].islower() for word in run) for run in runs)


def _is_in_source_language(written: Sequence[str], here: _Known, there: _Known) -> bool:
    """Whether the frequent words of a translation are those of the language of the source."""
    if here.code == there.code or not there.frequent:
        return False
    words = [token for token in written if not token.isdecimal()]
    if sum(map(there.frequent.__contains__, words)) > _FEW_FREQUENT * len(words):
        return False
    num_source = sum(len(word) > 1 and word in here.frequent for word in words)
    return len(words) >= _FEWEST_WORDS and num_source >= _MANY_FREQUENT * len(words)


def _has_foreign_letters(source: str, translation: str, target: str) -> bool:
    """Whether a translation has letters of a script that its language does not use, and that the source has not."""
    expected = scripts_of_language(target)
    if not expected:
        return False
    added = set(translation).difference(source)
    return any(letter.isalpha() and _script(letter) not in expected for letter in added)


_LONGEST_WORD = 100
"""Characters. The longest words of a text have up to 80; a run of more is a key, or a key that was held down."""


def is_unreadable(source: str, language: str) -> bool:
    """Whether a source is of other scripts than its language, or a run of letters and digits that is too long to be a word."""
    is_run = len(source) > _LONGEST_WORD and source.strip(" .,!?…").isalnum() and has_spaces(language)
    return is_run or _is_in_other_scripts(source, language)


def _is_in_other_scripts(source: str, language: str) -> bool:
    """Whether most letters of a source belong to scripts in which its language is not written."""
    if source.isascii():
        return False
    expected = scripts_of_language(language)
    letters = [letter for letter in source if letter.isalpha()]
    foreign = sum(_script(letter) not in expected for letter in letters)
    return bool(expected) and foreign > len(letters) / 2


@cache
def _script(letter: str) -> str:
    """The first word of the Unicode name of a letter, such as LATIN; letters of several scripts have LATIN's."""
    found = unicodedata.name(letter, "LATIN").split(" ")[0].split("-")[0]
    return "LATIN" if found in ("FEMININE", "MASCULINE", "MODIFIER", "FULLWIDTH") else found


def lost_marks(source: str, translation: str, target: str) -> tuple[str, ...]:
    """What a whole translation lacks: signs of its source, inner ellipses, abbreviations such as e.g., and every question mark.

    Args:
        target: the language of the translation; of one without spaces nothing is said about question marks.
    """
    if source == translation:
        return ()
    found = list(lost_signs(source, translation, target))
    is_named = "..." in found or "\u2026" in found
    if not is_named and num_inner_ellipses(source) > num_inner_ellipses(translation):
        found.append("...")
    if _MAY_ABBREVIATE.search(source):
        found += _lost_abbreviations(masked(source, find_spans(source), "0"), translation, target)
    if "?" in source and "?" not in translation and has_spaces(target):
        is_marked = any(map(translation.__contains__, _QUESTION_MARKS))
        if _ASKS.search(source) is not None and not is_marked:
            found.append("?")
    return tuple(found)


# Question marks of Arabic, Armenian, Greek and Ethiopic are there, too.
_ASKS = lazy_pattern(r"\?(?!\w)")
_QUESTION_MARKS = "\uff1f\u061f\u055e\u037e;\u1367\u2047\u2048\u2049"


def lacks_words_at_placeholders(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has no words at a side of a placeholder, URL or the like where its source has, and far fewer words in all.

    The words of one side may stand on the other in another language, and a translation may be shorter; so both must be true: more
    sides became empty than got words, and the words are at most two thirds. A side of frequent words alone, such as "to", does
    not count. A translation without any words lacks also short and frequent ones, but for articles. A word that a placeholder ends, as in dog{{ n|pluralize }}, must be
    there, too.
    """
    if source == translation or not all(map(has_spaces, languages)):
        return False
    for ending in {match[0] for match in _ENDING_OF_WORD.finditer(source)}:
        if ending in translation and re.search(rf"[\w'\u2019]{re.escape(ending)}", translation) is None:
            return True
    sides = _words_beside_placeholders(source)
    if len(sides) == 1:
        return False
    others = _words_beside_placeholders(translation)
    if len(sides) != len(others):
        return False
    frequent = _known_of(languages.source).frequent
    if not any(others) and any(word not in _ARTICLES for words in sides for word in words):
        return True
    if has_other_units(source, translation, languages.target, SpanKind.WORD):
        return True
    num_lost = sum(
        not there and any(len(word) >= _SHORTEST_OF_CONTENT and word not in frequent for word in here)
        for here, there in zip(sides, others, strict=True)
    )
    num_won = sum(bool(there) and not here for here, there in zip(sides, others, strict=True))
    num_read, num_written = (sum(map(len, each)) for each in (sides, others))
    return num_lost > num_won and num_written <= _FEW_WORDS * num_read


_ENDING_OF_WORD = lazy_pattern(r"(?<=[^\W\d_])(?:[$#]?\{\{[^{}]+\}\}|[$#%]?\{[^{}\s]+\}|%\([^()\s]+\)s)")
_SHORTEST_OF_CONTENT = 3  # letters
_ARTICLES = word_list(
    "the a an der das den dem des ein eine le la les l un une il lo gli uno una el los las o os um uma het een"
)
_FEW_WORDS = 0.67  # of the source


def _words_beside_placeholders(text: str) -> list[list[str]]:
    """The words before, between and behind the placeholders, URLs and the like of a text."""
    found, place = [], 0
    spans = [span for span in with_units(text, find_spans(text), SpanKind.WORD) if span.kind is SpanKind.WORD]
    for start, end in [*((span.start, span.end) for span in spans), (len(text), len(text))]:
        found.append(_WORD.findall(text[place:start].casefold()))
        place = end
    return found


def _lost_abbreviations(visible: str, translation: str, target: str) -> Iterator[str]:
    """The abbreviations for "for example" and "that is" of a source, if its translation says this less often.

    Args:
        visible: the source without its protected spans.
        translation: of it.
        target: the language of the translation; of one without a list of words nothing is said.
    """
    words = _WORDS_OF_ABBREVIATIONS.get(primary_language(target))
    if words is None:
        return
    for abbreviation, meaning in zip((_FOR_EXAMPLE, _THAT_IS), words, strict=True):
        read = re.findall(abbreviation, visible)
        said = rf"{abbreviation}|(?<!\w)(?i:{meaning})(?!\w)"
        if read and len(read) > len(re.findall(said, translation)):
            yield read[0]


_AMPERSAND = lazy_pattern(r"(?<!\S)&(?!\S)")


def with_words_for_ampersands(text: str, language: str) -> str:
    """A text with the word of its language in place of each & between white space; as it is, if this word is not known."""
    if "&" not in text or (words := WORDS_OF_SIGNS.get(primary_language(language))) is None:
        return text
    outside = masked(text, find_spans(text), "0")
    word = words["&"].split()[0]
    if outside.isupper():
        word = word.upper()
    found = (match.start() for match in _AMPERSAND.finditer(outside))
    places = [-1, *found, len(text)]
    return word.join(text[first + 1 : last] for first, last in pairwise(places))


def with_ampersands(translation: str, source: str, read: str, languages: Direction) -> str:
    """The translation of a text of `with_words_for_ampersands`, with the sign in place of the words that stand for it.

    Args:
        source: the text with its signs.
        read: the text with words.
        languages: of both. Where a translation has more or fewer such words than the text, they stay.
    """
    here, there = (WORDS_OF_SIGNS.get(primary_language(language)) for language in languages)
    if here is None or there is None:
        return translation
    source_places = [match.start() for match in _words_in(read, here["&"])]
    target_spans = [match.span() for match in _words_in(translation, there["&"])]
    if len(source_places) != len(target_spans):
        return translation
    length = len(here["&"].split()[0]) - 1
    signs = [match.start() for match in _AMPERSAND.finditer(masked(source, find_spans(source), "0"))]
    moved = {place + number * length for number, place in enumerate(signs)}
    result, end = "", 0
    for place, (start, stop) in zip(source_places, target_spans, strict=True):
        result += translation[end:start] + ("&" if place in moved else translation[start:stop])
        end = stop
    return result + translation[end:]


def _words_in(text: str, words: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"(?<!\w)(?:{'|'.join(words.split())})(?!\w)", text, re.IGNORECASE)


def _negates(text: str, tokens: Sequence[str], negations: frozenset[str], *, has_digit: bool) -> bool:
    """Whether a text, whose tokens are given, has a word that negates."""
    if has_digit or "t" in tokens or "n" in tokens or "pas" in tokens:  # doesn't; n'importe; no 5; un pas
        words = _NO_NEGATION.sub("", text.casefold())
        tokens = _WORD.findall(words.replace("n't", " not").replace("n\u2019t", " not"))
    return not negations.isdisjoint(tokens)


def _has_other_negation(source: str, translation: str, here: str, there: str, *, is_negated: bool) -> bool:
    """Whether one of two texts, that has no word that negates, has no word either that may do so.

    Args:
        here, there: the languages of the texts.
        is_negated: whether the other one is the source.
    """
    if here not in _NEGATIONS or there not in _NEGATIONS:
        return False
    if len(_WORD.findall(source)) > _LONGEST_SENTENCE:  # there are many ways to say it
        return False
    texts = [(source, here), (translation, there)]
    (negated, language), (other, its_language) = texts if is_negated else texts[::-1]
    if _NUMBER.search(small := negated.casefold()) and _SAYS_NUMBER.search(other):
        small = _NUMBER.sub("", small)
        if not _negates(small, _tokens(small), word_list(_NEGATIONS[language]), has_digit=True):
            return False
    return not _may_negate(other, its_language)


def _may_negate(text: str, language: str) -> bool:
    words = _WORD.findall(text.casefold())
    if not word_list(_MAY_NEGATE[language]).isdisjoint(words):
        return True
    return any(map(_NEGATIVE_FORM.fullmatch, words))
