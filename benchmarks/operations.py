"""The cost of one update and of one step of a search on a GPU, without a GPU: kernels, bytes, FLOP, and the time that follows.

    python benchmarks/operations.py
    python benchmarks/operations.py --presets base --list

Kernels, bytes and FLOP are counted. The code of `tfm` runs on fake tensors, which have a device (cuda) but no numbers, so it takes
the branches of a GPU. Each operation that is no view counts as one kernel; it reads its tensors and writes its results once.
What torch.compile makes of operations is modelled: neighbours between two products become one kernel, which reads what others
have written, and writes what others read. The times are computed: those of the slower of both for each kernel, its bytes or its FLOP, and
of the CPU, which starts the kernels. The rates are those of data sheets, times a share that real kernels reach. How much slower some
kernels are than their bytes, and what a start costs, was measured on one H100 (docs/experiments.md); on other cards it is a guess.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from transformer_cli.acceleration import accelerate, cast_weights, cpu_training, losses
from transformer_cli.acceleration.accelerate import FusedAttention, TransformerOnGpu
from transformer_cli.acceleration.optimizers import BatchedMuon
from transformer_cli.acceleration.recorded_passes import RecordedPasses, Work
from transformer_cli.config import DecodingConfig, ModelConfig, TrainingConfig
from transformer_cli.data.updates import Batch
from transformer_cli.decoding.engine import Request, SpecialIds
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.search import beam
from transformer_cli.model import Transformer
from transformer_cli.model import layers as embeddings
from transformer_cli.model.layers import MultiHeadAttention
from transformer_cli.process.device import PEAKS_OF_DATA_SHEETS, Machine
from transformer_cli.text import SequenceFormat
from transformer_cli.training import optimizers
from transformer_cli.training.loop import UpdateRunner, build_objective
from transformer_cli.training.optimizers import Optimizer

GPU = torch.device("meta")


class Card(NamedTuple):
    """A GPU as its data sheet describes it."""

    name: str
    bytes_per_second: float
    flop_per_second: float
    """Of dense products in bfloat16 or float16, added up in float32."""


CARDS = (
    Card("H100", 3.35e12, PEAKS_OF_DATA_SHEETS["H100"]),
    Card("RTX 4090", 1.008e12, PEAKS_OF_DATA_SHEETS["RTX 4090"]),
    Card("T4", 0.320e12, PEAKS_OF_DATA_SHEETS["T4"]),
)
"""Sources: NVIDIA H100 Tensor Core GPU data sheet (SXM, without sparsity); NVIDIA Ada GPU Architecture, appendix A (FP16 and
BF16 with FP32 accumulate); NVIDIA T4 Tensor Core GPU data sheet (FP16; the T4 has no fast bfloat16, and flash attention needs a
newer card)."""
REACHED_BANDWIDTH, REACHED_FLOP = 0.8, 0.6
"""The shares of both rates that kernels reach. On an H100 products of the base model reached 0.61, additions more than 0.8 (the cache helps)."""
TIMES_AS_LONG = {
    "_scaled_dot_product_efficient_attention": 2.0,
    "_scaled_dot_product_efficient_attention_backward": 2.0,
    "native_layer_norm": 2.4,
    "native_layer_norm_backward": 4.6,
    "sum": 2.0,
    "joined loss": 1.5,
}
"""An operation -> how many times as long as its bytes take at the reached bandwidth, in an update of the base model on an H100."""
LEAST_SECONDS = 5e-6
"""Of any kernel, also a short one: those of `small` took 7 microseconds in the mean."""
SECONDS_OF_A_START = {"update": 80e-6, "step": 20e-6}
"""What an operation costs the CPU, Python and PyTorch included (the driver alone: 5 to 10 microseconds). Measured on a virtual machine of
16 Xeon cores, whose runs differed by 1.6; a step of a search has no gradients, so it costs less."""


class Load(NamedTuple):
    """A preset with batches that suit it; each source has padding."""

    preset: str
    num_pairs: int
    length: int
    vocab_size: int


LOADS = (
    Load("tiny", 136, 30, 8_000),
    Load("small", 136, 30, 8_000),
    Load("base", 833, 30, 37_000),
    Load("big", 833, 30, 37_000),
)
SEARCHED, BEAM = 64, 4


# The trace.


@dataclass(slots=True)
class Kernel:
    """One operation of the device."""

    name: str
    flop: float
    reads: dict[int, int]
    """Of each tensor by its storage: bytes."""
    writes: dict[int, int]
    size: int
    """The numbers in its largest tensor."""
    place: str = ""

    @property
    def num_bytes(self) -> int:
        """Read and written."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def times_as_long(self) -> float:
        """See `TIMES_AS_LONG`."""
        is_of_loss = self.place == LOSS and self.name.startswith("joined")
        return TIMES_AS_LONG.get("joined loss" if is_of_loss else self.name, 1.0)


