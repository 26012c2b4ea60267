"""The tree of a beam search: it equals what plain search and brute force find, and observing changes nothing."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.search import beam_search
from transformer_cli.extensions.lessons.explaining.beam_tree import (
    BeamRecorder,
    best_of_each_step,
    branches,
    tokens_of,
)
from transformer_cli.extensions.lessons.explaining.explanation import BeamTree

from ....decoding.chains import (
    EOS,
    NO_START,
    PAD,
    SOS,
    SPECIAL_IDS,
    MarkovChain,
    alphas,
    assume_different,
    best_by_plain_beam,
    found,
    log_probability,
    penalty,
    random_chain,
    run_beam,
    seeds,
)

Tokens = tuple[int, ...]


def observed(
    table: Tensor,
    max_length: int,
    *,
    beam_size: int,
    alpha: float,
    num_best: int = 1,
    num_alternatives: int = 5,
) -> BeamTree:
    options = DecodingConfig.model_construct(beam_size=beam_size, length_penalty=alpha, num_best=num_best)
    recorder = BeamRecorder(SOS, str, num_alternatives)
    hypotheses = beam_search(
        MarkovChain(table[None]),
        special_ids=SPECIAL_IDS,
        max_lengths=torch.tensor([max_length]),
        options=options,
        hooks=NO_START,
        observer=recorder,
    )
    return recorder.tree(beam_size, [tokens for _, tokens in found(hypotheses, 0)])


def states(tree: BeamTree) -> dict[Tokens, str]:
    return {tokens_of(tree, node.node): node.state for node in tree.nodes}


def plain_states(table: Tensor, max_length: int, alpha: float, beam_size: int) -> dict[Tokens, str]:
    """What becomes of the best candidates of each step, by the rules of `best_by_plain_beam`."""
    fates: dict[Tokens, str] = {}
    still_open: list[tuple[float, Tokens]] = [(0.0, ())]
    finished: list[float] = []
    for length in range(1, max_length + 1):
        candidates = [
            (total + table[(SOS, *tokens)[-1], token].item(), (*tokens, token))
            for total, tokens in still_open
            for token in range(len(table))
            if token not in (PAD, SOS)
        ]
        assume_different([total for total, _ in candidates])
        candidates = sorted(candidates, reverse=True)[:beam_size]
        scored = [(total / penalty(length, alpha), tokens) for total, tokens in candidates]
        assume_different([*finished, *(score for score, _ in scored)])
        limit = sorted([*finished, *(score for score, _ in scored)], reverse=True)[:beam_size][-1]
        still_open = []
        for (total, tokens), (score, _) in zip(candidates, scored, strict=True):
            is_end = tokens[-1] == EOS or length == max_length
            fates[tokens] = "dropped" if score < limit else "finished" if is_end else "kept"
            if fates[tokens] == "kept":
                still_open.append((total, tokens))
            elif fates[tokens] == "finished":
                finished.append(score)
    return fates


@pytest.mark.long
@given(seeds, alphas, st.integers(1, 3))
def test_with_a_wide_beam_the_tree_holds_every_sequence_with_its_log_probability(
    seed: int, alpha: float, max_length: int
) -> None:
    [table] = random_chain(seed, num_sentences=1, vocabulary=6)
    tree = observed(table, max_length, beam_size=100, alpha=alpha, num_best=100)
    words = [token for token in range(6) if token not in (PAD, SOS, EOS)]
    expected = {
        (*before, token)
        for length in range(max_length)
        for before in product(words, repeat=length)
        for token in (*words, EOS)
    }
    by_tokens = {tokens_of(tree, node.node): node for node in tree.nodes[1:]}
    assert set(by_tokens) == expected
    for tokens, node in by_tokens.items():
        assert node.total == pytest.approx(log_probability(table, tokens), abs=1e-12)
        assert node.score == pytest.approx(node.total / penalty(len(tokens), alpha), abs=1e-12)
        assert node.length_penalty == pytest.approx(penalty(len(tokens), alpha), abs=1e-12)
        is_end = tokens[-1] == EOS or len(tokens) == max_length
        assert node.state in (("finished", "chosen") if is_end else ("kept", "chosen"))
    complete = [tokens for tokens in expected if tokens[-1] == EOS or len(tokens) == max_length]
    best = max(complete, key=lambda tokens: by_tokens[tokens].score)
    assert [tokens for tokens, state in states(tree).items() if state == "chosen"] == [
        best[:length] for length in range(len(best) + 1)
    ]


@pytest.mark.long
@given(seeds, alphas, st.integers(1, 4), st.integers(1, 5))
def test_each_step_keeps_drops_and_finishes_what_a_plain_beam_search_does(
    seed: int, alpha: float, beam_size: int, max_length: int
) -> None:
    [table] = random_chain(seed, num_sentences=1, vocabulary=7)
    tree = observed(table, max_length, beam_size=beam_size, alpha=alpha)
    num_steps = max(node.step for node in tree.nodes)
    expected = {
        tokens: fate
        for tokens, fate in plain_states(table, max_length, alpha, beam_size).items()
        if len(tokens) <= num_steps
    }
    seen = states(tree)
    best = [tokens for tokens, state in seen.items() if state == "chosen"][-1]
    for tokens, fate in expected.items():
        if seen[tokens] == "chosen":
            assert fate == ("finished" if tokens == best else "kept")
        else:
            assert seen[tokens] == fate, tokens
    others = seen.keys() - expected.keys() - {()}
    assert {seen[tokens] for tokens in others} <= {"dropped"}
    [(_, winner), *_] = best_by_plain_beam(table, max_length, alpha, beam_size)
    assert best == winner


@pytest.mark.long
@given(seeds, alphas, st.integers(1, 5))
def test_an_observer_changes_nothing(seed: int, alpha: float, beam_size: int) -> None:
    chains = random_chain(seed, num_sentences=1, vocabulary=8)
    plain = run_beam(MarkovChain(chains), [6], beam_size=beam_size, length_penalty=alpha, num_best=beam_size)
    tree = observed(chains[0], 6, beam_size=beam_size, alpha=alpha, num_best=beam_size)
    ends = sorted((node for node in tree.nodes if node.hypothesis is not None), key=_rank)
    assert [(node.score, tokens_of(tree, node.node)) for node in ends] == found(plain, 0)


def _rank(node: object) -> int:
    rank = getattr(node, "hypothesis", None)
    assert isinstance(rank, int)
    return rank


def test_a_node_stands_behind_its_parent_and_its_numbers_add_up() -> None:
    [table] = random_chain(5, num_sentences=1, vocabulary=9)
    tree = observed(table, 5, beam_size=3, alpha=0.6)
    assert (tree.nodes[0].parent, tree.nodes[0].id, tree.nodes[0].piece) == (None, SOS, str(SOS))
    for place, node in enumerate(tree.nodes[1:], start=1):
        assert node.node == place
        assert node.parent is not None
        parent = tree.nodes[node.parent]
        assert parent.node < node.node
        assert node.step == parent.step + 1
        assert node.total == pytest.approx(parent.total + node.log_probability)
        assert parent.state in ("kept", "chosen")


def test_the_tree_has_the_best_continuations_of_each_open_hypothesis() -> None:
    [table] = random_chain(6, num_sentences=1, vocabulary=9)
    tree = observed(table, 4, beam_size=2, alpha=0.6, num_alternatives=3)
    for node in tree.nodes:
        children = [one for one in tree.nodes if one.parent == node.node]
        if not children:
            continue
        allowed = table[node.id].clone()
        allowed[[PAD, SOS]] = -math.inf
        best = allowed.topk(3).indices.tolist()
        assert set(best) <= {child.id for child in children}
        assert len(children) <= 3 + 2


def test_banned_tokens_are_not_in_the_tree() -> None:
    [table] = random_chain(7, num_sentences=1, vocabulary=5)
    tree = observed(table, 4, beam_size=2, alpha=0.6, num_alternatives=5)
    assert not {PAD, SOS} & {node.id for node in tree.nodes[1:]}


def test_branches_are_the_nodes_without_children() -> None:
    [table] = random_chain(8, num_sentences=1, vocabulary=7)
    tree = observed(table, 4, beam_size=2, alpha=0.6)
    leaves = set(states(tree)) - {tokens[:-1] for tokens in states(tree) if tokens}
    assert set(branches(tree).values()) == leaves


def test_the_best_branch_of_each_step_comes_first() -> None:
    [table] = random_chain(10, num_sentences=1, vocabulary=7)
    tree = observed(table, 4, beam_size=3, alpha=0.6)
    nodes = [node.node for node in tree.nodes[1:]]
    order = best_of_each_step(tree, nodes)
    assert sorted(order) == nodes
    num_steps = max(node.step for node in tree.nodes)
    for step, node in enumerate(order[:num_steps], start=1):
        scores = [one.score for one in tree.nodes if one.step == step]
        assert (tree.nodes[node].step, tree.nodes[node].score) == (step, max(scores))


def test_a_search_of_two_sentences_is_refused() -> None:
    chains = random_chain(9, num_sentences=2, vocabulary=7)
    options = DecodingConfig.model_construct(beam_size=2, length_penalty=0.6, num_best=1)
    with pytest.raises(ValueError, match="one sentence"):
        beam_search(
            MarkovChain(chains),
            special_ids=SPECIAL_IDS,
            max_lengths=torch.tensor([4, 4]),
            options=options,
            hooks=NO_START,
            observer=BeamRecorder(SOS, str, 5),
        )
