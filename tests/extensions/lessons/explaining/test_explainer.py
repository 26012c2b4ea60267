"""Explained lines: the same translations as without an explanation, and values that belong together."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Translator
from transformer_cli.decoding.ensemble import combine_translators
from transformer_cli.extensions.lessons.explaining import explainer as explainer_module
from transformer_cli.extensions.lessons.explaining.explainer import TEMPERATURES, Explainer
from transformer_cli.extensions.lessons.explaining.explanation import (
    LineExplanation,
    unpacked_numbers,
)
from transformer_cli.process.errors import DataError, UsageError

from ....decoding.small_translators import WORDS, random_model, tokenizer_of_words, translator
from .varied_translators import LINES, varied_translator

TOKENIZER = tokenizer_of_words()
Explain = Callable[..., LineExplanation]


@pytest.fixture(scope="module")
def small() -> Translator:
    return varied_translator(TOKENIZER)


@pytest.fixture(scope="module")
def explained(small: Translator) -> LineExplanation:
    return Explainer.of(small).explain("uno due tre quattro", num_best=4, continues=True)


def translated(small: Translator, line: str, **changes: object) -> str:
    options = small.decoding.model_copy(update=changes)
    [translation] = replace(small, decoding=options).translate([line])
    return translation.text


def test_the_translations_of_these_tests_differ(small: Translator) -> None:
    texts = [translation.text for translation in small.translate(LINES)]
    assert len(set(texts)) == len(LINES)
    assert any(1 < len(text.split()) < 8 for text in texts)


@pytest.mark.long
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("beam_size", [1, 2, 4, 8])
def test_the_winning_path_is_the_translation(small: Translator, line: str, beam_size: int) -> None:
    explanation = Explainer.of(small).explain(line, beam_size=beam_size)
    assert explanation.translation == translated(small, line, beam_size=beam_size)
    texts = [sentence.hypotheses[0].text for sentence in explanation.sentences]
    assert " ".join(filter(None, texts)) == explanation.translation
    for sentence in explanation.sentences:
        path = [node.id for node in sentence.beam.nodes if node.state == "chosen"]
        assert path[1:] == [token.id for token in sentence.hypotheses[0].tokens]
        assert sentence.beam.beam_size == beam_size


def test_the_hypotheses_are_the_alternatives_of_the_translation(small: Translator) -> None:
    options = small.decoding.model_copy(update={"num_best": 4})
    [translation] = replace(small, decoding=options).translate(["uno due tre"])
    explanation = Explainer.of(small).explain("uno due tre", num_best=4)
    [sentence] = explanation.sentences
    expected = translation.alternatives
    assert [one.text for one in sentence.hypotheses] == [one.text for one in expected]
    scores = [one.score for one in expected]
    assert [one.score for one in sentence.hypotheses] == pytest.approx(scores)


def test_the_numbers_of_a_hypothesis_add_up(explained: LineExplanation) -> None:
    [sentence] = explained.sentences
    for one in sentence.hypotheses:
        total = sum(token.log_probability for token in one.tokens)
        assert total == pytest.approx(one.log_probability, abs=1e-5)
        assert one.score == pytest.approx(one.log_probability / one.length_penalty)
        for token in one.tokens:
            shares = [other.probability for other in token.alternatives]
            assert shares == sorted(shares, reverse=True)
            assert len(shares) == 5
            same = [other for other in token.alternatives if other.id == token.id]
            assert all(other.probability == token.probability for other in same)


@pytest.mark.long
def test_words_and_links_are_those_of_the_details_of_a_translation(small: Translator) -> None:
    for line in LINES:
        [translation] = small.translate([line], with_details=True)
        explanation = Explainer.of(small).explain(line)
        assert translation.details is not None
        links = []
        num_source = num_target = 0
        for sentence in explanation.sentences:
            best = sentence.hypotheses[0]
            links += [(num_source + of, num_target + to) for of, to in best.links]
            num_source += len(sentence.source.words)
            num_target += len(best.words)
        assert links == [tuple(link) for link in translation.details.links]


def test_spans_tell_where_pieces_and_words_stand(explained: LineExplanation) -> None:
    [sentence] = explained.sentences
    text = sentence.source.text
    assert [text[start:end] for start, end in sentence.source.words] == text.split()
    pieces = [text[one.start : one.end].strip() for one in sentence.source.tokens if one.kind == "text"]
    assert pieces == [one.piece for one in sentence.source.tokens if one.kind == "text"]
    assert [one.kind for one in sentence.source.tokens] == ["text"] * 4 + ["end"]
    for hypothesis in sentence.hypotheses:
        assert "".join(hypothesis.text[one.start : one.end] for one in hypothesis.tokens) == hypothesis.text
        assert all(one.end == other.start for one, other in pairwise(hypothesis.tokens))


def test_a_sentence_knows_its_place_in_the_line(small: Translator) -> None:
    explanation = Explainer.of(small).explain("  Uno due.  Tre quattro!  cinque ")
    for sentence in explanation.sentences:
        start = sentence.source.start
        assert explanation.normalized[start:].startswith(sentence.source.text)


def test_the_decoder_reads_what_it_has_written(explained: LineExplanation) -> None:
    [sentence] = explained.sentences
    written = [token.id for token in sentence.hypotheses[0].tokens]
    assert [token.id for token in sentence.decoder_input] == [TOKENIZER.sos_id, *written[:-1]]


def test_the_temperature_gives_the_softmax_over_the_whole_vocabulary(small: Translator) -> None:
    explainer = Explainer.of(small, num_alternatives=TOKENIZER.vocab_size)
    [sentence] = explainer.explain("uno due tre").sentences
    for token in sentence.hypotheses[0].tokens:
        logs = np.array([one.log_probability for one in token.alternatives], dtype=np.float64)
        for temperature, log_partition in zip(TEMPERATURES, token.log_partitions, strict=True):
            expected = np.exp(logs / temperature) / np.exp(logs / temperature).sum()
            np.testing.assert_allclose(np.exp(logs / temperature - log_partition), expected, atol=1e-5)


def test_only_the_best_hypothesis_knows_temperatures(explained: LineExplanation) -> None:
    [sentence] = explained.sentences
    best, *others = sentence.hypotheses
    assert {len(token.log_partitions) for token in best.tokens} == {len(TEMPERATURES)}
    assert {len(token.log_partitions) for one in others for token in one.tokens} == {0}


def test_rows_of_attention_sum_to_one_and_masked_cells_are_zero(explained: LineExplanation) -> None:
    [sentence] = explained.sentences
    attention = sentence.attention
    num_source, num_target = len(sentence.source.tokens), len(sentence.decoder_input)
    assert attention.encoder.values.shape == (1, 2, num_source, num_source)
    assert attention.decoder.values.shape == (2, 2, num_target, num_target)
    assert attention.cross.values.shape == (2, 2, num_target, num_source)
    for weights in (attention.encoder, attention.decoder, attention.cross):
        np.testing.assert_allclose(weights.values.sum(-1), 1.0, atol=1e-6)
    hidden = sentence.masks.decoder.values == 0.0
    assert hidden.sum() == num_target * (num_target - 1) / 2
    assert (attention.decoder.values[..., hidden] == 0.0).all()
    assert (unpacked_numbers(attention.decoder.to_json())[..., hidden] == 0.0).all()


def test_alignment_names_the_source_token_that_is_read_most(explained: LineExplanation) -> None:
    [sentence] = explained.sentences
    layer = sentence.attention.aligning_layer
    mean = sentence.attention.cross.values[layer].mean(0)
    words = [place for place, one in enumerate(sentence.source.tokens) if one.kind == "text"]
    for target, source, weight in sentence.hypotheses[0].alignment:
        assert source == max(words, key=lambda place: mean[target, place])
        assert weight == pytest.approx(mean[target, source], abs=1e-6)


@pytest.mark.long
def test_a_branch_goes_on_as_a_translation_with_this_beginning(small: Translator, explained: LineExplanation) -> None:
    [sentence] = explained.sentences
    nodes = sentence.beam.nodes
    parents = {node.parent for node in nodes}
    for node in nodes[1:]:
        assert (node.continuation is None) == (node.node in parents)
    left = [node for node in nodes if node.state == "dropped" and node.id != TOKENIZER.eos_id]
    assert left
    for node in left[:12]:
        ids: list[int] = []
        at = node
        while at.parent is not None:
            ids.insert(0, at.id)
            at = nodes[at.parent]
        again = Explainer.of(small).explain("uno due tre quattro", beam_size=1, prefix_ids=tuple(ids))
        assert again.translation == node.continuation
        assert [token.id for token in again.sentences[0].hypotheses[0].tokens][: len(ids)] == ids


def test_greedy_search_goes_on_from_the_best_branches_only(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explainer_module, "MAX_CONTINUED", 3)
    [sentence] = Explainer.of(small).explain("due due due due", continues=True).sentences
    nodes = sentence.beam.nodes
    left = [node for node in nodes if node.state == "dropped" and node.id != TOKENIZER.eos_id]
    known = [node for node in left if node.continuation is not None]
    assert len(left) > 3 >= len(known) > 0
    for node in known:
        assert node.score == max(one.score for one in left if one.step == node.step)


def test_a_prefix_as_text_begins_the_translation(small: Translator) -> None:
    explanation = Explainer.of(small).explain("uno due tre", prefix="sette")
    [expected] = small.translate(["uno due tre"], prefixes=["sette"])
    assert explanation.translation == expected.text
    assert explanation.translation.startswith("sette")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ((999,), "token id 999, but the ids are 0 to"),
        ((-1,), "token id -1"),
        ((TOKENIZER.eos_id,), "EOS"),
        ((TOKENIZER.vocab_size - 1,) * 12, "12 tokens, but the model writes at most 12"),
    ],
)
def test_a_prefix_that_cannot_be_written_is_refused(small: Translator, ids: tuple[int, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Explainer.of(small).explain("uno", prefix_ids=ids)


def test_two_prefixes_are_refused(small: Translator) -> None:
    with pytest.raises(UsageError, match="as text and one as token ids"):
        Explainer.of(small).explain("uno", prefix="due", prefix_ids=(5,))


def test_a_blank_line_has_no_sentences(small: Translator) -> None:
    explanation = Explainer.of(small).explain("  \n")
    assert (explanation.translation, explanation.sentences) == ("", ())


def test_the_explanation_is_json(explained: LineExplanation) -> None:
    plain = explained.to_json()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again["format"] == 1
    [sentence] = again["sentences"]
    assert [token["piece"] for token in sentence["source"]["tokens"]][:4] == WORDS[:4]
    assert sentence["beam"]["nodes"][0]["parent"] is None
    assert sentence["attention"]["cross"]["shape"][:2] == [2, 2]


@pytest.mark.long
def test_threads_may_share_an_explainer(small: Translator) -> None:
    explainer = Explainer.of(small)
    lines = LINES[:2] * 2
    expected = {line: explainer.explain(line).to_json() for line in lines}
    with ThreadPoolExecutor(2) as pool:
        for line, found in zip(lines, pool.map(lambda one: explainer.explain(one).to_json(), lines), strict=True):
            assert found == expected[line]


def test_an_ensemble_and_other_searches_are_refused(small: Translator) -> None:
    other = translator(TOKENIZER, model=random_model(TOKENIZER))
    with pytest.raises(UsageError, match="ensemble"):
        Explainer.of(combine_translators([small, other], ["a", "b"]))
    for name in ("sampling", "mbr", "diversity"):
        options = DecodingConfig.model_validate({"beam_size": 4, name: {}})
        with pytest.raises(UsageError, match=f"decoding.{name}"):
            Explainer.of(replace(small, decoding=options))
