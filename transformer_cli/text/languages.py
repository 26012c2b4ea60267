"""Languages: their codes and names, the direction that a person means, a guess of the language of sentences; letters that name something; and
which texts are plain words of Latin letters.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from transformer_cli.config import Direction
from transformer_cli.process.errors import UsageError
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.roman_numerals import NOT_INSIDE_WORD, ROMAN, is_roman_numeral

UNKNOWN_LANGUAGE = "und"
"""The code of ISO 639-2 for a language that is not known."""
_WITHOUT_SPACES = frozenset(
    (
        *("zh", "zho", "chi", "cmn", "yue", "wuu", "nan", "hak", "lzh"),  # Chinese
        *("ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur"),
    )
)

# Two-letter code -> three-letter codes, and names in English, in the language itself and in other languages.
_NAMES = {
    "ar": "ara arabic arabisch arabo arabe árabe العربية",
    "bg": "bul bulgarian bulgarisch български",
    "ca": "cat catalan català katalanisch",
    "cs": "ces cze czech čeština tschechisch česky",
    "da": "dan danish dansk dänisch",
    "de": "deu ger german deutsch allemand tedesco alemán alemão duits niemiecki",
    "el": "ell gre greek ελληνικά griechisch",
    "en": "eng english englisch anglais inglese inglés inglês engels angielski 英語 英语 영어",
    "es": "spa spanish español spanisch espagnol spagnolo espanhol spaans castellano hiszpański",
    "et": "est estonian eesti",
    "fa": "fas per persian farsi فارسی",
    "fi": "fin finnish suomi finnisch",
    "fr": "fra fre french français französisch francese francés francês frans francuski",
    "ga": "gle irish gaeilge",
    "he": "heb hebrew עברית",
    "hi": "hin hindi हिन्दी",
    "hr": "hrv croatian hrvatski kroatisch",
    "hu": "hun hungarian magyar ungarisch",
    "id": "ind indonesian indonesia",
    "it": "ita italian italiano italienisch italien italiaans włoski",
    "ja": "jpn japanese japanisch japonais giapponese japonés 日本語 日语 일본어",
    "ko": "kor korean koreanisch 한국어 韓国語 韩语",
    "la": "lat latin latein latino",
    "lt": "lit lithuanian lietuvių",
    "lv": "lav latvian latviešu",
    "nl": "nld dut dutch nederlands niederländisch néerlandais olandese holandés",
    "no": "nor nob norwegian norsk norwegisch",
    "pl": "pol polish polski polnisch polonais polacco polaco",
    "pt": "por portuguese português portugiesisch portugais portoghese portugués",
    "ro": "ron rum romanian română rumänisch",
    "ru": "rus russian русский russisch russe russo ruso",
    "sk": "slk slo slovak slovenčina",
    "sl": "slv slovenian slovenščina",
    "sr": "srp serbian српски srpski",
    "sv": "swe swedish svenska schwedisch",
    "th": "tha thai ไทย",
    "tr": "tur turkish türkçe türkisch",
    "uk": "ukr ukrainian українська",
    "vi": "vie vietnamese tiếng",
    "zh": "zho chi cmn chinese chinesisch chinois cinese chino 中文 中国語 汉语 중국어",
}
LANGUAGE_OF_NAME = {name: code for code, names in _NAMES.items() for name in [code, *names.casefold().split()]}

# Script -> its most likely language, as in the likely subtags of Unicode. A script is named by the first word in the Unicode names of its letters.
LANGUAGE_OF_SCRIPT = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "HANGUL": "ko",
    "THAI": "th",
    "GREEK": "el",
    "HEBREW": "he",
    "DEVANAGARI": "hi",
    "ARABIC": "ar",
    "CYRILLIC": "ru",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "BENGALI": "bn",
    "TAMIL": "ta",
    "TELUGU": "te",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "ETHIOPIC": "am",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "ORIYA": "or",
    "SINHALA": "si",
    "TIBETAN": "bo",
    "MONGOLIAN": "mn",
    "THAANA": "dv",
    "SYRIAC": "syr",
    "CHEROKEE": "chr",
    "CANADIAN": "iu",
    "TIFINAGH": "zgh",
    "NKO": "nqo",
    "OL": "sat",
    "YI": "ii",
    "JAVANESE": "jv",
    "ADLAM": "ff",
    "MEETEI": "mni",
}
# Letters that only one language of a script has.
_LETTERS = {"uk": "іїє", "sr": "ђћљњ", "fa": "پچژگ"}
# Frequent words of each language; few of them are also words of another language.
_FREQUENT_WORDS = {
    "ca": "el la els les un una és i que no de en amb per jo tu ell ella aquest molt però està",
    "cs": "je se na to že v já ty ne jsem jsi ten ta s z do byl co si tom",
    "da": "jeg du er det ikke en et og at har han hun vi de på til med som hvad var",
    "de": "der die das den dem des von ist und ich du nicht ein eine er sie wir es zu in mit hat haben auf war",
    "en": "the is and i you to a of in he she it not that was we they have my do this are",
    "es": "el la los las un una es y yo que no de en se lo tú él ella está por con muy mi pero",
    "fi": "on ei ja hän se minä sinä en oli että tämä mitä ovat olen me mutta hänen kun",
    "fr": "le la les un une est et je tu il elle que ne pas de des en nous vous ce à j l qu c",
    "hu": "a az és nem egy hogy én te ő van volt ez mi meg is azt nagyon de vagyok",
    "it": "il la lo gli le un una è e che non di in io tu lui lei ho ha sono per mi con del della",
    "nl": "de het een is en ik je niet dat hij zij ze we van in op te heeft wat mijn was met voor",
    "no": "jeg du er det ikke en et og at har han hun vi de på til med som hva ble",
    "pl": "jest nie się to na w i że z ja ty on ona do co jak ma był są mnie jestem",
    "pt": "o a os as um uma é e que não de em eu tu ele ela você está com para por muito meu do da",
    "ro": "este nu și un o în la de că eu tu el ea am are cu pe ce mai sunt pentru",
    "sv": "jag du är det inte en ett och att har han hon vi de på till med som vad var den",
    "tr": "bir ve bu ne ben sen o değil için çok var da de ile gibi benim daha",
    "vi": "là tôi không có bạn và của anh cô một này đã người cho rất",
}
FUNCTION_WORDS = {
    "de": "der die das den dem des ein eine einen einem einer eines kein keine mein meine dein seine ihre und oder aber weil dass "
    "wenn ob als wie in im am zum zur von vom für ohne bei nach zwischen durch gegen",
    "en": "a an the my your his its our their this these every and or but because while although if that than as when where who "
    "which of to from with for in at by into about between without is are was were be am do does did has have had will would can "
    "could should must not very",
    "es": "el la los las un una unos unas mi tu su mis tus sus y e o u pero porque que si como cuando de del a al en con por para "
    "sin sobre entre es son muy",
    "fr": "le la les l un une des du de d mon ma mes ton ta tes son sa ses notre votre leur et ou mais car que qui si comme quand "
    "à au aux en dans avec pour par sans sur entre est très",
    "it": "il lo la i gli le l un uno una mio mia tuo tua suo sua e o ma perché che chi se come quando di del della dei delle a al "
    "alla da dal dalla in nel nella con per senza su sul tra fra è molto",
    "nl": "de het een mijn jouw zijn haar ons onze en of maar want omdat dat als die van naar met voor zonder te bij tussen door",
    "pt": "o a os as um uma meu minha teu tua seu sua e ou mas porque que se como quando de do da dos das em no na com por para "
    "sem sobre entre é muito",
}
"""Articles, prepositions, conjunctions and the like, by language: no sentence ends with one of them."""
SMALL_WORDS = {
    "de": "alle also auch befinden befindet beginnt beide beim bereit besteht dabei damit dann daran darauf davon "
    "dazu deren dessen diese diesem diesen dieser dieses doch dort einander einige einigen etwas euch gerade "
    "gibt hier ihm ihn ihnen ihr ihrem ihren ihrer ihres immer bitte kann kannst machen macht machte mal man mich "
    "mir noch nun nur schon sehr sein seinem seinen seiner seines selbst sich sind sowie steht uns viel vor "
    "wird wurde wurden während",
    "en": "again all any been being both doing done down each ever get gets getting going got her here him how just "
    "kind let like made make makes may might off one other out over own pair piece please quite really shall "
    "some such take takes them then there thing things those too took way well what",
    "es": "algo algunos favor aquí así cada cual cuyo desde donde ellas ellos era esa ese eso esta este esto estoy están "
    "fue hace hacer hay les mismo más nos otro puede qué ser soy también tan tiene toda todo todos usted",
    "fr": "aussi avez avoir avons bien cela celle celui ces cet cette chaque chez deux dont elles encore eux faire "
    "fait fois font ici ils leurs lui moi même mêmes ont peu peut plaît plus quel quelle quelques quoi sera soi sont "
    "suis tout toute toutes veuillez vos était être",
    "it": "abbiamo alcuni anche ancora bene ciò così cui dove egli ella era erano essere fare fatto favore già hai hanno "
    "loro mai molti noi nostro ogni ora più poi proprio può qua quale quanto quei quel quella quello questa "
    "questi questo qui sei sempre siamo sta stato sue suoi tutta tutti tutto voi",
    "nl": "aan alle alsjeblieft alstublieft daar dan deze dit elkaar gaat geen heb hebben hem hen hier hun iets jij jou jullie kan maakt mij "
    "nog ook over staat toch toe toen uit veel weer wel werd wij worden wordt zich zou",
    "pt": "aos aqui assim até bem cada dela dele depois elas eles essa esse esta este favor faz fazer foi isso lhe mais "
    "mesmo nos nós onde outro pode qual quem ser são também tem ter toda todo todos tão vocês",
}
"""Beside the frequent words and the function words of a language: what a good translation often has no word of its own for."""
_WORDS = {language: frozenset(words.split()) for language, words in _FREQUENT_WORDS.items()}
_MIN_SHARE = 0.06
_MIN_LEAD = 1.25
# To contradict a name takes more than to guess: this many words, and this lead over the named language.
_MIN_WORDS = 20
_SURE_LEAD = 2.0
# Of so many different frequent words, as codes and formulas have some by chance; letters, and parts of codes, are none.
_MIN_DIFFERENT = 3
_WHOLE_WORD = lazy_pattern(r"\b[^\W\d_]{2,}\b")
_WORD_BESIDE_NO_CODE = lazy_pattern(r"(?<![\w-])[^\W\d_]+(?![\w-])")
_SCRIPT_OF = {
    **{language: script for script, language in LANGUAGE_OF_SCRIPT.items()},
    "ja": "CJK",
    "zh": "CJK",
    "uk": "CYRILLIC",
    "bg": "CYRILLIC",
    "fa": "ARABIC",
}


@lru_cache(maxsize=1024)
def primary_language(language: str) -> str:
    """The language without region and script, of two letters if it is known: `zh` of `zh-CN`, `zh_Hant` and `zho`."""
    code = re.split("[-_]", language.lower(), maxsplit=1)[0]
    return LANGUAGE_OF_NAME.get(code, code) if len(code) <= _LONGEST_CODE else code


def plain_code(language: str | None) -> str:
    """As `primary_language`, and of a name, too: pt for pt-BR, por and Portuguese; empty for None."""
    primary = primary_language(language or "")
    return LANGUAGE_OF_NAME.get(primary, primary)


def code_with_region(language: str) -> str:
    """The code in lower case, with - in place of _: pt-br for pt_BR."""
    return language.strip().lower().replace("_", "-")


def best_match(wanted: str, codes: Sequence[str]) -> int | None:
    """The index of the code for a language: an equal one, else one without regard to region and script."""
    for index, code in enumerate(codes):
        if code_with_region(code) == code_with_region(wanted):
            return index
    for index, code in enumerate(codes):
        if plain_code(code) == plain_code(wanted):
            return index
    return None


def frequent_words(language: str) -> frozenset[str]:
    """Frequent words of a language, without capital letters; nothing for a language that is not known."""
    return _WORDS.get(primary_language(language), frozenset())


@cache
def small_words(language: str) -> frozenset[str]:
    """The words of a language that have no meaning of their own, or that a good translation often says with no word."""
    return frozenset(
        {*frequent_words(language), *f"{FUNCTION_WORDS.get(language, '')} {SMALL_WORDS.get(language, '')}".split()}
    )


_WRITTEN_WORD = re.compile(r"[^\W_]+")
_FEWEST_LETTERS_OF_CONTENT = 3


def num_content_words(text: str, language: str) -> int:
    """How many words of a text have a meaning of their own."""
    left_out = small_words(primary_language(language))
    words = _WRITTEN_WORD.findall(text.lower())
    return sum(
        1 for word in words if word not in left_out and (len(word) >= _FEWEST_LETTERS_OF_CONTENT or word.isdigit())
    )


_FURTHER_SCRIPTS = {
    "ja": ("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC"),
    "ko": ("HANGUL", "CJK"),
    "sr": ("CYRILLIC", "LATIN"),
    "zh": ("CJK", "BOPOMOFO", "IDEOGRAPHIC"),
}


def scripts_of_language(language: str) -> frozenset[str]:
    """The scripts that a language is written in, and LATIN, as in `script_of_letters`; nothing for a language that is not known."""
    code = primary_language(language)
    if code not in _NAMES:
        return frozenset()
    return frozenset(("LATIN", *_FURTHER_SCRIPTS.get(code, (_SCRIPT_OF.get(code, "LATIN"),))))


def has_spaces(language: str) -> bool:
    """Whether a language puts spaces between words and sentences, by its code of ISO 639-1 or 639-3."""
    return primary_language(language) not in _WITHOUT_SPACES


def language_in(name: str) -> str | None:
    """The language in the name of a column or file, such as Italian, text_it or phrases (EN)."""
    found = {
        LANGUAGE_OF_NAME[word]
        for match in re.finditer(r"[^\W\d_]+", name)
        if (word := match[0].casefold()) in LANGUAGE_OF_NAME and (len(word) > _LONGEST_CODE or _is_code(name, match))
    }
    return found.pop() if len(found) == 1 else None


_LONGEST_CODE = 3
_BESIDE_A_CODE = frozenset(
    [
        "text",
        "source",
        "target",
        "src",
        "tgt",
        "trg",
        "sentence",
        "sentences",
        "phrase",
        "phrases",
        "translation",
        "lang",
        "language",
        "column",
        "file",
        "corpus",
    ]
)


def _is_code(name: str, word: re.Match[str]) -> bool:
    """Whether a short word of a name is the code of a language, and not a word of a text, as la is in La casa."""
    others = re.findall(r"[^\W\d_]+", f"{name[: word.start()]} {name[word.end() :]}")
    if word[0].isupper() and not name.isupper():
        return True
    is_beside_word = re.search(r"[^\W\d_] $", name[: word.start()]) or re.match(r" [^\W\d_]", name[word.end() :])
    return not is_beside_word or all(one.casefold() in _BESIDE_A_CODE for one in others)


_CODE = lazy_pattern(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")


def language_code(given: str) -> str | None:
    """The code of a language that a person gives as a code or a name; None if it is neither."""
    code = LANGUAGE_OF_NAME.get(given.casefold())
    is_name = (code is not None and len(given) > 3) or not given.isascii()
    if is_name or given.casefold() == code:
        return code
    return given if _CODE.fullmatch(given) else None


def is_known_language(code: str) -> bool:
    """Whether the code, without its region, is one of those whose names or whose writing is known here."""
    primary = primary_language(code)
    return primary in LANGUAGE_OF_NAME or primary in _WITHOUT_SPACES


def meant_among(given: str, codes: Sequence[str]) -> str | None:
    """The one of several codes of languages that a person means by a code or a name; None if it is none, or not clear.

    A code of two letters and one of three can mean the same language: `fr` or French means `fra`.
    """
    by_name = {code.casefold(): code for code in codes}
    for name in (given.strip().casefold(), language_code(given)):
        if name in by_name:
            return by_name[name]
    meant = LANGUAGE_OF_NAME.get(given.strip().casefold())
    same = [code for code in codes if meant and LANGUAGE_OF_NAME.get(code.casefold()) == meant]
    return same[0] if len(set(same)) == 1 else None


def chosen_direction(directions: Sequence["Direction"], *, to: str | None = None, from_: str | None = None) -> int:
    """The index of the one direction with these languages.

    Args:
        directions: all directions of the model.
        to: the target language: a code such as it, or a name such as Italian; None: any.
        from_: the source language; None: any.

    Raises:
        UsageError: no direction has these languages, or several have them.
    """
    source = target = None
    if from_ is not None:
        source = _known_language(from_, "from", [one.source for one in directions])
    if to is not None:
        target = _known_language(to, "to", [one.target for one in directions])
    found = [
        number for number, one in enumerate(directions) if source in (None, one.source) and target in (None, one.target)
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"this model does not translate from {source} to {target}; it translates {_listed_directions(directions)}"
        )
    left = [directions[number] for number in found]
    targets = list(dict.fromkeys(one.target for one in left))
    option, choices = "to", targets
    if len(targets) == 1:
        # The source language decides where a sentence ends.
        option, choices = "from", [one.source for one in left]
    raise UsageError(
        f"this model translates {_listed_directions(left)}: say which",
        hint=f"add {' or '.join(f'--{option} {language}' for language in choices)}",
    )


def _known_language(given: str, option: str, languages: Sequence[str]) -> str:
    """The language of the model that is meant."""
    if (meant := meant_among(given, languages)) is not None:
        return meant
    known = ", ".join(dict.fromkeys(languages))
    if not given.strip():
        raise UsageError(
            f"--{option}: the language is empty",
            hint=f"name one of {known}, or leave out --{option}",
        )
    verb = "into" if option == "to" else "from"
    raise UsageError(
        f"--{option} {given}: this model translates {verb}: {known}",
        hint=f"leave out --{option}" if len({*languages}) == 1 else f"name one of {known}",
    )


def _listed_directions(directions: Sequence["Direction"]) -> str:
    return ", ".join(map(str, directions))


def name_of_language(code: str) -> str:
    """The English name of a language, or the code where no name is known."""
    names = [name for name in _NAMES.get(code, "").split() if len(name) > 3]
    return names[0].capitalize() if names else code


def guess_language(sentences: Iterable[str]) -> str:
    """The language of sentences, by their script or their most frequent words; `und` if unsure."""
    text = " ".join(sentences).casefold()
    letters = Counter(char for char in text if char.isalpha())
    if not letters:
        return UNKNOWN_LANGUAGE
    scripts = scripts_of_letters(letters)
    if scripts["HIRAGANA"] > 0.05 * letters.total():  # Japanese has Chinese characters too
        return "ja"
    script = scripts.most_common(1)[0][0]
    if script != "LATIN":
        return _language_of_script(script, letters)
    return _language_of_words(text)


def script_of_letters(text: str) -> str:
    """The script of most letters, by the first word in their Unicode names, such as LATIN; empty without letters."""
    scripts = scripts_of_letters(Counter(char for char in text if char.isalpha()))
    return scripts.most_common(1)[0][0] if scripts else ""


def scripts_of_letters(letters: Counter[str]) -> Counter[str]:
    """How many of the letters belong to each script, by the first word in their Unicode names."""
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        scripts[unicodedata.name(letter, "?").split(" ")[0].split("-")[0]] += count
    return scripts


def _language_of_script(script: str, letters: Counter[str]) -> str:
    for language, own in _LETTERS.items():
        has_script = any(unicodedata.name(letter).startswith(script) for letter in own)
        if has_script and sum(letters[letter] for letter in own) > 0.005 * letters.total():
            return language
    if script == "CYRILLIC" and not letters["ы"] and letters["ъ"] > 0.005 * letters.total():
        return "bg"
    return LANGUAGE_OF_SCRIPT.get(script, UNKNOWN_LANGUAGE)


def contradicting_language(named: str, sentences: Iterable[str]) -> str | None:
    """The language of sentences that are surely not in the language that their name says; None if unsure."""
    texts = list(sentences)
    found = guess_language(texts)
    words = re.findall(r"[^\W\d_]+", " ".join(texts).casefold())
    # Serbian has two scripts.
    if found == UNKNOWN_LANGUAGE or named == "sr" or len(words) < _MIN_WORDS:
        return None
    if found in _WORDS and len(_WORDS[found].intersection(_whole_words(texts))) < _MIN_DIFFERENT:
        return None
    shares = shares_of_frequent(words)
    if named not in _NAMES:  # its script and its words are not known, so nothing can contradict it
        return None
    scripts = [_SCRIPT_OF.get(language, "LATIN") for language in (named, found)]
    if scripts[0] != scripts[1]:
        return found if scripts[1] != "LATIN" or shares[found] >= 2 * _MIN_SHARE else None
    # Of languages that are much alike, such as Danish and Norwegian, neither has such a lead.
    is_surely_other = named in _WORDS and shares[found] >= _SURE_LEAD * shares[named]
    return found if is_surely_other else None


def _whole_words(texts: Iterable[str]) -> set[str]:
    return set(_WHOLE_WORD.findall(" ".join(texts).casefold()))


def shares_of_frequent(words: list[str]) -> Counter[str]:
    """Language -> the share of its frequent words among all words."""
    counts = Counter(words)
    return Counter(
        {
            language: sum(counts[word] for word in frequent) / max(1, counts.total())
            for language, frequent in _WORDS.items()
        }
    )


def _language_of_words(text: str) -> str:
    """The language with the largest share of its frequent words; parts of codes such as A12-B and x_1 are words by chance only."""
    words = _WORD_BESIDE_NO_CODE.findall(text)
    (best, share), (_, second) = shares_of_frequent(words).most_common(2)
    has_whole_word = any(len(word) > 1 and word in _WORDS[best] for word in words)
    is_sure = has_whole_word and share >= _MIN_SHARE and share >= _MIN_LEAD * second
    return best if is_sure else UNKNOWN_LANGUAGE


# Names and codes beyond those above come from the Common Locale Data Repository of Unicode, by babel.
# Script -> further languages that are written in it, with names of other languages in them; the main one is known.
_LOCALES = {
    "LATIN": "en fr de es it pt nl pl cs hu ro tr id vi sw sv fi",
    "CYRILLIC": "ru uk bg sr be mk kk ky mn tg",
    "ARABIC": "ar fa ur ps sd ug ckb",
    "DEVANAGARI": "hi mr ne",
    "BENGALI": "bn as",
    "ETHIOPIC": "am ti",
    "HEBREW": "he yi",
    "CJK": "zh zh_Hant ja yue",
}
_CODE_OF_LOCALE = lazy_pattern(r"([a-z]{2,3})([-_](?:[A-Z][a-z]{3}|[A-Z]{2}|x[-_][a-z0-9]{1,8}))*")
# Words of names of columns that are codes of languages, too.
_NO_CODES = frozenset(("tok", "src", "trg", "tgt", "ref", "raw", "hyp", "txt", "key", "nr", "no", "id"))
# A name of a language has a word for language behind or before it.
_MAX_WORDS = 3


def code_of_language(text: str) -> str | None:
    """The code, if the text is one, such as xmf, km or pt-BR; None if it is not one of a language that is known."""
    found = _CODE_OF_LOCALE.fullmatch(text.strip())
    if found is None or found[1] in _NO_CODES:
        return None
    return text.strip() if found[1] in _names_in_locale("en") else None


def named_language(title: str) -> str | None:
    """The language that a title of a column says, as a code or as a name in one of many languages."""
    found = language_in(title) or code_of_language(title)
    if found is not None or not title.strip():
        return found
    # Not \w: the vowel signs of Khmer and Hindi are marks and no letters.
    words = [word for word in re.split(r"[\s_/()\[\].,:;-]+", title.casefold()) if word]
    if not 1 <= len(words) <= _MAX_WORDS:
        return None
    codes = {
        code
        for name in dict.fromkeys((title.strip().casefold(), *words, *map(_chinese_name, words)))
        for locale in _locales_named(name)
        if (code := _codes_in_locale(locale).get(name)) is not None
    }
    return codes.pop() if len(codes) == 1 else None


def name_of(code: str) -> str:
    """The English name of a language, or the code where no name is known."""
    name = name_of_language(code)
    return _names_in_locale("en").get(primary_language(code), code) if name == code else name


def has_name(code: str) -> bool:
    """Whether a code is one of ISO 639-1, 639-2 or 639-3 that Unicode names, such as hy, hye and arm."""
    from babel.core import get_global

    primary = primary_language(code)
    return primary in _names_in_locale("en") or primary in get_global("language_aliases")


def shortest_code(code: str) -> str:
    """The code of two letters, where ISO 639 has one for a code of three without a region: en for eng, hy for hye and arm."""
    from babel.core import get_global

    shorter = get_global("language_aliases").get(code.lower(), primary_language(code)) if len(code) == 3 else code
    return shorter if len(shorter) == 2 else code


def _chinese_name(name: str) -> str:
    """The name of a language with the sign for spoken language, such as 英语, in place of the one for writing, 英文."""
    return f"{name[:-1]}语" if name.endswith("文") else name


def _locales_named(name: str) -> list[str]:
    script = script_of_letters(name)
    return _LOCALES.get(script, LANGUAGE_OF_SCRIPT.get(script, "")).split()


@cache
def _names_in_locale(locale: str) -> dict[str, str]:
    """Code -> name, in one language."""
    from babel import Locale, UnknownLocaleError

    try:
        return {code: str(name) for code, name in Locale.parse(locale).languages.items()}
    except UnknownLocaleError:  # a script whose language has no names there
        return {}


@cache
def _codes_in_locale(locale: str) -> dict[str, str]:
    """Name without capitals -> code; regional forms, such as Brazilian Portuguese, count for their language."""
    return {name.casefold(): code.split("_")[0] for code, name in reversed(_names_in_locale(locale).items())}


# Letters by themselves that name something, such as a key, an option, a grade or a vitamin: they stay in a translation.
# No language is given. So a letter that is a word of some language, such as I, A or E, counts only where no such word can stand.

_LETTER_ALONE = r"(?:[A-Zbfgpqrx]|[cdhj-nstvwz](?=[!?\u2026)\]\"']*\Z))(?![\w'\u2019&/@#$%\\+*~^=<>{}|-]|\.[\w-]|:\S)"
"""A capital letter of Latin script that touches no other word, or a small one that is a word of no language: at the end of a text a consonant is none."""
NAME_OF_LETTERS = rf"{NOT_INSIDE_WORD}(?:{ROMAN}|{_LETTER_ALONE})"
"""What may name something, see `names_something`: a letter, or a Roman numeral."""
_NAME_OF_LETTERS = re.compile(NAME_OF_LETTERS)
# Of a small letter at the end of a text: *Welcome to v*, where a program writes a version behind it.
_LAST = lazy_pattern(r"[.!?\u2026)\]\"']*")
_SMALL_WORDS_BEFORE = lazy_pattern(r"(?<!\w)(?:to|in|at|of|by|with|from|for|on|is|version|release) \Z", re.IGNORECASE)


def _set_of_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Of keys, behind which even I and A are letters.
_KEYS = _set_of_words(
    "press pressed presses pressing hit key keys button buttons tasto tasti premi premere touche touches appuyez taste tasten tecla teclas pulsa"
    " pulse pulsar pressione"
)
# Before their letters in a sentence; of English, Italian, French, German, Spanish and Portuguese.
_BEFORE_LETTERS = _KEYS | _set_of_words(
    "option options vitamin vitamins hepatitis influenza group groups grade grades plan plans type types class classes category categories level"
    " section sections part parts item items step steps team teams column row rows figure appendix annex letter letters block zone gate terminal"
    " platform entrance exit wing room building hall lane bus drive disk variant version series schedule exhibit form article answer answers"
    " question choice protein note chord string point points axis size"
    " opzione opzioni vitamina vitamine epatite gruppo gruppi piano tipo classe classi categoria livello sezione parte punto fase squadra colonna"
    " riga figura allegato lettera blocco zona porta uscita edificio linea variante serie modulo articolo risposta scelta proteina nota asse"
    " h\u00e9patite grippe groupe groupes niveau cat\u00e9gorie partie \u00e9tape \u00e9quipe colonne ligne annexe lettre bloc porte sortie b\u00e2timent"
    " formulaire r\u00e9ponse choix prot\u00e9ine axe plan"
    " gruppe gruppen klasse klassen typ kategorie stufe abschnitt teil punkt spalte zeile abbildung anhang buchstabe linie gleis ausgang"
    " geb\u00e4ude halle variante antwort aufgabe"
    " opci\u00f3n hepatitis grupo grupos clase nivel secci\u00f3n paso equipo columna fila letra bloque puerta salida l\u00ednea respuesta"
    " op\u00e7\u00e3o hepatite classe n\u00edvel se\u00e7\u00e3o passo equipe coluna resposta"
)
# Behind their letters, as in "the S key"; of two languages they would stand before them.
_BEHIND_LETTERS = _set_of_words("key keys button buttons minor major flat sharp drive string clef taste")
_DETERMINERS = _set_of_words("the this that your its")
# X-ray, T-shirt, U-turn and the like without a hyphen are words; of "V secolo" the letter is a number.
_JOINED_TO_A_LETTER = _set_of_words(
    "ray rays shirt shirts turn turns neck day beam bone word words class secolo si\u00e8cle siglo s\u00e9culo"
)
_WORD_BEFORE = lazy_pattern(r"([^\W\d_]+)[ \u00a0]\Z")
_LETTER_BEFORE = lazy_pattern(r"(?<![^\W_])[A-HJ-Z](?:,| (?:and|or|e|ed|o|et|ou|und|oder|y))[ \u00a0]\Z")
_WORD_BEHIND = lazy_pattern(r"[ \u00a0]([^\W\d_]+)")
_ENDS_BEHIND_LETTER = lazy_pattern(r"[,;:!?)\]\"\u00bb\u201d]|\.(?:\s*\Z|\s)|\s*\Z")
_JOINING = _set_of_words("to and or is")
_OPENING_MARKS, _CLOSING_MARKS = '"\u00ab\u201c\u201e(', '"\u00bb\u201d\u201c)'
_NEAR = 30  # characters
_ADDRESS = r"(?<!\S)[^\s<>]*(?:[@/%][^\s<>/]+|\{[^\s{}<>]+\})[^\s<>]*"
_ADDRESS_BEFORE, _ADDRESS_BEHIND = re.compile(rf"{_ADDRESS} \Z"), re.compile(rf" {_ADDRESS}")
_JOINED_KEYS = re.compile(r"(?<!\w)(?:(?:Ctrl|Strg|Cmd) \w|(?:Alt|Shift) [A-Z])")


def has_letter_as_name(text: str) -> bool:
    """Whether a text has a letter that names something, a Roman numeral, or keys that a space joins."""
    return (
        any(names_something(text, *match.span()) for match in _NAME_OF_LETTERS.finditer(text))
        or _JOINED_KEYS.search(text) is not None
    )


def names_something(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] is a letter by itself that names something, or a Roman numeral."""
    return is_roman_numeral(text, start, end) or (end == start + 1 and is_letter_as_name(text, start))


