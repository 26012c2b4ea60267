"""Doubts about a translation that need no reference: what its text shows to be wrong, compared with the text of its source.

Each check is a plain function of the two texts and their languages. A check that does not know a language says nothing.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from transformer_cli.config import Direction
from transformer_cli.text.languages import (
    frequent_words,
    has_spaces,
    primary_language,
    scripts_of_language,
)
from transformer_cli.text.sentences import BRACKETS, num_inner_ellipses, partners_of_brackets
from transformer_cli.text.spans import SpanKind, find_spans, masked

WORDLESS = "has no words"
UNFINISHED = "does not end"
REPEATS = "repeats itself"
TOO_LONG = "is far too long"
COPIES = "copies the source"
OTHER_LANGUAGE = "is in the language of the source"
OTHER_SCRIPT = "has letters of another script"
UNREADABLE = "has a source in a script that the model cannot read"
UNSURE = "is less probable than 99 % of those of the calibration"
UNSEEN = "guesses what training has not seen"
"""Followed by a colon and the words."""
NUMBERS = "has other numbers"
MARKS = (
    "lacks a mark of its source: an ellipsis inside it, a bracket, a sign such as &, =, / or →, or an abbreviation "
    "such as e.g. or i.e."
)
BESIDE_PLACEHOLDER = "lacks words beside a placeholder of its source"
ENCLOSED = "leaves the words inside [[ ]], { } or < > as they are: they look like a placeholder, or the name of a page"
NEGATION = "has a negation more or less than its source"
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
    NUMBERS,
    NEGATION,
    MARKS,
    BESIDE_PLACEHOLDER,
    ENCLOSED,
)
"""All doubts, from the one that says most about a translation to the one that says least."""


_TOKEN = re.compile(r"[^\W\d_]+|\d+")
_WORD = re.compile(r"[^\W\d_]+")
# Digits with marks between them, such as 1,234.50 or 10:30.
_NUMBER = re.compile(r"\d{1,3}(?: \d{3})+(?!\d)|\d+(?:[.,:\u00a0\u202f'\u2019]\d+)*")
_WHOLE = re.compile(r"[.,:]00$")
_CLOCK = re.compile(r"\d{1,2}[.:]\d{2}")
_TIME = "t"
_MOST_SPELLED_DIGITS = 2  # a longer number is not written as words
_DIGIT = re.compile(r"\d")
# ½ Ⅳ ③, and the numbers of Chinese; a raised one is a note or a power.
_NUMBER_SIGN = re.compile(
    r"[\u00bc-\u00be\u2150-\u218b\u2460-\u249b\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]"
)
_NO_DIGIT = re.compile(r"\D+")
_END_OF_LATIN = 0x250
_PUNCTUATION = range(0x2000, 0x2070)
_LONGEST_LOOP = 12  # tokens
_SHORTEST_LONG_LOOP = 3  # words: so many stand twice in a row by mistake only
_FEWEST_TRIGRAMS = 12
_FEW_DIFFERENT = 0.6
_MOST_EQUAL_CHARACTERS = 6
_MANY_EQUAL = re.compile(r"([^\s\d.])\1\1\1\1\1\1")  # faster than \1{6}
_SHORTEST_COPY = 4  # words
_FEWEST_SHARED = 2  # of these, with the marks that touch them
_FEWEST_WORDS = 5
_LONGEST_NEGATION = 25  # words
_MANY_FREQUENT = 0.25
_FEW_FREQUENT = 0.05
_LARGEST_RATIO = 3.0
_ALLOWED_CHARACTERS = 40  # beyond the ratio
# ..., isn't it?; question no 5
_NO_NEGATION = re.compile(
    r",? \w+n['\u2019]t (?:i|you|he|she|it|we|they|there) *(?=\?)|\bn[o\u00b0]\.? ?(?=\d)"
)

# Between white space, and no letter, digit or usual punctuation.
_SIGN_BY_ITSELF = re.compile(r"(?<!\S)[^\w\s,.;:!?()\[\]\"'&+=\u2013\u2014-](?!\S)")
# "For example" and "that is" in several languages; models that have not seen them leave them out.
_FOR_EXAMPLE = r"(?<!\w)(?:[eE]\.\s?g|[zZ]\.\s?B|[pP]\.\s?(?:ex|es|ej))(?!\w)"
_THAT_IS = r"(?<!\w)(?:[iI]\.\s?e|[dD]\.\s?(?:h|w\.\s?z)|[cC]\.?-à-d)(?!\w)"
LOST_MARK = re.compile(
    rf"[&+=()\[\]\u2026]|\.\.\.|{_SIGN_BY_ITSELF.pattern}|{_FOR_EXAMPLE}|{_THAT_IS}"
)
_ALL_BRACKETS = (*BRACKETS, *BRACKETS.values())
# Which a translation into Chinese, Japanese or Korean may have instead.
WIDE_OPENING_BRACKETS = "\uff08\u3010\u300c\uff3b"
WIDE_CLOSING_BRACKETS = "\uff09\u3011\u300d\uff3d"
# What may stand for a sign between two words: for & and +, for + alone, and for =.
_WORDS_OF_SIGNS = {
    "de": ("und", "plus", "ist sind gleich"),
    "en": ("and", "plus", "is are equal equals"),
    "es": ("y e", "más", "es son igual"),
    "fr": ("et", "plus", "est sont égal égale"),
    "it": ("e ed", "più", "è sono uguale"),
    "nl": ("en", "plus", "is zijn gelijk"),
    "pt": ("e", "mais", "é são igual"),
}

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

# Words for small numbers: a number in digits may be one of them in the other text.
_NUMBER_WORDS = {
    "de": "null ein eine eins einen einem einer zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig vierzig "
    "fünfzig sechzig siebzig achtzig neunzig hundert tausend halb beide erste zweite dritte vierte fünfte sechste "
    "siebte achte neunte zehnte viertel",
    "en": "zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty "
    "ninety hundred thousand half both first second third fourth fifth sixth seventh eighth ninth tenth quarter once twice dozen",
    "es": "cero un una uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince veinte treinta "
    "cuarenta cincuenta sesenta setenta ochenta noventa cien ciento mil media ambos primero primera primer segundo "
    "segunda tercero tercera tercer cuarto cuarta quinto quinta sexto sexta séptimo séptima octavo octava noveno novena "
    "décimo décima",
    "fr": "zéro un une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize vingt trente "
    "quarante cinquante soixante cent mille demi demie premier première second seconde demi quart",
    "it": "zero un uno una due tre quattro cinque sei sette otto nove dieci undici dodici venti trenta quaranta cinquanta "
    "sessanta settanta ottanta novanta cento mille mezzo mezza entrambi primo prima secondo seconda terzo terza quarto "
    "quarta quarti quinto quinta sesto sesta settimo settima ottavo ottava nono nona decimo decima mezz mezzogiorno mezzanotte",
    "nl": "nul een één twee drie vier vijf zes zeven acht negen tien elf twaalf twintig dertig veertig vijftig zestig zeventig "
    "tachtig negentig honderd duizend half beide eerste tweede derde vierde vijfde zesde zevende achtste negende tiende kwart",
    "pt": "zero um uma dois duas três quatro cinco seis sete oito nove dez onze doze vinte trinta quarenta cinquenta sessenta "
    "setenta oitenta noventa cem cento mil meia ambos primeiro primeira segundo segunda terceiro terceira quarto quarta "
    "quinto quinta sexto sexta sétimo sétima oitavo oitava nono nona décimo décima",
}
# The words for 0 to 20, 30, 40 and so on up to 90.
_CARDINALS = {
    "de": "null ein/eine/eins/einen/einem/einer/eines zwei/zwo/beide/beiden drei vier fünf sechs sieben acht neun zehn elf "
    "zwölf/mittag dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig "
    "achtzig neunzig",
    "en": "zero one two/both three four five six seven eight nine ten eleven twelve/noon/midday/dozen thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety",
    "es": "cero un/una/uno dos/ambos/ambas tres cuatro cinco seis siete ocho nueve diez once doce/mediodía/docena trece catorce "
    "quince dieciséis diecisiete dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "fr": "zéro un/une deux trois quatre cinq six sept huit neuf dix onze douze/midi/douzaine treize quatorze quinze seize "
    "dix-sept dix-huit dix-neuf vingt/vingts trente quarante cinquante soixante soixante-dix quatre-vingt quatre-vingt-dix",
    "it": "zero un/uno/una due/entrambi/entrambe tre quattro cinque sei sette otto nove dieci undici dodici/mezzogiorno/dozzina "
    "tredici quattordici quindici sedici diciassette diciotto diciannove venti trenta quaranta cinquanta sessanta settanta "
    "ottanta novanta",
    "nl": "nul een/één twee/beide drie vier vijf zes zeven acht negen tien elf twaalf/middag/dozijn dertien veertien vijftien "
    "zestien zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig",
    "pt": "zero um/uma dois/duas/ambos/ambas três quatro cinco seis sete oito nove dez onze doze/dúzia treze catorze/quatorze "
    "quinze dezesseis/dezasseis dezessete/dezassete dezoito dezenove/dezanove vinte trinta quarenta cinquenta sessenta "
    "setenta oitenta noventa",
}
# Words that do not always say a number or may be said without it: both ... and, sei (you are), neuf (new), acht geben.
_VAGUE_NUMBERS = (
    "both beide beiden ambos ambas entrambi entrambe noon midday mittag middag mezzogiorno mediodía midi "
    "dozen docena douzaine dozzina dúzia dozijn sei neuf acht"
)
# At 12:00 and at 0:30.
_TWELVE = "midnight mitternacht medianoche minuit mezzanotte middernacht meianoite noon midday mittag mezzogiorno mediodía midi"
_FEWEST_COUNTED = 2  # one is an article in most languages
# What may stand for two: patterns of words or of their beginnings.
_PAIRS = {
    "de": "paar|pärchen|doppel|zwillin|zweit|zweier|beid",
    "en": r"pairs?\b|couples?\b|double|twin|second|(?:both|either|neither|other)\b",
    "es": r"par(?:es)?\b|pareja|doble|gemel|segund",
    "fr": r"paires?\b|couples?\b|double|jume|second|deuxième",
    "it": r"coppi[ae]\b|paio\b|doppi|dupl|gemell|second|entramb",
    "nl": r"paar|stel\b|dubbel|tweeling|tweed|beide",
    "pt": r"par(?:es)?\b|casal|dobro|dupl|gême|segund",
}
# zweiundzwanzig, the twenties, ventuno, ventesimo, novecento, veintidós
_PART_OF_NUMBER = re.compile(
    r"\w*(?:hundert|tausend|honderd|duizend|hundred|thousand|million|milion|miliard|milliard|billion|millon|milh)\w*"
    r"|\w*(?:zwan|drei|vier|fünf|sech|sieb|acht|neun)(?:z|ß|ss)ig\w*|(?:drei|vier|fünf|sech|sieb|acht|neun)zehn\w*"
    r"|\w*(?:twin|der|veer|vijf|zes|zeven|tach|negen)tig\w*|(?:der|veer|vijf|zes|zeven|acht|negen)tien\w*"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)t(?:y|ies|ieth)|(?:thir|four|fif|six|seven|eigh|nine)teen(?:th)?"
    r"|(?:vent|trent|quarant|cinquant|sessant|settant|ottant|novant)[ia]?(?:un[oa]?|due|tre|tré|quattro|cinque|sei|sette|otto|nove)?"
    r"|\w*(?:nt|dic|tr|un|du|quattr|cinqu|se|ett|ott|ov|mill)esim[oaie]|\w*ième|veinti\w+|dieci\w+"
    r"|(?:due|tre|quattro|cinque|sei|sette|otto|nove|dos|tres|quatro|cuatro|seis|sete|nove|oito|ocho)ci?ent[oa]s?|cento\w*|centinai[oa]"
    r"|(?:du|tre)zent[oa]s|quin(?:ient|hent)[oa]s|(?:due|tre|quattro|cinque|sei|sette|otto|nove|dieci|\w+nt[ia]|cento)mila|mille\w*"
)
# The word before or behind a number; a short word such as "and" may stand between: vingt et un, trinta e um.
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[\s-]+(?:(?:et|e|y|and|en|und)\s+)?$")
_WORD_BEHIND = re.compile(r"[\s-]+(?:(?:et|e|y|and|en|und)[\s-]+)?([^\W\d_]+)")
_LONGEST_WORD = 60  # characters
_SHORTEST_PART = 4  # letters of a word for a number that may be a part of another word
_HALF_A_DAY = 12  # hours
# 0 to 9: with 0 for I or X, 1 for V or L, 2 for X or C
_ROMAN_DIGITS = ("", "0", "00", "000", "01", "1", "10", "100", "1000", "02")
_FEWEST_TENS, _MOST_TENS = 20, 99

# unhappy, dishonest, careless, wertlos, inaccettabile
_NEGATIVE_FORM = re.compile(
    r"(?:un|dis)\w{4,}|\w{3,}(?:los|less|lose[mnrs]?)|i[mn]\w+(?:[ai]bil[ei]|able|ible)"
)

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


def doubts_about(
    source: str, translation: str, languages: Direction, *, is_finished: bool = True
) -> tuple[str, ...]:
    """What is wrong with a translation, as members of `DOUBTS`; nothing for a source that is blank.

    Args:
        source: what the model has read.
        translation: what it has written.
        languages: of the two texts.
        is_finished: whether the model has written the end of the translation; false: the search was cut off.
    """
    if any(map(str.isalnum, source)) and not any(map(str.isalnum, translation)):
        return (WORDLESS,)
    if not translation.strip() or not source.strip():
        return ()
    # The words are found once. Before most tests stands a cheap question to which nearly all good translations say no.
    here, there = map(_known_of, languages)
    read, written = _tokens(source), _tokens(translation)
    words = set(written)
    has_digit = _DIGIT.search(source) is not None or _DIGIT.search(translation) is not None
    has_number_sign = not (source.isascii() and translation.isascii()) and (
        _NUMBER_SIGN.search(source) is not None or _NUMBER_SIGN.search(translation) is not None
    )
    if has_digit:
        texts = (source, translation)
        if has_number_sign:
            texts = _as_written_in(translation, source), _as_written_in(source, translation)
        has_other_numbers = _has_other_numbers(*texts, languages) or (
            has_number_sign and _has_other_number_signs(*texts, languages)
        )
    elif has_number_sign:
        has_other_numbers = _has_other_number_signs(source, translation, languages)
    else:
        has_other_numbers = (
            not here.numbers.isdisjoint(read)
            and _lacks_number_word(source, read, translation, here.code, there.code)
        ) or (
            not there.numbers.isdisjoint(words)
            and _lacks_number_word(translation, words, source, there.code, here.code)
        )
    is_negated = _negates(source, read, here.negations, has_digit=has_digit)
    found = {
        UNFINISHED: not is_finished,
        REPEATS: (len(words) < len(written) and _repeats_words(read, written))
        or (_MANY_EQUAL.search(translation) is not None and _repeats_a_sign(source, translation)),
        TOO_LONG: len(translation) - _ALLOWED_CHARACTERS > _LARGEST_RATIO * len(source)
        and _is_far_too_long(source, translation),
        COPIES: not words.isdisjoint(read) and _copies_source(source, translation, languages),
        OTHER_LANGUAGE: not words.isdisjoint(here.frequent)
        and _is_in_source_language(written, here, there),
        OTHER_SCRIPT: not (translation.isascii() or there.letters.issuperset(translation))
        and _has_foreign_letters(source, translation, languages.target),
        UNREADABLE: not (source.isascii() or here.letters.issuperset(source))
        and is_unreadable(source, languages.source),
        NUMBERS: has_other_numbers,
        NEGATION: is_negated != _negates(translation, written, there.negations, has_digit=has_digit)
        and _has_other_negation(source, translation, here.code, there.code, is_negated=is_negated),
    }
    return tuple([doubt for doubt, is_there in found.items() if is_there])


class _Known(NamedTuple):
    """What is known of a language; each set is empty where nothing is."""

    code: str
    frequent: frozenset[str]
    """Words."""
    numbers: frozenset[str]
    """The words of which numbers from two on consist, casefolded."""
    negations: frozenset[str]
    letters: frozenset[str]
    """Signs of a text in Latin letters, without the letters of scripts that the language does not use."""


@cache
def _known_of(language: str) -> _Known:
    code, scripts = primary_language(language), scripts_of_language(language)
    signs = map(chr, (*range(_END_OF_LATIN), *_PUNCTUATION))
    return _Known(
        code,
        frequent_words(code),
        frozenset(_tokens(" ".join(_counted(code)))),
        _list_of(_NEGATIONS.get(code, "")),
        frozenset(sign for sign in signs if not sign.isalpha() or _script(sign) in scripts),
    )


def without_unseen_words(doubts: Sequence[str]) -> tuple[str, ...]:
    """The doubts without the one that names words which training has not seen."""
    return tuple(doubt for doubt in doubts if not doubt.startswith(UNSEEN))


def _is_far_too_long(source: str, translation: str) -> bool:
    """Whether a translation has more than three times as many characters as its source, and forty.

    A sign of Chinese, Japanese or Korean counts as three, because it says as much.
    """
    length = len(source) + 2 * sum(sign > "\u2e7f" for sign in source)
    return len(translation) - _ALLOWED_CHARACTERS > _LARGEST_RATIO * length


def _repeats_words(read: Sequence[str], written: Sequence[str]) -> bool:
    """Whether words follow each other again and again where the source does not do so.

    That is one to twelve words that stand three times in a row (three or more: twice; two at the end, too, if the source has no two
    words twice), or few different sequences of three words.
    """
    if _ends_twice(written) and _loops(read, 2).get(2, 1) == 1:
        return True
    for size, most in _loops(written).items():
        allowed = 1 if size >= _SHORTEST_LONG_LOOP else 2
        if most > max(allowed, _loops(read, size).get(size, 1)):
            return True
    different = _share_of_different(written)
    return different < _FEW_DIFFERENT and different < _share_of_different(read) - 0.2


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
        for of_token in places.values()
        for number, place in enumerate(of_token)
        for earlier in of_token[max(0, number - most) : number]
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


def is_unreadable(source: str, language: str) -> bool:
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


def _has_other_numbers(source: str, translation: str, languages: Direction) -> bool:
    """Whether a number is missing or added in two texts of which one has digits.

    A number of one or two digits may be a word in one of the texts, and a time several words, if no other number stands there
    instead; and hours may count to 12 or to 24. Where the words for numbers are known, this word must have its value, and one of
    the words for a time that of its hour or the next.
    """
    read, written = _numbers(source), _numbers(translation)
    missing, added = read - written, written - read
    if missing and added:
        return not _are_times(missing, added)
    for left, text, other, language in (
        (missing, source, translation, languages.target),
        (added, translation, source, languages.source),
    ):
        # 8:30 may be half past eight, and 300 three hundred.
        times = [number for number in left if number.startswith(_TIME)]
        if not all(_may_have_time(other, primary_language(language), each) for each in times):
            return True
        numbers = [number for number in left if not number.startswith(_TIME)]
        if any(len(number.rstrip("0")) > _MOST_SPELLED_DIGITS for number in numbers):
            return True
        # The words of 2.5 may be two and a half: only those of whole numbers have their values.
        whole = {str(int(each)) for each in _NUMBER.findall(text) if each.isdecimal()}
        if not all(
            _may_have_number(other, primary_language(language), int(n) if n in whole else None)
            for n in numbers
        ):
            return True
    return False


def _has_other_number_signs(source: str, translation: str, languages: Direction) -> bool:
    """Whether a sign such as ½ is missing or added in a translation; see `_lacks_number_sign`."""
    return _lacks_number_sign(source, translation, languages) or _lacks_number_sign(
        translation, source, languages.reverse
    )


def _as_written_in(other: str, text: str) -> str:
    """A text with its signs such as ½, Ⅳ or 三 as the other text writes them: 1/2 or 0,5, IV or 4, 3."""
    for sign in set(_NUMBER_SIGN.findall(text)).difference(other):
        letters = unicodedata.normalize("NFKC", sign).replace("\u2044", "/")
        number = f"{unicodedata.numeric(sign):g}"
        forms = (letters, letters.replace("/", "\u2044"), number, number.replace(".", ","))
        found = next((form for form in forms if form in other), sign)
        text = text.replace(sign, found)
    return text


def _lacks_number_sign(text: str, other: str, languages: Direction) -> bool:
    """Whether a text has a sign such as ½, Ⅳ or 三 that the other text says neither with it nor in digits, letters or words.

    Nothing is said where one of the languages is written with Chinese signs: there 三 is a word.
    """
    if (found := set(_NUMBER_SIGN.findall(text)).difference(other)) and not any(
        "CJK" in scripts_of_language(language) for language in languages
    ):
        language = primary_language(languages.target)
        for sign in found:
            value = unicodedata.numeric(sign)
            letters = unicodedata.normalize("NFKC", sign).casefold()
            if not (
                letters in other.casefold()
                or _numbers(other) - _numbers(text)
                or _may_have_number(other, language, int(value) if value.is_integer() else None)
            ):
                return True
    return False


def _may_have_number(text: str, language: str, number: int | None) -> bool:
    """Whether a text has a word for a number; true for a language whose words are not known.

    Args:
        number: its value; None: any. A word whose value is not known, such as ventuno or third, may have each.
    """
    known = _NUMBER_WORDS.get(language)
    if known is None:
        return True
    values_of = _cardinals(language)
    values = set()
    for word in _WORD.findall(text.casefold()):
        if word in values_of:
            values.add(values_of[word])
        elif word in _list_of(known) or _PART_OF_NUMBER.fullmatch(word):
            return True
    if number is None or number > _MOST_TENS:
        return bool(values)
    if re.search(rf"\b{_roman(number)}(?:\b|i?\u00e8me\b|e\b)", text):  # the XVI century, le XVIe
        return True
    if not values.isdisjoint((number, number - _HALF_A_DAY, number + _HALF_A_DAY)):
        return True
    if number != _FEWEST_TENS and {10, number - 10} <= values:  # dix-sept
        return True
    if number < _FEWEST_TENS or not number % 10:
        # soixante-dix, quatre-vingts
        return language == "fr" and number >= 70 and bool(values & {20, 60})
    # twenty-one, trinta e um, soixante et onze
    return number % 10 in values or (language == "fr" and bool(values & {20, 60}))


def _may_have_time(text: str, language: str, time: str) -> bool:
    """Whether a text without a time in digits says it in words; true for a language whose words for numbers are not known.

    Args:
        time: as `_numbers` has it, such as t1030: half past ten, or halb elf in German.
    """
    value = int(time.removeprefix(_TIME))  # 6 for 6:00 and for 0:06
    hours = {
        later % (2 * _HALF_A_DAY)
        for hour in (value // 100, value // 100 + 1, value)
        if hour <= 2 * _HALF_A_DAY
        for later in (hour, hour + _HALF_A_DAY)
    }
    if not hours.isdisjoint((0, _HALF_A_DAY)) and not _list_of(_TWELVE).isdisjoint(
        _WORD.findall(text.casefold())
    ):
        return True
    # The one of twenty-one alone says another hour.
    return any(_may_have_number(text, language, min(hour, _FEWEST_TENS)) for hour in hours)


def _lacks_number_word(
    text: str, words: Iterable[str], other: str, language: str, other_language: str
) -> bool:
    """Whether a text without digits has a word for a number of two or more that another text without digits does not say in its language."""
    if language not in _CARDINALS or other_language not in _CARDINALS:
        return False
    other, cardinals = other.casefold(), _cardinals(language)
    said = set(map(_cardinals(other_language).get, _WORD.findall(other)))
    if "-" not in text and said.issuperset(
        value for word in words if (value := cardinals.get(word, 0)) >= _FEWEST_COUNTED
    ):
        return False  # which is the usual answer
    for found in _counted_word(language).finditer(text):
        word = found[0].casefold()
        number = cardinals.get(word)  # None for SİX: casefolded, İ is two signs
        if number is None or number in said or _is_part_of_number(text, found.span(), language):
            continue
        # A name keeps its words, as the Big Ten does; and another word may begin with the number, as dreiköpfig does.
        forms = [rf"{word}\b", *_forms(other_language, number)]
        if number == _FEWEST_COUNTED:
            forms.append(_PAIRS[other_language])
        if re.search(rf"\b(?:{'|'.join(forms)})", other) is None and not _may_have_number(
            other, other_language, number
        ):
            return True
    return False


def _is_part_of_number(text: str, span: tuple[int, int], language: str) -> bool:
    """Whether another word for a number stands beside this one, as in soixante et onze, half vier or one thousand two hundred."""
    before = _WORD_BEFORE.search(text, max(0, span[0] - _LONGEST_WORD), span[0])
    behind = _WORD_BEHIND.match(text, span[1])
    return any(
        (word := beside[1].casefold()) in _list_of(_NUMBER_WORDS[language])
        or word in _cardinals(language)
        or _PART_OF_NUMBER.fullmatch(word) is not None
        for beside in (before, behind)
        if beside is not None
    )


def _counted(language: str) -> list[str]:
    """The words of a language for numbers from two on, casefolded, without vague ones."""
    numbers = _cardinals(language).items() if language in _CARDINALS else ()
    vague = _list_of(_VAGUE_NUMBERS)
    return [word for word, number in numbers if number >= _FEWEST_COUNTED and word not in vague]


@cache
def _counted_word(language: str) -> re.Pattern[str]:
    """The words of `_counted`; not before a hyphen, because four-wheeler is a quad in another language."""
    # The words are casefolded, and ß has no form of one letter there.
    longest_first = "|".join(sorted(_counted(language), key=len, reverse=True))
    return re.compile(rf"\b(?:{longest_first.replace('ss', '(?:ss|ß)')})\b(?!-)", re.IGNORECASE)


@cache
def _forms(language: str, number: int) -> frozenset[str]:
    """The words for a number that are long enough to be known inside another word."""
    return frozenset(
        word
        for word, value in _cardinals(language).items()
        if value == number and len(word) >= _SHORTEST_PART
    )


def _roman(number: int) -> str:
    """A number up to 99 as capital letters; one of a single letter is no number, because I is a word."""
    tens, ones = map(_ROMAN_DIGITS.__getitem__, divmod(number, 10))
    found = tens.translate(str.maketrans("012", "XLC")) + ones.translate(
        str.maketrans("012", "IVX")
    )
    return found if len(found) > 1 else "(?!)"


@cache
def _cardinals(language: str) -> dict[str, int]:
    """Word for a number up to 90, casefolded -> the number."""
    numbers = [*range(21), *range(30, 100, 10)]
    words = _CARDINALS[language].split()
    return {
        word.casefold(): number
        for number, same in zip(numbers, words, strict=True)
        for word in same.split("/")
    }


def _numbers(text: str) -> Counter[str]:
    """The numbers of a text: digits without leading zeros, the marks between them, and .00 at their ends; times begin with t."""
    return Counter(
        (_TIME if _CLOCK.fullmatch(number) else "")
        + str(int(_NO_DIGIT.sub("", _WHOLE.sub("", number))))
        for number in _NUMBER.findall(text)
    )


def _are_times(missing: Iterable[str], added: Iterable[str]) -> bool:
    """Whether each added number is a missing one as an hour: 3 and 15, or 330 and 1530."""
    hours = [
        sorted(int(number.removeprefix(_TIME)) for number in each) for each in (missing, added)
    ]
    if len(hours[0]) != len(hours[1]):
        return False
    return all(abs(one - other) in (0, 12, 1200) for one, other in zip(*hours, strict=True))


def lacks_marks(source: str, translation: str, target: str) -> bool:
    """Whether a whole translation has fewer inner ellipses, brackets around words, signs such as &, or abbreviations such as e.g. than its source.

    A sign counts if it stands between white space; words of the target language may stand for &, + and =, and for abbreviations.
    """
    if source == translation:
        return False
    if num_inner_ellipses(source) > num_inner_ellipses(translation):
        return True
    visible = masked(source, find_spans(source), "0")
    wide = (*WIDE_OPENING_BRACKETS, *WIDE_CLOSING_BRACKETS)
    written = masked(translation, find_spans(translation), "0")
    if _num_brackets(visible) > sum(map(written.count, (*_ALL_BRACKETS, *wide))):
        return True
    if _lacks_other_signs(visible, translation) or _lacks_abbreviation(
        visible, translation, target
    ):
        return True
    if (words := _WORDS_OF_SIGNS.get(primary_language(target))) is None:
        return False
    joining, adding, equalling = words
    target_words = _WORD.findall(translation.casefold())
    for sign, meaning in (("&", joining), ("+", f"{joining} {adding}"), ("=", equalling)):
        num_read = len(re.findall(rf"(?<!\S){re.escape(sign)}(?!\S)", visible))
        num_words = sum(word in _list_of(meaning) for word in target_words)
        if num_read and num_read > translation.count(sign) + num_words:
            return True
    return False


def lacks_words_at_placeholders(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has no words at a side of a placeholder, URL or the like where its source has, and far fewer words in all.

    The words of one side may stand on the other in another language, and a translation may be shorter; so both must be true: more
    sides became empty than got words, and the words are at most two thirds. A side of frequent words alone, such as "to", does
    not count.
    """
    if source == translation or not all(map(has_spaces, languages)):
        return False
    sides = _words_beside_placeholders(source)
    if len(sides) == 1:
        return False
    others = _words_beside_placeholders(translation)
    if len(sides) != len(others):
        return False
    frequent = _known_of(languages.source).frequent
    num_lost = sum(
        not there
        and any(len(word) >= _SHORTEST_OF_CONTENT and word not in frequent for word in here)
        for here, there in zip(sides, others, strict=True)
    )
    num_won = sum(bool(there) and not here for here, there in zip(sides, others, strict=True))
    num_read, num_written = (sum(map(len, each)) for each in (sides, others))
    return num_lost > num_won and num_written <= _FEW_WORDS * num_read


