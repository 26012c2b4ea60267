"""The details of lines, with an engine that copies: each word must be linked with itself."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig, PhrasebookData, TokenizerConfig
from transformer_cli.decoding import (
    Explanation,
    Hypothesis,
    Request,
    TextPipeline,
    TokenIds,
    Translator,
)
from transformer_cli.decoding.details import kept_units
from transformer_cli.decoding.text_pipeline import KnownSpellings
from transformer_cli.decoding.translation import Link
from transformer_cli.process.errors import UsageError
from transformer_cli.text.normalization import unit_spans
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .small_translators import tokenizer_of_words, translator

TEXTS = [
    "Il gatto dorme. Dov'è l'acqua? C'è un po' di caffè (forse)!",
    "世你界好",  # so that no token has two signs of a line below
    "abcdefghij 0123",
]


class CopyingEngine:
    """Translates each source into itself; each token attends to itself alone."""

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> Any:
        return [[Hypothesis(request.ids, 0.0)] for request in requests]

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        return [
            Explanation(
                np.zeros(len(ids), np.float32),
                np.eye(len(ids), dtype=np.float32),
                tuple(range(len(ids))),
                np.zeros((len(ids), 0), np.int64),
                np.zeros((len(ids), 0), np.float32),
            )
            for ids in targets
        ]

    def negative_log_likelihood(self, *arguments: Any, **options: Any) -> float:
        raise AssertionError("not used")

    def next_token_probabilities(self, *arguments: Any) -> Any:
        raise AssertionError("not used")


class MuteEngine:
    """As the copying engine, but without explanations."""

    translate = CopyingEngine.translate
    negative_log_likelihood = CopyingEngine.negative_log_likelihood
    next_token_probabilities = CopyingEngine.next_token_probabilities


def tokenizer_of(kind: str) -> Tokenizer:
    size = {} if kind == "wordlevel" else {"vocab_size": 400}
    config = TokenizerConfig.model_validate({"kind": kind, "min_frequency": 1, **size})
    return train_tokenizer(TEXTS * 3, config)


def copier(tokenizer: Tokenizer, max_length: int = 500) -> Translator:
    pipeline = TextPipeline(tokenizer, tokenizer, PhrasebookData(), max_length, True)
    return Translator(pipeline, CopyingEngine(), DecodingConfig(repair=False))


COPIERS = {kind: copier(tokenizer_of(kind)) for kind in ("wordlevel", "bpe", "unigram")}
each_kind = pytest.mark.parametrize("kind", COPIERS)
lines = st.lists(
    st.sampled_from(
        [*" .(?'-\u00a0\t\x01\x00\u0301😀", "Il", "gatto", "l'", "acqua", "è", "Zut", "。", "你好", "10:30"]
    ),
    max_size=25,
).map("".join)


@pytest.mark.long
@each_kind
@given(line=lines)
@example(line="Il gatto dorme. L'acqua è qui. 你好。世界 a\x01b \x01 c e\u0301")
def test_each_word_is_linked_with_itself_in_a_line_of_any_sentences(kind: str, line: str) -> None:
    [translation] = COPIERS[kind].translate([line], with_details=True)
    assert translation.details is not None
    normalised = COPIERS[kind].pipeline.normalize_source(line)
    read = [re.sub("[\x00\x01]", "", word) for word in line.split()]
    kept = [number for number, unit in enumerate(units_of_words(read)) if unit]
    assert len(kept) == len(units_of_words(normalised.split()))
    if "[UNK]" in translation.text:
        return  # an unknown mark, or an unknown space without a break, becomes a word of its own
    of_source, of_target = units_of_characters(normalised), units_of_characters(translation.text)
    assert len(of_source) == len(of_target)  # a space may come between two sentences
    expected = {Link(kept[x], y) for x, y in zip(of_source, of_target, strict=True)}
    assert {*translation.details.links} == expected


def units_of_words(words: Sequence[str]) -> list[str]:
    """Each Chinese sign with the marks on it, and what stands between these signs; an empty word counts as one."""
    sign = "[\u4e00-\u9fff]"
    return [unit for word in words for unit in re.findall(rf"{sign}\u0301*|[^\u4e00-\u9fff]+", word) or [""]]


def units_of_characters(text: str) -> list[int]:
    """For each character that is no white space, the index of its unit."""
    return [number for number, unit in enumerate(units_of_words(text.split())) for _ in unit]


@pytest.mark.parametrize("line", ["", "   ", "\u3000", "\u200b", " \t ", " \x01 "])
def test_a_blank_line_stays_as_it_is_in_each_kind_of_translation(line: str) -> None:
    of = COPIERS["bpe"]
    [usual] = of.translate([line])
    assert usual.text == line.replace("\x01", "")
    whole = replace(of, decoding=of.decoding.model_copy(update={"keep_layout": False}))
    for found in (*whole.translate([line]), *of.translate([line], with_details=True)):
        assert (found.text, found.score, found.alternatives) == (usual.text, 0.0, ())


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("The dog's (red) ball.", ["The", "dog's", "(red)", "ball."]),
        ("我喜欢 iPhone手机。", ["我", "喜", "欢", "iPhone", "手", "机", "。"]),
        ("ใหม่ มาก", ["ใ", "ห", "ม่", "ม", "า", "ก"]),
        ("か\u3099く", ["か\u3099", "く"]),
        ("\u200b你\x01好", ["\u200b你\x01", "好"]),
        ("안녕 하세요", ["안녕", "하세요"]),
    ],
)
def test_a_sign_of_a_script_without_spaces_is_a_unit(text: str, units: list[str]) -> None:
    assert [text[slice(*span)] for span in unit_spans(text, has_spaced_words=False)] == units
    assert [text[slice(*span)] for span in unit_spans(text, has_spaced_words=True)] == text.split()


def test_in_a_corpus_with_spaced_words_the_words_are_the_units() -> None:
    spaced = train_tokenizer(["你好 世界"] * 3, TokenizerConfig(min_frequency=1))
    [translation] = copier(spaced).translate(["你好 世界"], with_details=True)
    assert translation.details is not None
    assert [*translation.details.links] == [Link(0, 0), Link(1, 1)]


@each_kind
def test_a_word_that_is_cut_is_linked_with_both_halves(kind: str) -> None:
    short = copier(tokenizer_of(kind), max_length=4)
    [translation] = short.translate(["Il gatto dorme qui (forse) Dov'è l'acqua"], with_details=True)
    assert translation.details is not None
    assert len(translation.details.parts) > 2
    targets = [link.target for link in translation.details.links]
    assert targets == [*range(len(translation.text.split()))]
    sources = [link.source for link in translation.details.links]
    assert sources == sorted(sources)
    assert {*sources} == {*range(len(translation.source.split()))}


def test_words_that_are_read_in_another_spelling_are_linked_as_words_of_the_line() -> None:
    of_words = COPIERS["wordlevel"]
    spellings = KnownSpellings(of_words.pipeline.source_tokenizer)
    respelling = replace(of_words, pipeline=replace(of_words.pipeline, spellings=spellings))
    [translation] = respelling.translate(["Gatto   IL.  Dov\u2019e caffe?"], with_details=True)
    assert translation.text == "gatto Il.  Dov'è caffè?"
    assert translation.unknown_words == ()
    assert translation.details is not None
    assert {*translation.details.links} == {Link(number, number) for number in range(4)}


def test_signs_that_reading_adds_to_a_word_belong_to_its_last_unit() -> None:
    def written_out(word: str) -> str:
        return word.replace("㍿", "株式会社")

    assert kept_units(COPIERS["bpe"].pipeline.source_tokenizer, written_out, "你㍿ 界") == [0, 1, 1, 1, 1, 2]


def test_a_blank_line_and_a_source_without_a_translation_have_no_parts() -> None:
    blank, told = COPIERS["bpe"].translate([" \x01 ", "Il"], with_details=True)
    assert blank.details is not None
    assert told.details is not None
    assert (blank.details.parts, blank.details.links, len(told.details.parts)) == ((), (), 1)


def test_without_being_asked_nothing_is_explained() -> None:
    [translation] = COPIERS["bpe"].translate(["Il gatto"])
    assert translation.details is None


def test_an_engine_that_cannot_explain_is_refused() -> None:
    mute = Translator(COPIERS["bpe"].pipeline, MuteEngine(), DecodingConfig(repair=False))
    assert [one.text for one in mute.translate(["Il gatto"])] == ["Il gatto"]
    with pytest.raises(UsageError, match="gives no probabilities"):
        mute.translate(["Il gatto"], with_details=True)


@pytest.mark.long
def test_the_details_do_not_change_the_translation() -> None:
    of_words = translator(tokenizer_of_words(), beam_size=3, num_best=3)
    lines = ["uno due tre", "", "quattro. cinque sei?"]
    plain, detailed = (
        list(of_words.translate(lines)),
        list(of_words.translate(lines, with_details=True)),
    )
    for one, other in zip(plain, detailed, strict=True):
        assert (one.text, one.score, one.alternatives) == (
            other.text,
            other.score,
            other.alternatives,
        )
        assert other.details is not None
        of_parts = sum(part.explanation.token_log_probs.sum() for part in other.details.parts)
        assert of_parts <= 0.0
