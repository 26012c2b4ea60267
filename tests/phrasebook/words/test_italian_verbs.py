"""Italian verbs: rules, spelling and irregular forms."""

import pytest

from transformer_cli.phrasebook.words import italian_verbs as verbs

PRESENT = {
    "parlare": "parlo parli parla parliamo parlate parlano",
    "vendere": "vendo vendi vende vendiamo vendete vendono",
    "dormire": "dormo dormi dorme dormiamo dormite dormono",
    "capire": "capisco capisci capisce capiamo capite capiscono",
    "finire": "finisco finisci finisce finiamo finite finiscono",
    "cercare": "cerco cerchi cerca cerchiamo cercate cercano",
    "mangiare": "mangio mangi mangia mangiamo mangiate mangiano",
    "pagare": "pago paghi paga paghiamo pagate pagano",
    "studiare": "studio studi studia studiamo studiate studiano",
    "sciare": "scio scii scia sciamo sciate sciano",
    "leggere": "leggo leggi legge leggiamo leggete leggono",
    "essere": "sono sei è siamo siete sono",
    "avere": "ho hai ha abbiamo avete hanno",
    "fare": "faccio fai fa facciamo fate fanno",
    "andare": "vado vai va andiamo andate vanno",
    "stare": "sto stai sta stiamo state stanno",
    "dare": "do dai dà diamo date danno",
    "dire": "dico dici dice diciamo dite dicono",
    "venire": "vengo vieni viene veniamo venite vengono",
    "uscire": "esco esci esce usciamo uscite escono",
    "bere": "bevo bevi beve beviamo bevete bevono",
    "potere": "posso puoi può possiamo potete possono",
    "volere": "voglio vuoi vuole vogliamo volete vogliono",
    "dovere": "devo devi deve dobbiamo dovete devono",
    "sapere": "so sai sa sappiamo sapete sanno",
    "tenere": "tengo tieni tiene teniamo tenete tengono",
    "rimanere": "rimango rimani rimane rimaniamo rimanete rimangono",
    "salire": "salgo sali sale saliamo salite salgono",
    "scegliere": "scelgo scegli sceglie scegliamo scegliete scelgono",
}


@pytest.mark.parametrize("infinitive", PRESENT)
def test_the_present_has_six_forms(infinitive: str) -> None:
    forms = [verbs.present(infinitive, person) for person in verbs.PERSONS]
    assert forms == PRESENT[infinitive].split()


@pytest.mark.parametrize(
    ("infinitive", "first_person"),
    [
        ("parlare", "parlerò"),
        ("cominciare", "comincerò"),
        ("mangiare", "mangerò"),
        ("cercare", "cercherò"),
        ("pagare", "pagherò"),
        ("studiare", "studierò"),
        ("prendere", "prenderò"),
        ("capire", "capirò"),
        ("essere", "sarò"),
        ("avere", "avrò"),
        ("andare", "andrò"),
        ("fare", "farò"),
        ("venire", "verrò"),
        ("bere", "berrò"),
        ("vedere", "vedrò"),
        ("cadere", "cadrò"),
        ("rimanere", "rimarrò"),
        ("volere", "vorrò"),
    ],
)
def test_the_future_keeps_the_sound_of_the_stem(infinitive: str, first_person: str) -> None:
    assert verbs.future(infinitive, 0) == first_person


@pytest.mark.parametrize(
    ("infinitive", "participle"),
    [
        ("parlare", "parlato"),
        ("vendere", "venduto"),
        ("dormire", "dormito"),
        ("conoscere", "conosciuto"),
        ("prendere", "preso"),
        ("mettere", "messo"),
        ("leggere", "letto"),
        ("scrivere", "scritto"),
        ("chiudere", "chiuso"),
        ("aprire", "aperto"),
        ("dire", "detto"),
        ("fare", "fatto"),
        ("bere", "bevuto"),
        ("venire", "venuto"),
        ("rimanere", "rimasto"),
        ("rompere", "rotto"),
        ("spegnere", "spento"),
        ("vedere", "visto"),
        ("decidere", "deciso"),
        ("sorridere", "sorriso"),
    ],
)
def test_participles_are_regular_or_known(infinitive: str, participle: str) -> None:
    assert verbs.participle(infinitive, "ms") == participle


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("parlare", "parlavo parlavi parlava parlavamo parlavate parlavano"),
        ("leggere", "leggevo leggevi leggeva leggevamo leggevate leggevano"),
        ("capire", "capivo capivi capiva capivamo capivate capivano"),
        ("essere", "ero eri era eravamo eravate erano"),
        ("fare", "facevo facevi faceva facevamo facevate facevano"),
        ("dire", "dicevo dicevi diceva dicevamo dicevate dicevano"),
        ("bere", "bevevo bevevi beveva bevevamo bevevate bevevano"),
    ],
)
def test_the_imperfect_has_six_forms(infinitive: str, forms: str) -> None:
    assert " ".join(verbs.imperfect(infinitive, person) for person in verbs.PERSONS) == forms


@pytest.mark.parametrize(
    ("infinitive", "tu", "lei", "noi"),
    [
        ("parlare", "parla", "parli", "parliamo"),
        ("prendere", "prendi", "prenda", "prendiamo"),
        ("aprire", "apri", "apra", "apriamo"),
        ("finire", "finisci", "finisca", "finiamo"),
        ("cercare", "cerca", "cerchi", "cerchiamo"),
        ("pagare", "paga", "paghi", "paghiamo"),
        ("andare", "va'", "vada", "andiamo"),
        ("dare", "da'", "dia", "diamo"),
        ("bere", "bevi", "beva", "beviamo"),
        ("scegliere", "scegli", "scelga", "scegliamo"),
    ],
)
def test_imperatives_differ_for_tu_lei_and_noi(
    infinitive: str, tu: str, lei: str, noi: str
) -> None:
    assert [verbs.imperative(infinitive, person) for person in (1, 2, 3)] == [tu, lei, noi]


def test_gerunds_keep_the_old_stem() -> None:
    assert [verbs.gerund(x) for x in ("parlare", "leggere", "capire", "fare", "dire", "bere")] == [
        "parlando",
        "leggendo",
        "capendo",
        "facendo",
        "dicendo",
        "bevendo",
    ]


def test_pronouns_are_glued_to_infinitives() -> None:
    assert verbs.infinitive_with("vedere", "lo") == "vederlo"
    assert verbs.infinitive_with("alzare", "mi") == "alzarmi"


def test_lo_and_la_lose_their_vowel_before_avere_alone() -> None:
    assert verbs.before_verb("lo", "ho") + "ho" == "l'ho"
    assert verbs.before_verb("la", "abbiamo") + "abbiamo" == "l'abbiamo"
    assert verbs.before_verb("li", "ho") + "ho" == "li ho"
    assert verbs.before_verb("lo", "vedo") + "vedo" == "lo vedo"
