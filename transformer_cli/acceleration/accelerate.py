"""The seam: modules and losses of the plain model are replaced by faster twins, once, when a run or an engine opens; twins for GPUs; what is compiled.

A twin is a subclass with the same parameters and another `forward`, so a module becomes its twin when its class changes:
parameters, their names and hooks stay. The plain form is the oracle of the tests of its twin.
"""

import copy
import hashlib
import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.cast_weights import (
    Cast,
    DecoderLayerOnGpu,
    EncoderLayerOnGpu,
    FeedForwardOnGpu,
    LayerNormOnGpu,
    LinearOnGpu,
    cast_in_place,
    project,
)
from transformer_cli.acceleration.cpu_training import (
    AttentionOnCpu,
    DropoutOnCpu,
    Mask,
    SsruOnCpu,
    TransformerOnCpu,
    fused_mask,
    is_known_to_have_tokens,
    product_dtype,
    visible_of,
    with_tokens_in_all,
)
from transformer_cli.acceleration.losses import (
    compiled_sum_loss,
    compiled_symmetric_divergence,
    divergence_in_parts,
    likelihood_loss_on_cpu,
    r_drop_loss_on_cpu,
    simcut_loss_on_cpu,
    sum_loss_in_parts,
    symmetric_divergence_in_parts,
)
from transformer_cli.acceleration.prepared_transformer import PreparedTransformer
from transformer_cli.config import Config, ModelConfig
from transformer_cli.model import layers
from transformer_cli.model.layers import (
    SSRU,
    DecoderLayer,
    Embedding,
    EncoderLayer,
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    Rotation,
    at_least_float32,
)
from transformer_cli.model.loss import LossSums, SmoothedLabels, likelihood_loss, r_drop_loss, simcut_loss
from transformer_cli.model.transformer import DecoderState, Transformer
from transformer_cli.process import plain_form
from transformer_cli.process.errors import ConfigError, is_out_of_memory

# Twins for GPUs and other accelerators: attention in one fused kernel.


def attend_fused(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | Mask | None, dropout: nn.Dropout
) -> Tensor:
    """The same as `scaled_dot_product_attention` of the model, in one kernel; without a mask or with a causal one,
    it reads no bias.
    """
    probability = dropout.p if dropout.training else 0.0
    attend, inputs = F.scaled_dot_product_attention, (queries, keys, values)
    if mask is None or (isinstance(mask, Mask) and mask.is_causal):
        return attend(*inputs, dropout_p=probability, is_causal=mask is not None)
    if not isinstance(mask, Mask):
        mask = fused_mask(mask, queries.dtype)
    assert mask.bias is not None, "this mask was made for another kernel"
    gathered = attend(*inputs, attn_mask=mask.bias, dropout_p=probability)
    return gathered if mask.reads_any is None else gathered.where(mask.reads_any, 0.0)


class FusedAttention(MultiHeadAttention):
    """Attention in one kernel, and projections of one input in one product where the layer has joined their weights."""

    attend = staticmethod(attend_fused)
    cast_of_all: Cast | None = None
    cast_of_keys_and_values: Cast | None = None

    def forward(self, x: Tensor, context: Any, mask: Any, rotation: Rotation | None = None) -> Tensor:
        """See `MultiHeadAttention.forward`."""
        if x is not context or self.cast_of_all is None:
            return super().forward(x, context, mask, rotation)
        queries, keys, values = project(x, self.cast_of_all, self._sizes)
        keys_values = self._keys_and_values(keys, values, rotation)
        keys, values = (self._repeat_for_groups(heads) for heads in keys_values)
        heads = self.attend(self._queries(queries, rotation), keys, values, mask, self.dropout)
        return self.output(heads.transpose(1, 2).flatten(2))

    def keys_and_values(self, context: Tensor, rotation: Rotation | None = None) -> tuple[Tensor, Tensor]:
        """See `MultiHeadAttention.keys_and_values`."""
        if self.cast_of_keys_and_values is None:
            return super().keys_and_values(context, rotation)
        keys, values = project(context, self.cast_of_keys_and_values, self._sizes[1:])
        return self._keys_and_values(keys, values, rotation)

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.query.out_features, self.key.out_features, self.value.out_features

    def weights(self, x: Tensor, context: Any, mask: Any, rotation: Rotation | None = None) -> Tensor:
        """See `MultiHeadAttention.weights`; a fused kernel keeps no weights, so the plain form computes them."""
        return super().weights(x, context, visible_of(mask), rotation)


