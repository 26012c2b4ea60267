"""Signs that a translation lacks are named, and come back in their places."""

from pathlib import Path
from typing import Any

import pytest

from transformer_cli.decoding import Translation, Translator
from transformer_cli.decoding.checks import line_repairs
from transformer_cli.decoding.checks.line_repairs import ways_to_keep_signs
from transformer_cli.decoding.checks.signs import lost_signs
from transformer_cli.decoding.checks.signs_in_place import with_signs, without_signs
from transformer_cli.decoding.loading import load_translator


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("The (big) dog.", "Il cane grande.", ("(", ")")),
        ("The dog(s) sleep.", "I cani dormono.", ()),
        ("The actor(ess) and the child(ren) sleep.", "Gli attori e i bambini dormono.", ()),
        ("Ogni professore(ssa), ogni lettore(trice).", "Every professor, every reader.", ()),
        ("An (un)known dog sleeps.", "Un cane dorme.", ()),
        ("We like dogs(cats).", "Ci piacciono i cani.", ("(", ")")),
        ('The "dog" is here.', "Il cane \u00e8 qui.", ('"',)),
        ('The "dog" is here.', "Il \u00abcane\u00bb \u00e8 qui.", ()),
        ("The 'dog' is here.", "Il \u201ccane\u201d \u00e8 qui.", ()),
        ("The dogs' house isn't big.", "La casa dei cani non \u00e8 grande.", ()),
        ("Use '#' here.", "Usalo qui.", ("#", '"')),
        (", the cat is here", "Il gatto \u00e8 qui", (",",)),
        ("The dog/cat is here.", "Il cane \u00e8 qui.", ("/",)),
        ("The dog -> the cat.", "Il cane, il gatto.", ("->",)),
        ("The dog -> the cat.", "Il cane \u2192 il gatto.", ()),
        ("The dog; the cat.", "Il cane il gatto.", (";",)),
        ("The dog; the cat.", "Il cane, il gatto.", ()),
        ("The dog \u2014 the cat.", "Il cane il gatto.", ("\u2014",)),
        ("The dog: The cat is here.", "Il cane, il gatto \u00e8 qui.", (":",)),
        ("The dog & the cat.", "Il cane e il gatto.", ()),
        ("The _dog_ is here.", "Il cane \u00e8 qui.", ("_",)),
        ("The printer \u00b9 is here.", "La stampante \u00e8 qui.", ("\u00b9",)),
        ("The dog\u00b9 is here.", "Il cane \u00e8 qui.", ("\u00b9",)),
        ("The dog is 2 m\u00b2.", "Il cane \u00e8 2 metri quadrati.", ()),
        ("The dog is big, isn't it?", "Il cane \u00e8 grande", ()),
        # Hindi, Amharic, Tibetan, Hebrew, Tagalog, Javanese, Braille: marks that only their script has
        ("यह घर है।", "Questa \u00e8 la casa.", ()),
        ("ሰላም፣ ቤት። \u1361", "Ciao, la casa.", ()),
        ("བོད་ཡིག་རེད།", "\u00c8 tibetano.", ()),
        ("\u05d1\u05d9\u05ea\u05be\u05e9\u05dc\u05d9", "La scuola", ()),
        ("ᜁᜆᜓ\u1735 ᜀᜌ᜔᜶", "Questo, \u00e8.", ()),
        ("ꦲꦤ꧈ ꦲꦤ꧉", "Questo, \u00e8.", ()),
        ("⠠⠊⠀⠎⠑⠑⠲", "Vedo.", ()),
        ("यह (घर) है।", "Questa \u00e8 la casa.", ("(", ")")),
        ("यह घर → है।", "Questa \u00e8 la casa.", ("→",)),
    ],
)
def test_a_sign_that_a_translation_lacks_is_found(source: str, translation: str, lost: tuple[str, ...]) -> None:
    assert sorted(lost_signs(source, translation, "it")) == sorted(lost)


LINES = [
    "The (big) dog is here.",
    '"The dog" is here.',
    "The [big dog](https://a.org) is here.",
    "![The dog](a.png) is here.",
    "The <b>dog</b> is here.",
    "The **dog** and the ~~cat~~ are here.",
    "The dog -> the cat.",
    "The dog/cat is here.",
    ", the dog is here.",
    "The dog is here ~",
    "The dog; the cat \u2014 the horse: here.",
    'The ("big") dog.',
    'The dog is "here".',
    'The dog is "here."',
    "Use '#' here.",
    "The _dog_ (!, $, %, ...) is here.",
    'The file "{name}" is here.',
    "The dog :-) is here.",
]


@pytest.mark.parametrize("line", LINES)
def test_signs_come_back_to_their_places_in_the_same_words(line: str) -> None:
    bare = without_signs(line)
    assert bare.signs
    links = [(number, number) for number in range(len(bare.text.split()))]
    assert with_signs(bare, bare.text, links) == line


