"""Control characters of a corpus, a model or a file name do not reach a terminal as such."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.process.messages import escaped, escaped_in_json, for_output, on_one_line

from ..launcher import Tfm, TfmHere

HOSTILE = "a\x1b[2J\x1b]0;title\x07 b\x9b31m c\r\u202ed\u2066e\x7f\x00\u2028"
SHOWN = r"a\x1b[2J\x1b]0;title\x07 b\x9b31m c\x0d\u202ed\u2066e\x7f\x00\u2028"


def test_control_characters_are_written_as_codes() -> None:
    assert escaped(HOSTILE) == SHOWN
    assert escaped("two\nlines\tand a tab") == "two\nlines\tand a tab"
    assert on_one_line("two\nlines\tand a tab") == r"two\x0alines\x09and a tab"


@pytest.mark.parametrize(
    "text",
    ["naïve Straße", "你好。世界", "مرحبا\u200f", "क्\u200dष", "👩\u200d👧", "e\u0301", "\xa0", "ﷺ"],
)
def test_text_of_any_language_stays_as_it_is(text: str) -> None:
    """Joiners and marks of direction belong to the spelling of a language."""
    assert escaped(text) == on_one_line(text) == text


@given(st.text())
def test_no_control_character_is_left_in_any_text(text: str) -> None:
    assert not {c for c in escaped(text) if c < " " or "\x7f" <= c <= "\x9f"} - {"\n", "\t"}
    assert not {"\n", "\t"} & {*on_one_line(text)}


@given(st.text())
def test_json_without_control_characters_means_the_same(text: str) -> None:
    shown = escaped_in_json(json.dumps([text, {text: 1}], ensure_ascii=False))
    assert json.loads(shown) == [text, {text: 1}]
    assert escaped(shown) == shown


def test_a_translation_is_data_but_at_a_terminal() -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    assert for_output(HOSTILE, io.BytesIO()) == HOSTILE
    assert for_output(HOSTILE, Terminal()) == SHOWN


CORPUS = """\
name: mine
data: {source: files, validation_share: 0.2, corpora: [{path: corpus.jsonl, source_field: en, target_field: it}],
       cleaning: {remove_control_characters: false}}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1}
training: {max_steps: 2, batch_sentences: 8, best_metric: loss, validate_every: 1}
validation: {scores: [], num_samples: 4}
decoding: {repair: false}
runtime: {device: cpu, precision: float32, threads: 1}
"""


@pytest.mark.heavy
@pytest.mark.usefixtures("few_samples")
def test_a_hostile_corpus_reaches_neither_terminal_nor_log_with_control_characters(
    tfm_here: TfmHere,
) -> None:
    """The samples of validations, the tables of the data, and the words of the vocabulary."""
    pairs = [{"en": f"a{n} \x1b[31mred\x1b]0;x\x07 \x9b5m\u202e", "it": f"b{n} \x1b[2J \u2067rosso"} for n in range(60)]
    lines = "".join(json.dumps(pair) + "\n" for pair in pairs)
    (tfm_here.folder / "corpus.jsonl").write_text(lines)
    (tfm_here.folder / "mine.yaml").write_text(CORPUS)
    commands = (
        ("train", "--config", "mine.yaml"),
        ("data", "--config", "mine.yaml"),
        ("data", "--config", "mine.yaml", "--json"),
        ("validate",),
        ("validate", "--json"),
        ("next", "a1 \x1b[31mred"),
        ("next", "a1 \x1b[31mred", "--json", "--top", "100"),
        ("info",),
        ("translate", "--json", "a1 \x1b[31mred", "--set", "decoding.repair=true"),
        ("translate", "--run", "no\x1b[31mrun", "x"),
        ("train", "--config", "no\x1b[31mconfig\u202e.yaml"),
        ("train", "--config", "mine.yaml", "--set", "na\x1b[31mme=3"),
    )
    for command in commands:
        finished = tfm_here(*command)
        is_wrong = any("no\x1b" in word or "na\x1b" in word for word in command)
        assert (finished.exit_code != 0) == is_wrong, finished.talk
        for text in (finished.text, finished.talk):
            assert escaped(text) == text, command
    seen = (tfm_here.folder / "runs/mine/train.log").read_text(encoding="utf-8")
    assert escaped(seen) == seen
    assert r"\x1b[31mred" in seen


@pytest.mark.heavy
def test_translations_keep_their_control_characters_in_a_pipe(tfm: Tfm) -> None:
    pairs = "".join(json.dumps({"en": f"a {n}", "it": "\x1b[2J"}) + "\n" for n in range(60))
    (tfm.folder / "corpus.jsonl").write_text(pairs)
    (tfm.folder / "mine.yaml").write_text(CORPUS.replace("max_steps: 2", "max_steps: 100, learning_rate: 0.02"))
    settings = "training.warmup_steps=1", "training.validate_every=100", "validation.num_samples=0"
    options = [option for setting in settings for option in ("--set", setting)]
    trained = tfm("train", "--config", "mine.yaml", *options)
    assert trained.exit_code == 0, trained.talk
    assert b"\x1b" in tfm("translate", "a 1").out
