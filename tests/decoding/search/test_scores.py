"""Search hooks: their state follows the rows of the search, and they change what is chosen."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.decoding.search.beam import BannedTokens, Hypotheses, WholeCharacters
from transformer_cli.text.tokenizer_file import BytePieces

from ..chains import (
    EOS,
    NO_START,
    PAD,
    SOS,
    MarkovChain,
    alphas,
    assert_scores_are_of_the_tokens,
    best_by_brute_force,
    best_by_plain_beam,
    found,
    random_chain,
    run_beam,
    run_greedy,
    scores_of,
    seeds,
)


class NoTokenTwice:
    """Bans the tokens that a hypothesis already has."""

    def __init__(self) -> None:
        self.is_used = torch.empty(0)  # (R, V) bool
        self.num_rows: list[int] = []  # at each step

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        if not self.num_rows:
            self.is_used = torch.zeros_like(scores, dtype=torch.bool)
        self.num_rows.append(len(last_ids))
        self.is_used[range(len(last_ids)), last_ids] = True
        return scores.masked_fill(self.is_used, -torch.inf)

    def select(self, rows: Tensor) -> None:
        self.is_used = self.is_used[rows]


# Twelve sentences of different lengths: some finish early, and their rows are dropped.
LENGTHS = [1, 4, 2, 3, 1, 4, 4, 1, 2, 3, 4, 4]


@pytest.mark.long
@given(seed=seeds, alpha=alphas)
def test_greedy_search_takes_the_best_token_that_the_hook_allows(seed: int, alpha: float) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=7)
    hook = NoTokenTwice()
    hypotheses = run_greedy(MarkovChain(tables), LENGTHS, [*NO_START, hook], length_penalty=alpha)
    assert hook.num_rows[0] > hook.num_rows[-1]
    for sentence, (table, max_length) in enumerate(zip(tables, LENGTHS, strict=True)):
        tokens: tuple[int, ...] = ()
        while len(tokens) < max_length and EOS not in tokens:
            following = table[(SOS, *tokens)[-1]].tolist()
            allowed = {*range(7)} - {PAD, SOS, *tokens}
            tokens += (max(allowed, key=following.__getitem__),)
        [(score, found_tokens)] = found(hypotheses, sentence)
        assert found_tokens == tokens
        assert_scores_are_of_the_tokens([(score, tokens)], table, alpha)


@pytest.mark.long
@given(seed=seeds, alpha=alphas, num_best=st.integers(1, 4))
def test_a_wide_beam_with_a_hook_finds_what_brute_force_finds(seed: int, alpha: float, num_best: int) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=6)
    hypotheses = run_beam(
        MarkovChain(tables),
        LENGTHS,
        [*NO_START, NoTokenTwice()],
        beam_size=100,
        length_penalty=alpha,
        num_best=num_best,
    )
    for sentence, max_length in enumerate(LENGTHS):
        expected = best_by_brute_force(tables[sentence], max_length, alpha, repeats=False)
        actual = found(hypotheses, sentence)
        assert [tokens for _, tokens in actual] == [tokens for _, tokens in expected[:num_best]]
        assert_scores_are_of_the_tokens(actual, tables[sentence], alpha)


@pytest.mark.long
@given(seed=seeds, alpha=alphas, beam_size=st.integers(1, 6))
def test_the_state_of_a_hook_follows_the_rows_of_any_beam(seed: int, alpha: float, beam_size: int) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=7)
    scorer, hook = MarkovChain(tables), NoTokenTwice()
    hypotheses = run_beam(
        scorer,
        LENGTHS,
        [*NO_START, hook],
        beam_size=beam_size,
        length_penalty=alpha,
        num_best=beam_size,
    )
    assert hook.num_rows == scorer.num_rows
    for sentence, max_length in enumerate(LENGTHS):
        table = tables[sentence]
        expected = best_by_plain_beam(table, max_length, alpha, beam_size, repeats=False)
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(scores_of(expected[:beam_size]), abs=1e-12)
        assert all(len(set(tokens)) == len(tokens) for _, tokens in actual)
        assert_scores_are_of_the_tokens(actual, table, alpha)


@pytest.mark.parametrize("search", [run_greedy, lambda *args: run_beam(*args, beam_size=3)])
def test_a_hypothesis_without_an_allowed_token_gives_no_translation(
    search: Callable[..., Hypotheses],
) -> None:
    everything = BannedTokens(range(6))
    hypotheses = search(MarkovChain(random_chain(0, num_sentences=2, vocabulary=6)), [3, 3], [everything])
    assert hypotheses.scores.isneginf().all()
    assert not hypotheses.lengths.any()


def test_hooks_act_in_order_on_what_the_one_before_returned() -> None:
    seen = []

    class Note:
        def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
            seen.append((last_ids.tolist(), scores.isneginf().nonzero()[:, 1].tolist()))
            return scores

        def select(self, rows: Tensor) -> None:
            seen.append(("select", rows.tolist()))

    tables = random_chain(0, num_sentences=1, vocabulary=6)
    tables[:, :, EOS] = -9.0
    run_greedy(MarkovChain(tables), [1], [Note(), BannedTokens([PAD, SOS]), Note()])
    assert seen == [([SOS], []), ([SOS], [PAD, SOS])]


def test_the_search_itself_bans_nothing() -> None:
    tables = random_chain(0, num_sentences=1, vocabulary=6)
    tables[:, :, SOS] = 0.0
    [(_, tokens)] = found(run_greedy(MarkovChain(tables), [2], []), 0)
    assert tokens == (SOS, SOS)


# After PAD, SOS and EOS: halves of "é" and of "Ã", a third of "日" and the rest, whole characters, a mixed end.
PIECES = [b"", b"", b"", b"\xc3", b"\xa9", b"\xe6", b"\x97\xa5", b"a", "é".encode(), b"\x83b"]


def spelled(tokens: tuple[int, ...]) -> bytes:
    return b"".join(PIECES[token] for token in tokens)


def is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("max_length", [1, 2, 3, 4])
@given(seed=seeds)
@settings(max_examples=15)
def test_every_hypothesis_is_whole_characters_and_none_of_those_is_lost(max_length: int, seed: int) -> None:
    [table] = tables = random_chain(seed, num_sentences=1, vocabulary=len(PIECES))
    pieces = BytePieces.of(PIECES)
    assert pieces is not None
    hook = WholeCharacters(pieces, torch.tensor([max_length]))
    hypotheses = run_beam(MarkovChain(tables), [max_length], [*NO_START, hook], beam_size=2000, num_best=2000)
    expected = [tokens for _, tokens in best_by_brute_force(table, max_length, 0.0) if is_utf8(spelled(tokens))]
    # Sequences with the same steps in another order have equal scores.
    assert sorted(tokens for _, tokens in found(hypotheses, 0)) == sorted(expected)
    assert found(hypotheses, 0)[0][1] == expected[0]
    hook = WholeCharacters(pieces, torch.tensor([max_length]))
    [(_, greedy)] = found(run_greedy(MarkovChain(tables), [max_length], [*NO_START, hook]), 0)
    assert is_utf8(spelled(greedy))


@pytest.mark.parametrize("looks_at_rows", [True, False])
@pytest.mark.long
@given(seed=seeds, beam_size=st.integers(1, 4))
def test_whole_characters_follow_the_rows_of_any_beam(seed: int, beam_size: int, looks_at_rows: bool) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=len(PIECES))
    pieces = BytePieces.of(PIECES)
    assert pieces is not None
    hook = WholeCharacters(pieces, torch.tensor(LENGTHS), looks_at_rows=looks_at_rows)
    hypotheses = run_beam(MarkovChain(tables), LENGTHS, [*NO_START, hook], beam_size=beam_size, num_best=beam_size)
    for sentence in range(len(LENGTHS)):
        assert all(is_utf8(spelled(tokens)) for _, tokens in found(hypotheses, sentence))
        assert found(hypotheses, sentence)


@given(seed=seeds)
def test_both_forms_of_whole_characters_ban_the_same_tokens(seed: int) -> None:
    pieces = BytePieces.of(PIECES)
    assert pieces is not None
    generator = torch.Generator().manual_seed(seed)
    hooks = [WholeCharacters(pieces, torch.tensor(LENGTHS), looks_at_rows=one) for one in (True, False)]
    for _ in range(max(LENGTHS)):
        scores = torch.rand(len(LENGTHS), len(PIECES), generator=generator)
        last_ids = torch.randint(len(PIECES), (len(LENGTHS),), generator=generator)
        changed = [hook.adjust(scores.clone(), last_ids) for hook in hooks]
        assert torch.equal(*changed)


@given(st.lists(st.integers(0, 255), min_size=1, max_size=4).map(bytes))
@example("\ud7ff".encode())
@example(b"\xed\xa0\x80")
@example(b"\xe0\x80\xaf")
@example(b"\xf4\x90\x80\x80")
@example("\U0010ffff".encode())
def test_bytes_lead_back_to_the_first_state_if_and_only_if_they_are_utf8(content: bytes) -> None:
    pieces = BytePieces.of([bytes([byte]) for byte in range(256)])
    assert pieces is not None
    state = 0
    for byte in content:
        state = int(pieces.next_states[state, byte])
        if state < 0:
            break
    assert (state == 0) == is_utf8(content)


def test_a_vocabulary_of_whole_characters_needs_no_such_hook() -> None:
    assert BytePieces.of([b"", b"a", "日本".encode()]) is None