def is_letter_as_name(text: str, place: int) -> bool:
    """Whether the letter by itself at a place names something."""
    letter, before, behind = text[place], text[max(0, place - _NEAR) : place], text[place + 1 : place + 1 + _NEAR]
    if letter.islower():  # beside an address or a placeholder, where a model does not see that it is a word
        is_beside = _ADDRESS_BEFORE.search(before) is not None or _ADDRESS_BEHIND.match(behind) is not None
        is_beside = is_beside or (
            _LAST.fullmatch(behind) is not None and _SMALL_WORDS_BEFORE.search(before) is not None
        )
        return is_beside and re.search(r"\d\s?\Z", before) is None and re.match(r"\.\s*\S", behind) is None
    if not any(map(str.isalnum, before + behind)) and sum(map(str.isalnum, text)) == 1:
        return letter != "I"  # the whole text
    if before and before[-1] in _OPENING_MARKS and behind and behind[0] in _CLOSING_MARKS:
        return not before[-2:-1].isalnum()
    word_behind = match[1] if (match := _WORD_BEHIND.match(behind)) else ""
    if word_behind.isupper() and len(word_behind) > 1:
        return False  # words in capital letters
    word_before = match[1] if (match := _WORD_BEFORE.search(before)) else ""
    is_end = _ENDS_BEHIND_LETTER.match(behind) is not None
    if word_before.casefold() in _BEFORE_LETTERS:
        if letter == "I":
            return word_before.casefold() in _KEYS and (
                is_end or word_behind in _JOINING or word_behind in _BEHIND_LETTERS
            )
        return letter not in "AEOY" or not word_behind[:1].isupper()
    if word_behind in _BEHIND_LETTERS and (letter not in "AIO" or word_before.casefold() in _DETERMINERS):
        return word_before != ""
    is_initial = word_behind[:1].isupper() or re.match(r"\.\s+\w", behind) is not None
    if letter == "I" or is_initial or word_behind in _JOINED_TO_A_LETTER:
        return False
    # Also with a space behind a number, as in seat 12 A; a unit there stays, too.
    is_inside = re.search(r"\d[ \u00a0]\Z", before) is not None
    is_inside = (
        is_inside or (len(word_before) > 1 and word_before.islower()) or _LETTER_BEFORE.search(before) is not None
    )
    return is_inside and (letter not in "AEOY" or is_end or word_behind in _JOINING)


