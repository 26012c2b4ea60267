"""A model of both directions: what it reads, what it never writes, and its scores per direction."""

import math

import pytest

from transformer_cli.config import Direction, FileCorpus, FilesData, PhrasebookData, TokenizerConfig
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Request, Translator
from transformer_cli.evaluation.metrics import score_corpus
from transformer_cli.evaluation.validation import validate
from transformer_cli.process.errors import UsageError
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from ..decoding.small_translators import WORDS, random_model, translator

TEXTS = [" ".join(WORDS), "one two three four", *WORDS]
BOTH = PhrasebookData(both_directions=True)
TAGS = ("<2it>", "<2en>")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, TokenizerConfig(), tags=TAGS)


@pytest.fixture(scope="module")
def both(tokenizer: Tokenizer) -> Translator:
    return translator(tokenizer, data=BOTH, beam_size=2)


def texts(of: Translator, lines: list[str], **languages: str) -> list[str]:
    return [translation.text for translation in of.translate(lines, **languages)]


def test_the_target_language_decides_the_tag_and_so_the_translation(both: Translator) -> None:
    to_italian, to_english = texts(both, WORDS, to="it"), texts(both, WORDS, to="en")
    assert to_italian != to_english
    assert texts(both, WORDS, from_="it") == to_english
    assert texts(both.towards("en"), WORDS) == to_english
    assert both.towards("it").pipeline.source_ids("uno")[0] == 4
    assert both.towards("en").pipeline.source_ids("uno")[0] == 5


def test_a_model_of_several_targets_asks_which_before_anything_is_translated(
    both: Translator,
) -> None:
    with pytest.raises(UsageError, match="translates en-it, it-en: say which"):
        both.translate(iter(()))
    with pytest.raises(UsageError, match="--to fr: this model translates into: it, en"):
        both.translate(["uno"], to="fr")


@pytest.mark.long
def test_a_model_of_one_direction_takes_its_own_target_only(tokenizer: Tokenizer) -> None:
    one = translator(tokenizer, beam_size=2)
    assert texts(one, WORDS, to="it") == texts(one, WORDS)
    with pytest.raises(UsageError, match="--to en: this model translates into: it"):
        one.translate(WORDS, to="en")


def test_no_translation_has_a_tag(tokenizer: Tokenizer) -> None:
    model = random_model(tokenizer)
    for weight in (model.output.weight, model.output.bias):
        if weight is not None:
            weight.data[4:6] = 50.0
    of = translator(tokenizer, model=model, data=BOTH, beam_size=2).towards("it")
    requests = [Request(of.pipeline.source_ids(word)) for word in WORDS]
    found = of.engine.translate(requests, of.decoding)
    assert any(hypothesis.ids for one in found for hypothesis in one)
    assert not {4, 5} & {i for one in found for hypothesis in one for i in hypothesis.ids}


PAIRS = [
    SentencePair(*("uno due", "one two"), 0, 1),
    SentencePair(*("one two", "uno due"), 0, 0),
    SentencePair(*("tre", "three"), 0, 1),
    SentencePair(*("three", "tre"), 0, 0),
    SentencePair(*("four one two", "quattro uno due"), 0, 0),
]


@pytest.mark.long
def test_the_scores_are_the_means_of_those_of_the_directions(both: Translator) -> None:
    report = validate(both, PAIRS, scores=["chrf", "cer"], num_samples=4)
    for number, to in enumerate(("it", "en")):
        pairs = [pair for pair in PAIRS if pair.direction == number]
        hypotheses = texts(both, [pair.source for pair in pairs], to=to)
        expected = score_corpus(hypotheses, [pair.target for pair in pairs], ["chrf", "cer"])
        of_direction = report.directions[number]
        assert of_direction.scores == [
            score._replace(signature=f"{score.signature}|keep_text:no|repair:no|split_sentences:yes")
            for score in expected
        ]
        assert of_direction.num_sentences == len(pairs)
        alone = validate(both.towards(to), pairs, scores=[])
        assert of_direction.loss == pytest.approx(alone.loss)
        assert alone.directions == []
    for place, score in enumerate(report.scores):
        values = [one.scores[place].value for one in report.directions]
        assert score.value == pytest.approx(sum(values) / 2)
        assert score.signature.startswith("mean of en-it,it-en|")
    assert report.metric("chrf") == report.scores[0].value
    tokens = [one.num_target_tokens for one in report.directions]
    losses = [one.loss * number for one, number in zip(report.directions, tokens, strict=True)]
    assert report.loss == pytest.approx(math.fsum(losses) / sum(tokens))


@pytest.mark.long
def test_samples_are_of_both_directions_and_say_so(both: Translator) -> None:
    samples = validate(both, PAIRS[:4], num_samples=4).samples
    directions = [sample.direction for sample in samples]
    assert directions == [Direction("en", "it")] * 2 + [Direction("it", "en")] * 2
    assert samples[0].lines()[0] == "DIRECTION  en-it"
    assert samples[0].as_json()["direction"] == "en-it"


def test_the_gap_between_sentences_is_that_of_the_target_language(tokenizer: Tokenizer) -> None:
    corpus = FileCorpus(path="a.tsv")
    data = FilesData(source="files", corpora=(corpus,), target_language="ja", both_directions=True)
    japanese = train_tokenizer(TEXTS, TokenizerConfig(), tags=("<2ja>", "<2en>"))
    of = translator(japanese, data=data, beam_size=1)
    for target, gap in (("ja", ""), ("en", " ")):
        chunk = of.towards(target).pipeline.prepare("One two three. Two one two.")
        assert [part.gap for part in chunk.parts] == ["", gap]
