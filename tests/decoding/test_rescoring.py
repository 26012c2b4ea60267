"""Rescoring: the order of the translations of a beam is that of the sums of scores, which `tfm likelihood` gives for each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Translator
from transformer_cli.decoding.given_pairs import pair_likelihoods
from transformer_cli.decoding.loading import load_run, load_translator
from transformer_cli.evaluation.validation import conditions_of
from transformer_cli.process.errors import ConfigError, MissingInputError, UsageError

DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"
LINES = [
    "Where is the nearest hospital, and how do I get there?",
    "My sister has lost the key of the old house.",
    "The train is late.",
    "",
    "42",
    "The children are playing in the garden behind the school.",
    "I would like a glass of water and a map of the city.",
]
MODELS = [
    {"run": str(DOCS_RUN), "kind": "forward", "weight": 0.5},
    {"run": str(DOCS_RUN), "kind": "right-to-left", "weight": 2.0},
]


def rescoring(models: list[dict[str, Any]] = MODELS, **settings: Any) -> Translator:
    settings = {"beam_size": 8, "repair": False, "keep_text": False} | settings
    settings["rescore"] = {"models": tuple(models)} | settings.pop("rescore", {})
    return load_translator(DOCS_RUN, decoding=DecodingConfig.model_validate(settings))


def mean(translator: Translator, source: str, target: str) -> float:
    [found] = pair_likelihoods(translator, [(source, target)])
    return found.log_probability / found.num_tokens


@pytest.mark.long
def test_the_chosen_translation_has_the_best_sum_of_forced_scores() -> None:
    translator = rescoring()
    options = translator.decoding.model_copy(update={"rescore": None, "num_best": 8})
    plain = load_translator(DOCS_RUN, decoding=options)
    found = list(translator.translate(LINES))
    changed = 0
    for line, chosen, candidates in zip(LINES, found, plain.translate(LINES), strict=True):
        if not line or line == "42":
            assert chosen.text == line
            continue
        totals = {
            each.text: mean(plain, line, each.text)
            + 0.5 * mean(plain, line, each.text)
            + 2.0 * mean(plain, line, " ".join(each.text.split()[::-1]))
            for each in candidates.alternatives
        }
        assert totals[chosen.text] == pytest.approx(max(totals.values()), abs=1e-4)
        scores = {each.text: each.score for each in candidates.alternatives}
        assert chosen.score == pytest.approx(scores[chosen.text]), "the score of the search"
        changed += chosen.text != candidates.text
    assert changed, "a test in which nothing changes shows nothing"


def test_the_candidates_of_all_sentences_are_scored_in_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def counted(translator: Translator, pairs: list[tuple[str, str]]) -> Any:
        asked.append(len(pairs))
        return pair_likelihoods(translator, pairs)

    monkeypatch.setattr("transformer_cli.decoding.given_pairs.pair_likelihoods", counted)
    list(rescoring(rescore={"candidates": 3}).translate(LINES))
    assert asked == [3 * 5] * 2


@pytest.mark.long
def test_the_best_of_several_come_in_the_new_order() -> None:
    [best] = rescoring().translate(LINES[:1])
    [several] = rescoring(num_best=4).translate(LINES[:1])
    assert several.text == best.text
    assert len(several.alternatives) == 4


@pytest.mark.long
def test_the_setting_is_in_the_signature_of_scores() -> None:
    assert conditions_of(rescoring()) == (
        "keep_text:no|repair:no|split_sentences:yes|rescore:forward:run:0.5+right-to-left:run:2"
    )
    assert "rescore" not in conditions_of(replace(rescoring(), rescorers=()))


@pytest.mark.long
def test_a_model_of_another_direction_is_refused_and_a_missing_one_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"translates en-it, but as a model of the kind channel it has to translate it-en"
    ) as found:
        rescoring([{"run": str(DOCS_RUN), "kind": "channel"}])
    assert "a run of the reverse direction" in str(found.value.hint)
    with pytest.raises(MissingInputError, match="nowhere"):
        rescoring([{"run": "nowhere", "kind": "forward"}])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("decoding.sampling={}", "rescore and sampling are two ways"),
        ("decoding.mbr={}", "rescore and mbr are two ways"),
        ("decoding.beam_size=1", "nothing to choose from: beam_size is 1"),
        ("decoding.beam_size=2", r"rescore.candidates \(3\) is above beam_size \(2\)"),
        ("decoding.num_best=4", r"num_best \(4\) is above rescore.candidates \(3\)"),
    ],
)
def test_settings_that_contradict_rescoring_are_refused(settings: str, problem: str) -> None:
    rescore = f"decoding.rescore={{candidates: 3, models: [{{run: {DOCS_RUN}, kind: forward}}]}}"
    with pytest.raises(ConfigError, match=problem):
        load_run(str(DOCS_RUN), ["decoding.beam_size=4", rescore, settings])


def test_at_least_one_model_of_a_known_kind_is_needed() -> None:
    for models in ("[]", "[{run: a, kind: backward}]", "[{run: a, kind: channel, weight: 0.0}]"):
        with pytest.raises(ConfigError, match=r"decoding\.rescore"):
            load_run(str(DOCS_RUN), [f"decoding.rescore={{models: {models}}}"])


def test_what_only_reads_pairs_needs_no_further_model() -> None:
    with pytest.raises((ConfigError, UsageError), match="rescore"):
        load_run(str(DOCS_RUN), ["decoding.rescore={models: [{run: a, kind: channel}]}"], command="likelihood")