class TransformerOnGpu(Transformer):
    """Makes the masks for `attend_fused`, and activations in the precision of matrix products."""

    def mask_of_sources(self, source_mask: Tensor | None, x: Tensor) -> Any:
        """See `Transformer.mask_of_sources`."""
        visible = super().mask_of_sources(source_mask, x)
        if visible is None:
            return None
        reads_any = is_known_to_have_tokens(source_mask)
        return fused_mask(visible, product_dtype(x), reads_any=reads_any)

    def mask_of_targets(self, x: Tensor) -> Any:
        """A flag instead of a bias, which no kernel then has to read."""
        visible = super().mask_of_targets(x)
        return None if visible is None else Mask(visible, is_causal=True)

    def start_decoding(
        self, memory: Tensor, source_mask: Tensor | None, *, attended_layer: int | None = None
    ) -> DecoderState:
        """See `Transformer.start_decoding`."""
        return DecoderStateOnGpu(self, memory, source_mask, attended_layer=attended_layer)

    def table_of_positions(self, num_positions: int) -> Tensor:
        """(T, D): what `target_positions` adds to an embedding, for the first positions."""
        table = (self.target_embedding or self.output).weight
        like = table.new_zeros(1, num_positions, table.size(1), dtype=at_least_float32(table).dtype)
        if isinstance(self.target_positions, LearnedPositions):
            like = like[:, : len(self.target_positions.weight)]
        return self.target_positions(like)[0]

    def embed_target_at(self, last_ids: Tensor, table: Tensor, position: Tensor) -> Tensor:
        """As `embed_target`, for one position, whose number is in a tensor.

        Args:
            last_ids: (R, 1) int64.
            table: of `table_of_positions`.
            position: (1,) int64.
        """
        x = self._looked_up(last_ids, self.target_embedding, None)
        return self._prepared(x + table[position], self.target_embedding_norm)

    def _prepared(self, x: Tensor, norm: nn.Module) -> Tensor:
        x = norm(x)
        # Half the memory to read, and nothing to convert.
        return self.embedding_dropout(x.to(product_dtype(x)))


class DecoderStateOnGpu(DecoderState):
    """Knows of chosen rows, too, whether each source has a token."""

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """See `DecoderState.select`."""
        have_tokens = is_known_to_have_tokens(self._is_source)
        super().select(rows, keeps_sources=keeps_sources)
        if have_tokens and not keeps_sources and self._is_source is not None:
            self._is_source = with_tokens_in_all(self._is_source)
            self._source_mask = self._model.mask_of_sources(self._is_source, self._like)


# Which twin replaces which module and which loss.


Twins = dict[type[nn.Module], type[nn.Module]]

TWINS_ON_CPU: Twins = {
    Transformer: TransformerOnCpu,
    MultiHeadAttention: AttentionOnCpu,
    SSRU: SsruOnCpu,
    nn.Dropout: DropoutOnCpu,
}
"""What trains faster on a CPU. (`PyTorchEngine.prepared` makes a model that translates faster.)"""
TWINS_ON_GPU: Twins = {
    Transformer: TransformerOnGpu,
    EncoderLayer: EncoderLayerOnGpu,
    DecoderLayer: DecoderLayerOnGpu,
    MultiHeadAttention: FusedAttention,
    FeedForward: FeedForwardOnGpu,
    nn.Linear: LinearOnGpu,
    nn.LayerNorm: LayerNormOnGpu,
}
_PLAIN = {twin: plain for twins in (TWINS_ON_CPU, TWINS_ON_GPU) for plain, twin in twins.items()}