WITHOUT_KERNEL = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "detach",
    "lift_fresh",
    "alias",
}
WRITES_ONLY = {"copy_", "fill_", "zero_", "_foreach_copy_", "_foreach_zero_"}
FLOP = {**flop_registry, torch.ops.aten._addmm_activation: flop_registry[torch.ops.aten.addmm]}
READS_ROWS = {"embedding", "gather", "index", "index_select"}
"""They read as much of their first tensor as they write."""


class Trace(TorchDispatchMode):
    """Writes down the kernels of a fake GPU device."""

    def __init__(self, number: int = 1) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels: list[Kernel] = []
        self.place = ""
        self._number = number
        self._kept: list[Any] = []  # a storage that is gone would lend its number to another

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        if name in ("_local_scalar_dense", "item", "is_nonzero"):  # a value that the CPU reads
            return self._number
        with self:  # in inference mode, PyTorch does not take composite operations apart
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        found = func(*args, **kwargs)
        results = [one for one in tree_leaves(found) if isinstance(one, Tensor)]
        self._kept += [one.untyped_storage() for one in results]
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        is_free = func.is_view or name in WITHOUT_KERNEL or name.startswith(("_unsafe_view", "split_with"))
        if not is_free and any(one.is_meta for one in (*given, *results)):
            self.kernels.append(self._kernel(func, name, args, kwargs, given, results, found))
        return found

    def now_in(self, place: str) -> str:
        """Mark what follows; returns the mark before."""
        before, self.place = self.place, place
        return before

    def _kernel(
        self,
        func: Any,
        name: str,
        args: Any,
        kwargs: Any,
        given: list[Tensor],
        results: list[Tensor],
        found: Any,
    ) -> Kernel:
        changed = _changed(func, args, kwargs)
        written = [
            *changed,
            *(one for one in results if all(one is not other for other in changed)),
        ]
        read = [one for one in given if one.is_meta]
        if name in WRITES_ONLY:
            read = [one for one in read if all(one is not other for other in changed)]
        if name in READS_ROWS:
            read = [*read[1:], *results]
        count = FLOP.get(func.overloadpacket)
        flop = count(*args, **kwargs, out_val=found) if count else 0
        reads, writes = dict[int, int](), dict[int, int]()
        for tensors, sizes in ((read, reads), (written, writes)):
            for one in tensors:
                key = one.untyped_storage()._cdata
                sizes[key] = sizes.get(key, 0) + _distinct_bytes(one)
        size = max((one.numel() for one in (*read, *written)), default=0)
        return Kernel(name, flop, reads, writes, size, self.place)


