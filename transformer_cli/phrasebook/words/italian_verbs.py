"""How Italian verbs are conjugated: rules, and a table of the irregular ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.word_tables import read_table

PERSONS = range(6)  # io, tu, lui or lei, noi, voi, loro
REFLEXIVE_CLITICS = ("mi", "ti", "si", "ci", "vi", "si")

PRESENT_ENDINGS = {
    "are": ("o", "i", "a", "iamo", "ate", "ano"),
    "ere": ("o", "i", "e", "iamo", "ete", "ono"),
    "ire": ("o", "i", "e", "iamo", "ite", "ono"),
}
IMPERFECT_ENDINGS = ("vo", "vi", "va", "vamo", "vate", "vano")
FUTURE_ENDINGS = ("ò", "ai", "à", "emo", "ete", "anno")
CONDITIONAL_ENDINGS = ("ei", "esti", "ebbe", "emmo", "este", "ebbero")
FORMS_OF_AVERE = frozenset({"ho", "hai", "ha", "abbiamo", "avete", "hanno"})
POLITE_ENDINGS = {"are": "i", "ere": "a", "ire": "a"}
VERBS_WITH_ISC = frozenset({"capire", "finire", "preferire", "pulire", "spedire", "costruire"})


@dataclass(frozen=True, slots=True)
class Irregular:
    """The irregular forms of one verb; a field is empty where the verb follows the rules."""

    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future_stem: str
    participle: str
    gerund: str
    imperatives: tuple[str, ...]  # tu, Lei


@cache
def _irregular_verbs() -> dict[str, Irregular]:
    verbs = {}
    for infinitive, present, imperfect, future, participle, gerund, imperatives in read_table(
        "irregular_verbs.tsv", columns=7
    ):
        verbs[infinitive] = Irregular(
            present=_forms(present),
            imperfect=_forms(imperfect),
            future_stem="".join(_forms(future)),
            participle="".join(_forms(participle)),
            gerund="".join(_forms(gerund)),
            imperatives=_forms(imperatives),
        )
    return verbs


def _forms(cell: str) -> tuple[str, ...]:
    return () if cell == "-" else tuple(cell.split())


_REGULAR = Irregular((), (), "", "", "", ())


def _exceptions(infinitive: str) -> Irregular:
    return _irregular_verbs().get(infinitive, _REGULAR)


def is_reflexive(verb: str) -> bool:
    """Whether an infinitive ends in -si."""
    return verb.endswith("rsi")


@cache
def plain_infinitive(verb: str) -> str:
    """The infinitive without the reflexive pronoun: alzarsi gives alzare."""
    return verb[:-2] + "e" if is_reflexive(verb) else verb


@cache
def present(infinitive: str, person: int) -> str:
    """The present: mangio, capisci, va."""
    exceptions = _exceptions(infinitive)
    if exceptions.present:
        return exceptions.present[person]
    stem, family = infinitive[:-3], infinitive[-3:]
    ending = PRESENT_ENDINGS[family][person]
    if infinitive in VERBS_WITH_ISC and person not in {3, 4}:
        stem += "isc"
    return _attach(stem, ending, family)


def _attach(stem: str, ending: str, family: str) -> str:
    """Join stem and ending; in -are verbs c and g keep their sound (cerco, cerchi)."""
    if family == "are" and ending[0] in "ei":
        if stem[-1] in "cg":
            return stem + "h" + ending
        if stem[-1] == "i" and (ending[0] == "i" or stem[-2] in "cg"):
            return stem[:-1] + ending
    return stem + ending


@cache
def imperfect(infinitive: str, person: int) -> str:
    """The imperfect: mangiavo, ero, facevi."""
    exceptions = _exceptions(infinitive)
    if len(exceptions.imperfect) == len(PERSONS):
        return exceptions.imperfect[person]
    stem = exceptions.imperfect[0] if exceptions.imperfect else infinitive[:-2]
    return stem + IMPERFECT_ENDINGS[person]


def _future_stem(infinitive: str) -> str:
    exceptions = _exceptions(infinitive)
    if exceptions.future_stem:
        return exceptions.future_stem
    stem, family = infinitive[:-3], infinitive[-3:]
    if family == "ire":
        return stem + "ir"
    return _attach(stem, "er", family)


@cache
def future(infinitive: str, person: int) -> str:
    """The future: mangerò, cercherai, andrà."""
    return _future_stem(infinitive) + FUTURE_ENDINGS[person]


@cache
def conditional(infinitive: str, person: int) -> str:
    """The conditional: vorrei, dovresti."""
    return _future_stem(infinitive) + CONDITIONAL_ENDINGS[person]


@cache
def participle(infinitive: str, form: str) -> str:
    """The past participle in one of its four forms: mangiato, scritta, andati."""
    exceptions = _exceptions(infinitive)
    if exceptions.participle:
        return adjective_forms(exceptions.participle)[form]
    stem, family = infinitive[:-3], infinitive[-3:]
    ending = {"are": "ato", "ere": "uto", "ire": "ito"}[family]
    if family == "ere" and stem.endswith("c"):
        ending = "iuto"
    return adjective_forms(stem + ending)[form]


@cache
def gerund(infinitive: str) -> str:
    """The gerund: mangiando, leggendo, bevendo."""
    exceptions = _exceptions(infinitive)
    if exceptions.gerund:
        return exceptions.gerund
    return infinitive[:-3] + ("ando" if infinitive.endswith("are") else "endo")


@cache
def imperative(infinitive: str, person: int) -> str:
    """The imperative for tu (1), Lei (2), noi (3) and voi (4)."""
    exceptions = _exceptions(infinitive)
    if person in {3, 4}:
        return present(infinitive, person)
    if exceptions.imperatives:
        return exceptions.imperatives[person - 1]
    stem, family = infinitive[:-3], infinitive[-3:]
    if person == 1:
        return stem + "a" if family == "are" else present(infinitive, 1)
    if infinitive in VERBS_WITH_ISC:
        stem += "isc"
    return _attach(stem, POLITE_ENDINGS[family], family)


@cache
def before_verb(clitic: str, verb: str) -> str:
    """A clitic (unstressed pronoun) before a verb, with its space or apostrophe: l'ho, lo vedo."""
    if clitic in {"lo", "la"} and verb in FORMS_OF_AVERE:
        return "l'"
    return clitic + " "


@cache
def infinitive_with(infinitive: str, clitic: str) -> str:
    """An infinitive with a clitic behind it: vederlo, alzarmi."""
    return infinitive[:-1] + clitic if clitic else infinitive