def accelerate(model: Transformer, device: torch.device) -> Transformer:
    """The same model, whose modules are the twins for a device; modules without a twin stay as they are.

    Args:
        model: changed in place; its parameters may still lie on another device.
        device: where the model will compute.
    """
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    # Fused attention reads heads at the wrong places there, in batches without padding (PyTorch, pull request 181151).
    is_wrong = device.type == "mps" and version < (2, 12)
    twins: Twins = TWINS_ON_CPU if device.type == "cpu" else TWINS_ON_GPU
    if plain_form.IS_PLAIN or is_wrong:
        twins = {}
    for module in model.modules():
        plain = _PLAIN.get(type(module), type(module))
        # A module without a twin on this device becomes plain again, if it was a twin.
        if plain in TWINS_ON_CPU or plain in TWINS_ON_GPU:
            module.__class__ = twins.get(plain, plain)
    return model


def plain_class(module: nn.Module) -> type[nn.Module]:
    """The class of which a module is the twin, or its own class."""
    return _PLAIN.get(type(module), type(module))


def with_cast_layers(model: Transformer, precision: torch.dtype) -> Transformer:
    """A copy for translation under autocast: its linear layers and norms hold their weights in the precision of the products.

    Its results are those of the model, but for rounding. Autocast would cast all of these weights again in every step of a search, because it
    keeps no cast in inference mode. All other parameters are those of the model.
    """
    copied = copy.deepcopy(model, {id(one): one for one in model.parameters()})
    table = model.output.weight
    for name in ("source_embedding", "target_embedding"):
        if getattr(copied, name) is None:  # tied: rows are looked up in the table of the output
            with torch.device("meta"):
                embedding = Embedding(*table.shape)
            embedding.weight = table
            setattr(copied, name, embedding)
    cast_in_place(copied, precision)
    return copied


LOSSES_ON_CPU: dict[Callable[..., LossSums], Callable[..., LossSums]] = {
    likelihood_loss: likelihood_loss_on_cpu,
    r_drop_loss: r_drop_loss_on_cpu,
    simcut_loss: simcut_loss_on_cpu,
}
"""The twin of each loss of model/loss.py for a CPU."""


def accelerated_loss(
    loss: Callable[..., LossSums], device: torch.device, *, is_compiled: bool = False
) -> Callable[..., LossSums]:
    """The twin of `likelihood_loss`, `r_drop_loss` or `simcut_loss` for a device.

    Args:
        loss: the plain form.
        device: of the model.
        is_compiled: whether torch.compile makes kernels for the loss; a CPU has its own in any case.

    Raises:
        KeyError: a loss that has no twin here yet.
    """
    if plain_form.IS_PLAIN:
        return loss
    if device.type == "cpu":
        return LOSSES_ON_CPU[loss]
    sum_loss = compiled_sum_loss if is_compiled else sum_loss_in_parts
    symmetric = compiled_symmetric_divergence if is_compiled else symmetric_divergence_in_parts
    twins: dict[Callable[..., LossSums], Callable[..., LossSums]] = {
        likelihood_loss: partial(likelihood_loss, sum_loss=sum_loss),
        r_drop_loss: partial(r_drop_loss, sum_loss=sum_loss, divergence=symmetric),
        simcut_loss: partial(simcut_loss, sum_loss=sum_loss, divergence=divergence_in_parts),
    }
    return twins[loss]


# Whether somebody has changed the plain model, whose twins do not follow.


_TOLERANCE = 1e-3
"""In float32 on a CPU, the results of a faster form and of the plain one differ by rounding, by about 1e-6."""


FOLLOWED_CODE = "4a47a5e12236a774"
"""The digest of the code in `model/` that the faster forms were written for."""


