"""A glossary beside minimum Bayes risk: each candidate has all terms, and the choice among them stays the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Glossary, Request
from transformer_cli.process.errors import UsageError

from .small_translators import WORDS, tokenizer_of_words, translator
from .test_translating_with_terms import (
    TRANSLATORS,
    each_tokenizer,
    glossaries,
    occurrences,
    sources,
)


@pytest.mark.long
@each_tokenizer
@settings(max_examples=5)
@given(
    terms=glossaries, lines=st.lists(sources, min_size=1, max_size=3), num_best=st.integers(1, 4)
)
def test_every_translation_that_is_chosen_has_all_terms(
    kind: str, terms: dict[str, str], lines: list[str], num_best: int
) -> None:
    decoding = DecodingConfig.model_validate({"beam_size": 4, "num_best": num_best, "mbr": {}})
    with_terms = replace(TRANSLATORS[kind], decoding=decoding).with_glossary(Glossary.of(terms))
    for translation in with_terms.translate(lines):
        assert all(term.is_applied for term in translation.terms)
        assert len(translation.alternatives) <= num_best
        for target in terms.values():
            number = sum(term.target == target for term in translation.terms)
            for each in translation.alternatives:
                assert occurrences(target, each.text) >= number


@pytest.mark.long
def test_the_choice_is_that_of_a_double_loop_over_the_hypotheses_with_terms() -> None:
    tokenizer, terms = tokenizer_of_words(), Glossary.of({"uno": "sei sette", "otto": "due"})
    search: dict[str, object] = {"beam_size": 8, "max_length": 6, "keep_layout": False}
    by_score = translator(tokenizer, num_best=8, **search).with_glossary(terms)
    by_risk = translator(tokenizer, num_best=8, mbr={"candidates": 8}, **search).with_glossary(
        terms
    )
    metric, num_changed = CHRF(), 0
    others = [word for word in WORDS if word not in ("uno", "otto")]  # terms alone need no model
    lines = [f"{one} {other}" for one in ("uno", "otto") for other in others]
    for line, chosen in zip(lines, by_risk.translate(lines), strict=True):
        [request] = by_score.pipeline.prepare(line).requests
        assert request.terms
        [candidates] = by_score.engine.translate([request], by_score.decoding)
        texts = [tokenizer.decode(one.ids) for one in candidates]
        utilities = [
            np.mean([metric.sentence_score(text, [other]).score for other in texts])
            for text in texts
        ]
        best = utilities.index(max(utilities))
        assert chosen.text == texts[best]
        num_changed += best != 0
    assert num_changed > 2


def test_sentences_without_terms_are_chosen_as_without_a_glossary() -> None:
    plain = translator(tokenizer_of_words(), beam_size=6, mbr={})
    lines = [" ".join(WORDS[first : first + 3]) for first in range(6)]
    of_lines = [one.text for one in plain.translate(lines)]
    with_terms = plain.with_glossary(Glossary.of({"nove": "uno"}))
    assert [one.text for one in with_terms.translate(lines)] == of_lines
    assert all(isinstance(one, Request) and not one.terms for one in with_terms.pipeline.prepare(lines[0]).requests)  # fmt: skip


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"sampling": {}}, "draws translations at random"),
        ({"sampling": {}, "mbr": {}}, "draws translations at random"),
        ({"diversity": {}}, "diverse beam search"),
        ({"diversity": {}, "mbr": {}}, "diverse beam search"),
    ],
)
def test_a_search_that_cannot_promise_the_terms_is_refused_however_it_is_set(
    search: dict[str, object], message: str
) -> None:
    terms = Glossary.of({"uno": "due"})
    plain = translator(tokenizer_of_words(), **search)
    with pytest.raises(UsageError, match=message):
        plain.with_glossary(terms)
    later = replace(translator(tokenizer_of_words()).with_glossary(terms), decoding=plain.decoding)
    with pytest.raises(UsageError, match=message):
        later.translate(["uno"])