# Plain text: words of Latin letters and ordinary marks between them, nothing else.
#
# Most sentences are plain. One cheap question then answers many costly ones: plain text has no protected span, no number, no bracket,
# no quotation mark, no ellipsis, no list mark and no column.

# Without the multiplication and division signs, and without letters whose folded case has a sign that is no letter.
# Capital letters with accents are among them, because no span has one as its sign.
_SMALL = "a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u012f\u0131-\u0148\u014a-\u017e"
_PLAIN = re.compile(
    # A capital letter begins a word and small ones follow, unlike in GitHub. A single letter
    # before a full stop or a hyphen may be an abbreviation, or stand for itself, as in a-z; behind a hyphen it may be a key.
    rf"(?>(?:(?=[A-Z{_SMALL}])[A-Z]?+[{_SMALL}]*+(?:[ ']|, |(?<=\w\w)(?:-(?![A-Z]|[a-z]\b)|[.!?] )))*)[A-Z]?[{_SMALL}]++(?:(?<=\w\w)[.!?])?\Z"
)


@lru_cache(maxsize=8192)  # the checks of a window of lines ask for each text about ten times
def is_plain(text: str) -> bool:
    """Whether a text has only words of Latin letters, with a space, a comma, a hyphen, an apostrophe or the end of a sentence between two of them.

    A text in capital letters, such as LÀ, is not plain: it may be read in small ones. Neither is one with a letter that names something.
    """
    return _PLAIN.match(text) is not None and not text.isupper() and not has_letter_as_name(text)


def plain_words(text: str) -> list[str]:
    """The words of a plain text, also of one whose case is folded: its sequences of letters."""
    for mark in ",'-.!?":
        text = text.replace(mark, " ")
    return text.split()