_SHORTEST_OF_CONTENT = 3  # letters
_FEW_WORDS = 0.67  # of the source


def _words_beside_placeholders(text: str) -> list[list[str]]:
    """The words before, between and behind the placeholders, URLs and the like of a text."""
    found, place = [], 0
    spans = [span for span in find_spans(text) if span.kind is SpanKind.WORD]
    for start, end in [*((span.start, span.end) for span in spans), (len(text), len(text))]:
        found.append(_WORD.findall(text[place:start].casefold()))
        place = end
    return found


def _lacks_abbreviation(visible: str, translation: str, target: str) -> bool:
    """Whether a translation says "for example" or "that is" less often than the abbreviations of its source do.

    Args:
        visible: the source without its protected spans.
        translation: of it.
        target: the language of the translation; of one without a list of words nothing is said.
    """
    words = _WORDS_OF_ABBREVIATIONS.get(primary_language(target))
    if words is None:
        return False
    for abbreviation, meaning in zip((_FOR_EXAMPLE, _THAT_IS), words, strict=True):
        num_read = len(re.findall(abbreviation, visible))
        said = rf"{abbreviation}|(?<!\w)(?i:{meaning})(?!\w)"
        if num_read and num_read > len(re.findall(said, translation)):
            return True
    return False


def _lacks_other_signs(visible: str, translation: str) -> bool:
    """Whether a translation has fewer signs such as / → ≠ ^ © § than a source has between white space; no usual word stands for them.

    Args:
        visible: the source without its protected spans, such as emoji.
    """
    if _SIGN_BY_ITSELF.search(visible) is None:
        return False
    signs = Counter(sign for sign in visible.split() if len(sign) == 1 and _is_sign(sign))
    return any(
        number > sum(map(translation.count, (sign, *_FORMS_OF_SIGNS.get(sign, ()))))
        for sign, number in signs.items()
    )