def test_signs_follow_their_words() -> None:
    bare = without_signs("The (red) dog -> sleeps.")
    assert bare.text == "The red dog sleeps."
    assert with_signs(bare, "Il cane rosso dorme.", [(0, 0), (1, 2), (2, 1), (3, 3)]) == ("Il cane (rosso) -> dorme.")


@pytest.mark.parametrize("mark", ["[x]", "(a)", "(2)", "- [x]"])
def test_the_mark_of_a_list_is_no_pair_around_a_word(mark: str) -> None:
    assert without_signs(f"{mark} eggs (12)").text == f"{mark} eggs 12"
    assert without_signs("[x].").text == "x."
    assert without_signs("| 2 | [#4](a.html) |").text == "2 4"


@pytest.mark.parametrize(
    ("line", "translation", "links"),
    [
        # Half of the words inside are linked to others.
        ('Say "I love you" here.', "Di ti amo qui.", [(0, 0), (1, 2), (2, 2), (3, 0), (4, 3)]),
        # A word from outside stands between those inside.
        ('The "big dog" sleeps.', "Il cane dorme grande.", [(0, 0), (1, 3), (2, 1), (3, 2)]),
        # Nobody tells to which side the word at the border belongs.
        ('The "dog" sleeps.', "Il cane nero dorme.", [(0, 0), (1, 1), (2, 3)]),
        # Far too few words.
        ('The "old man and the sea" here.', "Il mare che vedo qui.", [(0, 0), (5, 1), (0, 2), (6, 3), (6, 4)]),
        # No word is linked to those inside.
        ('The "dog" sleeps.', "Il dorme.", [(0, 0), (2, 1)]),
        # The words beside a sign are in another order.
        ("The dog -> sleeps.", "Dorme il cane.", [(0, 1), (1, 2), (2, 0)]),
        ("The dog -> sleeps.", "Il cane dorme.", []),
    ],
)
def test_signs_whose_places_are_not_sure_do_not_come_back(
    line: str, translation: str, links: list[tuple[int, int]]
) -> None:
    assert with_signs(without_signs(line), translation, links) is None


def test_words_that_were_translated_by_themselves_tell_their_place() -> None:
    bare = without_signs('Say "I love you" here.')
    links = [(0, 0), (1, 2), (2, 2), (3, 0), (4, 3)]
    assert with_signs(bare, "Di ti amo qui.", links, {(1, 4): "Ti amo."}) == 'Di "ti amo" qui.'
    assert with_signs(bare, "Di ti amo, ti amo qui.", links, {(1, 4): "Ti amo."}) is None


@pytest.mark.long
@pytest.mark.parametrize("line", ['@import "a"', "Small the big\u203a"])
def test_a_line_that_stays_is_not_replaced_by_a_doubtful_translation(line: str) -> None:
    """Without its signs the model of docs/run translates it, but less surely than nearly all of its calibration."""
    [found] = load_translator(Path(__file__).parents[2] / "docs/run").translate([line])
    assert found.text == line
    assert found.is_untranslated


@pytest.mark.long
def test_what_a_repair_of_a_line_asks_for_is_not_repaired_as_a_line_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its protected spans come back; else the searches for a line with many signs multiply from repair to repair."""
    depths: list[int] = []
    repair = line_repairs.with_lost_parts

    def observed(translator: Translator, *given: Any) -> list[Translation]:
        depths.append(translator.num_line_repairs)
        return repair(translator, *given)

    monkeypatch.setattr(line_repairs, "with_lost_parts", observed)
    line = 'level=info msg="request done" status=200 path=/api/dogs duration=12ms'
    [*load_translator(Path(__file__).parents[2] / "docs/demonstration").translate([line])]
    assert depths[0] == 1
    assert {*depths[1:]} == {0}


@pytest.mark.long
@pytest.mark.parametrize(
    "line", ['"The red house" <cc@example.com>, "Dog" <dog@example.com>', 'Cc: "CC Recipient" <cc@example.com>,']
)
def test_quotation_marks_around_pieces_of_a_line_are_of_one_kind(line: str) -> None:
    [found] = load_translator(Path(__file__).parents[2] / "docs/demonstration").translate([line])
    assert [sign for sign in found.text if sign in '"«»“”'] == ['"'] * line.count('"')


@pytest.mark.long
@pytest.mark.parametrize("sign", ["_", "<b>", "( )"])
def test_many_signs_are_found_in_one_pass(sign: str) -> None:
    # With a time that grows with the square of the length, this would take a minute.
    line = sign * (60_000 // len(sign))
    lost_signs(line, "The hotel.", "it")
    assert [*ways_to_keep_signs(0, line)] == []
