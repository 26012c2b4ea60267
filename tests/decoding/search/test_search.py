import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.search.beam import BannedTokens, Hypotheses

from ..chains import (
    EOS,
    NO_END,
    PAD,
    SOS,
    MarkovChain,
    alphas,
    assert_scores_are_of_the_tokens,
    best_by_brute_force,
    best_by_plain_beam,
    chain,
    found,
    max_lengths_of_three,
    random_chain,
    run_beam,
    run_greedy,
    scores_of,
    seeds,
)


@pytest.mark.long
@given(
    seed=seeds,
    vocabulary=st.integers(3, 6),
    lengths=max_lengths_of_three,
    alpha=alphas,
    num_best=st.integers(1, 4),
)
def test_a_wide_beam_finds_what_brute_force_finds(
    seed: int, vocabulary: int, lengths: list[int], alpha: float, num_best: int
) -> None:
    tables = random_chain(seed, num_sentences=3, vocabulary=vocabulary)
    hypotheses = run_beam(
        MarkovChain(tables),
        lengths,
        beam_size=vocabulary**4,
        length_penalty=alpha,
        num_best=num_best,
    )
    for sentence, max_length in enumerate(lengths):
        expected = best_by_brute_force(tables[sentence], max_length, alpha)[:num_best]
        actual = found(hypotheses, sentence)
        # By score: a chain gives sequences of the same transitions the same score.
        assert scores_of(actual) == pytest.approx(scores_of(expected), abs=1e-12)
        assert_scores_are_of_the_tokens(actual, tables[sentence], alpha)


@pytest.mark.long
@given(
    seed=seeds,
    lengths=max_lengths_of_three,
    alpha=alphas,
    beam_size=st.integers(1, 9),
    data=st.data(),
)
def test_any_beam_finds_what_the_same_rules_without_batches_and_early_stops_find(
    seed: int, lengths: list[int], alpha: float, beam_size: int, data: st.DataObject
) -> None:
    num_best = data.draw(st.integers(1, beam_size))
    tables = random_chain(seed, num_sentences=3, vocabulary=6)
    hypotheses = run_beam(
        MarkovChain(tables),
        lengths,
        beam_size=beam_size,
        length_penalty=alpha,
        num_best=num_best,
    )
    for sentence, max_length in enumerate(lengths):
        expected = best_by_plain_beam(tables[sentence], max_length, alpha, beam_size)[:num_best]
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(scores_of(expected), abs=1e-12)
        assert_scores_are_of_the_tokens(actual, tables[sentence], alpha)


@pytest.mark.long
@given(
    seed=seeds,
    vocabulary=st.integers(3, 200),
    alpha=alphas,
    num_levels=st.sampled_from([2, 5, None]),
)
def test_a_beam_of_one_is_greedy_search_exactly(
    seed: int, vocabulary: int, alpha: float, num_levels: int | None
) -> None:
    tables = random_chain(seed, num_sentences=5, vocabulary=vocabulary)
    if num_levels is not None:  # ties, and steps at which nothing is possible
        tables = (tables * num_levels / 8).round().where(tables > -5.0, -math.inf)
    max_lengths = [9, 1, 0, 5, 9]
    greedy = run_greedy(MarkovChain(tables), max_lengths, length_penalty=alpha)
    beam = run_beam(MarkovChain(tables), max_lengths, beam_size=1, length_penalty=alpha)
    assert torch.equal(greedy.ids, beam.ids)
    assert torch.equal(greedy.lengths, beam.lengths)
    assert torch.equal(greedy.scores, beam.scores)


@pytest.mark.long
@given(seed=seeds, alpha=alphas)
def test_greedy_search_takes_the_most_probable_token_at_each_step(seed: int, alpha: float) -> None:
    tables = random_chain(seed, num_sentences=3, vocabulary=6)
    hypotheses = run_greedy(MarkovChain(tables), [7, 7, 7], length_penalty=alpha)
    for sentence, table in enumerate(tables):
        tokens: tuple[int, ...] = ()
        while len(tokens) < 7 and tokens[-1:] != (EOS,):
            following = table[(SOS, *tokens)[-1]].tolist()
            tokens += (max(range(2, 6), key=following.__getitem__),)
        [(score, found_tokens)] = found(hypotheses, sentence)
        assert found_tokens == tokens
        assert_scores_are_of_the_tokens([(score, tokens)], table, alpha)