def _is_sign(character: str) -> bool:
    """Whether a character is a sign with a meaning: mathematical, an arrow, a trade mark, a caret, or one of commerce and of lists."""
    if character in _SIGNS_WITH_WORDS or character in _NO_SIGNS:
        return False
    return unicodedata.category(character) in ("Sm", "So", "Sk") or character in _FURTHER_SIGNS


_SIGNS_WITH_WORDS = "&+="
_FURTHER_SIGNS = "/\\\u00a7\u00b6\u2022\u00b7@#\u2020\u2021"
# A dash of some writers, quotes, and wide forms of + and =, for which words may stand.
_NO_SIGNS = "\u2212`\u00b4\u00a8\uff0b\uff1d"
_FORMS_OF_SIGNS = {
    "\u2192": ("->", "=>", "\u21d2"),
    "\u2190": ("<-", "\u21d0"),
    "\u2194": ("<->", "\u21d4"),
    "\u2260": ("!=", "<>", "=/="),
    "\u2264": ("<=", "=<"),
    "\u2265": (">=", "=>"),
    "\u00d7": ("*", "\u00b7", " x "),
    "\u00f7": (":", "/"),
    "\u00b1": ("+/-", "+-"),
    "\u00a9": ("(c)", "(C)"),
    "\u00ae": ("(r)", "(R)"),
    "\u2122": ("(tm)", "(TM)"),
    "|": ("\u2502", "\uff5c"),
    "/": ("\uff0f",),
    "\u2022": ("\u00b7", "*"),
    "\u00b7": ("\u2022", "\u30fb"),
}


