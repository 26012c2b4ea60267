"""Two models in a row: lines stay aligned, both steps are told, and what describes one model is refused."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_cli.commands.translate_lines import TranslateOptions, translate_lines
from transformer_cli.config import Direction
from transformer_cli.decoding import Glossary, Translator
from transformer_cli.decoding.checks.doubts import NUMBERS
from transformer_cli.decoding.translation import Translation, through_pivot
from transformer_cli.extensions.documents import ModelTranslator
from transformer_cli.extensions.documents.formats import format_named, read_document
from transformer_cli.extensions.documents.translation import translate_document
from transformer_cli.extensions.documents.translator import LinkedWords, links_through
from transformer_cli.process.errors import UsageError

from .stub_translators import asked_by, silent_about, stub_translator


def to_hotels() -> Translator:
    """The first model: a train becomes a hotel."""
    return stub_translator(lambda text: [text.replace("train", "hotel")], languages=("de", "en"))


def to_capitals(**decoding: object) -> Translator:
    """The second model, with two different answers."""
    return stub_translator(lambda text: [text.upper(), "the garden"], languages=("en", "it"), **decoding)


LINES = ["the train waits.", "", "  - the house burns. the letter falls.", "42"]


def test_the_second_model_reads_what_the_first_one_writes() -> None:
    first, second = to_hotels(), to_capitals()
    both = second.after(first)
    assert both.languages == Direction("de", "it")
    found = list(both.translate(LINES))
    assert [each.source for each in found] == LINES
    steps = [each.text for each in first.translate(LINES)]
    assert [each.pivot.text for each in found if each.pivot is not None] == steps
    assert [each.text for each in found] == [each.text for each in second.translate(steps)]
    assert "the hotel waits." in asked_by(second)
    assert "the train waits." not in asked_by(second)


def test_alternatives_are_those_of_the_second_model() -> None:
    both = to_capitals(num_best=2, beam_size=2).after(to_hotels())
    [found] = both.translate(["the train waits."])
    assert [each.text for each in found.alternatives][:2] == ["THE HOTEL WAITS.", "the garden"]
    assert both.before is not None
    assert both.before.decoding.num_best == 1


def test_what_the_first_model_cannot_translate_stays_as_it_is() -> None:
    both = to_capitals().after(stub_translator(silent_about("mute"), languages=("de", "en")))
    [found] = both.translate(["The mute sleeps."])
    assert (found.text, found.is_untranslated) == ("The mute sleeps.", True)


def test_a_number_that_changes_on_the_way_is_a_doubt() -> None:
    first, second = Translation("Es ist 7.", "It is 7.", -1.0, ()), Translation("It is 7.", "Sono 8.", -1.0, ())
    assert NUMBERS in through_pivot(first, second, Direction("de", "it")).doubts
    right = replace(second, text="Sono 7.")
    assert through_pivot(first, right, Direction("de", "it")).doubts == ()


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="the first model translates en-it, and the second one de-en"):
        to_hotels().after(to_capitals())
    with pytest.raises(UsageError, match="describe one model"):
        next(to_capitals().after(to_hotels()).translate(["x"], with_details=True))
    with pytest.raises(UsageError, match="a glossary has terms of the source language"):
        to_capitals().with_glossary(Glossary.of({"train": "house"})).after(to_hotels())


def test_markup_moves_through_both_steps() -> None:
    both = to_capitals().after(to_hotels())
    document = read_document(b"<p>the <b>train</b> waits.</p>", format_named("html"))
    found = translate_document(document, ModelTranslator.of(both)).data
    assert found == b"<p>THE <b>HOTEL</b> WAITS.</p>"


def test_links_go_through_the_words_of_the_pivot() -> None:
    first = [LinkedWords((0, 3), (4, 9)), LinkedWords((4, 8), (0, 3))]
    second = [LinkedWords((0, 3), (10, 12)), LinkedWords((4, 9), (0, 2))]
    assert links_through(first, second) == (
        LinkedWords((4, 8), (10, 12)),
        LinkedWords((0, 3), (0, 2)),
    )


@pytest.fixture
def two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with the names de-en and en-it."""
    runs = {"de-en": to_hotels(), "en-it": to_capitals()}

    def load(name: str, *_: object, **__: object) -> SimpleNamespace:
        return Loaded(runs[name], name)

    monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", load)
    monkeypatch.setattr("transformer_cli.commands.translate_lines.replace", replace_loaded)


class Loaded(SimpleNamespace):
    def __init__(self, translator: Translator, name: str) -> None:
        trained = SimpleNamespace(folder=name)
        super().__init__(translator=translator, trained=trained, overridden=frozenset())


def replace_loaded(value: object, **changes: object) -> object:
    return value if isinstance(value, Loaded) else replace(value, **changes)  # type: ignore[type-var]


@pytest.mark.usefixtures("two_runs")
def test_the_command_shows_both_steps(capfd: pytest.CaptureFixture[str]) -> None:
    options = TranslateOptions(run=["de-en", "en-it"], via="en", as_json=True)
    translate_lines(["the train waits.", ""], None, options)
    [facts, blank] = map(json.loads, capfd.readouterr().out.splitlines())
    assert (facts["source"], facts["translation"]) == ("the train waits.", "THE HOTEL WAITS.")
    assert facts["pivot"]["language"] == "en"
    assert facts["pivot"]["translation"] == "the hotel waits."
    assert blank["translation"] == ""
    translate_lines(["the train waits."], None, replace(options, as_json=False, num_best=2))
    ranks = [line.split("\t")[0] for line in capfd.readouterr().out.splitlines()]
    assert ranks == ["1", "2"]


@pytest.mark.usefixtures("two_runs")
def test_a_memory_is_of_the_first_and_the_last_language(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "corrected.tsv").write_text("de\tit\nder train\til treno\n")
    options = TranslateOptions(run=["de-en", "en-it"], via="en", memory=tmp_path / "corrected.tsv", as_json=True)
    translate_lines(["der train", "the train"], None, options)
    known, other = map(json.loads, capfd.readouterr().out.splitlines())
    assert (known["translation"], known["memory"]) == ("il treno", True)
    assert (other["translation"], other["memory"]) == ("THE HOTEL", False)


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": None}, "--via en needs two runs, but --run is given no times"),
        ({"run": ["a", "b", "c"]}, "is given 3 times"),
        ({"run": ["en-it", "de-en"]}, "--via: en-it cannot make the first step, into en"),
        ({"run": ["de-en", "de-en"]}, "--via: de-en cannot make the second step, from en"),
        ({"via": ""}, "--via: the language is empty"),
        ({"via": " "}, "--via: the language is empty"),
        ({"glossary": Path("terms")}, "--glossary does not work with --via"),
        ({"mark": True}, "a calibration promises nothing about two models"),
        ({"alignment": True}, "--alignment does not work with --via"),
    ],
)
def test_what_cannot_be_asked_of_two_models_is_refused(changes: dict[str, object], said: str) -> None:
    options = TranslateOptions(run=["de-en", "en-it"], via="en")
    with pytest.raises(UsageError, match=said):
        translate_lines(["x"], None, replace(options, **changes))  # type: ignore[arg-type]
