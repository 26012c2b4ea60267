import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import SequencesData, TokenizerConfig
from transformer_cli.decoding import Translation
from transformer_cli.decoding import translator as translator_module
from transformer_cli.process.errors import DataError
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .small_translators import WORDS, random_model, tokenizer_of_words, translator

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return tokenizer_of_words()


def assert_equal(actual: Translation, expected: Translation) -> None:
    assert actual.source == expected.source
    assert actual.text == expected.text
    assert actual.score == pytest.approx(expected.score, abs=1e-9)
    assert [a.text for a in actual.alternatives] == [a.text for a in expected.alternatives]
    assert [a.score for a in actual.alternatives] == pytest.approx([a.score for a in expected.alternatives], abs=1e-9)


sentences = st.lists(st.sampled_from([*WORDS, "ignoto"]), min_size=1, max_size=8).map(" ".join)
any_line = st.one_of(sentences, st.sampled_from(["", " ", "\u3000\u200b", "due", "due"]), st.text())
beam_sizes = pytest.mark.parametrize("beam_size", [1, 3])


@beam_sizes
@settings(max_examples=10)
@given(
    lines=st.lists(any_line, max_size=12),
    batch_tokens=st.integers(1, 60),
    window=st.integers(1, 12),
)
def test_line_n_of_the_output_belongs_to_line_n_of_the_input_in_any_batch(
    tokenizer: Tokenizer, beam_size: int, lines: list[str], batch_tokens: int, window: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translator_module, "WINDOW_LINES", window)
        together = translator(tokenizer, beam_size=beam_size, num_best=beam_size, batch_tokens=batch_tokens)
        translations = list(together.translate(lines))
    alone = translator(tokenizer, beam_size=beam_size, num_best=beam_size)
    assert len(translations) == len(lines)
    for line, translation in zip(lines, translations, strict=True):
        [expected] = alone.translate([line])
        assert translation.source == line
        assert_equal(translation, expected)


def test_translations_of_the_random_model_are_worth_comparing(tokenizer: Tokenizer) -> None:
    texts = [t.text for t in translator(tokenizer).translate([*WORDS, "uno due", "tre sei otto"])]
    assert len(set(texts)) > 5


@beam_sizes
def test_the_score_is_that_of_the_uncached_model_reading_the_translation(tokenizer: Tokenizer, beam_size: int) -> None:
    model = random_model(tokenizer)
    of_words = translator(tokenizer, model=model, beam_size=beam_size, num_best=beam_size, allow_unknown=False)
    num_checked = 0
    for line in [*WORDS, "uno due tre", "sei sette otto uno"]:
        source_ids = [*tokenizer.encode(line), tokenizer.eos_id]
        [translation] = of_words.translate([line])
        for text, score in translation.alternatives:
            target_ids = tokenizer.encode(text)
            if len(target_ids) < 2 * len(source_ids) + 20:
                target_ids.append(tokenizer.eos_id)
            logits = model(
                torch.tensor([source_ids]),
                torch.ones(1, len(source_ids), dtype=torch.bool),
                torch.tensor([[tokenizer.sos_id, *target_ids[:-1]]]),
            )
            of_tokens = logits.log_softmax(-1)[0, range(len(target_ids)), target_ids]
            penalty = ((5 + len(target_ids)) / 6) ** of_words.decoding.length_penalty
            assert score == pytest.approx(of_tokens.sum().item() / penalty, abs=1e-9)
            num_checked += 1
    assert num_checked >= 10