SEARCHES: dict[str, Callable[..., Hypotheses]] = {
    "greedy": run_greedy,
    "beam": lambda *args, **settings: run_beam(*args, beam_size=3, num_best=2, **settings),
    "beam wider than the vocabulary": lambda *args, **settings: run_beam(*args, beam_size=50, num_best=50, **settings),
}
any_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())


@pytest.mark.long
@any_search
@given(seed=seeds, lengths=st.lists(st.integers(0, 8), min_size=1, max_size=12), alpha=alphas)
def test_a_sentence_does_not_depend_on_its_batch(
    search: Callable[..., Hypotheses], seed: int, lengths: list[int], alpha: float
) -> None:
    tables = random_chain(seed, num_sentences=len(lengths), vocabulary=6)
    together = search(MarkovChain(tables), lengths, length_penalty=alpha)
    for sentence, length in enumerate(lengths):
        alone = search(
            MarkovChain(tables[sentence : sentence + 1]),
            [length],
            length_penalty=alpha,
        )
        assert found(together, sentence) == found(alone, 0)


@pytest.mark.long
@any_search
@given(seed=seeds, lengths=max_lengths_of_three, alpha=alphas)
def test_hypotheses_are_sorted_and_different_and_not_too_long(
    search: Callable[..., Hypotheses], seed: int, lengths: list[int], alpha: float
) -> None:
    tables = random_chain(seed, num_sentences=3, vocabulary=5)
    hypotheses = search(MarkovChain(tables), lengths, length_penalty=alpha)
    for sentence, max_length in enumerate(lengths):
        of_sentence = found(hypotheses, sentence)
        assert scores_of(of_sentence) == sorted(scores_of(of_sentence), reverse=True)
        assert len({tokens for _, tokens in of_sentence}) == len(of_sentence) > 0
        assert all(1 <= len(tokens) <= max_length for _, tokens in of_sentence)


@pytest.mark.long
@any_search
@given(seed=seeds)
def test_banned_tokens_are_never_chosen(search: Callable[..., Hypotheses], seed: int) -> None:
    tables = random_chain(seed, num_sentences=4, vocabulary=6)
    tables[:, :, [PAD, SOS, 4]] += 9.0
    hypotheses = search(MarkovChain(tables), [6, 6, 6, 6], [BannedTokens([PAD, SOS, 4])])
    for sentence in range(4):
        for _, tokens in found(hypotheses, sentence):
            assert not {PAD, SOS, 4} & set(tokens)


@any_search
def test_what_follows_a_hypothesis_is_padding(search: Callable[..., Hypotheses]) -> None:
    tables = random_chain(3, num_sentences=6, vocabulary=6)
    hypotheses = search(MarkovChain(tables), [1, 2, 3, 4, 5, 6])
    positions = torch.arange(hypotheses.ids.shape[-1])
    is_after_end = positions >= hypotheses.lengths.unsqueeze(-1)
    assert is_after_end.any()
    assert (hypotheses.ids[is_after_end] == PAD).all()


@any_search
def test_a_model_that_never_ends_is_cut_at_the_maximal_length(
    search: Callable[..., Hypotheses],
) -> None:
    tables = random_chain(0, num_sentences=2, vocabulary=6)
    tables[:, :, EOS] = -math.inf
    state = MarkovChain(tables)
    hypotheses = search(state, [7, 3])
    assert len(state.num_rows) == 7
    for sentence, length in enumerate([7, 3]):
        assert {len(tokens) for _, tokens in found(hypotheses, sentence)} == {length}


@any_search
def test_a_model_that_ends_at_once_gives_the_end_symbol_alone(
    search: Callable[..., Hypotheses],
) -> None:
    state = MarkovChain(chain({SOS: {EOS: 1.0}}))
    hypotheses = search(state, [7])
    assert found(hypotheses, 0) == [(0.0, (EOS,))]
    assert len(state.num_rows) == 1


