"""Words with an opposite, such as *at least* and *at most*: whether a translation says the opposite of its source, or lacks its limit.

Languages that are not in the tables are never compared.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.numbers_in_text import counted_words, word_list
from transformer_cli.text.languages import primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.sentences import LANGUAGES_WITH_CAPITAL_NOUNS

# For each pair of opposites: the words of one side, and those of the other. A star stands for any ending, and an underscore for a space.
_OPPOSITES = {
    "limit": {
        "de": ("mindestens wenigstens minimum minimal*", "höchstens maximum maximal* bis_zu"),
        "en": (
            "at_least minimum minimal no_less_than no_fewer_than",
            "at_most maximum maximal up_to no_more_than not_more_than",
        ),
        "es": ("al_menos por_lo_menos como_mínimo mínim*", "como_máximo a_lo_sumo máxim*"),
        "fr": ("au_moins du_moins minimum minima* minimale*", "au_plus maximum maxima* maximale* jusqu*"),
        "it": ("almeno al_minimo minim*", "al_massimo massim*"),
        "nl": ("minstens ten_minste minimum minim*", "hoogstens ten_hoogste maximum maxim*"),
        "pt": ("pelo_menos no_mínimo mínim*", "no_máximo máxim*"),
    },
    "comparison": {
        "de": ("mehr_als größer_als länger_als höher_als", "weniger_als kleiner_als kürzer_als"),
        "en": (
            "more_than greater_than larger_than longer_than bigger_than higher_than older_than",
            "less_than fewer_than smaller_than shorter_than lower_than younger_than",
        ),
        "es": ("más_de más_que mayor* superior*", "menos_de menos_que menor* inferior*"),
        "fr": (
            "plus_de plus_d plus_que plus_qu plus_grand* plus_long* plus_haut* plus_âgé* plus_vieux plus_vieille* supérieur*",
            "moins_de moins_d moins_que moins_qu plus_petit* plus_court* plus_jeune* plus_bas* inférieur*",
        ),
        "it": ("più_di più_che maggior* superior*", "meno_di meno_che minor* inferior*"),
        "nl": ("meer_dan groter_dan langer_dan hoger_dan ouder_dan", "minder_dan kleiner_dan korter_dan lager_dan"),
        "pt": ("mais_de mais_que mais_do maior* superior*", "menos_de menos_que menos_do menor* inferior*"),
    },
    "time": {
        "de": ("vor vorher bevor davor zuvor ehe", "nachher nachdem danach später"),
        "en": ("before beforehand", "after afterwards afterward"),
        "es": ("antes ante", "después tras luego"),
        "fr": ("avant auparavant devant", "après ensuite puis"),
        "it": ("prima davanti", "dopo poi"),
        "nl": ("voordat vooraf tevoren", "nadat daarna later"),
        "pt": ("antes perante", "depois após"),
    },
    "order": {
        "de": ("erste* zuerst", "letzt* zuletzt"),
        "en": ("first firstly", "last lastly"),
        "es": ("primer*", "últim*"),
        "fr": ("premier* première* premièrement abord", "dernier* dernière* dernièrement enfin"),
        "it": ("prim*", "ultim* scors*"),
        "nl": ("eerst*", "laatst* vorig*"),
        "pt": ("primeir*", "últim* passad*"),
    },
    "truth": {
        "de": ("wahr wahre* wahrheit* stimmt", "falsch* unwahr*"),
        "en": ("true truth", "false untrue"),
        "es": ("verdad* cierto cierta", "fals*"),
        "fr": ("vrai* vérité*", "faux fausse*"),
        "it": ("vero vera veri vere verità", "fals*"),
        "nl": ("waar ware waarheid", "onwaar vals* fout*"),
        "pt": ("verdad* certo certa", "fals*"),
    },
    "height": {
        "de": ("herauf hinauf aufwärts nach_oben", "herunter hinunter runter abwärts nach_unten"),
        "en": (
            "up upward upwards upstairs top high higher above tall",
            "down downward downwards downstairs bottom low lower below",
        ),
        "es": ("arriba sube suben subir alto alta", "abajo baja bajan bajar"),
        "fr": (
            "haut hausse* monter montez remonter remontez",
            "bas basse baisse* baissez descend*",
        ),
        "it": ("alto alta salire salite", "giù basso bassa scend* abbass*"),
        "nl": ("omhoog hoog", "omlaag laag"),
        "pt": ("cima acima sobe subir alto alta", "baixo abaixo desce* baixa*"),
    },
    "side": {
        "de": ("rechts rechte*", "links linke*"),
        "en": ("right", "left"),
        "es": ("derech*", "izquierd*"),
        "fr": ("droite* droitier*", "gauche*"),
        "it": ("destr*", "sinistr*"),
        "nl": ("rechts rechter* rechtsaf", "links linker* linksaf"),
        "pt": ("direit*", "esquerd*"),
    },
    "switch": {
        "de": ("einschalt* eingeschaltet anschalt* aktivier*", "ausschalt* ausgeschaltet abschalt* deaktivier*"),
        "en": (
            "turn_on turned_on turns_on switch_on switched_on enable enabled enables activate activated",
            "turn_off turned_off turns_off switch_off switched_off disable disabled disables deactivate deactivated",
        ),
        "es": ("enciend* encend* activ*", "apag* desactiv*"),
        "fr": ("allum* rallum* active* activé* activer activez", "étei* éteign* coupe* coupez désactiv* débranch*"),
        "it": ("accend* acces* attiv*", "spegn* spent* disattiv*"),
        "nl": ("inschakel* ingeschakeld activ*", "uitschakel* uitgeschakeld deactiv*"),
        "pt": ("liga* ligu* ativ* acend*", "deslig* desativ* apag*"),
    },
    "permission": {
        "de": ("erlaub* gestatt* zulass* zugelassen genehmig*", "verbiet* verbot* verweiger* ablehn* abgelehnt"),
        "en": (
            "allow allowed allows allowing permit permitted permits accept accepted accepts",
            "deny denied denies refuse refused refuses forbid forbidden forbids reject rejected rejects",
        ),
        "es": ("permit* acept* autoriz*", "deneg* nieg* negar rechaz* prohíb* prohib*"),
        "fr": ("permet* permi* autoris* accept* laisse*", "refus* interdi* rejet* nie nient nié défend*"),
        "it": ("permett* permess* accett* consent* autorizz*", "nega negare negato negano rifiut* vieta* proib*"),
        "nl": ("toestaan toegestaan accept*", "weiger* verbied* verboden afwijz*"),
        "pt": ("permit* aceit* autoriz*", "nega negar negou recus* rejeit* proíb* proib*"),
    },
}
NUM_FIRST_LETTERS = 4
BEGINNINGS: Mapping[str, frozenset[str]] = {
    language: frozenset(
        item.split("_")[0].casefold()[:NUM_FIRST_LETTERS]
        for sides in _OPPOSITES.values()
        for side in sides.get(language, ())
        for item in side.split()
    )
    for language in _OPPOSITES["limit"]
}
"""The first letters of the words with an opposite in each language: most texts have no word that begins so."""
_LIMITS = frozenset(("limit", "comparison"))
# What a translation may say of a limit, too: "three or more", "do not exceed".
_OTHER_LIMITS = {
    "de": "mehr weniger über unter überschreit* grenze* bis ab",
    "en": "more less fewer over under above below exceed* up_to within than limit* minimum maximum",
    "es": "más menos sobre super* exced* límite* hasta",
    "fr": "plus moins davantage dépass* excéd* excède* limite* jusqu* inférieur* supérieur* minimum maximum moindre que",
    "it": "più meno oltre super* ecced* limite* fino",
    "nl": "meer minder boven onder overschr* limiet* tot",
    "pt": "mais menos acima super* exced* limite* até",
}
_BOTH_SIDES = frozenset(("limit", "time", "truth", "side", "switch"))
_LONGEST_SENTENCE = 25  # words; longer ones say things in other ways
_BEFORE_LIMITED = lazy_pattern(r"\s+([^\W_]+)")


def says_opposite(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has only words of one side of a pair of opposites, and its source only words of the other one.

    Of *left and right* and the like, one that stands for both is a fault, too.
    """
    here = _sides(source, primary_language(languages.source))
    if not here or len(source.split()) > _LONGEST_SENTENCE:
        return False
    there = _sides(translation, primary_language(languages.target))
    return any(
        len(there[pair]) == 1 and here[pair] != there[pair] and (len(here[pair]) == 1 or pair in _BOTH_SIDES)
        for pair in here.keys() & there.keys()
    )


