"""The numbers of two texts: whether a translation says those of its source, in digits, in signs such as ½, or in words.

The words of languages that are not known are never missed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from transformer_cli.config import Direction
from transformer_cli.text.languages import primary_language, scripts_of_language
from transformer_cli.text.lazy_patterns import lazy_pattern

_WORD = lazy_pattern(r"[^\W\d_]+")
# Digits with marks between them, such as 1,234.50 or 10:30.
_NUMBER = lazy_pattern(r"\d{1,3}(?: \d{3})+(?!\d)|\d+(?:[.,:\u00a0\u202f'\u2019]\d+)*")
_WHOLE = lazy_pattern(r"[.,:]00$")
_WHOLE_NUMBER = lazy_pattern(r"\d+|\d{1,3}(?:[ .,\u00a0\u202f'\u2019]\d{3})+")
_CLOCK = lazy_pattern(r"\d{1,2}[.,:]\d{2}")
# 2.5 and 2,5; of three digits behind the mark nobody knows whether they are thousands.
_DECIMAL = lazy_pattern(r"(\d+)[.,](\d|\d{4,})")
# 14 h 30, 14h30, 14 heures 30, 14 Uhr 30
_HOURS_AND_MINUTES = lazy_pattern(r"(?<!\d)(\d{1,2})\s?(?:h|H|heures?|Uhr)\s?(\d{2})(?!\d)")
_NO_HOURS = lazy_pattern(r"(?<![\d.,:])0\s?(?:h|hours?|heures?|hor?as?|or[ae]|uur|Uhr|Stunden?)\b")
_TIME = "t"
_MOST_SPELLED_DIGITS = 2  # a longer number is not written as words
# ½ Ⅳ ③, and the numbers of Chinese; a raised one is a note or a power.
# Without the letters and the turned digits between them, which have no value.
_NUMBER_SIGN = lazy_pattern(
    r"[\u00bc-\u00be\u2150-\u2182\u2185-\u2189\u2460-\u249b\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]"
)
_NO_DIGIT = lazy_pattern(r"\D+")
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
    "dix-sept dix-huit dix-neuf vingt/vingts trente quarante cinquante soixante soixante-dix/septante quatre-vingt/huitante/octante "
    "quatre-vingt-dix/nonante",
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
_HALVES = "half halb halbe demi demie mezzo mezza mezz medio media meio meia"
_NUMBERS_AS_HALVES = (None, 1, 2, 6, 30, 50)  # 1/2, half a dozen, half an hour, 50 %
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
_PART_OF_NUMBER = (  # compiled by `re` at its first use, as it takes 2 ms
    r"\w*(?:hundert|tausend|honderd|duizend|hundred|thousand|million|milion|miliard|milliard|billion|millon|milh)\w*"
    r"|\w*(?:zwan|drei|vier|fünf|sech|sieb|acht|neun)(?:z|ß|ss)ig\w*|(?:drei|vier|fünf|sech|sieb|acht|neun)zehn\w*"
    r"|\w*(?:twin|der|veer|vijf|zes|zeven|tach|negen)tig\w*|(?:der|veer|vijf|zes|zeven|acht|negen)tien\w*"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)t(?:y|ies|ieth)|(?:thir|four|fif|six|seven|eigh|nine)teen(?:th)?"
    r"|(?:vent|trent|quarant|cinquant|sessant|settant|ottant|novant)[ia]?(?:un[oa]?|due|tre|tré|quattro|cinque|sei|sette|otto|nove)?"
    r"|\w*(?:nt|dic|tr|un|du|quattr|cinqu|se|ett|ott|ov|mill)esim[oaie]|\w*ième|veinti\w+|dieci\w+"
    r"|(?:due|tre|quattro|cinque|sei|sette|otto|nove|dos|tres|quatro|cuatro|seis|sete|nove|oito|ocho)ci?ent[oa]s?|cento\w*|centinai[oa]"
    r"|(?:du|tre)zent[oa]s|quin(?:ient|hent)[oa]s|(?:due|tre|quattro|cinque|sei|sette|otto|nove|dieci|\w+nt[ia]|cento)mila|mille\w*"
)
# Hundreds and thousands as words of their own.
_SCALE = lazy_pattern(
    r"hundreds?|hundert(?:e|en)?|honderd(?:en)?|cent(?:s|aines?)?|cento|cien(?:tos?)?|cem|thousands?|tausend(?:e|en)?|duizend(?:en)?|mille|mila|mil|milliers?"
)
# The word before or behind a number; a short word such as "and" may stand between: vingt et un, trinta e um.
_WORD_BEFORE = lazy_pattern(r"([^\W\d_]+)[\s-]+(?:(?:et|e|y|and|en|und)\s+)?$")
_WORD_BEHIND = lazy_pattern(r"[\s-]+(?:(?:et|e|y|and|en|und)[\s-]+)?([^\W\d_]+)")
_LONGEST_WORD = 60  # characters
_SHORTEST_PART = 4  # letters of a word for a number that may be a part of another word
_HALF_A_DAY = 12  # hours
# 0 to 9: with 0 for I or X, 1 for V or L, 2 for X or C
_ROMAN_DIGITS = ("", "0", "00", "000", "01", "1", "10", "100", "1000", "02")
_FEWEST_TENS, _MOST_TENS = 20, 99
_LARGEST_ONE_WORD = 16  # in French, and in older texts of other languages: dix-sept
_FEWEST_COUNTED_BY_SCORES = 7  # tens: soixante-dix, quatre-vingt-dix


_WITHOUT_NUMBERS_IN_WORDS = ("en", "es", "fr", "it", "pt")
_LETTERS_BEHIND_NUMBER = lazy_pattern(r"(?<![^\W_])\d+([^\W\d_]{2,})")
_BEHIND_NUMBER = lazy_pattern(
    r"[kcdm]?[mglw]|kwh?|[kmg]?hz|[kmgt][bo]|min|sec|px|pt|fps|rpm|mph|kmh|dpi|bis|ter|[bmt]n|º?[cf]|bce?|ad|ce|mila|enn[ei]|ish|[ap]m"
    r"|ths?|st|nd|rd|[eèé]?r[eoa]?s?|nd[eoa]?s?|i?[eè]mes?|aines?|es|esim[oaei]|avos?|avas?|ºs?|ªs?"
)


def has_number_sign(source: str, translation: str) -> bool:
    """Whether one of two texts has a sign such as ½, Ⅳ or 三."""
    return _NUMBER_SIGN.search(source) is not None or _NUMBER_SIGN.search(translation) is not None


def has_other_numbers(
    source: str,
    translation: str,
    languages: Direction,
    read: Sequence[str],
    written: Sequence[str],
) -> bool:
    """Whether a number is missing or added in a translation.

    Args:
        source: what the model has read.
        translation: what it has written.
        languages: of the two texts.
        read: the words of the source, casefolded.
        written: those of the translation.
    """
    if has_number_sign(source, translation):
        if not any(map(str.isdecimal, source + translation)):
            return _has_other_number_signs(source, translation, languages)
        source, translation = _as_written_in(translation, source), _as_written_in(source, translation)
        return _has_other_digits(source, translation, languages) or _has_other_number_signs(
            source, translation, languages
        )
    if any(map(str.isdecimal, source + translation)):
        return _has_other_digits(source, translation, languages) or lacks_joined_numbers(source, translation)
    here, there = map(primary_language, languages)
    return _lacks_number_word(source, read, translation, here, there) or _lacks_number_word(
        translation, written, source, there, here
    )


# 5-10, 3~4 and 20 x 30 are one number each; so are 3x and 1.5+.
_JOINED = lazy_pattern(
    r"(?<![\w.,:/-])\d+(?:[.,]\d+)?(?:(?:(?:[-\u2013~]| ?[x\u00d7] ?)\d+(?:[.,]\d+)?){1,3}(?![\w:/-]|[.,]\d)|[x\u00d7](?!\w)|\+(?=[\s,;)]|\Z))"
)
_JOINTS = {
    "-": r"(?:[-\u2013~]|(?:to|and|or|bis|und|oder|a|y|o|\u00e0|et|ou|e|tot|en|of))",
    "x": r"(?:[x\u00d7*]|(?:by|mal|auf|por|sur|par|fois|per|keer|bij))",
    "+": r"(?:\+|plus|or more|oder mehr|m[a\u00e1]s|pi\u00f9|meer|mais)",
}
_JOINT = lazy_pattern(r" ?([-\u2013~x\u00d7+]) ?")
_MULTIPLE = r"(?:[x\u00d7]|times|fois|mal|fach|veces|volte|vezes|keer)"


def has_joined_numbers(text: str) -> bool:
    """Whether a text has numbers as in 5-10, 20 x 30, 3x and 2+."""
    return _JOINED.search(text) is not None


def lacks_joined_numbers(source: str, translation: str) -> bool:
    """Whether numbers that a source joins, as in 5-10, 20 x 30, 3x and 2+, stand in a translation without what joins them."""
    for match in _JOINED.finditer(source):
        first, *rest = _JOINT.split(match[0])
        pattern = _digits(first)
        for joint, number in zip(rest[::2], rest[1::2], strict=True):
            kind = joint if joint in "x+" else "x" if joint == "\u00d7" else "-"
            pattern += rf"\s?{_MULTIPLE if kind == 'x' and not number else _JOINTS[kind]}\s?{_digits(number)}"
        is_more = match[0].endswith("+") and re.search(
            r"\b(?:plus|m\u00e1s|pi\u00f9|meer|mais|mehr|more)\b", translation
        )
        pattern = _digits(first) if is_more else pattern
        if re.search(rf"(?<![\w.,]){pattern}", translation, re.IGNORECASE) is None:
            return True
    return False


def _digits(number: str) -> str:
    """A regular expression for a number, whose decimal mark may be another one."""
    return re.sub("[.,]", "[.,]", number)


def _has_other_digits(source: str, translation: str, languages: Direction) -> bool:
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
        if any(len(number.replace(".", "").rstrip("0")) > _MOST_SPELLED_DIGITS for number in numbers):
            return True
        # The words of 2.5 may be two and a half: only those of whole numbers have their values.
        whole = {str(int(_NO_DIGIT.sub("", each))) for each in _NUMBER.findall(text) if _WHOLE_NUMBER.fullmatch(each)}
        values = (int(n) if n in whole else int(n[:-2]) if n.endswith(".0") else None for n in numbers)
        if not all(_may_have_number(other, primary_language(language), value) for value in values):
            return True
    return has_number_in_word(source, translation, languages.target)


def has_number_in_word(source: str, translation: str, language: str) -> bool:
    """Whether a translation has a number at the beginning of a word that is none, as in "0les chiens".

    Units, the ends of ordinal numbers, and what the source has, too, may stand behind a number. Nothing is said of German and
    Dutch, which make many such words (20fach), and of languages that are not known.

    Args:
        source: the other text.
        translation: the one that is looked at.
        language: of the translation.
    """
    if primary_language(language) not in _WITHOUT_NUMBERS_IN_WORDS:
        return False
    return any(
        _BEHIND_NUMBER.fullmatch(letters) is None and letters not in source.casefold()
        for letters in _LETTERS_BEHIND_NUMBER.findall(translation.casefold())
    )


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


def _may_have_number(text: str, language: str, number: int | None, *, is_minute: bool = False) -> bool:
    """Whether a text has a word for a number; true for a language whose words are not known.

    Args:
        number: its value; None: any. A word whose value is not known, such as ventuno or third, may have each.
        is_minute: whether it is surely no hour, which may be twelve more or less.
    """
    known = _NUMBER_WORDS.get(language)
    if known is None:
        return True
    values_of = cardinals(language)
    values, has_scale = set(), False
    for word in _WORD.findall(text.casefold()):
        if word in values_of:
            values.add(values_of[word])
        elif number not in (None, 1) and _SCALE.fullmatch(word):
            has_scale = True  # no word for a number below a hundred, but one thousand may be mille
        elif number != 0 and _has_any_value(word, known, is_half=is_minute or number in _NUMBERS_AS_HALVES):
            return True
    if number is None:
        return bool(values)
    if number > _MOST_TENS:
        # Two thousand five hundred, twenty-five hundred, two hundred and fifty, fifty thousand; a hundred has no one.
        digits = str(number).rstrip("0")
        first, last, together = int(digits[0]), int(digits[-1]), int(digits)
        ways = [{first, last}, {first, 10 * last}, {together}, {10 * together}, *_parts_in_words(together, language)]
        ways = [way - {0, 1} for way in ways]
        return (has_scale or bool(values)) and any(way <= values for way in ways)
    if re.search(rf"\b{_roman(number)}(?:\b|i?\u00e8me\b|e\b)", text):  # the XVI century, le XVIe
        return True
    if number in values or any(parts <= values for parts in _parts_in_words(number, language)):
        return True
    may_be_hour = number <= 2 * _HALF_A_DAY and not is_minute
    return may_be_hour and not values.isdisjoint((number - _HALF_A_DAY, number + _HALF_A_DAY))


def _has_any_value(word: str, known: str, *, is_half: bool) -> bool:
    """Whether a word may stand for any number: its value is not known, or it says half, and the number may be a half of something."""
    if word in word_list(_HALVES):
        return is_half
    return word in word_list(known) or re.fullmatch(_PART_OF_NUMBER, word) is not None


def _parts_in_words(number: int, language: str) -> list[set[int]]:
    """The numbers of whose words that of a number from 17 to 99 may consist, in each way: twenty-one, dix-sept, soixante-douze."""
    tens, ones = divmod(number, 10)
    if tens == 1:
        return [{10, ones}] if number > _LARGEST_ONE_WORD else []
    ways = [{10 * tens, ones}] if tens and ones else []
    if language == "fr" and tens >= _FEWEST_COUNTED_BY_SCORES:
        rest = number % 20
        rest_parts = {10, ones} if rest > _LARGEST_ONE_WORD else {rest} - {0}
        ways.append(rest_parts | ({60} if tens == _FEWEST_COUNTED_BY_SCORES else {4, 20}))
    return ways


def _may_have_time(text: str, language: str, time: str) -> bool:
    """Whether a text without a time in digits says it in words; true for a language whose words for numbers are not known.

    Args:
        time: as `_numbers` has it, such as t1030: half past ten, or halb elf in German.
    """
    value = int(time.removeprefix(_TIME))  # 6 for 6:00 and for 0:06
    minutes = value % 100 if value >= 100 else 0
    # Ten past and five past half past; ten to and five to half past the next hour.
    ways = [(value // 100, (minutes, minutes - 30)), (value // 100 + 1, (60 - minutes, abs(30 - minutes)))]
    return any(
        _may_have_hour(text, language, hour)
        and (not minutes or any(_may_have_number(text, language, each, is_minute=True) for each in said if each > 0))
        for hour, said in (*ways, *([] if minutes else [(value, ())]))
    )


def _may_have_hour(text: str, language: str, hour: int) -> bool:
    """Whether a text has a word for an hour, which may be twelve more or less."""
    if hour > 2 * _HALF_A_DAY:
        return False
    if not hour % _HALF_A_DAY and not word_list(_TWELVE).isdisjoint(_WORD.findall(text.casefold())):
        return True
    # The one of twenty-one alone says another hour.
    hours = (each % (2 * _HALF_A_DAY) for each in (hour, hour + _HALF_A_DAY))
    return any(_may_have_number(text, language, min(each, _FEWEST_TENS)) for each in hours)


def _lacks_number_word(text: str, words: Iterable[str], other: str, language: str, other_language: str) -> bool:
    """Whether a text without digits has a word for a number of two or more that another text without digits does not say in its language."""
    if language not in _CARDINALS or other_language not in _CARDINALS:
        return False
    other, values = other.casefold(), cardinals(language)
    said = set(map(cardinals(other_language).get, _WORD.findall(other)))
    if "-" not in text and said.issuperset(
        value for word in words if (value := values.get(word, 0)) >= _FEWEST_COUNTED
    ):
        return False  # which is the usual answer
    for found in _pattern_of_counted(language).finditer(text):
        word = found[0].casefold()
        number = values.get(word)  # None for SİX: casefolded, İ is two signs
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
        (word := beside[1].casefold()) in word_list(_NUMBER_WORDS[language])
        or word in cardinals(language)
        or re.fullmatch(_PART_OF_NUMBER, word) is not None
        for beside in (before, behind)
        if beside is not None
    )


def counted_words(language: str) -> list[str]:
    """The words of a language for numbers from two on, casefolded, without vague ones."""
    numbers = cardinals(language).items()
    vague = word_list(_VAGUE_NUMBERS)
    return [word for word, number in numbers if number >= _FEWEST_COUNTED and word not in vague]


@cache
def _pattern_of_counted(language: str) -> re.Pattern[str]:
    """The words of `counted_words`; not before a hyphen, because four-wheeler is a quad in another language."""
    # The words are casefolded, and ß has no form of one letter there.
    longest_first = "|".join(sorted(counted_words(language), key=len, reverse=True))
    return re.compile(rf"\b(?:{longest_first.replace('ss', '(?:ss|ß)')})\b(?!-)", re.IGNORECASE)


@cache
def _forms(language: str, number: int) -> frozenset[str]:
    """The words for a number that are long enough to be known inside another word."""
    return frozenset(
        word for word, value in cardinals(language).items() if value == number and len(word) >= _SHORTEST_PART
    )


def _roman(number: int) -> str:
    """A number up to 99 as capital letters; one of a single letter is no number, because I is a word."""
    tens, ones = map(_ROMAN_DIGITS.__getitem__, divmod(number, 10))
    found = tens.translate(str.maketrans("012", "XLC")) + ones.translate(str.maketrans("012", "IVX"))
    return found if len(found) > 1 else "(?!)"


@cache
def cardinals(language: str) -> dict[str, int]:
    """Word for a number up to 90, casefolded -> the number; nothing for a language that is not known."""
    if language not in _CARDINALS:
        return {}
    numbers = [*range(21), *range(30, 100, 10)]
    words = _CARDINALS[language].split()
    return {word.casefold(): number for number, same in zip(numbers, words, strict=True) for word in same.split("/")}


def _numbers(text: str) -> Counter[str]:
    """The numbers of a text: digits without the marks between them, .00 at their ends, and a leading zero; two are a part of 007.

    Times, and what may be one, such as 3.50, begin with t; other numbers with one decimal keep it behind a point.
    """
    found = []
    for number in _NUMBER.findall(_NO_HOURS.sub("0:00", _HOURS_AND_MINUTES.sub(r"\1:\2", text))):
        if decimal := _DECIMAL.fullmatch(number):
            found.append(f"{int(decimal[1])}.{decimal[2]}")
        else:
            if number.isdecimal() and number.startswith("00"):
                found.append(number)
                continue
            is_time = _CLOCK.fullmatch(number) is not None
            found.append(_TIME * is_time + str(int(_NO_DIGIT.sub("", _WHOLE.sub("", number)))))
    return Counter(found)


def _are_times(missing: Iterable[str], added: Iterable[str]) -> bool:
    """Whether each added number is a missing one as an hour: 3 and 15, 330 and 1530, or 7 and 7:00; 1435 is not 14:35.

    Without a time in the text, 0, 00, 0.0 and 007 are no hours.
    """
    missing, added = set(missing), set(added)
    if any(number.startswith("00") or not float(number) for number in missing | added if number[0] != _TIME):
        return False
    hours = [sorted(float(number.removeprefix(_TIME)) for number in each) for each in (missing, added)]
    if len(hours[0]) != len(hours[1]):
        return False
    return all(
        abs(one - other) in (12, 1200) or (one == other and one <= 2 * _HALF_A_DAY)
        for one, other in zip(*hours, strict=True)
    )


@cache
def word_list(words: str) -> frozenset[str]:
    return frozenset(words.casefold().split())
