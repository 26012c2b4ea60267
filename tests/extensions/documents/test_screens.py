"""Where a translation is divided among cues, screens and lines: at the ends of sentences and clauses, and not inside phrases."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
import srt

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.screens import Word, divided_words, screens_of, words_with_markup
from transformer_cli.extensions.documents.subtitles import read_srt
from transformer_cli.extensions.documents.translator import AnsweredText, AskedText

from .fake_translators import WordByWord, done


@dataclass
class Known(WordByWord):
    """Translates every text into the same one."""

    translation: str = ""

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        return [AnsweredText(self.translation) for _ in texts]


def shown(cues: Sequence[str], translation: str, *, target: str = "fr", seconds: float = 4.0) -> list[srt.Subtitle]:
    """What the cues of one sentence, each of which takes some seconds, show of its translation."""
    times = [timedelta(seconds=number * seconds) for number in range(len(cues) + 1)]
    film = [srt.Subtitle(number + 1, times[number], times[number + 1], cue) for number, cue in enumerate(cues)]
    translator = Known(languages=Direction("en", target), translation=translation)
    return list(srt.parse(done(read_srt(srt.compose(film).encode()), translator).data.decode()))


@pytest.mark.parametrize(
    ("cues", "wanted"),
    [
        pytest.param(
            ["I'm sorry, I can't talk right now.\nI'll call you back in 20 minutes."],
            ["Je suis désolé, je ne peux\npas parler en ce moment.", "Je te rappellerai dans 20 minutes."],
            id="one cue becomes two where a sentence ends",
        ),
        pytest.param(
            ["I was worried,", "but I'm happy that you are back."],
            ["Je me faisais du souci pour toi,", "mais je suis content que tu sois revenu."],
            id="a comma at the end of a cue",
        ),
        pytest.param(
            ["I was worried \u2013", "but I'm happy that you are back."],
            ["Je me faisais du souci pour toi, \u2013", "mais je suis content que tu sois revenu."],
            id="a dash at the end of a cue",
        ),
        pytest.param(
            ["Welcome to Risky Business,", "the game where we find out how far you will go."],
            ["Bienvenue à Risky Business,", "le jeu où nous découvrirons\njusqu'où vous irez."],
            id="a clause that is longer in the source",
        ),
        pytest.param(
            ["Is this a place where people feel", "lonely? Not at all."],
            ["Est-ce un endroit où l'on se sent seul ?", "Pas du tout."],
            id="a question mark behind a space",
        ),
        pytest.param(
            ["He asked the two of us and", "a few others to stay at home."],
            ["Il nous a demandé, à nous deux", "et à quelques autres,\nde rester à la maison."],
            id="before a conjunction",
        ),
        pytest.param(
            ["This man here is the very kind and", "good teacher who comes from Paris."],
            ["Cet homme est le bon et gentil", "M. Martin qui vient de Paris."],
            id="an abbreviation ends no sentence",
        ),
    ],
)
def test_a_translation_is_divided_where_a_sentence_or_clause_ends(cues: list[str], wanted: list[str]) -> None:
    translation = " ".join(" ".join(wanted).removesuffix("\u2013").replace(" \u2013", "").split())
    found = shown(cues, translation)
    assert [cue.content for cue in found] == wanted


@pytest.mark.parametrize(
    ("language", "left", "right"),
    [
        ("fr", "Je te dis que tu ne", "dois pas rester ici."),
        ("fr", "Nous parlons de la", "maison de mes parents."),
        ("en", "I told you that I don't", "want to stay here."),
        ("it", "Abbiamo parlato con la", "madre di Giovanni."),
        ("de", "Wir sprechen mit der", "Mutter von Johannes."),
    ],
)
def test_no_part_ends_inside_a_phrase(language: str, left: str, right: str) -> None:
    words = words_with_markup([f"{left} {right}"], language)
    found = divided_words(words, [len(left), len(right)], language)
    assert len(found[0]) != len(left.split())
    assert len(divided_words(words, [len(left), len(right)], "fi")[0]) == len(left.split())


def test_a_cue_does_not_begin_with_a_mark_or_end_with_an_opening_one() -> None:
    for size in range(1, 60):
        parts = divided_words(
            words_with_markup(["Est-il là ? « Oui ! » Il dit : « Non ! »"], "fr"), [size, 60 - size], "fr"
        )
        for part in parts:
            assert part[0].text not in {"?", "!", ":", "»"}
            assert part[-1].text != "«"


@pytest.mark.parametrize("seconds", [1.0, 1.5, 2.2, 4.0, 9.0])
@pytest.mark.parametrize("num_words", [3, 12, 40])
def test_each_part_has_text_and_is_shown_for_a_second(seconds: float, num_words: int) -> None:
    words = [f"mot{'.' if number in {1, num_words // 2} else ''}" for number in range(num_words)]
    for cues in (["One short text. Two"], ["One short text", "or two, of which", "nobody knows"]):
        found = shown(cues, " ".join(words).replace(". m", ". M") + ".", seconds=seconds)
        assert " ".join(cue.content for cue in found).split() == (" ".join(words).replace(". m", ". M") + ".").split()
        assert all(cue.content.strip() for cue in found)
        assert all(cue.content.count("\n") <= 1 for cue in found)
        if seconds * len(cues) > 8:
            assert all(len(line) <= 42 for cue in found for line in cue.content.split("\n"))
        assert all((cue.end - cue.start).total_seconds() >= 0.9 for cue in found)


def text_of(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)


@pytest.mark.parametrize(
    ("share", "ends_clause", "wanted"),
    [
        pytest.param(
            37, False, "Mais avant cela, j'aurais une question", id="a vocative at the end stays with its clause"
        ),
        pytest.param(40, True, "Mais avant cela, j'aurais une question pour toi,", id="but not if the cue ends so"),
    ],
)
def test_a_clause_moves_farther_if_it_ends_in_the_source(share: int, ends_clause: bool, wanted: str) -> None:
    words = words_with_markup(["Mais avant cela, j'aurais une question pour toi, Beth."], "fr")
    found = divided_words(words, [share, 14], "fr", ends_clause=[ends_clause, True])
    assert text_of(found[0]) == wanted


@pytest.mark.parametrize(("ends_clause", "wanted"), [(True, "matin,"), (False, "grands")])
def test_a_clause_that_ends_in_the_source_is_looked_for_from_farther_away(ends_clause: bool, wanted: str) -> None:
    text = (
        "Nous sommes allés dans tous les grands magasins hier matin, mais nous n'avons pas trouvé de bon manteau noir"
    )
    words = words_with_markup([text], "fr")
    found = divided_words(words, [40, 70], "fr", ends_clause=[ends_clause, True])
    assert found[0][-1].text == wanted


def test_text_moves_to_no_cue_in_which_it_cannot_be_read() -> None:
    words = words_with_markup(["Je suis ici depuis hier matin, et tu le sais."], "fr")
    found = [divided_words(words, [1, 1], "fr", ends_clause=[True, False], seconds=[each, 9.0]) for each in (3.0, 0.8)]
    assert [part[0][-1].text for part in found] == ["matin,", "hier"]


def test_a_screen_is_shown_for_a_second_at_least() -> None:
    text = f"Oui, {'abc ' * 12}Non. {'abc ' * 10}abc."
    for seconds in (2.0, 2.2, 2.5, 5.0):
        screens = screens_of(words_with_markup([text], "fr"), seconds, "fr")
        widths = [len(text_of(screen)) for screen in screens]
        assert len(screens) == 2
        assert min(widths) * seconds / sum(widths) >= 0.95
    assert text_of(screens[0]).endswith("Non.")


def test_no_words_are_one_empty_screen() -> None:
    assert screens_of([], 3.0, "fr") == [[]]