@any_search
def test_the_one_possible_sequence_is_the_one_hypothesis(
    search: Callable[..., Hypotheses],
) -> None:
    table = chain({SOS: {3: 1.0}, 3: {4: 1.0}, 4: {EOS: 1.0}})
    hypotheses = search(MarkovChain(table), [7])
    assert found(hypotheses, 0) == [(0.0, (3, 4, EOS))]


@any_search
def test_where_nothing_is_possible_there_is_no_hypothesis(
    search: Callable[..., Hypotheses],
) -> None:
    tables = torch.cat([chain({SOS: {3: 1.0}}), chain({SOS: {PAD: 1.0}}), chain({SOS: {EOS: 1.0}})])
    hypotheses = search(MarkovChain(tables), [7, 7, 7])
    assert hypotheses.scores[:2].isneginf().all()
    assert not hypotheses.lengths[:2].any()
    assert found(hypotheses, 2) == [(0.0, (EOS,))]


@any_search
def test_nan_ends_the_search(search: Callable[..., Hypotheses]) -> None:
    tables = torch.full((2, 6, 6), math.nan)
    hypotheses = search(MarkovChain(tables), [7, 7])
    assert not hypotheses.lengths.any()


@any_search
def test_without_an_end_symbol_every_hypothesis_is_as_long_as_it_may_be(
    search: Callable[..., Hypotheses],
) -> None:
    tables = random_chain(0, num_sentences=3, vocabulary=6)
    hypotheses = search(MarkovChain(tables), [4, 0, 2], NO_END)
    assert {len(tokens) for _, tokens in found(hypotheses, 0)} == {4}
    assert found(hypotheses, 1) == []
    assert {len(tokens) for _, tokens in found(hypotheses, 2)} == {2}


def test_without_an_end_symbol_a_wide_beam_finds_what_brute_force_finds() -> None:
    tables = random_chain(1, num_sentences=1, vocabulary=6)
    hypotheses = run_beam(MarkovChain(tables), [3], NO_END, beam_size=64, num_best=64)
    expected = best_by_brute_force(tables[0], 3, 0.0, has_end=False)
    assert scores_of(found(hypotheses, 0)) == pytest.approx(scores_of(expected), abs=1e-12)


@pytest.mark.long
@any_search
def test_low_precision_is_summed_in_float32(search: Callable[..., Hypotheses]) -> None:
    table = torch.full((1, 6, 6), -math.inf, dtype=torch.bfloat16)
    table[:, :, 3] = -0.0033
    hypotheses = search(MarkovChain(table), [1000])
    assert hypotheses.scores.dtype == torch.float32
    assert hypotheses.scores[0, 0].item() == pytest.approx(1000 * table[0, 0, 3].item(), rel=1e-5)


def test_a_finished_hypothesis_is_kept_while_open_ones_go_on() -> None:
    # The short one is the best of all, and is found while two others are more probable so far.
    table = chain({SOS: {3: 0.6, 4: 0.4}, 3: {5: 1.0}, 4: {EOS: 1.0}, 5: {3: 0.6, 5: 0.3, EOS: 0.1}})
    hypotheses = run_beam(MarkovChain(table), [6], beam_size=2)
    assert found(hypotheses, 0) == [(pytest.approx(math.log(0.4)), (4, EOS))]


def test_an_open_hypothesis_that_can_still_win_is_followed() -> None:
    # (3, EOS) ends first with log 0.5; (4, 5, 5, EOS) has log 0.45, and wins by its length.
    table = chain({SOS: {3: 0.5, 4: 0.5}, 3: {EOS: 1.0}, 4: {5: 0.9, EOS: 0.1}, 5: {5: 0.99, EOS: 0.01}})
    hypotheses = run_beam(MarkovChain(table), [8], beam_size=2, length_penalty=1.0)
    assert found(hypotheses, 0)[0][1] == (4, *[5] * 7)