_AMPERSAND = re.compile(r"(?<!\S)&(?!\S)")


def with_words_for_ampersands(text: str, language: str) -> str:
    """A text with the word of its language in place of each & between white space; as it is, if this word is not known."""
    if "&" not in text or (words := _WORDS_OF_SIGNS.get(primary_language(language))) is None:
        return text
    outside = masked(text, find_spans(text), "0")
    word = words[0].split()[0]
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
    here, there = (_WORDS_OF_SIGNS.get(primary_language(language)) for language in languages)
    if here is None or there is None:
        return translation
    of_source = [match.start() for match in _words_in(read, here[0])]
    of_target = [match.span() for match in _words_in(translation, there[0])]
    if len(of_source) != len(of_target):
        return translation
    length = len(here[0].split()[0]) - 1
    signs = [
        match.start() for match in _AMPERSAND.finditer(masked(source, find_spans(source), "0"))
    ]
    moved = {place + number * length for number, place in enumerate(signs)}
    result, end = "", 0
    for place, (start, stop) in zip(of_source, of_target, strict=True):
        result += translation[end:start] + ("&" if place in moved else translation[start:stop])
        end = stop
    return result + translation[end:]


def _words_in(text: str, words: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"(?<!\w)(?:{'|'.join(words.split())})(?!\w)", text, re.IGNORECASE)


