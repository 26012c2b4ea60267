"""The commands of the prompt of `tfm translate`."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transformer_cli.commands.prompt import Prompt, direction_towards, trust_lines
from transformer_cli.commands.translate_lines import TranslateOptions, translate_lines
from transformer_cli.config import Direction, PhrasebookData, SequencesData, TokenizerConfig
from transformer_cli.decoding import Glossary, Translation, Translator
from transformer_cli.decoding.checks.quality import read_quality
from transformer_cli.decoding.loading import load_translator
from transformer_cli.process.errors import UsageError
from transformer_cli.text.tokenizer import train_tokenizer

from ..decoding.small_translators import WORDS, tokenizer_of_words, translator

DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"
Typed = Callable[..., tuple[list[str], str]]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Typed:
    """Types lines at a terminal; returns the lines of standard output, and what was said on standard error."""

    def typed(*lines: str, of: Translator, as_json: bool = False, mark: bool = False) -> tuple[list[str], str]:
        loaded = SimpleNamespace(translator=of, others=(), trained=SimpleNamespace(folder=DOCS_RUN, run=None))
        monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: loaded)
        terminal = io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode()))
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdin", terminal)
        translate_lines(None, None, TranslateOptions(as_json=as_json, mark=mark))
        out, err = capfd.readouterr()
        return out.splitlines(), err

    return typed


@pytest.fixture
def of_words() -> Translator:
    return translator(tokenizer_of_words(), beam_size=3)


def texts_of(of: Translator, *lines: str, **decoding: Any) -> list[str]:
    changed = translator(tokenizer_of_words(), **{"beam_size": 3, **decoding}) if decoding else of
    return [translation.text for translation in changed.translate(lines)]


@pytest.mark.long
def test_a_command_is_no_text_and_its_answer_no_translation(typed: Typed, of_words: Translator) -> None:
    out, err = typed("uno", ":help", "due tre", of=of_words)
    assert out == texts_of(of_words, "uno", "due tre")
    for command in (":beam 8", ":to CODE", ":why", ":help", ":quit"):
        assert command in err


@pytest.mark.long
@pytest.mark.parametrize("command", [":quit", ": quit", ":quit now"])
def test_quit_ends_the_input(command: str, typed: Typed, of_words: Translator) -> None:
    out, _ = typed("uno", command, "due", of=of_words)
    assert out == texts_of(of_words, "uno")


def test_a_narrow_terminal_cuts_no_sentence_that_is_told(
    typed: Typed, of_words: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer_cli.commands.prompt.terminal_width", lambda _: 40)
    _, err = typed("uno", ":help", ":nothing", ":why", of=of_words)
    assert "translate into this language from now on, if the model knows several" in err
    assert "the commands are :beam, :to, :why, :help, :quit" in err
    table = err[err.index("probability") :].splitlines()
    assert all(len(line) <= 40 for line in table[:3])


def test_a_text_that_begins_with_a_colon_is_typed_with_two(typed: Typed, of_words: Translator) -> None:
    out, _ = typed("::uno", ":::", of=of_words, as_json=True)
    assert [json.loads(line)["source"] for line in out] == [":uno", "::"]


def test_an_unknown_command_is_told_what_exists(typed: Typed, of_words: Translator) -> None:
    out, err = typed(":)", ":beem 3", "uno", of=of_words)
    assert out == texts_of(of_words, "uno")
    assert ":) is not a command; the commands are :beam, :to, :why, :help, :quit" in err
    assert ":beem is not a command" in err
    assert "a text that begins with : is typed with ::" in err


@pytest.mark.long
def test_the_beam_can_be_changed(typed: Typed, of_words: Translator) -> None:
    lines = [" ".join(WORDS[first : first + 4]) for first in range(5)]
    wide, greedy = texts_of(of_words, *lines), texts_of(of_words, *lines, beam_size=1)
    assert wide != greedy
    out, _ = typed(*lines, ":beam 1", *lines, ":beam 3", *lines, of=of_words)
    assert out == [*wide, *greedy, *wide]


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (":beam", ":beam: a whole number is expected"),
        (":beam two", ":beam two: a whole number is expected"),
        (":beam 0", ":beam 0: at least 1 is expected"),
        (":beam 65", ":beam 65: at most 64 is expected"),
        (":to", ":to: the language is missing"),
        (":to xx", ":to xx: this model translates into: it\n  hint: such as :to it"),
        (":why", ":why: nothing was translated yet"),
    ],
)
def test_a_command_that_cannot_be_obeyed_changes_nothing(
    typed: Typed, of_words: Translator, command: str, problem: str
) -> None:
    out, err = typed(command, "uno due tre", of=of_words)
    assert problem in err
    assert out == texts_of(of_words, "uno due tre")


def test_a_beam_below_the_number_of_translations_is_refused(typed: Typed) -> None:
    of = translator(tokenizer_of_words(), beam_size=3, num_best=2)
    _, err = typed(":beam 1", of=of)
    assert "num_best (2) is above beam_size (1)" in err


@pytest.mark.long
def test_why_tells_each_token_and_the_best_translations(typed: Typed, of_words: Translator) -> None:
    out, err = typed("uno due tre", ":why", "quattro", of=of_words)
    assert out == texts_of(of_words, "uno due tre", "quattro")
    [told] = translator(tokenizer_of_words(), beam_size=3, num_best=3).translate(["uno due tre"], with_details=True)
    assert told.details is not None
    [part] = told.details.parts
    rows = err.splitlines()
    first = next(number for number, row in enumerate(rows) if "probability  token" in row)
    names = of_words.pipeline.target_tokenizer.tokens(part.target_ids)
    for row, name, probability in zip(rows[first + 1 :], names, part.explanation.token_probs, strict=False):
        assert row.split()[:2] == [f"{probability:.3f}", name]
    for alternative in told.alternatives:
        assert f"{alternative.score:.3f}  {alternative.text}" in err


@pytest.mark.long
def test_why_says_that_it_explains_another_text_than_the_one_that_was_printed(
    typed: Typed, of_words: Translator
) -> None:
    out, err = typed("  - uno due", ":why", of=of_words)
    [whole] = of_words.translate(["  - uno due"], with_details=True)
    assert out[0] != whole.text, "the mark of the list is not translated"
    assert f"this is the line as one text:\n{whole.text}" in err
    _, err = typed("uno due tre", ":why", of=of_words)
    assert "as one text" not in err


@pytest.mark.long
def test_why_says_how_far_the_translation_can_be_trusted(typed: Typed) -> None:
    _, err = typed("The dog is big.", ":why", of=load_translator(DOCS_RUN))
    assert "green: the translation is good with an estimated probability of " in err
    assert "not green" not in err
    _, err = typed("xkcd qqzz wwvv", ":why", of=load_translator(DOCS_RUN))
    assert (
        "not green: the translation is good with an estimated probability of 0.000 (good means chrf 80 or more " in err
    )
    assert "not green, because " in err


@pytest.mark.long
@pytest.mark.parametrize("mark", [False, True])
def test_what_is_not_green_is_told_where_it_was_asked_for(
    mark: bool, typed: Typed, caplog: pytest.LogCaptureFixture
) -> None:
    """A text that is shorter than the lines of the calibration, such as *Hello.*, is what many type first."""
    of = load_translator(DOCS_RUN)
    typed("I am here.", of=of, mark=mark)
    assert ("not green: it has a sentence that is shorter" in caplog.text) is mark
    _, err = typed("I am here.", ":why", of=of)
    assert err.count("it has a sentence that is shorter") == 1, "by :why"


def test_why_names_the_doubts_of_a_translation() -> None:
    doubtful = Translation("a", "b", 0.0, (), doubts=("repeats itself",), is_repaired=True)
    pipeline = translator(tokenizer_of_words()).pipeline
    assert trust_lines(doubtful, pipeline) == [
        "doubt: the translation repeats itself",
        "the first translation was doubtful, so the sentence was searched again",
    ]


def test_why_of_a_blank_line_has_nothing_to_tell(typed: Typed, of_words: Translator) -> None:
    _, err = typed("  ", ":why", of=of_words)
    assert "there is nothing to explain" in err


@pytest.mark.long
def test_the_target_language_can_be_changed(typed: Typed) -> None:
    tokenizer = train_tokenizer([" ".join(WORDS)], TokenizerConfig(), tags=("<2it>", "<2en>"))
    both = translator(tokenizer, data=PhrasebookData(both_directions=True), beam_size=1)
    lines = ["uno due", "tre quattro cinque"]
    expected = [translation.text for to in ("it", "en", "it") for translation in both.translate(lines, to=to)]
    out, _ = typed(*lines, ":to en", *lines, ":to Italian", *lines, of=both.towards("it"))
    assert out == expected
    assert expected[:2] != expected[2:4]


def test_each_direction_is_marked_by_its_own_calibration_or_not_at_all() -> None:
    """With --only-green, a direction without a calibration would show every translation as if it were green."""
    tokenizer = train_tokenizer([" ".join(WORDS)], TokenizerConfig(), tags=("<2it>", "<2en>"))
    both = translator(tokenizer, data=PhrasebookData(both_directions=True), beam_size=1).towards("it")
    pipeline = replace(both.pipeline, qualities=read_quality(DOCS_RUN))
    prompt = Prompt(replace(both, pipeline=pipeline), TranslateOptions())
    assert prompt.translator.estimates
    for value, is_marked in (("en", False), ("it", True)):
        prompt._set_target(value)
        assert prompt.translator.estimates is is_marked
    strict = Prompt(replace(both, pipeline=pipeline), TranslateOptions(only_green=True))
    with pytest.raises(UsageError, match=":to en: no calibration of it-en, which --mark and"):
        strict._set_target("en")
    assert strict.translator.pipeline.languages.target == "it"


def test_the_source_language_stays_where_the_model_can_translate_from_it() -> None:
    def chosen(now: str, language: str, *pairs: str) -> str:
        directions = tuple(Direction(*pair.split("-")) for pair in pairs)
        data, languages = SimpleNamespace(directions=directions), Direction(*now.split("-"))
        pipeline: Any = SimpleNamespace(data=data, languages=languages)
        return str(directions[direction_towards(language, pipeline)])

    pairs = ("en-it", "fr-de", "en-de", "it-en")
    assert chosen("en-it", "de", *pairs) == "en-de"
    assert chosen("fr-de", "de", *pairs) == "fr-de"
    assert chosen("fr-de", "German", *pairs) == "fr-de"
    assert chosen("en-it", "en", *pairs) == "it-en"
    with pytest.raises(UsageError, match=":to de: this model translates into: de from fr, en, but") as refused:
        chosen("it-en", "de", *pairs)
    assert refused.value.hint == ("end with :quit, and start again with --to de --from fr or --to de --from en")


def test_a_model_of_a_task_is_told_to_know_no_language(typed: Typed) -> None:
    data = SequencesData(source="sequences", task="copy")
    _, err = typed(":to it", of=translator(tokenizer_of_words(), data=data))
    assert ":to it: the model of task copy translates no language" in err
    assert "--to" not in err


@pytest.mark.long
def test_a_term_that_is_missing_is_told(typed: Typed, of_words: Translator, caplog: pytest.LogCaptureFixture) -> None:
    glossary = Glossary.of({"uno": "otto sette sei"})
    typed("due", "tre " + "uno " * 5, of=of_words.with_glossary(glossary))  # the model writes 12 tokens
    assert (
        "line 2: the translation does not contain otto sette sei, which the glossary gives for uno" in caplog.messages
    )