def lacks_limit(source: str, translation: str, languages: Direction) -> bool:
    """Whether a source says *at least*, *more than* or the like before a number or a name, and its translation nothing of this kind."""
    here, there = map(primary_language, languages)
    if there not in _OTHER_LIMITS or _LIMITS.isdisjoint(_sides(source, here)):
        return False
    if not _limits_something(source, here) or len(source.split()) > _LONGEST_SENTENCE:
        return False
    written = translation.lower()
    return _LIMITS.isdisjoint(_sides(written, there)) and not _one_of(_OTHER_LIMITS[there]).search(written)


def _limits_something(text: str, language: str) -> bool:
    """Whether a number or a name, which may stand for a placeholder, follows a limit."""
    has_names = language not in LANGUAGES_WITH_CAPITAL_NOUNS
    for match in _pattern(language).finditer(text.lower()):
        limited = _BEFORE_LIMITED.match(text, match.end())
        if limited is None or (match.lastgroup or "")[:-1] not in _LIMITS or limited[1] == "I":
            continue
        if limited[1] in _numbers(language) or limited[1][0].isdigit() or (has_names and not limited[1].islower()):
            return True
    return False


@cache
def _numbers(language: str) -> frozenset[str]:
    return word_list(" ".join(counted_words(language)))


@lru_cache(maxsize=64)
def _sides(text: str, language: str) -> Mapping[str, Collection[str]]:
    """Of each pair of opposites of which a text has a word: the sides of its words."""
    found: dict[str, set[str]] = {}
    for match in _pattern(language).finditer(text.lower()):
        group = match.lastgroup or ""
        found.setdefault(group[:-1], set()).add(group[-1:])
    return found


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """What finds the words with an opposite; of two that begin at the same place, the one that is first in the tables: a limit."""
    groups = (
        f"(?P<{pair}{side}>{_alternatives(items)})"
        for pair, sides in _OPPOSITES.items()
        for side, items in enumerate(sides.get(language, ()))
    )
    return re.compile(rf"(?<![\w-])(?:{'|'.join(groups) or '(?!)'})(?!\w)")


@cache
def _one_of(items: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{_alternatives(items)})(?!\w)")


def _alternatives(items: str) -> str:
    return "|".join(item.replace("*", r"\w*").replace("_", " ") for item in items.split())