def code_was_changed() -> bool:
    """Whether the code in `model/` is another one than that which the faster forms were written for."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(layers.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest() != FOLLOWED_CODE


def differs_from_plain(config: ModelConfig, device: torch.device) -> bool:
    """Whether the faster forms for a device compute something else than the plain one, because the code of `model/` was changed.

    Small models with the same weights read the same batch on the CPU, without dropout. Their sizes are not those of the
    config, so the answer takes milliseconds for any model. The random numbers of the process stay as they are.
    """
    if plain_form.IS_PLAIN:
        return False
    sizes = {"d_model": 16, "head_dim": 4, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        plain = Transformer(config.model_copy(update={**sizes, "alignment_layer": None}), 16, 16).eval()
    twin = accelerate(copy.deepcopy(plain), device)
    with torch.enable_grad(), torch.autocast("cpu", enabled=False):
        pairs = [(_trained(twin, accelerated_loss(likelihood_loss, device)), _trained(plain, likelihood_loss))]
    with torch.inference_mode():
        expected = _translated(plain)
        try:
            pairs.append((_translated(PreparedTransformer(plain, torch.float32)), expected))
        except (LookupError, AttributeError, TypeError, RuntimeError):  # it knows no such part
            return True
    return not all(torch.allclose(*pair, _TOLERANCE, _TOLERANCE) for pair in pairs)


_SOURCE_IDS = torch.arange(4, 16).view(2, 6)
_IS_SOURCE = torch.arange(6) < torch.tensor([[6], [4]])


def _trained(model: Transformer, loss: Callable[..., LossSums]) -> Tensor:
    """What a model and a loss compute in training."""
    decoded = model.decoder_output(_SOURCE_IDS, _IS_SOURCE, _SOURCE_IDS.flip(0))
    sums = loss(model.output, decoded, _SOURCE_IDS, SmoothedLabels.of(16, 0, 0.1, "vocabulary"))
    return torch.cat([decoded.detach().flatten(), torch.stack(sums).detach()])


def _translated(model: Transformer | PreparedTransformer) -> Tensor:
    """What a model computes in a search of three steps."""
    state = model.start_decoding(model.encode(_SOURCE_IDS, _IS_SOURCE), _IS_SOURCE)
    return torch.cat([state.advance(_SOURCE_IDS[:, step]) for step in range(3)])


# Layers compiled by torch.compile, for batches of any shape.


MOST_CASES = 64
"""How many cases of a kind of layer are compiled; further ones would run uncompiled. PyTorch's own limit is 8."""


def compile_layers(model: Transformer, *, backend: str = "inductor") -> None:
    """Compile each layer of a model in place, when it is first used; its parameters keep their names.

    Sizes stay variables in the compiled code (`dynamic`), because nearly every batch has a shape of its own. So each
    kind of layer is compiled once for each case: with and without padding in the source, in training and without gradients,
    frozen and not, and for a size of 1. All layers of one kind share the code.

    Args:
        model: on its device; the thread that calls this trains it.
        backend: what torch.compile makes of the captured graphs.
    """
    from torch._dynamo import config

    config.recompile_limit = max(config.recompile_limit, MOST_CASES)  # of this thread
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(dynamic=True, backend=backend)


def num_compiled_graphs() -> int:
    """How many graphs torch.compile has captured in this process."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


@contextmanager
def compilation_errors_explained() -> Iterator[None]:
    """In the block, compiled layers and losses are used.

    Raises:
        ConfigError: torch.compile has failed.
    """
    from torch._dynamo.exc import TorchDynamoException

    try:
        yield
    except TorchDynamoException as error:
        if is_out_of_memory(error):
            raise
        reason = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
        raise ConfigError(
            f"runtime.compile: torch.compile has failed: {reason[:300]}",
            hint="torch.compile needs a C compiler such as gcc, and on a GPU one that Triton serves; or --set runtime.compile=false",
        ) from error


# What torch.compile compiles.


BYTES_SAVED = 35
"""Of memory traffic that compiled layers save in an update: for each position of a side, number of the model's width and layer.

