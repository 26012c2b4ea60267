"""Constrained search: the best hypotheses among all that contain the terms."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Term, TokenIds
from transformer_cli.decoding.glossary import count_term, needed_counts
from transformer_cli.decoding.search import constrained_search
from transformer_cli.decoding.search.beam import Hypotheses
from transformer_cli.decoding.search.constrained import TermStates, TermTable
from transformer_cli.text.token_ids import WordEdges

from ..chains import (
    NO_START,
    SPECIAL_IDS,
    MarkovChain,
    alphas,
    assert_scores_are_of_the_tokens,
    best_by_brute_force,
    found,
    random_chain,
    run_beam,
    scores_of,
    seeds,
)

pytestmark = pytest.mark.long

VOCABULARY = 7  # [UNK] is 5; 3, 4, 6 are words
UNK = SPECIAL_IDS.unk_id
WORDS = (3, 4, 6)


def edges_of(goes_on: set[int]) -> WordEdges:
    """These tokens go on with the word before them; all words end in a word."""
    tokens = np.arange(VOCABULARY)
    return WordEdges(np.isin(tokens, [*goes_on]), np.isin(tokens, WORDS))


def run(
    tables: Tensor,
    max_lengths: list[int],
    terms: list[tuple[Term, ...]],
    *,
    beam_size: int,
    goes_on: frozenset[int] = frozenset(),
    reserve: int = 0,
    **options: object,
) -> Hypotheses:
    settings = {
        "length_penalty": 0.0,
        "length_normalization": "gnmt",
        "num_best": 1,
        "allow_unknown": True,
        **options,
    }
    decoding = DecodingConfig.model_construct(beam_size=beam_size, **settings)
    edges = edges_of({*goes_on})
    table = TermTable.of(terms, edges)
    states = TermStates(table, torch.from_numpy(edges.goes_on), reserve=reserve)
    lengths = torch.tensor(max_lengths)
    return constrained_search(
        MarkovChain(tables),
        special_ids=SPECIAL_IDS,
        max_lengths=lengths,
        options=decoding,
        hooks=NO_START,
        states=states,
    )


@pytest.mark.parametrize(
    ("piece", "goes_on", "ends_in_word"),
    [
        (" house", False, True),
        ("s", True, True),
        ("s.", True, False),
        ("s ", True, False),
        (".", False, False),
        ("(a", False, True),
        ("\u0301", True, True),  # a combining acute accent
        ("\u00e9".encode()[:1], True, True),  # half a letter
        ("", False, False),  # a special token
    ],
)
def test_the_edges_of_a_token_are_its_first_and_its_last_character(
    piece: str | bytes, goes_on: bool, ends_in_word: bool
) -> None:
    edges = WordEdges.of([piece.encode() if isinstance(piece, str) else piece])
    assert (edges.goes_on.tolist(), edges.ends_in_word.tolist()) == ([goes_on], [ends_in_word])


def contains(ids: TokenIds, terms: tuple[Term, ...], edges: WordEdges) -> bool:
    """Whether token ids contain every term as often as needed."""
    counts = Counter(terms)
    needed = zip(counts, needed_counts(counts, edges), strict=True)
    has_terms = all(count_term(ids, term, edges) >= number for term, number in needed)
    num_unknown = sum(form == (UNK,) for term in terms for form in term.forms)
    return has_terms and (not num_unknown or ids.count(UNK) == num_unknown)


def bound(ids: TokenIds, terms: tuple[Term, ...], edges: WordEdges) -> int:
    """The number of tokens that the search keeps free after these: all terms that are missing, one after the other."""
    counts = Counter(terms)
    missing, begun = 0, [0]
    for (term, _), needed in zip(counts.items(), needed_counts(counts, edges), strict=True):
        forms = (*term.forms, *term.first_forms)
        longest = max(map(len, forms))
        num_missing = max(0, needed - count_term(ids, term, edges))
        missing += num_missing * longest
        # The tokens after the last one that counts.
        free_from = next(
            end for end in range(len(ids) + 1) if count_term(ids[:end], term, edges) == count_term(ids, term, edges)
        )
        if num_missing and (free_from < len(ids) or not free_from):
            for form in forms:
                for length in range(1, min(len(form), len(ids) - free_from + 1)):
                    may_begin = form in term.forms or length == len(ids)
                    if may_begin and ids[-length:] == form[:length]:
                        begun.append(longest - len(form) + length)
    return missing - max(begun)


words = st.sampled_from(WORDS)
forms = st.lists(words, min_size=1, max_size=2).map(tuple)
rich_terms = st.lists(
    st.builds(
        Term,
        st.lists(forms, min_size=1, max_size=2, unique=True).map(tuple),
        st.lists(forms, max_size=1).map(tuple),
    ),
    max_size=2,
).map(tuple)
unknown_terms = st.integers(0, 2).map(lambda number: (Term(((UNK,),)),) * number)
all_terms = st.tuples(rich_terms, unknown_terms).map(lambda both: (*both[0], *both[1]))
sets_of_edges = st.sets(words, max_size=1).map(frozenset)


@pytest.mark.heavy
@settings(max_examples=20)
@given(
    seed=seeds,
    terms=st.lists(all_terms, min_size=2, max_size=2),
    alpha=alphas,
    goes_on=sets_of_edges,
    num_best=st.integers(1, 3),
)
def test_a_wide_beam_finds_the_best_of_all_hypotheses_with_the_terms(
    seed: int,
    terms: list[tuple[Term, ...]],
    alpha: float,
    goes_on: frozenset[int],
    num_best: int,
) -> None:
    tables = random_chain(seed, num_sentences=2, vocabulary=VOCABULARY)
    options = {"length_penalty": alpha, "num_best": num_best, "goes_on": goes_on}
    hypotheses = run(tables, [5, 4], terms, beam_size=800, **options)
    edges = edges_of({*goes_on})
    for sentence, max_length in enumerate([5, 4]):
        of_sentence = terms[sentence]
        expected = [
            pair
            for pair in best_by_brute_force(tables[sentence], max_length, alpha)
            if contains(pair[1], of_sentence, edges)
            and all(
                bound(pair[1][:length], of_sentence, edges) <= max_length - length
                for length in range(1, len(pair[1]) + 1)
            )
        ]
        actual = found(hypotheses, sentence)
        assert_scores_are_of_the_tokens(actual, tables[sentence], alpha)
        assert scores_of(actual) == pytest.approx(scores_of(expected[:num_best]), abs=1e-12)
        assert all(contains(ids, of_sentence, edges) for _, ids in actual)


@pytest.mark.heavy
@settings(max_examples=40)
@given(
    seed=seeds,
    terms=st.lists(all_terms, min_size=3, max_size=3),
    beam_size=st.integers(1, 6),
    slack=st.integers(0, 3),
    goes_on=sets_of_edges,
    reserve=st.integers(0, 2),
)
def test_every_hypothesis_of_any_beam_contains_the_terms(
    seed: int,
    terms: list[tuple[Term, ...]],
    beam_size: int,
    slack: int,
    goes_on: frozenset[int],
    reserve: int,
) -> None:
    tables = random_chain(seed, num_sentences=3, vocabulary=VOCABULARY)
    edges = edges_of({*goes_on})
    table = TermTable.of(terms, edges)
    max_lengths = (table.num_needed + slack).clamp(min=1).tolist()
    options = {"goes_on": goes_on, "reserve": reserve, "num_best": beam_size}
    hypotheses = run(tables, max_lengths, terms, beam_size=beam_size, **options)
    for sentence, of_sentence in enumerate(terms):
        actual = found(hypotheses, sentence)
        assert actual
        assert_scores_are_of_the_tokens(actual, tables[sentence], 0.0)
        assert all(contains(ids, of_sentence, edges) for _, ids in actual)
        alone = run(
            tables[sentence : sentence + 1],
            max_lengths[sentence : sentence + 1],
            [of_sentence],
            beam_size=beam_size,
            **options,
        )
        assert found(alone, 0) == actual


@given(
    seed=seeds,
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    alpha=alphas,
    beam_size=st.integers(1, 9),
    data=st.data(),
)
def test_without_terms_it_is_beam_search_bit_for_bit(
    seed: int, lengths: list[int], alpha: float, beam_size: int, data: st.DataObject
) -> None:
    num_best = data.draw(st.integers(1, beam_size))
    tables = random_chain(seed, num_sentences=len(lengths), vocabulary=VOCABULARY)
    if data.draw(st.booleans()):  # ties, and steps at which nothing is possible
        tables = (tables * 0.4).round().where(tables > -5.0, -math.inf)
    options = {"length_penalty": alpha, "num_best": num_best, "beam_size": beam_size}
    plain = run_beam(MarkovChain(tables), lengths, **options)
    constrained = run(tables, lengths, [()] * len(lengths), **options)
    assert torch.equal(constrained.ids, plain.ids)
    assert torch.equal(constrained.lengths, plain.lengths)
    assert torch.equal(constrained.scores, plain.scores)