def _changed(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that an operation changes in place."""
    found = []
    for number, argument in enumerate(func._schema.arguments):
        value = args[number] if number < len(args) else kwargs.get(argument.name)
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += [one for one in tree_leaves(value) if isinstance(one, Tensor)]
    return found


def _distinct_bytes(tensor: Tensor) -> int:
    """Without what is broadcast: it is read from a cache."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    count = tensor.element_size()
    for size, stride in sizes:
        count *= size if stride or not size else 1
    return count


# What a GPU does otherwise than a CPU.


def attention_of_a_gpu(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
) -> Tensor:
    """`scaled_dot_product_attention` as PyTorch 2.13 chooses it on Ampere and newer, with cuDNN and flash attention off."""
    inputs, aten = (queries, keys, values), torch.ops.aten
    needs_sums = torch.is_grad_enabled() and queries.requires_grad
    if attn_mask is None:
        return aten._scaled_dot_product_efficient_attention(*inputs, None, needs_sums, dropout_p, is_causal)[0]
    size = attn_mask.size(-1)
    if any(stride % 8 for stride in attn_mask.stride()[:-1]):
        attn_mask = F.pad(attn_mask, (0, -size % 8))[..., :size]
    bias = attn_mask.expand(*queries.shape[:3], keys.size(2))
    return aten._scaled_dot_product_efficient_attention(*inputs, bias, needs_sums, dropout_p, is_causal)[0]


class Autocast:
    """What autocast does to the functions that a Transformer uses; without a GPU, PyTorch has none for a device without numbers."""

    def __init__(self) -> None:
        self.dtype: torch.dtype | None = None
        self._casts: dict[int, Tensor] = {}
        self._linear, self._layer_norm = F.linear, F.layer_norm

    @contextmanager
    def set_to(self, dtype: torch.dtype | None) -> Iterator[None]:
        before, self.dtype = self.dtype, dtype
        try:
            yield
        finally:
            self.dtype = before
            if before is None:
                self._casts.clear()

    def product_dtype(self, x: Tensor) -> torch.dtype:
        return self.dtype or x.dtype

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return self._linear(self._cast(x), self._cast(weight), None if bias is None else self._cast(bias))

    def layer_norm(self, x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
        return self._layer_norm(x if self.dtype is None else x.float(), shape, weight, bias, eps)

    def _cast(self, tensor: Tensor) -> Tensor:
        if self.dtype is None or tensor.dtype == self.dtype:
            return tensor
        if not (tensor.is_leaf and tensor.requires_grad and torch.is_grad_enabled()):
            return tensor.to(self.dtype)
        if id(tensor) not in self._casts:  # weights are cast once, but not in inference mode
            self._casts[id(tensor)] = tensor.to(self.dtype)
        return self._casts[id(tensor)]


def dropout_of_a_gpu(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """One kernel, where other devices have several."""
    return torch.native_dropout(x, p, train=True)[0] if training and p else x


def divides_gradients(optimizer: torch.optim.Optimizer, _: Any) -> bool:
    """As PyTorch's optimizers for CUDA do."""
    return isinstance(optimizer, torch.optim.Adam)


@contextmanager
def imagined_gpu() -> Iterator[None]:
    """In the block, code on the meta device takes the branches of a GPU, and calls its kernels."""
    autocast, tables = Autocast(), functools.cache(embeddings.sines_and_cosines.__wrapped__)
    patches: list[tuple[Any, str, Any]] = [
        (F, "scaled_dot_product_attention", attention_of_a_gpu),
        (F, "linear", autocast.linear),
        (F, "layer_norm", autocast.layer_norm),
        (F, "dropout", dropout_of_a_gpu),
        (Machine, "autocast", lambda machine: autocast.set_to(machine.precision)),
        (embeddings, "sines_and_cosines", tables),
        (optimizers, "_heeds_found_inf", lambda *_: True),
        (optimizers, "_divides_gradients", lambda *given: divides_gradients(*given)),
        (sys.modules["torch.nn.utils.clip_grad"], "_has_foreach_support", lambda *_: True),
        (
            sys.modules["torch.optim.optimizer"],
            "_get_fused_kernels_supported_devices",
            lambda: ["meta"],
        ),
    ]
    for name, module in list(sys.modules.items()):
        if name.startswith("transformer_cli") and hasattr(module, "product_dtype"):
            patches.append((module, "product_dtype", autocast.product_dtype))
        if name.startswith("transformer_cli") and hasattr(module, "without_autocast"):
            patches.append((module, "without_autocast", lambda _: autocast.set_to(None)))
    with ExitStack() as stack:
        for patched in patches:
            stack.enter_context(patch.object(*patched))
        yield


# What torch.compile makes of a trace.


LOSS, LAYERS, UPDATE = "loss", "layers", "update"
"""Places of a trace: in the loss, between it and the embeddings, and in the optimizer."""

ALONE = (
    "mm",
    "addmm",
    "_addmm",
    "bmm",
    "baddbmm",
    "_scaled_dot",
    "embedding",
    "index",
    "native_dropout_backward_",
)
"""The beginnings of the names of operations that stay kernels of their own."""


def compiled(kernels: Sequence[Kernel], places: Sequence[str]) -> list[Kernel]:
    """The kernels after torch.compile has joined neighbours of the same size, in some places.

    A joined kernel reads what others have written, each tensor once, and writes what others will read, or what nobody reads
    within the trace, such as a gradient. A sum over the rows of a matrix stays a kernel of its own.
    """
    readers = dict[int, set[int]]()
    for number, one in enumerate(kernels):
        for key in one.reads:
            readers.setdefault(key, set()).add(number)
    found = list[Kernel]()
    is_open: Callable[[int], Any] = lambda number: (  # noqa: E731
        kernels[number].place in places and not kernels[number].name.startswith(ALONE) and kernels[number].place
    )
    for can_join, run in groupby(range(len(kernels)), is_open):
        if not can_join:
            found += [kernels[number] for number in run]
            continue
        groups = dict[tuple[int, bool], list[int]]()
        for number in run:
            one = kernels[number]
            is_sum = (
                one.place == LAYERS and one.name == "sum" and 64 * sum(one.writes.values()) < sum(one.reads.values())
            )
            groups.setdefault((one.size, is_sum), []).append(number)
        found += [_joined(kernels, group, readers) for group in groups.values()]
    return found


def _joined(kernels: Sequence[Kernel], numbers: Sequence[int], readers: dict[int, set[int]]) -> Kernel:
    reads, writes = dict[int, int](), dict[int, int]()
    for one in (kernels[number] for number in numbers):
        for key, num_bytes in one.reads.items():
            if key not in writes:
                reads[key] = max(reads.get(key, 0), num_bytes)
        for key, num_bytes in one.writes.items():
            writes[key] = max(writes.get(key, 0), num_bytes)
    kept = {
        key: num_bytes
        for key, num_bytes in writes.items()
        if key in reads or not readers.get(key) or readers[key] - set(numbers)
    }
    first = kernels[numbers[0]]
    return Kernel(f"joined {first.name}", 0, reads, kept, first.size, first.place)


# What is traced.


def trace_of_update(load: Load, *, is_loss_compiled: bool = True) -> list[Kernel]:
    """The kernels of the second update of a training; the first one also makes the state of Adam."""
    trace = Trace()
    with imagined_gpu(), _places_marked(trace):
        model = _model(load).train()
        model.encoder.register_forward_pre_hook(lambda *_: setattr(trace, "place", LAYERS))
        training = TrainingConfig(max_steps=1, batch_tokens=4096)
        optimizer = Optimizer(model, training)
        objective = build_objective(training, load.vocab_size, GPU, is_compiled=is_loss_compiled)
        runner = UpdateRunner(Machine(GPU, torch.bfloat16))
        for _ in range(2):
            trace.kernels.clear()
            with trace:
                runner.run(model, optimizer, objective, [_batch(load)], seed=1, clip_norm=1.0)
    return trace.kernels


@contextmanager
def _places_marked(trace: Trace) -> Iterator[None]:
    """The kernels of a compiled loss are marked, and those of the optimizer."""

    def compiled_loss(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            before = trace.now_in(LOSS)
            try:
                return function(*arguments)
            finally:
                trace.now_in(before)

        return call

    norm = nn.utils.get_total_norm

    def norm_of(*arguments: Any) -> Any:  # the first operation behind the backward pass
        trace.now_in(UPDATE)
        return norm(*arguments)

    with (
        patch.object(losses, "compiled", compiled_loss),
        patch.object(nn.utils, "get_total_norm", norm_of),
    ):
        yield


class _Ended(Exception):
    pass


def trace_of_step(load: Load, *, is_prepared: bool = True) -> list[Kernel]:
    """The kernels of one step of a beam search, after some steps; no sentence ends in it."""
    with imagined_gpu():
        model = _model(load).eval()
        trace, lengths = Trace(SEARCHED), list[int]()

        class Observer:
            def saw(self, *_: Any) -> None:
                lengths.append(len(trace.kernels))
                if len(lengths) == 6:
                    raise _Ended

        engine = PyTorchEngine(
            model,
            SpecialIds(unk_id=0, pad_id=1, sos_id=2, eos_id=3),
            SequenceFormat(),
            Machine(GPU, torch.bfloat16),
            observer=Observer(),
        )
        engine = engine.prepared() if is_prepared else engine
        requests = [Request(tuple([5] * (load.length - number % 3))) for number in range(SEARCHED)]
        options = DecodingConfig(beam_size=BEAM, batch_tokens=10**6)
        with suppress(_Ended), trace:
            engine.translate(requests, options)
    return trace.kernels[lengths[-2] : lengths[-1]]


class Costs(NamedTuple):
    """Of an update, or of a step of a search."""

    num_kernels: int
    num_bytes: int
    flop: float
    kernels: Sequence[Kernel]
    seconds_of_a_start: float

    @classmethod
    def of(cls, kernels: Sequence[Kernel], seconds_of_a_start: float) -> "Costs":
        """The sums over kernels."""
        sums = sum(one.num_bytes for one in kernels), sum(one.flop for one in kernels)
        return cls(len(kernels), *sums, kernels, seconds_of_a_start)

    @property
    def bytes_beside_products(self) -> int:
        """Of the kernels without a product of matrices."""
        return sum(one.num_bytes for one in self.kernels if not one.flop)

    def kernel_seconds_on(self, card: Card) -> float:
        """The time of all kernels, one after the other."""
        return sum(
            max(
                one.num_bytes * one.times_as_long / (REACHED_BANDWIDTH * card.bytes_per_second),
                one.flop / (REACHED_FLOP * card.flop_per_second),
                LEAST_SECONDS,
            )
            for one in self.kernels
        )

    def seconds_on(self, card: Card) -> float:
        """The slower of the GPU, kernel by kernel, and of the CPU that starts them."""
        return max(self.kernel_seconds_on(card), self.seconds_of_a_start * self.num_kernels)


class Stage(NamedTuple):
    """A form of the code: the first one is that of commit 52c02d2, and each of the others adds to the one before."""

    what: str
    is_loss_compiled: bool = True
    are_layers_compiled: bool = False
    is_prepared: bool = True
    without: Callable[[], AbstractContextManager[Any]] = nullcontext
    """In its block, the code is as before some mends."""

    def costs_of_update(self, load: Load) -> Costs:
        """Forward pass, loss, backward pass, and optimizer."""
        # torch.compile takes the plain form of the feed-forward network.
        plain = patch.object(cast_weights, "JOINS_RELU", ())
        with self.without(), plain if self.are_layers_compiled else nullcontext():
            kernels = trace_of_update(load, is_loss_compiled=self.is_loss_compiled)
        places = (LOSS, LAYERS) if self.are_layers_compiled else (LOSS,)
        return Costs.of(compiled(kernels, places), SECONDS_OF_A_START["update"])

    def costs_of_step(self, load: Load) -> Costs:
        """One step of a search; nothing of it is compiled."""
        with self.without():
            kernels = trace_of_step(load, is_prepared=self.is_prepared)
        return Costs.of(kernels, SECONDS_OF_A_START["step"])


class TransformerBefore(TransformerOnGpu):
    """Its activations between products are in float32."""

    _prepared = Transformer._prepared


class AttentionBefore(FusedAttention):
    """A product for each of queries, keys and values."""

    forward = MultiHeadAttention.forward
    keys_and_values = MultiHeadAttention.keys_and_values


@contextmanager
def with_kernels_of_their_own() -> Iterator[None]:
    """In the block, ReLU, clipping and each operation of the choice of the best k are kernels of their own."""
    with (
        patch.object(cast_weights, "JOINS_RELU", ()),
        patch.object(sys.modules[__name__], "divides_gradients", lambda *_: False),
        patch.object(beam, "MOST_SORTED", 0),
    ):
        yield


@contextmanager
def with_twins_of_before() -> Iterator[None]:
    """In the block, autocast casts each weight by itself, and widens each norm."""
    twins = {Transformer: TransformerBefore, MultiHeadAttention: AttentionBefore}
    with (
        with_kernels_of_their_own(),
        patch.object(sys.modules[accelerate.__module__], "TWINS_ON_GPU", twins),
    ):
        yield


@contextmanager
def with_masks_of_before() -> Iterator[None]:
    """In the block, each attention copies its bias to aligned rows and sets to zero what sources without tokens give."""
    seam = sys.modules[accelerate.__module__]
    with (
        with_twins_of_before(),
        patch.object(cpu_training, "_ALIGNMENT", 1),
        patch.object(seam, "is_known_to_have_tokens", lambda _: False),
    ):
        yield


STAGES = (
    Stage("at commit 52c02d2", is_loss_compiled=False, is_prepared=False, without=with_masks_of_before),
    Stage("weights of a search cast once", is_loss_compiled=False, without=with_masks_of_before),
    Stage("loss compiled", without=with_masks_of_before),
    Stage("masks aligned, without zeros", without=with_twins_of_before),
    Stage("casts at once, joined projections, narrow activations", without=with_kernels_of_their_own),
    Stage("ReLU, clipping and the choice of the best joined"),
    Stage("layers compiled too", are_layers_compiled=True),
)
"""The last but one is what `tfm` does; the layers are compiled in long runs."""


def _model(load: Load) -> Transformer:
    config = ModelConfig.model_validate({"preset": load.preset, "tie_embeddings": "all"})
    with GPU:
        return accelerate(Transformer(config, load.vocab_size, load.vocab_size), GPU)


def _batch(load: Load) -> Batch:
    size = load.num_pairs, load.length
    ids = [torch.ones(size, dtype=torch.int64, device=GPU) for _ in range(3)]
    mask = torch.ones(size, dtype=torch.bool, device=GPU)
    cells = load.num_pairs * load.length
    counts = cells - 1, cells - 1
    return Batch(ids[0], mask, ids[1], ids[2], *counts, pad_id=1, sources_have_tokens=True)


# What the CPU starts.


def starts_of_recorded_passes(load: Load) -> int:
    """The operations that the CPU starts for a batch whose shape is recorded already (`runtime.cuda_graphs`), the replay as one."""
    with imagined_gpu():
        machine, training = Machine(GPU, torch.bfloat16), TrainingConfig(max_steps=1, batch_tokens=4096)
        objective = build_objective(training, load.vocab_size, GPU)
        passes = RecordedPasses(_model(load).train(), objective, machine, _recorded)
        for _ in range(2):  # the first one is recorded
            with Trace() as replay:
                passes.sum_gradients([_batch(load)], num_target_tokens=30)
    return len(replay.kernels) + 1


def _recorded(work: Work) -> Work:
    work()
    return lambda: None


def kernels_of_muon(load: Load) -> tuple[int, int]:
    """The kernels of an update of the matrices of all layers: by the Muon of `tfm`, and by that of PyTorch."""
    model = _model(load)
    layers = [*model.encoder.layers.parameters(), *model.decoder.layers.parameters()]
    matrices = [one for one in layers if one.ndim == 2]
    for matrix in matrices:
        matrix.grad = torch.empty_like(matrix)
    ours = BatchedMuon(matrices, weight_decay=0.01)
    ours.found_inf = torch.zeros((), device=GPU)
    numbers = []
    for optimizer in (ours, torch.optim.Muon(matrices, weight_decay=0.01)):
        optimizer.step()  # the first update makes the state
        with Trace() as trace:
            optimizer.step()
        numbers.append(len(trace.kernels))
    return numbers[0], numbers[1]


# The tables.


def main() -> None:
    """Print a table for each preset."""
    formatter = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    names = [load.preset for load in LOADS]
    parser.add_argument("--presets", nargs="+", choices=names, default=names)
    parser.add_argument("--list", action="store_true", help="list the kernels by their bytes")
    given = parser.parse_args()
    for load in LOADS:
        if load.preset in given.presets:
            sys.stdout.writelines(f"{line}\n" for line in table_of(load, lists=given.list))


def table_of(load: Load, *, lists: bool) -> Iterator[str]:
    """The costs of each stage."""
    cells = load.num_pairs * load.length
    header = f"{'kernels':>9}{'GB':>8}{'beside products':>17}{'TFLOP':>8}"
    header += "".join(f"{card.name + ', ms':>14}" for card in CARDS)
    parts = (
        (f"{load.preset}, an update of {cells:,} cells a side", Stage.costs_of_update),
        (f"{load.preset}, a step of a search, {SEARCHED} sentences, beam {BEAM}", Stage.costs_of_step),
    )
    for title, costs_of in parts:
        yield f"{title:57}{header}"
        shown: tuple[int, int] | None = None
        for stage in STAGES:
            costs = costs_of(stage, load)
            if shown == costs[:2]:  # this mend is about the other part
                continue
            shown = costs[:2]
            row = f"  {stage.what:55}{costs.num_kernels:9,}{costs.num_bytes / 1e9:8.2f}"
            row += f"{costs.bytes_beside_products / 1e9:17.2f}{costs.flop / 1e12:8.3f}"
            yield row + "".join(f"{1e3 * costs.seconds_on(card):14.2f}" for card in CARDS)
            if lists:
                yield from _kernels_by_bytes(costs)
        yield ""
    ours, theirs = kernels_of_muon(load)
    yield f"{load.preset}: with runtime.cuda_graphs the CPU starts {starts_of_recorded_passes(load)} operations for a batch"
    yield f"{load.preset}: Muon has {ours} kernels in an update; that of PyTorch would have {theirs:,}"
    yield ""


def _kernels_by_bytes(costs: Costs) -> Iterator[str]:
    sums = dict[str, tuple[int, int]]()
    for one in costs.kernels:
        count, num_bytes = sums.get(one.name, (0, 0))
        sums[one.name] = count + 1, num_bytes + one.num_bytes
    for name, (count, num_bytes) in sorted(sums.items(), key=lambda item: -item[1][1])[:20]:
        yield f"      {name:46}{count:9,}{num_bytes / 1e9:8.2f}"


if __name__ == "__main__":
    main()