Counted for the base model in bfloat16 with dropout, `python benchmarks/operations.py`; the gain was not measured.
"""
SECONDS_TO_COMPILE = 120.0
"""For encoder and decoder layers with and without gradients. On an H100 it took more than 74 s (docs/experiments.md)."""
TIMES_WORTH_IT = 3.0
"""Layers are compiled if they save this many times the seconds that the compilation takes."""
REACHED_BANDWIDTH = 0.8
USUAL_BANDWIDTH = 1e12
"""Bytes a second of a card that does not tell; those of an RTX 4090."""


class Compilation(NamedTuple):
    """What torch.compile compiles."""

    layers: bool = False
    loss: bool = False
    reason: str = ""
    """Why, for the log; empty if there is nothing to say."""


def planned_compilation(
    config: Config, device: torch.device, num_steps: Callable[[], int], num_processes: int = 1
) -> Compilation:
    """What `runtime.compile` means for a training.

    On a GPU the loss is compiled unless the setting says false: as plain operations it would move about 80 bytes for each
    logit, compiled 6. Layers are compiled too if the training is long enough.

    Args:
        config: of the training; `training.batch_tokens` is a number or absent.
        device: of the model.
        num_steps: gives the updates that are left; it is asked only if the answer decides.
        num_processes: those that share out the batches of an update.
    """
    wanted = config.runtime.compile
    if wanted != "auto":
        return Compilation(layers=wanted, loss=wanted and device.type != "cpu")
    if device.type != "cuda":
        return Compilation()
    if why_not := missing_for_compilation(device):
        return Compilation(
            reason=f"runtime.compile: auto compiles nothing, because {why_not}; the loss is then several times slower"
        )
    if config.training.guided_alignment is not None:
        return Compilation(
            loss=True,
            reason="runtime.compile: auto compiles the loss alone, because compiled layers keep no attention weights, which "
            "training.guided_alignment needs",
        )
    seconds = _seconds_saved(config, device, num_steps() / num_processes)
    is_worth_it = seconds > TIMES_WORTH_IT * SECONDS_TO_COMPILE
    return Compilation(
        layers=is_worth_it,
        loss=True,
        reason=f"runtime.compile: auto compiles {'the loss and the layers' if is_worth_it else 'the loss alone'}: over all updates that "
        f"are left, compiled layers would save about {seconds:,.0f} s of memory traffic, and to compile them takes about "
        f"{SECONDS_TO_COMPILE:.0f} s (computed, not measured)",
    )


def _seconds_saved(config: Config, device: torch.device, num_steps: float) -> float:
    training, model = config.training, config.model
    num_layers = model.encoder_layers + model.decoder_layers
    if training.update_tokens is not None:
        cells = float(training.update_tokens)
    elif isinstance(training.batch_tokens, int):
        cells = float(training.batch_tokens * training.accumulate)
    else:
        cells = 30.0 * (training.batch_sentences or 1) * training.accumulate
    num_bytes = BYTES_SAVED * cells * model.d_model * num_layers
    return num_steps * num_bytes / (REACHED_BANDWIDTH * bandwidth_of(device))


def bandwidth_of(device: torch.device) -> float:
    """The bytes a second that the memory of a CUDA device is built for, as far as it tells."""
    properties = torch.cuda.get_device_properties(device)
    kilohertz = getattr(properties, "memory_clock_rate", 0)
    bits = getattr(properties, "memory_bus_width", 0)
    # Two transfers in each cycle of the clock.
    return 2e3 * kilohertz * bits / 8 or USUAL_BANDWIDTH


def missing_for_compilation(device: torch.device) -> str | None:
    """What torch.compile lacks on a machine with a GPU; None if it has all that can be looked up."""
    if importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    if torch.version.hip is None and torch.cuda.get_device_capability(device) < (7, 0):
        return "Triton needs a card of compute capability 7.0 or newer"
    compilers = (os.environ.get("CC"), "cc", "gcc", "clang")
    if not any(name and shutil.which(name) for name in compilers):
        return "there is no C compiler such as gcc"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "the headers of Python are not installed (python3-dev)"
    return None
