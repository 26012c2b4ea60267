"""How far a translation agrees with samples of its model: the mean chrF, always with the same samples."""

from dataclasses import replace

import pytest
from sacrebleu import CHRF

from transformer_cli.config import SamplingConfig
from transformer_cli.decoding import Hypothesis, Request, Translator
from transformer_cli.decoding.checks.quality import FEATURES, Quality, QualityPromise
from transformer_cli.decoding.details import LineDetails
from transformer_cli.decoding.engine import search_confidence
from transformer_cli.decoding.minimum_bayes_risk import agreements

from .small_translators import tokenizer_of_words, translator

LINES = ["uno due tre", "quattro cinque", "sei"]


def small(**changes: object) -> Translator:
    return replace(translator(tokenizer_of_words(), beam_size=2), estimates=True, **changes)


def samples_of(of: Translator, line: str, number: int) -> list[str]:
    """Those of the engine itself."""
    [part] = of.pipeline.prepare(line).requests
    options = of.decoding.model_copy(update={"num_best": number, "sampling": SamplingConfig(top_p=0.95)})
    [found] = of.engine.translate([Request(part.ids)], options)
    return [of.pipeline.target_tokenizer.decode(each.ids) for each in found]


def agreements_in(details: LineDetails | None) -> list[float | None]:
    assert details is not None
    return [part.agreement for part in details.parts]


def test_the_agreement_is_the_mean_score_of_sacrebleu_against_the_samples() -> None:
    of = small(num_samples=5)
    for line, translation in zip(LINES, of.translate(LINES), strict=True):
        samples = samples_of(of, line, 5)
        assert len(samples) == 5
        scores = [CHRF().sentence_score(translation.text, [sample]).score for sample in samples]
        expected = sum(scores) / len(scores) / 100
        assert agreements_in(translation.details) == [pytest.approx(expected)]


@pytest.mark.long
def test_it_does_not_depend_on_the_other_lines_and_is_the_same_again() -> None:
    of = small(num_samples=4)
    together = [each.details for each in of.translate(LINES)]
    alone = [next(of.translate([line])).details for line in LINES]
    assert list(map(agreements_in, together)) == [[pytest.approx(each) for each in agreements_in(one)] for one in alone]


@pytest.mark.long
def test_details_have_it_too_and_without_samples_there_is_none() -> None:
    with_details = small(num_samples=3)
    [one] = with_details.translate(LINES[:1], with_details=True)
    [other] = with_details.translate(LINES[:1])
    assert agreements_in(one.details) == agreements_in(other.details) != [None]
    [without] = small().translate(LINES[:1])
    assert agreements_in(without.details) == [None]


@pytest.mark.long
def test_the_number_of_samples_is_that_of_the_calibration() -> None:
    zero = dict.fromkeys(FEATURES, 0.0)
    weights = zero | {"agreement": 1.0}
    promise = QualityPromise("chrf", 60, 0.05, 0.95)
    quality = Quality(weights, 0.0, 0.0, 9.0, 0.5, promise, {}, num_samples=4)
    of = small()
    of = replace(of, pipeline=replace(of.pipeline, qualities={str(of.languages): quality}))
    [found] = of.translate(LINES[:1])
    [agreement] = agreements_in(found.details)
    assert agreement is not None
    assert found.estimate is not None
    assert found.estimate.probability == pytest.approx(1 / (1 + 2.718281828**-agreement))
    [expected] = small(num_samples=4).translate(LINES[:1])
    assert agreements_in(expected.details) == [agreement]


def test_a_text_agrees_fully_with_a_model_that_always_says_the_same() -> None:
    class Stubborn:
        def translate(self, requests, options):  # type: ignore[no-untyped-def]
            ids = tuple(tokenizer_of_words().encode("uno due"))
            return [[Hypothesis(ids, -1.0)] * options.num_best for _ in requests]

    of = replace(small(), engine=Stubborn())  # type: ignore[arg-type]
    assert agreements(of, [Request((4,))], ["uno due"], 3) == [pytest.approx(1.0)]
    assert agreements(of, [Request((4,))], ["sei"], 3)[0] < 0.5


@pytest.mark.long
def test_the_confidence_of_a_calibration_is_computed_for_it_alone() -> None:
    of = small()
    [part] = of.pipeline.prepare(LINES[0]).requests
    [[hypothesis, *_]] = of.engine.translate([part], of.decoding)
    [estimated] = of.translate(LINES[:1])
    expected = search_confidence(hypothesis, of.decoding)
    assert estimated.confidences == (pytest.approx(expected),)
    assert estimated.least_confidence == pytest.approx(expected)
    [plain] = replace(of, estimates=False).translate(LINES[:1])
    assert (plain.text, plain.confidences) == (estimated.text, ())