@beam_sizes
def test_blank_lines_come_back_without_the_model(
    tokenizer: Tokenizer, beam_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(tokenizer)
    of_nothing = translator(tokenizer, model=model, beam_size=beam_size)
    monkeypatch.setattr(model, "encode", None)
    lines = ["", "  ", "\t", "\u00a0", "\u3000", "\u200b", "\x00"]
    assert [t.text for t in of_nothing.translate(lines)] == [*lines[:-1], ""]
    without_layout = translator(tokenizer, model=model, beam_size=beam_size, keep_layout=False)
    assert [t.text for t in without_layout.translate(lines)] == [*lines[:-1], ""]
    assert list(of_nothing.translate([])) == []


def test_a_line_of_unknown_words_gives_a_line(tokenizer: Tokenizer) -> None:
    [translation] = translator(tokenizer).translate(["ignoto sconosciuto"])
    assert translation.text


@pytest.mark.parametrize("line", ["uno\ndue", "\ud800 uno", "uno\x00due", "e\u0301 \u202euno", "[EOS] [PAD]"])
def test_whatever_a_line_holds_it_gives_one_line(tokenizer: Tokenizer, line: str) -> None:
    [translation] = translator(tokenizer).translate([line])
    assert translation.source == line
    assert translation.text.splitlines() in ([translation.text], [])


def test_text_is_normalized_as_in_training(tokenizer: Tokenizer) -> None:
    accented = train_tokenizer(["caff\u00e8 uno due"], TokenizerConfig())
    of_accents = translator(accented)
    composed, decomposed = of_accents.translate(["caff\u00e8", "caffe\u0300\x07"])
    assert composed.text == decomposed.text
    assert composed.score == decomposed.score


def test_the_line_break_of_a_line_from_a_file_is_no_part_of_it(tokenizer: Tokenizer) -> None:
    plain, from_file = translator(tokenizer).translate(["uno due", "uno due\r\n"])
    assert (from_file.text, from_file.score) == (plain.text, plain.score)


LINE_BREAKS = ["\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("line_break", LINE_BREAKS)
def test_no_translation_holds_a_line_break(tokenizer: Tokenizer, line_break: str) -> None:
    of_breaks = train_tokenizer([f"uno{line_break}due"], TokenizerConfig())
    break_id = of_breaks.encode(f"uno{line_break}due")[1]
    model = random_model(of_breaks)
    with torch.no_grad():
        model.output.bias[break_id] += 1000.0
    several = translator(of_breaks, model=model, beam_size=2, num_best=2)
    assert line_break in of_breaks.decode([break_id])
    [translation] = several.translate(["uno"])
    assert translation.alternatives
    for text, _ in translation.alternatives:
        assert not set(text) & set("".join(LINE_BREAKS))
        assert " " in text


def test_alternatives_are_sorted_and_different_and_begin_with_the_translation(
    tokenizer: Tokenizer,
) -> None:
    for translation in translator(tokenizer, beam_size=6, num_best=6).translate(WORDS):
        texts = [alternative.text for alternative in translation.alternatives]
        scores = [alternative.score for alternative in translation.alternatives]
        assert 1 < len(texts) == len(set(texts)) <= 6
        assert scores == sorted(scores, reverse=True)
        assert translation.alternatives[0] == (translation.text, translation.score)


def test_among_hypotheses_with_the_same_text_the_best_one_is_given(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = translator(tokenizer, beam_size=4, num_best=4)
    [different] = several.translate(["uno"])
    assert len({alternative.score for alternative in different.alternatives}) > 1
    monkeypatch.setattr(Tokenizer, "decode", lambda self, *_: "x")
    [equal] = several.translate(["uno"])
    assert equal.alternatives == (("x", different.score),)


def test_unknown_words_are_shown_unless_that_is_forbidden(tokenizer: Tokenizer) -> None:
    model = random_model(tokenizer)
    with torch.no_grad():
        model.output.bias[tokenizer.unk_id] += 1000.0
    [shown] = translator(tokenizer, model=model).translate(["uno"])
    assert "[UNK]" in shown.text
    [avoided] = translator(tokenizer, model=model, allow_unknown=False).translate(["uno"])
    assert "[UNK]" not in avoided.text


def test_random_numbers_training_mode_and_gradients_are_left_alone(tokenizer: Tokenizer) -> None:
    model = random_model(tokenizer, dropout=0.5)
    before = torch.get_rng_state()
    translations = translator(tokenizer, model=model).translate(["uno due", "tre"])
    first = next(translations)
    assert not model.training
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    again = translator(tokenizer, model=model).translate(["uno due", "tre"])
    assert [first, *translations] == list(again)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_model_works_without_gradients_and_without_dropout(tokenizer: Tokenizer) -> None:
    model = random_model(tokenizer, dropout=0.5)
    modes = set()
    model.decoder.layers[0].feed_forward.up.register_forward_hook(
        lambda module, inputs, output: modes.add((torch.is_inference_mode_enabled(), module.training))
    )
    list(translator(tokenizer, model=model).translate(["uno due"]))
    assert modes == {(True, False)}


def test_lines_are_read_a_window_at_a_time(tokenizer: Tokenizer) -> None:
    num_read = count()

    def endless() -> Iterator[str]:
        while True:
            next(num_read)
            yield "uno"

    assert len(list(islice(translator(tokenizer).translate(endless()), 3))) == 3
    assert next(num_read) == translator_module.WINDOW_LINES


@beam_sizes
def test_a_line_that_is_too_long_is_translated_in_parts(
    tokenizer: Tokenizer, beam_size: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = random_model(tokenizer, positions="learned")  # of which there are 12
    of_parts = translator(tokenizer, model=model, beam_size=beam_size, max_length=8)
    first, second = "uno due tre quattro cinque sei", "sette otto uno due tre quattro cinque"
    whole, of_first, of_second = of_parts.translate([f"{first} {second}", first, second])
    assert whole.text == f"{of_first.text} {of_second.text}"
    assert whole.score == pytest.approx(of_first.score + of_second.score)
    message = "line 1: a sentence of more than 12 tokens, which was translated in parts"
    assert message in caplog.text


def test_lines_with_sentences_that_are_too_long_are_named(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(translator_module, "WINDOW_LINES", 10)
    long = " ".join(["uno"] * 12)
    lines = ["due", f"- {long}", long, *["due"] * 8, *[long] * 8]
    list(translator(tokenizer).translate(lines, num_before=100))
    of_first, of_second = (record.getMessage() for record in caplog.records)
    assert of_first.startswith("lines 102, 103: a sentence of more than 12 tokens")
    assert of_second.startswith("lines 112 to 119: a sentence")


def test_a_strict_translator_refuses_a_sentence_that_is_too_long(tokenizer: Tokenizer) -> None:
    strict = replace(translator(tokenizer), is_strict=True)
    long = " ".join(["uno"] * 12)
    assert len(list(strict.translate(["due", "due. due. due. due. due. due. due. due."]))) == 2
    with pytest.raises(DataError, match="line 3: a sentence of more than 12 tokens") as refusal:
        list(strict.translate(["due", "tre", f"due. {long}"]))
    assert "--strict" in str(refusal.value.hint)


@settings(max_examples=10)
@given(st.lists(st.sampled_from([*WORDS, "ignoto", "{x}", "https://x.it", "47", "<b>", "due."]), max_size=10))
def test_a_model_with_random_weights_returns_every_span(tokenizer: Tokenizer, words: list[str]) -> None:
    protecting = replace(translator(tokenizer), protects_spans=True)
    [translation] = protecting.translate([" ".join(words)])
    for span in ("{x}", "https://x.it", "47", "<b>"):
        assert translation.text.count(span) == words.count(span)


def test_a_sentence_that_stays_as_it_is_is_told(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    of_random = translator(tokenizer)
    protecting = replace(of_random, protects_spans=True)
    monkeypatch.setattr(Tokenizer, "decode", lambda *_: "www.invented.it")
    [_, translation] = protecting.translate(["due", "uno {x} due"])
    assert translation.text == "uno {x} due"
    assert "line 2: a sentence was left as it is, because" in caplog.text


def test_a_line_of_one_endless_word_is_translated(tokenizer: Tokenizer) -> None:
    [translation] = translator(tokenizer).translate(["x" * 100_000])
    assert translation.text


def test_a_model_that_reads_one_token_gets_one_token(tokenizer: Tokenizer) -> None:
    model = random_model(tokenizer, positions="learned", max_length=1)
    [translation] = translator(tokenizer, model=model).translate(["uno due"])
    assert translation.text


def test_learned_positions_limit_the_translation(tokenizer: Tokenizer) -> None:
    model = random_model(tokenizer, positions="learned")
    with torch.no_grad():
        model.output.bias[tokenizer.eos_id] -= 1000.0
    [translation] = translator(tokenizer, model=model).translate(["uno due tre"])
    assert len(tokenizer.encode(translation.text)) <= 12


def test_without_an_end_symbol_a_copy_has_as_many_tokens_as_its_source(
    tokenizer: Tokenizer,
) -> None:
    for task, difference in (("copy", 0), ("drop-first", 1)):
        data = SequencesData.model_validate({"source": "sequences", "task": task, "end_symbol": False})
        of_task = translator(tokenizer, data=data, allow_unknown=False)
        for line in ("uno due tre quattro", "uno due", "uno"):
            [translation] = of_task.translate([line])
            assert len(translation.text.split()) == len(line.split()) - difference
            assert math.isfinite(translation.score)


@pytest.mark.process
def test_a_translator_with_another_engine_needs_no_pytorch() -> None:
    script = "import sys, transformer_cli.decoding; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_string_instead_of_lines_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError, match="give a list of lines, not a string"):
        list(translator(tokenizer).translate("a sentence"))


def test_each_sentence_of_a_line_is_translated_as_if_it_stood_alone(tokenizer: Tokenizer) -> None:
    lines = ["uno due. Tre sei!", "uno due.", "Tre sei!"]
    whole, first, second = translator(tokenizer).translate(lines)
    assert whole.text == f"{first.text} {second.text}"
    assert whole.score == pytest.approx(first.score + second.score)
    [at_once] = translator(tokenizer, split_sentences=False).translate(lines[:1])
    assert at_once.text != whole.text


def test_the_sequences_of_a_synthetic_task_are_never_split(tokenizer: Tokenizer) -> None:
    of_task = translator(tokenizer, data=SequencesData(source="sequences"))
    assert len(of_task.pipeline.prepare("uno due. Tre sei!").requests) == 1


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("text", ["l'acqua è più", "日本語の文章です。"])
@beam_sizes
def test_a_model_of_bytes_never_writes_a_broken_character(kind: str, text: str, beam_size: int) -> None:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 300})
    subwords = train_tokenizer([text], config)
    model = random_model(subwords)
    with torch.no_grad():
        model.output.bias[subwords.eos_id] -= 1000.0  # so that each search stops at the limit
    lines = ["a", "b", "日本", "l'acqua", "è", "c d e"]
    # Without the hook, which is how it was, nearly all translations are broken.
    of_bytes = translator(subwords, model=model, beam_size=beam_size, num_best=beam_size)
    unguarded = replace(of_bytes, engine=replace(of_bytes.engine, byte_pieces=None))
    assert any("\ufffd" in translation.text for translation in unguarded.translate(lines))
    for translation in of_bytes.translate(lines):
        assert translation.text
        assert not any("\ufffd" in text for text, _ in translation.alternatives)


@pytest.mark.parametrize("lines", ["Hi.", b"Hi.", None, 3])
def test_what_is_no_list_of_lines_is_refused_at_the_call(tokenizer: Tokenizer, lines: Any) -> None:
    with pytest.raises(TypeError):
        translator(tokenizer).translate(lines)


@pytest.mark.parametrize(("line", "kind"), [(None, "None"), (b"uno", "bytes"), (3, "type int")])
def test_a_line_that_is_no_text_is_named_by_its_number(tokenizer: Tokenizer, line: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"line 2: a string is expected, not .*{kind}"):
        list(translator(tokenizer).translate(["uno", line]))