def _num_brackets(text: str) -> int:
    """How many brackets of a text belong to no word, as those of dog(s) do."""
    partners = partners_of_brackets(text, 0, len(text))
    found = 0
    for place, sign in enumerate(text):
        if sign in _ALL_BRACKETS:
            start, end = sorted((place, partners.get(place, place)))
            before, after = text[max(0, start - 1) : start], text[end + 1 : end + 2]
            touches = (before.isalnum(), after.isalnum())
            found += not (any(touches) if place in partners else all(touches))
    return found


def _negates(
    text: str, tokens: Sequence[str], negations: frozenset[str], *, has_digit: bool
) -> bool:
    """Whether a text, whose tokens are given, has a word that negates."""
    if "t" in tokens or has_digit:  # doesn't; no 5
        words = _NO_NEGATION.sub("", text.casefold())
        tokens = _WORD.findall(words.replace("n't", " not").replace("n\u2019t", " not"))
    return not negations.isdisjoint(tokens)


def _has_other_negation(
    source: str, translation: str, here: str, there: str, *, is_negated: bool
) -> bool:
    """Whether one of two texts, that has no word that negates, has no word either that may do so.

    Args:
        here, there: the languages of the texts.
        is_negated: whether the other one is the source.
    """
    if here not in _NEGATIONS or there not in _NEGATIONS:
        return False
    if len(_WORD.findall(source)) > _LONGEST_NEGATION:  # there are many ways to say it
        return False
    return not (_may_negate(translation, there) if is_negated else _may_negate(source, here))


def _may_negate(text: str, language: str) -> bool:
    words = _WORD.findall(text.casefold())
    if not _list_of(_MAY_NEGATE[language]).isdisjoint(words):
        return True
    return any(map(_NEGATIVE_FORM.fullmatch, words))


@cache
def _list_of(words: str) -> frozenset[str]:
    return frozenset(words.casefold().split())
