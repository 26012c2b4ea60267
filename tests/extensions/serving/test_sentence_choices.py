"""The best translations of a sentence: those of the search, with the words that teacher forcing finds."""

import pytest

from transformer_cli.extensions.serving.sentences import detailed_sentences, sentence_alternatives
from transformer_cli.process.errors import UsageError

from .served_translators import LINES, small_translator


@pytest.mark.long
@pytest.mark.parametrize("line", LINES[:12])
def test_the_first_one_is_the_translation_of_the_stream(line: str) -> None:
    translator = small_translator(max_length=6, beam_size=4)
    best, *others = sentence_alternatives(translator, line, "", num_alternatives=3)
    [streamed] = detailed_sentences(translator, [line])
    assert best.details.target == streamed.target
    assert best.details.probabilities == pytest.approx(streamed.probabilities, abs=1e-5)
    assert best.details.links == streamed.links
    assert all(other.details.target != best.details.target and other.score <= best.score for other in others)
    assert len({other.details.target for other in others}) == len(others)


def test_they_are_those_of_the_translator() -> None:
    translator = small_translator(max_length=6, beam_size=4, num_best=4)
    [translation] = translator.translate(["uno due tre"])
    found = sentence_alternatives(translator, "uno due tre", "", num_alternatives=3)
    assert [(one.details.target, one.score) for one in found] == [tuple(one) for one in translation.alternatives]


def test_the_beam_of_a_greedy_run_is_widened_and_other_beams_stay() -> None:
    greedy = sentence_alternatives(small_translator(max_length=6, beam_size=1), "uno due", "", num_alternatives=3)
    assert 1 < len(greedy) <= 4
    narrow = sentence_alternatives(small_translator(max_length=6, beam_size=2), "uno due", "", num_alternatives=7)
    assert len(narrow) <= 2


def test_each_one_begins_with_the_prefix() -> None:
    found = sentence_alternatives(
        small_translator(max_length=6, beam_size=4), "uno due", "sei otto", num_alternatives=3
    )
    assert found
    assert all(f"{one.details.target} ".startswith("sei otto ") for one in found)
    assert all(len(one.details.probabilities) == len(one.details.target.split()) for one in found)


def test_another_search_than_beam_search_is_refused() -> None:
    translator = small_translator(sampling={"temperature": 1.0}, beam_size=1)
    with pytest.raises(UsageError, match=r"leave out|settings"):
        sentence_alternatives(translator, "uno", "", num_alternatives=2)
