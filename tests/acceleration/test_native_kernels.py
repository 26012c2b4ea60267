"""The kernels in C compute what PyTorch computes, row by row."""

import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transformer_cli.acceleration import native_kernels
from transformer_cli.acceleration.native_kernels import (
    SWITCH,
    Kernels,
    Lists,
    find_kernels,
)
from transformer_cli.acceleration.prepared_transformer import (
    PreparedTransformer,
    prepare_norm,
    prepare_quantised,
)
from transformer_cli.config import ModelConfig
from transformer_cli.decoding.search.beam import largest, top_k
from transformer_cli.model.transformer import Transformer

pytestmark = pytest.mark.usefixtures("kernels")


def both(prepare: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """What is prepared with the kernels and without them."""
    native = prepare()
    with monkeypatch.context() as without:
        without.setenv(SWITCH, "0")
        return native, prepare()


def rows_of(num_rows: int, width: int) -> Tensor:
    """Of very different sizes; one is zero and one has numbers below the smallest normal one."""
    x = torch.randn(num_rows, width) * torch.logspace(-3, 3, num_rows)[:, None]
    if num_rows > 3:
        x[1] *= 1e-40
        x[2] = 0.0
    return x


def same_bits(found: Tensor, expected: Tensor) -> bool:
    return torch.equal(found.view(torch.int32), expected.view(torch.int32))


@pytest.mark.long
@pytest.mark.parametrize(("width", "num_outputs"), [(8, 8), (64, 64), (104, 136), (512, 72), (520, 8)])
def test_a_product_of_integers_has_the_bits_of_pytorch(
    kernels: Kernels, width: int, num_outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [nn.Linear(width, num_outputs), nn.Linear(width, 8)]
    for has_relu in (False, True):
        native, plain = both(
            lambda has_relu=has_relu: prepare_quantised(layers, scales=[0.25, 1.0], has_relu=has_relu),
            monkeypatch,
        )
        assert type(native) is not type(plain)
        for num_rows in (*range(71), 600):
            x = rows_of(num_rows, width)
            with torch.inference_mode():
                assert same_bits(native(x), plain(x)), num_rows


@pytest.mark.parametrize(("width", "num_outputs"), [(1, 1), (3, 70), (7, 5), (100, 129), (513, 63)])
def test_a_product_of_integers_may_have_any_sizes(kernels: Kernels, width: int, num_outputs: int) -> None:
    layer = nn.Linear(width, num_outputs)
    multiply = prepare_quantised([layer])
    of_outputs = layer.weight.detach().abs().amax(1) / 127
    weights = (layer.weight.detach() / of_outputs[:, None]).round().double()
    for num_rows in (0, *range(1, 71)):
        x = rows_of(num_rows, width)
        largest_of_row = x.abs().amax(1, keepdim=True).clamp(min=2.0**-100)
        factor = torch.full_like(largest_of_row, 127.0) / largest_of_row
        sums = ((x * factor).round().double() @ weights.T).float()
        expected = (sums * (largest_of_row / 127)) * of_outputs + layer.bias.detach()
        assert torch.equal(multiply(x), expected), num_rows


def test_a_row_that_is_not_finite_becomes_nan_and_changes_no_other_row(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = rows_of(40, 64)
    bad = x.clone()
    bad[3, 7], bad[20, 63], bad[39] = math.inf, math.nan, -math.inf
    is_bad = ~bad.isfinite().all(1)
    for has_relu in (False, True):
        layer = nn.Linear(64, 72)
        multiplies = both(
            lambda layer=layer, has_relu=has_relu: prepare_quantised([layer], has_relu=has_relu),
            monkeypatch,
        )
        for multiply in multiplies:
            with torch.inference_mode():
                found, expected = multiply(bad), multiply(x)
            assert found[is_bad].isnan().all()
            assert torch.equal(found[~is_bad], expected[~is_bad])


def test_a_product_of_integers_reads_its_own_row_only(kernels: Kernels) -> None:
    multiply = prepare_quantised([nn.Linear(96, 200)])
    x = rows_of(67, 96)
    together = multiply(x)
    for first, last in ((0, 1), (5, 9), (30, 67), (66, 67)):
        assert same_bits(multiply(x[first:last]), together[first:last])


@pytest.mark.parametrize("width", [4, 6, 16, 32, 40, 64, 128])
def test_attention_reads_the_listed_positions(kernels: Kernels, width: int) -> None:
    num_rows, num_groups, group_size, num_positions = 7, 2, 3, 90
    queries = torch.randn(num_rows, num_groups * group_size, width)
    keys, values = torch.randn(num_positions, 2, num_groups, width).unbind(1)
    counts = torch.tensor([1, 15, 16, 17, 70], dtype=torch.int32)
    positions = torch.randint(num_positions, (5, 70), dtype=torch.int32)
    of_rows = torch.tensor([0, 1, 2, 3, 4, 4, 1], dtype=torch.int32)
    found = Lists(kernels, positions, counts, of_rows).attend(queries, keys, values)
    for row in range(num_rows):
        read = positions[of_rows[row], : int(counts[of_rows[row]])].long()
        for head in range(num_groups * group_size):
            k, v = keys[read, head // group_size], values[read, head // group_size]
            expected = (k @ queries[row, head]).softmax(0) @ v
            here = found[row, head * width : (head + 1) * width]
            torch.testing.assert_close(here, expected, atol=3e-5, rtol=1e-4)


@pytest.mark.parametrize("width", [1, 5, 16, 33, 512])
def test_layer_norm_and_log_softmax_are_those_of_pytorch(kernels: Kernels, width: int) -> None:
    norm = nn.LayerNorm(width, 1e-5)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = 3.0 + 10.0 * torch.randn(9, width)
    with torch.inference_mode():
        found = prepare_norm(norm, kernels)(x)
        torch.testing.assert_close(found, norm(x), atol=1e-4, rtol=1e-4)
        scores = x.clone()
        scores[2, 0], scores[3], scores[4, -1] = -math.inf, 1e4 * x[3], math.nan
        expected = scores.log_softmax(-1)
        kernels.log_softmax(scores.data_ptr(), *scores.shape)
        torch.testing.assert_close(scores, expected, atol=2e-5, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize(("num_rows", "width", "k"), [(1, 5, 3), (1, 64, 1), (4, 1000, 4), (3, 257, 9)])
def test_of_equal_numbers_the_first_is_among_the_largest(
    kernels: Kernels, num_rows: int, width: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for num_values in (2, 30, 10**6):
        scores = -torch.randint(num_values, (6, num_rows, width)).float()
        scores[1, :, 2:] = -math.inf
        offsets = -torch.randint(3, (6, num_rows)).float()
        offsets[2, -1] = -math.inf
        sorted_all = (scores + offsets[..., None]).flatten(1).sort(stable=True, dim=1, descending=True)
        found = top_k(scores, offsets, k)
        assert torch.equal(found[0], sorted_all.values[:, :k])
        assert torch.equal(found[1], sorted_all.indices[:, :k])
        rows = scores.flatten(0, 1)
        for ours, theirs in zip(largest(rows), rows.max(1), strict=True):
            assert torch.equal(ours, theirs)


SIZES: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 72, "encoder_layers": 2, "decoder_layers": 2}


@pytest.mark.long
@pytest.mark.parametrize("is_quantised", [False, True], ids=["float32", "int8"])
def test_no_row_depends_on_its_neighbours_or_on_padding(kernels: Kernels, is_quantised: bool) -> None:
    """With integers the bits are equal; in float32 PyTorch multiplies, and rounds as the number of rows makes it."""
    torch.manual_seed(3)
    model = Transformer(ModelConfig.model_validate(SIZES), 11, 130).eval()
    prepared = PreparedTransformer(model, torch.float32, is_quantised=is_quantised)
    ids = torch.randint(4, 11, (5, 40))
    lengths = torch.tensor([40, 1, 17, 16, 33])
    mask = torch.arange(40) < lengths[:, None]

    def scores(numbers: list[int], width: int) -> Tensor:
        """Of three steps of a beam of two, for some of the sources, which are padded to a width."""
        found = []
        with torch.inference_mode():
            real = mask[numbers, :width]
            state = prepared.start_decoding(prepared.encode(ids[numbers, :width], real), real)
            found.append(state.advance(torch.full((len(numbers),), 2)))
            state.select(torch.arange(len(numbers)).repeat_interleave(2))
            found.append(state.advance(torch.tensor([5, 6] * len(numbers))))
            state.select(torch.arange(2 * len(numbers)).view(-1, 2).flip(1).flatten())
            found.append(state.advance(torch.tensor([7, 7] * len(numbers))))
        return torch.stack([one[-2:].flatten()[-130:] for one in found])

    for number, length in enumerate(lengths.tolist()):
        alone = scores([number], length)
        among_others = scores([*range(number + 1), number][-4:], 40)
        if is_quantised:
            assert same_bits(alone, among_others)
        torch.testing.assert_close(alone, among_others, atol=2e-5, rtol=1e-4)


def test_threads_share_the_work_and_change_nothing(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    multiply = prepare_quantised([nn.Linear(40, 300)])
    x = [torch.randn(num_rows, 40) for num_rows in (1, 3, 70, 200)]
    queries = torch.randn(33, 4, 8)
    keys, values = torch.randn(50, 2, 4, 8).unbind(1)
    positions = torch.randint(50, (33, 9), dtype=torch.int32)
    own = torch.arange(33, dtype=torch.int32)
    lists = Lists(kernels, positions, torch.full((33,), 9, dtype=torch.int32), own.flip(0))

    def found() -> list[Tensor]:
        return [*map(multiply, x), lists.attend(queries, keys, values)]

    expected = found()
    monkeypatch.setattr(native_kernels, "_SMALLEST_PART", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for ours, theirs in zip(found(), expected, strict=True):
        assert same_bits(ours, theirs)


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    first = native_kernels._threads(1)
    assert first.submit(os.getpid).result() == os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks with threads
        child = os.fork()
    if child == 0:
        os._exit(0 if native_kernels._threads(1) is not first else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_environment_variable_turns_the_kernels_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert find_kernels() is None
