import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.search import beam
from transformer_cli.decoding.search.beam import BLOCK_WIDTH, largest, top_k


def by_stable_sort(scores: torch.Tensor, offsets: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    values, positions = (scores + offsets.unsqueeze(-1)).flatten(1).sort(dim=1, descending=True, stable=True)
    return values[:, :k], positions[:, :k]


@st.composite
def problems(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Scores with few different values, so that most are equal; sizes near multiples of a block."""
    num_rows = draw(st.integers(1, 5))
    width = draw(st.sampled_from([1, 3, BLOCK_WIDTH, 5 * BLOCK_WIDTH, 5 * BLOCK_WIDTH + 1, 999]))
    k = draw(st.integers(1, min(8, num_rows * width)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**30)))
    num_values = draw(st.sampled_from([1, 2, 5, 10**6]))
    scores = torch.randint(num_values, (3, num_rows, width), generator=generator).neg().double()
    scores[torch.rand(scores.shape, generator=generator) < 0.2] = -math.inf
    offsets = torch.randint(3, (3, num_rows), generator=generator).neg().double()
    offsets[torch.rand(offsets.shape, generator=generator) < 0.2] = -math.inf
    return scores, offsets, k


@given(problem=problems())
def test_top_k_is_a_stable_descending_sort_cut_after_k(
    problem: tuple[torch.Tensor, torch.Tensor, int],
) -> None:
    scores, offsets, k = problem
    values, positions = top_k(scores, offsets, k)
    expected_values, expected_positions = by_stable_sort(scores, offsets, k)
    assert torch.equal(values, expected_values)
    assert torch.equal(positions, expected_positions)


@given(problem=problems())
def test_the_largest_is_the_first_of_the_largest(
    problem: tuple[torch.Tensor, torch.Tensor, int],
) -> None:
    rows = problem[0].flatten(0, 1)
    values, positions = largest(rows)
    expected_values, expected_positions = rows.sort(dim=1, descending=True, stable=True)
    assert torch.equal(values, expected_values[:, 0])
    assert torch.equal(positions, expected_positions[:, 0])


def test_among_equal_numbers_in_different_blocks_the_first_is_taken() -> None:
    scores = torch.zeros(1, 10 * BLOCK_WIDTH)
    scores[0, [7 * BLOCK_WIDTH, 3 * BLOCK_WIDTH + 5]] = 1.0
    assert largest(scores)[1].tolist() == [3 * BLOCK_WIDTH + 5]


def test_among_equal_numbers_in_blocks_with_different_maxima_the_first_comes_first() -> None:
    scores = torch.full((1, 1, 10 * BLOCK_WIDTH), -9.0)
    early, late = 2 * BLOCK_WIDTH, 5 * BLOCK_WIDTH
    scores[0, 0, [early, late, late + 1]] = torch.tensor([1.0, 3.0, 1.0])
    assert top_k(scores, torch.zeros(1, 1), 2)[1].tolist() == [[late, early]]


def test_the_scores_are_left_as_they_were() -> None:
    scores = torch.randn(2, 3, 1000)
    before = scores.clone()
    top_k(scores, torch.zeros(2, 3), 4)
    assert torch.equal(scores, before)


@pytest.mark.parametrize("k", [1, 4, 9])
def test_rows_that_a_gpu_sorts_at_once_give_the_same_choice(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Float64, which the compiled kernel does not read; many equal numbers, and some that are forbidden."""
    torch.manual_seed(1)
    scores = torch.randint(0, 3, (5, 4, 3 * BLOCK_WIDTH + 7)).double()
    scores[:, :, 5:90] = -math.inf
    offsets = torch.randint(0, 2, (5, 4)).double()
    offsets[0, 1:] = -math.inf
    expected = top_k(scores, offsets, k)
    sorted_at_once = list[int]()

    def always(rows: torch.Tensor) -> bool:
        sorted_at_once.append(rows.shape[1])
        return True

    monkeypatch.setattr(beam, "_are_sorted_at_once", always)
    found = top_k(scores, offsets, k)
    assert sorted_at_once
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("width", [3 * BLOCK_WIDTH + 7, 2000 * BLOCK_WIDTH])
def test_on_a_gpu_the_same_of_several_equal_numbers_are_chosen(width: int) -> None:
    torch.manual_seed(1)
    scores, offsets = torch.randint(0, 3, (5, 4, width)).float(), torch.randn(5, 4).round()
    expected = top_k(scores, offsets, 4)
    found = top_k(scores.cuda(), offsets.cuda(), 4)
    assert all(torch.equal(one.cpu(), other) for one, other in zip(found, expected, strict=True))
