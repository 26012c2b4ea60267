"""The encodings of text that is not UTF-8: their names, and which one a file is probably in.

Before UTF-8, the same byte was another letter in each part of the world: 0xE8 is è in windows-1252, č in windows-1250 and
и in windows-1251. Nothing in a file says which is meant; but few readings look like a language. A reading is judged
by how probable its letters beyond ASCII are in the languages that were written in its encoding.

`charset_normalizer` is not used: of short texts it answers with encodings of other languages, and does not say how close
the second reading is.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

from transformer_cli.text.languages import shares_of_frequent

# Letters beyond ASCII of each language, the most frequent first, with those of foreign words at the end.
_LATIN = {
    "ca": "àéèóíòçúï·ü",
    "cs": "íáěéžřýčšůúťďňó",
    "da": "åøæéü",
    "de": "üäößéàèç",
    "es": "óíáéñúü¿¡ºª",
    "et": "äõüöšž",
    "fi": "äöåšž",
    "fr": "éèàêçôîûâùïœëüæñÿ",
    "hr": "čšžćđ",
    "hu": "áéöőóüíúű",
    "is": "íðáéóúþýæö",
    "it": "èàùòìéóíîç",
    "lv": "āēīūšžņļģķč",
    "lt": "ėšžųįąčęū",
    "nl": "ëéïèóöüêáà",
    "pl": "łęąóżśćńź",
    "pt": "ãçáéíóêúõâôàüñ",
    "ro": "ăîâșțşţ",
    "sk": "áíýčéžšúľťňôďäóĺŕ",
    "sl": "čšžćđ",
    "sq": "ëç",
    "sv": "äåöéüà",
    "tr": "ıüşğçöİâîû",
}
# Languages of scripts of their own, with their letters, the most frequent first.
_ALPHABETS = {
    "bg": "аиоетнрсвлкдпмзгбяъучщжцйшхюфьщ",
    "el": "αοιετσνηυρπκμλςτωόίάέύήώδγθχφβξζψϊϋΐΰ",
    "ru": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
    "sr": "аоиеснртјувдкмпзгљбчшцњжхћђфџ",
    "uk": "оаниівтерскмлудпяьзбгйчхжїшцщюєфґ'",
    "ar": "اليمنرتبوعسدهفةكحقجأشصطخىضذئزثغءإؤآظ",
    "fa": "ایرندهومتبسشکزخگفپقعجچحصغذلطئژثظضآ",
    "he": "יוהלאתשרבמםנדחקעצכפגטןזסךףץ",
    "ja": "のいるにをたてとがしはなれでもらすっこりかさあまんそどうよつくきけだえおせめわみろやちねばべスンルトリラアイシクタドレマコロサグフュ日本人一大国年会中出",
    "zh": "的一是不了在人我有他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运",
    "zh-tw": "的一是不了在人我有他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作里用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運您哪吃嗎",
    "ko": "이다는을에의가고하로은지를도한기서사해으나어아시인리들니자그대수일있정게부라스것보전장주제여년과원만와거구상습세동마요안무우조신진영공지소성모국비오유합화중적때면당말문용선내르까려드할없분던위된러방생발불경야학회었했",
}
"""Languages with a large set of characters: the ones that are listed are the most frequent."""
_LARGE = {"ja": "HIRAGANA KATAKANA CJK", "zh": "CJK", "zh-tw": "CJK", "ko": "HANGUL"}


class _Candidate(NamedTuple):
    """An encoding, and the languages that were written in it."""

    name: str
    languages: tuple[str, ...]


_WEST = ("fr", "de", "es", "pt", "it", "nl", "ca", "sv", "da", "fi", "is", "sq")
_CENTRE = ("pl", "cs", "hu", "sk", "hr", "sl", "ro", "de", "sq")
# Of encodings that read a text alike, the first is chosen: the most usual one.
_CANDIDATES = (
    _Candidate("windows-1252", _WEST),
    _Candidate("windows-1250", _CENTRE),
    _Candidate("windows-1251", ("ru", "uk", "bg", "sr")),
    _Candidate("windows-1253", ("el",)),
    _Candidate("windows-1254", ("tr",)),
    _Candidate("windows-1255", ("he",)),
    _Candidate("windows-1256", ("ar", "fa")),
    _Candidate("windows-1257", ("lv", "lt", "et")),
    _Candidate("iso-8859-15", _WEST),
    _Candidate("iso-8859-2", _CENTRE),
    _Candidate("koi8-r", ("ru",)),
    _Candidate("koi8-u", ("uk",)),
    _Candidate("mac_roman", _WEST),
    _Candidate("cp850", _WEST),
    _Candidate("cp852", _CENTRE),
    _Candidate("cp866", ("ru",)),
    _Candidate("cp437", _WEST),
    _Candidate("shift_jis", ("ja",)),
    _Candidate("euc-jp", ("ja",)),
    _Candidate("gb18030", ("zh",)),
    _Candidate("big5", ("zh-tw",)),
    _Candidate("euc-kr", ("ko",)),
)
# Of the letters and signs beyond ASCII in a text, so many are of the kinds below; else they are hardly ever there.
_SHARE_OF_LETTERS = 0.9
_SIGNS = frozenset("’‘“”«»„–—…° €£•·©®™§×½²³‐、。「」『』？！（），：；・ー～《》…．“”،؟؛„№")  # noqa: RUF001 - these signs are meant
# Apostrophes, the dot of Catalan, a long dash and three dots: they stand directly between two words.
_JOINS_WORDS = "\u2019\u00b7'\u2014\u2026"
_COST_OF_SIGN = -4.0
_COST_OF_APOSTROPHE = -2.0
_COST_OF_OTHER_LETTER = -9.0
_COST_OF_RARE_CHARACTER = -13.0
_COST_OF_OTHER_SIGN = -10.0
_COST_OF_NO_TEXT = -15.0
# A letter of ASCII is worth this much, so that a reading which takes some into characters of two bytes wins nothing.
_COST_OF_ASCII = -3.2
_COST_OF_CAPITAL = -2.5
# A capital behind a small letter, a sign inside a word, or letters of two scripts in one word.
_COST_OF_ODD_WORD = -6.0
_COST_OF_SECOND_LANGUAGE = -4.0
# The frequent words of a language that are ASCII speak for it.
_WORTH_OF_FREQUENT_WORDS = 5.0
_FREQUENT_SHARE = 0.06
CLOSE = 4.0
"""A reading whose logarithm of the probability lies less than this below that of the best one is close to it."""
_SAMPLE_BYTES = 1 << 15
_NUM_SHOWN_WORDS = 3
_SHOWN_CHARACTERS = 24
# Of the lines beyond ASCII of a text in UTF-8 with some damage, at most this share is not UTF-8.
_DAMAGED_SHARE = 0.1


class Reading(NamedTuple):
    """A text, read in one encoding."""

    encoding: str
    words: tuple[str, ...]
    """A few of its words with letters beyond ASCII."""
    score: float
    """Higher is more probable."""

    def __str__(self) -> str:
        return f"{self.encoding}: {', '.join(self.words)}"


def is_not_utf_8(data: bytes) -> bool:
    """Whether a text is in another encoding than UTF-8, and not just UTF-8 with a few damaged lines."""
    lines = [line for line in _lines(data) if not line.isascii()]
    num_bad = sum(not _is_utf_8(line) for line in lines)
    return num_bad > _DAMAGED_SHARE * len(lines)


def is_mixed(data: bytes) -> bool:
    """Whether a text that `is_not_utf_8` has many lines beyond ASCII in UTF-8, so that no single encoding reads it."""
    lines = [line for line in _lines(data) if not line.isascii()]
    return sum(map(_is_utf_8, lines)) > _DAMAGED_SHARE * len(lines)


def lines_not_utf_8(data: bytes) -> bytes:
    """The lines of a text that are not UTF-8."""
    return b"\n".join(line for line in _lines(data) if not _is_utf_8(line))


_UNREADABLE = re.compile(r"[\ufffd\x80-\x84\x86-\x9f]")  # without the line end of Unicode


def likely_readings(data: bytes) -> list[Reading]:
    """How a text that is not UTF-8 may be read: the best reading first, then those that are close to it.

    Encodings that give the same text count as one, the most usual of them. The list is empty if nothing looks like text.
    """
    sample = _sample(data)
    if not sample:
        return []
    spoken = _spoken(sample)
    found: dict[str, Reading] = {}
    for candidate in _CANDIDATES:
        text = sample.decode(candidate.name, "replace")
        if text not in found:
            found[text] = Reading(candidate.name, (), _score(text, candidate, spoken))
    best = max(one.score for one in found.values())
    close = {
        text: reading._replace(words=_shown_words(text))
        for text, reading in found.items()
        if reading.score > best - CLOSE and reading.score > _COST_OF_OTHER_LETTER * len(text)
    }
    # What cannot read all bytes, or reads control characters, is no candidate beside what can.
    whole = [reading for text, reading in close.items() if not _UNREADABLE.search(text)]
    near = whole or list(close.values())
    return sorted(near, key=lambda reading: -reading.score)


def encoding_that_reads(data: bytes, text: str) -> str | None:
    """The most usual encoding in which these bytes are this text; None if there is none."""
    return next((one.name for one in _CANDIDATES if data.decode(one.name, "replace") == text), None)


def hint_for(readings: Sequence[Reading]) -> str:
    """How to name the encoding on a command line, with the likely ones."""
    likely = " or ".join(f"--encoding {one.encoding}" for one in readings)
    return f"name its encoding: {likely or '--encoding windows-1252, or another one'}"


def not_utf_8_in_words(data: bytes) -> tuple[str, str]:
    """The message and the hint of an error about a text that is not UTF-8, with its likely readings."""
    readings = likely_readings(data)
    how = f"; it can be read as {' or as '.join(map(str, readings))}" if readings else ""
    return f"this is not UTF-8{how}", hint_for(readings)


# In these languages, many texts do without letters beyond ASCII.
_MOSTLY_ASCII = ("nl",)


def unwritable_letters(encoding: str, language: str) -> str:
    """The letters that nearly every text of a language has and an encoding lacks; empty if there are none."""
    if language in _MOSTLY_ASCII:
        return ""
    letters = _LATIN.get(language, "")[:3] or _ALPHABETS.get(language, "")[:20]
    return "".join(letter for letter in letters if not _has(encoding, letter))


def _has(encoding: str, letter: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _lines(data: bytes) -> list[bytes]:
    return re.split(rb"[\r\n]+", data)


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sample(data: bytes) -> bytes:
    """Different lines with bytes beyond ASCII, from the whole text."""
    lines = list(dict.fromkeys(line for line in _lines(data) if not line.isascii()))
    step = max(1, sum(map(len, lines)) // _SAMPLE_BYTES)
    return b"\n".join(line[:_SAMPLE_BYTES] for line in lines[::step])[: 2 * _SAMPLE_BYTES]


def _spoken(sample: bytes) -> frozenset[str]:
    """The languages for which the words in ASCII speak."""
    words = re.findall(
        r"(?<![a-z\udc80-\udcff])[a-z]+(?![a-z\udc80-\udcff])",
        sample.decode("ascii", "surrogateescape").lower(),
    )
    shares = shares_of_frequent(words)
    return frozenset(language for language, share in shares.items() if share >= _FREQUENT_SHARE)


def _score(text: str, candidate: _Candidate, spoken: frozenset[str]) -> float:
    # Only ASCII divides here: the same byte is a blank in one encoding and a letter in another.
    tokens = [one for one in dict.fromkeys(re.split(r"[ \t\n]+", text)) if not one.isascii()]
    by_language = {language: [_score_of_token(token, language) for token in tokens] for language in candidate.languages}
    worth = {one: _WORTH_OF_FREQUENT_WORDS * (one in spoken) for one in candidate.languages}
    sums = [sum(scores) + worth[language] for language, scores in by_language.items()]
    sums += [
        sum(map(max, by_language[one], by_language[other])) + max(worth[one], worth[other]) + _COST_OF_SECOND_LANGUAGE
        for one, other in combinations(candidate.languages, 2)
    ]
    num_ascii = sum(character.isascii() for character in "".join(tokens))
    # Each counts: unlike other characters, they look alike, so words that differ would count as one.
    num_bad = text.count("\ufffd")
    return max(sums) + _COST_OF_ASCII * num_ascii + _COST_OF_NO_TEXT * num_bad


def _score_of_token(token: str, language: str) -> float:
    """The logarithm of the probability of the characters beyond ASCII between two blanks."""
    costs = _costs(language)
    total, is_upper = 0.0, token.isupper()
    for place, character in enumerate(token):
        before, after = token[place - 1 : place] if place else "", token[place + 1 : place + 2]
        if character.isascii() or character == "\ufffd":
            continue
        small = character.lower()
        cost = costs.get(small)
        if cost is None:
            cost = _cost_of_other(character, language)
        if character != small:
            total += _COST_OF_CAPITAL
            total += _COST_OF_ODD_WORD * (before.islower() and not is_upper)
        if not character.isalpha() and character not in _JOINS_WORDS and before.isalpha() and after.isalpha():
            total += _COST_OF_ODD_WORD * (language not in _LARGE)
        is_own_script = language in _ALPHABETS and character.isalpha()
        if is_own_script and language not in _LARGE and (_is_latin(before) or _is_latin(after)):
            total += _COST_OF_ODD_WORD
        total += cost
    return total


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalpha()


@cache
def _costs(language: str) -> Mapping[str, float]:
    """Character -> the logarithm of its probability among the characters beyond ASCII of a language."""
    letters = dict.fromkeys(_LATIN.get(language) or _ALPHABETS[language])
    weights = [1 / (rank + 1.5) for rank in range(len(letters))]
    share = _SHARE_OF_LETTERS if language not in _LARGE else 0.6
    costs = {letter: math.log(share * weight / sum(weights)) for letter, weight in zip(letters, weights, strict=True)}
    return dict.fromkeys(_SIGNS, _COST_OF_SIGN) | {"\u2019": _COST_OF_APOSTROPHE} | costs


@cache
def _cost_of_other(character: str, language: str) -> float:
    if unicodedata.category(character)[0] == "C":
        return _COST_OF_NO_TEXT
    if not character.isalpha():
        return _COST_OF_OTHER_SIGN
    if language not in _LARGE:
        return _COST_OF_OTHER_LETTER
    is_own = unicodedata.name(character, "?").split(" ")[0] in _LARGE[language].split()
    return _COST_OF_OTHER_LETTER if is_own and _is_common(character, language) else _COST_OF_RARE_CHARACTER


# The national standards put the common characters first: in these codecs, their first byte is at most this.
_LAST_COMMON = {"zh": ("gb2312", 0xD7), "zh-tw": ("big5", 0xC6), "ja": ("euc_jp", 0xCF), "ko": ("euc_kr", 0xC8)}


def _is_common(character: str, language: str) -> bool:
    codec, last = _LAST_COMMON[language]
    try:
        return character.encode(codec)[0] <= last
    except UnicodeEncodeError:
        return False


def _shown_words(text: str) -> tuple[str, ...]:
    words = [
        word[:_SHOWN_CHARACTERS]
        for word in dict.fromkeys(re.findall(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*", text))
        if not word.isascii()
    ]
    words = words or [word[:_SHOWN_CHARACTERS] for word in text.split() if not word.isascii()]
    # Words with different letters tell most.
    shown: list[str] = []
    letters: set[str] = set()
    for word in [*words, *words]:
        own = {letter for letter in word if not letter.isascii()}
        if word not in shown and (not own <= letters or len(words) <= _NUM_SHOWN_WORDS):
            shown.append(word)
            letters |= own
    shown += [word for word in words if word not in shown]
    return tuple(shown[:_NUM_SHOWN_WORDS])