def test_an_overtaken_finished_hypothesis_gives_its_place_back() -> None:
    # Of two places, (EOS) takes one at once. Two open hypotheses overtake it by their length, and
    # both are needed: the better one of them leads nowhere.
    table = chain(
        {
            SOS: {3: 0.7, EOS: 0.3},
            3: {4: 0.55, 5: 0.45},
            4: {3: 0.1, 4: 0.1, 5: 0.1},
            5: {EOS: 1.0},
        }
    )
    hypotheses = run_beam(MarkovChain(table), [4], beam_size=2, length_penalty=1.0)
    assert found(hypotheses, 0)[0][1] == (3, 5, EOS)


def test_the_search_ends_when_no_open_hypothesis_can_win() -> None:
    table = chain({SOS: {3: 0.9, 4: 0.1}, 3: {EOS: 1.0}, 4: {4: 1.0}})
    state = MarkovChain(table)
    run_beam(state, [50], beam_size=2, length_penalty=0.6)
    assert len(state.num_rows) == 2


def test_for_the_two_best_the_search_goes_on_until_both_are_known() -> None:
    table = chain({SOS: {3: 0.9, 4: 0.1}, 3: {EOS: 1.0}, 4: {4: 0.5, EOS: 0.5}})
    state = MarkovChain(table)
    hypotheses = run_beam(state, [50], beam_size=2, num_best=2)
    assert [tokens for _, tokens in found(hypotheses, 0)] == [(3, EOS), (4, EOS)]


def test_beams_share_one_row_at_the_first_step() -> None:
    tables = random_chain(0, num_sentences=5, vocabulary=6)
    tables[:, :, EOS] = -math.inf
    state = MarkovChain(tables)
    run_beam(state, [3] * 5, beam_size=4)
    assert state.num_rows == [5, 20, 20]


@pytest.mark.parametrize(("search", "beam_size"), [(run_greedy, 1), (run_beam, 3)])
def test_rows_of_finished_sentences_are_dropped_when_they_are_a_quarter(
    search: Callable[..., Hypotheses], beam_size: int
) -> None:
    tables = random_chain(0, num_sentences=8, vocabulary=6)
    tables[:, :, EOS] = -math.inf
    state = MarkovChain(tables)
    settings = {"beam_size": beam_size} if search is run_beam else {}
    search(state, [1, 2, 3, 3, 9, 9, 9, 9], **settings)
    sentences = [8, 8, 6, 4, 4, 4, 4, 4, 4]
    assert state.num_rows == [8] + [beam_size * number for number in sentences[1:]]


def test_more_hypotheses_than_beams_are_refused() -> None:
    with pytest.raises(ValueError, match=r"num_best \(3\) is above beam_size \(2\)"):
        DecodingConfig(beam_size=2, num_best=3)


@pytest.mark.long
@given(seed=seeds, alpha=alphas)
def test_a_beam_that_holds_everything_is_not_beaten_by_a_narrower_one(seed: int, alpha: float) -> None:
    tables = random_chain(seed, num_sentences=1, vocabulary=6)
    assume(tables.isfinite().all())

    def score(beam_size: int) -> float:
        of = MarkovChain(tables)
        hypotheses = run_beam(of, [4], beam_size=beam_size, length_penalty=alpha)
        return hypotheses.scores[0, 0].item()

    assert score(500) >= max(map(score, range(1, 8))) - 1e-12


@pytest.mark.parametrize("beam_size", [1, 2, 3])
def test_where_no_token_has_room_there_is_no_hypothesis_and_others_are_as_before(
    beam_size: int,
) -> None:
    tables = random_chain(1, num_sentences=2, vocabulary=5)
    for run in (run_greedy, partial(run_beam, beam_size=beam_size)):
        nothing = run(MarkovChain(tables), [0, 0])
        assert nothing.lengths.tolist() == [[0], [0]]
        assert nothing.scores.tolist() == [[-math.inf], [-math.inf]]
    beside = run_beam(MarkovChain(tables), [0, 4], beam_size=beam_size)
    assert found(beside, 0) == []
    alone = run_beam(MarkovChain(tables[1:]), [4], beam_size=beam_size)
    assert found(beside, 1) == found(alone, 0)
