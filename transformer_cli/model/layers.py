"""The parts of the Transformer, from the smallest to the largest: norms, embeddings and positions, the SSRU, attention, and the layers of encoder and decoder.

The letters of shape comments, in the whole package:

    B sentences      S source positions    T target positions    V vocabulary
    D model width    H heads               K width of a head     W beam
    R rows of a search: sentences times beam

and here, for self-attention and cross-attention alike:

    Q query positions    C context positions (keys and values)    G heads of keys and values
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.process.errors import DataError

# Norms: the vector of each position is scaled to a common size, then multiplied by learned gains; at least in float32.


def at_least_float32(x: Tensor) -> Tensor:
    """float16 and bfloat16 become float32; float32 and float64 stay."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class RMSNorm(nn.Module):
    """g x / sqrt(mean(x^2) + eps), in float32 at least (Zhang and Sennrich 2019).

    nn.RMSNorm multiplies in another order, so runs of older versions would get other bits; it also warns
    if the input is bfloat16 and the gain is float32.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to the same."""
        precise = at_least_float32(x)
        mean_square = precise.square().mean(-1, keepdim=True)
        return (self.weight * precise * torch.rsqrt(mean_square + self.eps)).to(x.dtype)


class StdLayerNorm(nn.Module):
    """g (x - mean) / (std + eps) + b, in float32 at least, where std divides by the width minus one.

    The gain g and the bias b are vectors, or, where `is_scalar`, one number each.
    """

    def __init__(self, width: int, eps: float, *, is_scalar: bool = False) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(1 if is_scalar else width))
        self.bias = nn.Parameter(torch.zeros(1 if is_scalar else width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to the same."""
        precise = at_least_float32(x)
        mean = precise.mean(-1, keepdim=True)
        std = precise.std(-1, keepdim=True, unbiased=True)
        found = self.weight * (precise - mean) / (std + self.eps) + self.bias
        return found.to(torch.promote_types(x.dtype, self.weight.dtype))


def build_norm(config: ModelConfig) -> nn.Module:
    """The norm that the config names."""
    match config.norm:
        case "layernorm":
            return nn.LayerNorm(config.d_model, config.norm_eps)
        case "rmsnorm":
            return RMSNorm(config.d_model, config.norm_eps)
        case "std_layernorm" | "scalar_std_layernorm":
            is_scalar = config.norm == "scalar_std_layernorm"
            return StdLayerNorm(config.d_model, config.norm_eps, is_scalar=is_scalar)


def build_final_norm(config: ModelConfig) -> nn.Module:
    """The norm behind the last layer of a stack, if the config has one."""
    return build_norm(config) if config.has_final_norm else nn.Identity()


# Embeddings, positional encodings, and the initial values of all parameters.


class Embedding(nn.Embedding):
    """A table of embeddings, (V, D).

    A table on the meta device has a shape but no numbers, so nothing is drawn for it. PyTorch would import its compiler for
    that, which takes 1.5 seconds.
    """

    def reset_parameters(self) -> None:
        """Draw the table from N(0, 1)."""
        if not self.weight.is_meta:
            super().reset_parameters()


@torch.no_grad()
def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Initialise all matrices and embeddings by `config.init`; gains and biases keep PyTorch's defaults.

    Source: Glorot and Bengio 2010; for deep stacks Radford et al. 2019, section 2.3.
    """
    if config.init == "pytorch":
        return
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            continue
        nn.init.xavier_uniform_(parameter)
        if config.init == "small" and name.endswith(("attention.output.weight", "down.weight")):
            # The residual connections of a stack add up this many outputs; their sum keeps its variance.
            is_encoder = name.startswith("encoder.")
            num_added = 2 * config.encoder_layers if is_encoder else 3 * config.decoder_layers
            parameter.div_(math.sqrt(num_added))


# Positional encodings: sinusoids or learned vectors added to embeddings, or rotated queries and keys.


class SinusoidalPositions(nn.Module):
    """x plus sin and cos of position / 10000^(2i / D), for any length.

    The paper interleaves them: sines in even columns, cosines in odd ones. With `in_halves` all
    sines come first. Marian does so, and divides i by D / 2 - 1 (`as_marian`), so that the longest wavelength is 2 pi 10000.

    Source: Vaswani et al. 2017, section 3.5; Marian 1.12, the function SinusoidalPositionEmbeddings.
    """

    def __init__(self, *, in_halves: bool, as_marian: bool = False) -> None:
        super().__init__()
        self.in_halves = in_halves
        self.as_marian = as_marian

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(B, T, D) to the same shape; the first of the T positions is number `start`."""
        width = x.size(2)
        divisor = max(width - 2, 1) if self.as_marian else width
        sines, cosines = rotation_at(start, x.size(1), width, x, divisor=divisor)
        if self.in_halves:
            return x + torch.cat([sines, cosines], dim=-1)
        return x + torch.stack([sines, cosines], dim=-1).flatten(-2)


class LearnedPositions(nn.Module):
    """x plus a learned vector for each position below `max_length`."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, d_model))

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(B, T, D) to the same shape; the first of the T positions is number `start`."""
        end = start + x.size(1)
        if end > self.weight.size(0):
            raise DataError(
                f"a sequence of {end} tokens, but this model has learned only {self.weight.size(0)} positions",
                hint="shorten or split the text, or train with a larger model.max_length or other positions",
            )
        return x + self.weight[start:end]


class NoPositions(nn.Module):
    """No positional encoding: x unchanged."""

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(B, T, D) to the same shape."""
        return x


def build_positions(config: ModelConfig) -> nn.Module:
    """The module that adds positions to embeddings; it adds nothing if positions are rotary or absent."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(in_halves=False)
        case "sinusoidal_halves" | "sinusoidal_marian":
            is_marian = config.positions == "sinusoidal_marian"
            return SinusoidalPositions(in_halves=True, as_marian=is_marian)
        case "learned":
            return LearnedPositions(config.max_length, config.d_model)
        case "rotary" | "none":
            return NoPositions()


class Rotation(NamedTuple):
    """Sines and cosines of angles, one for each position and pair of columns.

    Rotary positions use them for K columns of a head; sinusoidal positions, for D columns of an embedding.
    """

    sines: Tensor  # (T, K / 2) or (T, D / 2)
    cosines: Tensor  # of the same shape


def rotation_at(start: int, num_positions: int, width: int, like: Tensor, *, divisor: int | None = None) -> Rotation:
    """The angles of `num_positions` positions from `start` on, with device and dtype of `like`; `divisor` as of `sines_and_cosines`."""
    end = start + num_positions
    # Rounded up to a power of two, so that the cache holds few different lengths.
    num_cached = max(512, 1 << (end - 1).bit_length())
    sines, cosines = sines_and_cosines(num_cached, width, like.dtype, like.device, divisor or width)
    return Rotation(sines[start:end], cosines[start:end])


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """(B, H, T, K) to the same shape: columns 2i and 2i + 1 are rotated by position / 10000^(2i / K).

    For queries and keys of self-attention only: their dot product then depends on the distance of two
    positions. Cross-attention is not rotated: a source and a target position have no distance.

    Source: Su et al. 2021, equation 34.
    """
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned_even = even * rotation.cosines - odd * rotation.sines
    turned_odd = odd * rotation.cosines + even * rotation.sines
    return torch.stack([turned_even, turned_odd], dim=-1).flatten(-2).to(x.dtype)


@functools.cache  # without a limit: a CUDA graph reads the tables at their addresses, so they must stay
def sines_and_cosines(
    num_positions: int,
    width: int,
    dtype: torch.dtype,
    device: torch.device,
    divisor: int | None = None,
) -> Rotation:
    """sin and cos of position / 10000^(2i / divisor), (T, width / 2) each, computed in float64; None: divided by `width`."""
    with torch.inference_mode(False), torch.no_grad():  # cached tensors serve training too
        columns = torch.arange(0, width, 2, dtype=torch.float64, device="cpu")
        positions = torch.arange(num_positions, dtype=torch.float64, device="cpu")
        angles = positions[:, None] * 10_000.0 ** (-columns / (divisor or width))
        return Rotation(angles.sin().to(device, dtype), angles.cos().to(device, dtype))


# The SSRU: a recurrence in place of decoder self-attention; a step of a translation needs one vector, not all positions so far.


class SSRU(nn.Module):
    """The simpler simple recurrent unit: output t depends on positions 1 to t.

        f_t = sigmoid(W_f x_t + b_f)                   the forget gate
        c_t = f_t * c_{t-1} + (1 - f_t) * W x_t        the cell state; c_0 is zero
        o_t = ReLU(c_t)

    Products of vectors are element by element. The gate does not read the state before it, so only the sum depends on
    the order, and training computes all positions at once.

    Source: Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine Translation",
    section 3.1.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input = nn.Linear(config.d_model, config.d_model, bias=False)  # W
        self.forget_gate = nn.Linear(config.d_model, config.d_model)  # W_f and b_f

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to the same shape, for all positions of a target."""
        candidates = self.input(x)
        forget = at_least_float32(self.forget_gate(x)).sigmoid()
        return F.relu(cell_states(forget, (1.0 - forget) * candidates)).to(candidates.dtype)

    def step(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """The output of one position, and the cell state after it.

        Args:
            x: (R, 1, D), the newest position of each row.
            state: (R, D), the cell state after the position before it; None: there is none.

        Returns:
            (R, 1, D), and (R, D) in float32 at least.
        """
        candidates = self.input(x)
        forget = at_least_float32(self.forget_gate(x)).sigmoid()
        states = (1.0 - forget) * candidates
        if state is not None:
            states = torch.addcmul(states, forget, state[:, None])
        return F.relu(states).to(candidates.dtype), states[:, 0]


def cell_states(forget: Tensor, added: Tensor) -> Tensor:
    """c_t = forget_t * c_{t-1} + added_t for all t, where c_0 is zero; (B, T, D).

    After a pass with distance d, entry t holds the contributions of the 2 d newest positions up to t. So log2(T) passes over
    all positions take the place of T steps. A position never reads a later one.

    Args:
        forget, added: (B, T, D).

    Source: Hillis and Steele 1986, "Data Parallel Algorithms"; for recurrences of this kind, Blelloch 1990, "Prefix Sums and
    Their Applications", section 1.4.1.
    """
    distance = 1
    while distance < added.size(1):
        earlier, newer = added[:, :-distance], added[:, distance:]
        newer_forget = forget[:, distance:]
        added = torch.cat([added[:, :distance], torch.addcmul(newer, newer_forget, earlier)], dim=1)
        forget = torch.cat([forget[:, :distance], newer_forget * forget[:, :-distance]], dim=1)
        distance *= 2
    return added


# Multi-head attention: the output of a position is a weighted mean over the positions that its mask allows.
# A mask is a bool tensor that broadcasts to (B, H, Q, C): True means that attention may read the position.


KeysValues = tuple[Tensor, Tensor]


def scaled_dot_product_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: nn.Module
) -> Tensor:
    """dropout(softmax(Q K^T / sqrt(K))) V, (B, H, Q, K).

    Args:
        queries: (B, H, Q, K).
        keys, values: (B, H, C, K).
        mask: (B, H, Q, C) bool; None: nothing is masked. A query whose mask is all False gets zeros.
        dropout: acts on the weights.

    Source: Vaswani et al. 2017, equation 1.
    """
    weights = attention_weights(queries, keys, mask)  # (B, H, Q, C)
    return dropout(weights).to(values.dtype) @ values


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(K)), (B, H, Q, C), in float32 at least; arguments as in `scaled_dot_product_attention`.

    A query whose mask is all False has weights of zero.
    """
    scores = (queries / math.sqrt(queries.size(-1))) @ keys.transpose(-2, -1)  # (B, H, Q, C)
    scores = at_least_float32(scores)
    if mask is None:
        return scores.softmax(-1)
    return scores.where(mask, lowest(scores.dtype)).softmax(-1).where(mask, 0.0)


class MultiHeadAttention(nn.Module):
    """concat(head_1, ..., head_H) W_output, where head_i = attention(x W_query, c W_key, c W_value).

    With `num_kv_heads` below `num_heads` it is grouped-query attention: each of the G heads of keys and values
    serves a group of query heads.

    Source: Vaswani et al. 2017, section 3.2.2; grouped queries: Ainslie et al. 2023; normalised queries
    and keys: after Henry et al. 2020 (L2 norm, one learned scale) and Dehghani et al. 2023 (LayerNorm); here RMSNorm.
    """

    attend: Callable[..., Tensor] = staticmethod(scaled_dot_product_attention)
    """The twins of acceleration/ have their own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, has_bias = config.head_width, config.attention_bias
        self.num_heads = config.num_heads
        self.num_kv_heads = config.kv_heads
        self.query = nn.Linear(config.d_model, config.num_heads * width, bias=has_bias)
        self.key = nn.Linear(config.d_model, config.kv_heads * width, bias=has_bias)
        self.value = nn.Linear(config.d_model, config.kv_heads * width, bias=has_bias)
        self.output = nn.Linear(config.num_heads * width, config.d_model, bias=has_bias)
        self.query_norm = RMSNorm(width, config.norm_eps) if config.qk_norm else nn.Identity()
        self.key_norm = RMSNorm(width, config.norm_eps) if config.qk_norm else nn.Identity()
        self.dropout = nn.Dropout(config.attention_dropout)

    def forward(
        self,
        x: Tensor,
        context: Tensor | KeysValues,
        mask: Tensor | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """(B, Q, D): for each position of `x`, a weighted mean of the values of `context`.

        Args:
            x: (B, Q, D), makes the queries.
            context: (B, C, D), makes the keys and values; in self-attention, `x` itself. Or keys and values that
                `keys_and_values` has made before.
            mask: (B, H, Q, C) bool; None: nothing is masked. A query position whose mask is all False gets zeros
                from every head.
            rotation: turns queries and keys, in self-attention with rotary positions.
        """
        queries = self._queries(self.query(x), rotation)  # (B, H, Q, K)
        if isinstance(context, Tensor):
            context = self.keys_and_values(context, rotation)
        keys, values = (self._repeat_for_groups(heads) for heads in context)  # (B, H, C, K)
        heads = self.attend(queries, keys, values, mask, self.dropout)  # (B, H, Q, K)
        return self.output(heads.transpose(1, 2).flatten(2))  # the heads joined: (B, Q, H K)

    def keys_and_values(self, context: Tensor, rotation: Rotation | None = None) -> KeysValues:
        """(B, C, D) to keys and values, both (B, G, C, K)."""
        return self._keys_and_values(self.key(context), self.value(context), rotation)

    def weights(
        self,
        x: Tensor,
        context: Tensor | KeysValues,
        mask: Tensor | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """(B, H, Q, C): the attention weights of `forward`, before dropout."""
        queries = self._queries(self.query(x), rotation)
        if isinstance(context, Tensor):
            context = self.keys_and_values(context, rotation)
        return attention_weights(queries, self._repeat_for_groups(context[0]), mask)

    def _queries(self, queries: Tensor, rotation: Rotation | None) -> Tensor:
        """(B, Q, H K) to (B, H, Q, K), normalised and rotated if the config says so."""
        heads = self.query_norm(queries.unflatten(-1, (self.num_heads, -1)).transpose(1, 2))
        return heads if rotation is None else rotate(heads, rotation)

    def _keys_and_values(self, keys: Tensor, values: Tensor, rotation: Rotation | None) -> KeysValues:
        """(B, C, G K) both to (B, G, C, K); the keys are normalised and rotated as the queries are."""
        keys, values = (one.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2) for one in (keys, values))
        keys = self.key_norm(keys)
        return keys if rotation is None else rotate(keys, rotation), values

    def _repeat_for_groups(self, heads: Tensor) -> Tensor:
        """(B, G, C, K) to (B, H, C, K): each head once for each query head of its group."""
        group_size = self.num_heads // self.num_kv_heads
        return heads if group_size == 1 else heads.repeat_interleave(group_size, dim=1)


def aligning_weights(weights: Tensor, config: ModelConfig) -> Tensor:
    """(B, H, T, S) weights of cross-attention to those that align words, (B, T, S): of the head that the config names, or their mean."""
    head = config.alignment_head
    return weights[:, head] if isinstance(head, int) else weights.mean(1)


def causal_mask(num_positions: int, device: torch.device | None = None) -> Tensor:
    """(T, T) bool: each position reads itself and earlier positions."""
    return torch.ones(num_positions, num_positions, dtype=torch.bool, device=device).tril()


def padding_mask(source_mask: Tensor | None) -> Tensor | None:
    """(B, S) bool, True where there is a token, to the mask of attention to the source, (B, 1, 1, S); None: no padding."""
    return None if source_mask is None else source_mask[:, None, None, :]


def lowest(dtype: torch.dtype) -> float:
    """The score of hidden positions; half of the dtype's minimum, so that a sum with it stays finite."""
    return torch.finfo(dtype).min / 2


_ROOM = 16  # target positions by which a full buffer grows


class LayerCache:
    """What one decoder layer keeps for R rows: keys and values of the source, and those of the target so far or its cell state."""

    def __init__(self, source: KeysValues) -> None:
        # Contiguous, because attention reads them at each step.
        self.source = source[0].contiguous(), source[1].contiguous()  # both (R, G, S, K)
        self.keys = self.values = source[0][:, :, :0]
        """Of the target, (R, G, room, K); the first positions are those so far."""
        self._length = 0
        self.state: Tensor | None = None
        """(R, D), the cell state of an SSRU; None without one."""

    def stepped(self, ssru: SSRU, x: Tensor) -> Tensor:
        """The output of an SSRU for the newest position, (R, 1, D) to the same; the cell state moves on."""
        found, self.state = ssru.step(x, self.state)
        return found

    def extend_target(self, newest: KeysValues) -> KeysValues:
        """Append the keys and values of the newest position, (R, G, 1, K); returns all so far, (R, G, T, K)."""
        if self._length == self.keys.size(2):
            room = self.keys.new_empty(*self.keys.shape[:2], _ROOM, self.keys.size(3))
            self.keys = torch.cat([self.keys, room], dim=2)
            self.values = torch.cat([self.values, room], dim=2)
        self.keys[:, :, self._length] = newest[0][:, :, 0]
        self.values[:, :, self._length] = newest[1][:, :, 0]
        self._length += 1
        return self.keys[:, :, : self._length], self.values[:, :, : self._length]

    def select(self, rows: Tensor, *, keeps_source: bool = False) -> None:
        """New row i is old row `rows[i]`; if `keeps_source`, the keys and values of the source stay in their places."""
        self.keys, self.values = self.keys[rows], self.values[rows]
        self.state = None if self.state is None else self.state[rows]
        if not keeps_source:
            self.source = self.source[0][rows], self.source[1][rows]


# Word dropout and layer dropout: training leaves out whole tokens and whole layers; dropout of single numbers is `nn.Dropout`.


class WordDropout(nn.Module):
    """Word dropout: in training, the embedding of each token becomes zero with probability p, else it is divided by 1 - p.

    It is drawn for each position, on the source side and for what the decoder reads. Positions are added
    afterwards, so the model knows that a token is missing there. Special tokens always stay.

    Args:
        probability: p.
        num_special_tokens: the ids below this number are those of special tokens.
        tag_ids: the ids of tags, which stay too.

    Source: Gal and Ghahramani 2016, who drop word types; Sennrich and Zhang 2019, "Revisiting Low-Resource Neural
        Machine Translation", with 0.1 to 0.3: their toolkit, Nematus, drops positions, as here.
    """

    def __init__(self, probability: float, num_special_tokens: int, tag_ids: Sequence[int] = ()) -> None:
        super().__init__()
        self.probability = probability
        self.num_special_tokens = num_special_tokens
        self.tag_ids = tuple(tag_ids)

    def forward(self, embedded: Tensor, ids: Tensor) -> Tensor:
        """Embeddings (B, S, D) and their ids (B, S) to embeddings of the same shape."""
        if not self.training:
            return embedded
        kept = F.dropout(torch.ones_like(ids, dtype=embedded.dtype), self.probability)  # (B, S)
        return embedded * kept.masked_fill(self.stays(ids), 1.0).unsqueeze(-1)

    def stays(self, ids: Tensor) -> Tensor:
        """Which of the ids are special tokens and tags, (B, S) bool."""
        stays = ids < self.num_special_tokens
        for tag_id in self.tag_ids:
            stays = stays | (ids == tag_id)
        return stays


class TokenCutoff(WordDropout):
    """Token cutoff: the second half of the rows are copies of the first half, whose embeddings become zero with probability p.

    The other embeddings stay as they are: unlike dropout, nothing is divided by 1 - p.

    Args: as of `WordDropout`.

    Source: Gao et al. 2022, "Bi-SimCut: A Simple Strategy for Boosting Neural Machine Translation", section 3.
    """

    def forward(self, embedded: Tensor, ids: Tensor) -> Tensor:
        """Embeddings (2 B, S, D) and their ids (2 B, S) to embeddings of the same shape; the first B rows are unchanged."""
        if not self.training:
            return embedded
        num_whole = len(ids) // 2
        ones = torch.ones_like(ids[num_whole:], dtype=embedded.dtype)
        is_kept = (F.dropout(ones, self.probability) > 0) | self.stays(ids[num_whole:])  # (B, S)
        cut = embedded[num_whole:] * is_kept.unsqueeze(-1)
        return torch.cat([embedded[:num_whole], cut])


def is_skipped(layer: nn.Module, share: float) -> bool:
    """LayerDrop: whether a pass skips a layer, in training only, with probability `share`.

    One number decides for the whole batch. It comes from the CPU, on any device, so no step waits for a GPU.

    Source: Fan et al. 2020, "Reducing Transformer Depth on Demand with Structured Dropout", section 3.2.
    """
    return layer.training and float(torch.rand((), device="cpu")) < share


def skipped(layer: nn.Module, x: Tensor, *others: Tensor) -> Tensor:
    """What a skipped layer makes of x, (B, T, D): x; `others` are its other inputs that may have a gradient."""
    apply: Any = _Skipped.apply
    return apply(x, *layer.parameters(), *others)


class _Skipped(torch.autograd.Function):
    """The identity, which gives each parameter of the skipped layer a gradient of zeros, and its other inputs too.

    Without a gradient the optimizer would leave out these parameters, but a layer that another micro-batch or
    another process did not skip has one: all must make the same update. The output of the encoder is an input of
    each decoder layer; if all of them are skipped, the encoder gets its zeros through it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        ctx.save_for_backward(*others)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        zeros = (torch.zeros_like(one) if one.requires_grad else None for one in ctx.saved_tensors)
        return gradient, *zeros


# Encoder and decoder layers: sub-layers with residual connections, norms and dropout.


Function = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Function] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "reglu": F.relu,
    "geglu": F.gelu,
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """down(dropout(activation(up(x)))), or gated: down(dropout(activation(gate(x)) * up(x))).

    Source: Vaswani et al. 2017, section 3.3; gated: Shazeer 2020.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, has_bias = config.d_model, config.feed_forward_bias
        self.up = nn.Linear(width, config.d_ff, bias=has_bias)
        self.gate = nn.Linear(width, config.d_ff, bias=has_bias) if config.is_gated else None
        self.down = nn.Linear(config.d_ff, width, bias=has_bias)
        self.activation = _ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.ff_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to the same shape."""
        if self.gate is None:
            return self.down(self.dropout(self.activation(self.up(x))))
        return self.down(self.dropout(self.activation(self.gate(x)) * self.up(x)))


def pre(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """x + dropout(sublayer(norm(x))). Source: Xiong et al. 2020."""
    return x + dropout(sublayer(norm(x)))


def post(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """norm(x + dropout(sublayer(x))). Source: Vaswani et al. 2017, section 3.1."""
    return norm(x + dropout(sublayer(x)))


def residual_of_normed(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """x + norm(dropout(sublayer(x))). Source: code of the walk-through Hello Transformer."""
    return x + norm(dropout(sublayer(x)))


_PLACEMENTS = {"pre": pre, "post": post, "residual_of_normed": residual_of_normed}


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.self_attention_norm = build_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = build_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.residual = _PLACEMENTS[config.norm_placement]

    def forward(self, x: Tensor, mask: Tensor | None, rotation: Rotation | None = None) -> Tensor:
        """(B, S, D) to the same shape; the mask is of shape (B, H, S, S)."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attention(x, x, mask, rotation)

        x = self.residual(x, attend, self.self_attention_norm, self.dropout)
        return self.residual(x, self.feed_forward, self.feed_forward_norm, self.dropout)


class DecoderLayer(nn.Module):
    """Masked self-attention or an SSRU, cross-attention to the source, then the feed-forward network."""

    self_attention: MultiHeadAttention | None
    """None if the layer has an SSRU."""
    self_attention_norm: nn.Module | None
    ssru: SSRU | None
    """None if the layer has self-attention."""
    ssru_norm: nn.Module | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        has_ssru = config.decoder_layer == "ssru"
        self.self_attention = None if has_ssru else MultiHeadAttention(config)
        self.self_attention_norm = None if has_ssru else build_norm(config)
        self.ssru = SSRU(config) if has_ssru else None
        self.ssru_norm = build_norm(config) if has_ssru else None
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_norm = build_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = build_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.residual = _PLACEMENTS[config.norm_placement]

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeysValues,
        target_mask: Tensor | None,
        source_mask: Tensor | None,
        rotation: Rotation | None = None,
        *,
        cache: LayerCache | None = None,
        observe: Callable[[Tensor], None] | None = None,
    ) -> Tensor:
        """(B, T, D) to the same shape, for all target positions at once, or for the newest one with a cache.

        Args:
            x: (B, T, D).
            memory: (B, S, D), the output of the encoder; or the keys and values of it.
            target_mask: of self-attention, (B, H, T, T); None: each position reads all that there are. An SSRU reads
                earlier positions only, so it needs no mask.
            source_mask: of cross-attention, (B, H, T, S); None: the source has no padding.
            rotation: the T positions, if they are rotary.
            cache: keys and values of earlier target positions, or the cell state after them; x is appended.
            observe: gets the weights of cross-attention before dropout, (B, H, T, S).
        """

        def read_target(x: Tensor) -> Tensor:
            if self.ssru is not None:
                return self.ssru(x) if cache is None else cache.stepped(self.ssru, x)
            attention = self.self_attention
            assert attention is not None
            if cache is None:
                return attention(x, x, target_mask, rotation)
            newest = attention.keys_and_values(x, rotation)
            return attention(x, cache.extend_target(newest), target_mask, rotation)

        def read_source(x: Tensor) -> Tensor:
            if observe is not None:
                observe(self.cross_attention.weights(x, memory, source_mask))
            return self.cross_attention(x, memory, source_mask)

        return self._apply_sublayers(x, read_target, read_source)

    def _apply_sublayers(self, x: Tensor, read_target: Function, read_source: Function) -> Tensor:
        norm = self.ssru_norm or self.self_attention_norm
        assert norm is not None
        x = self.residual(x, read_target, norm, self.dropout)
        x = self.residual(x, read_source, self.cross_attention_norm, self.dropout)
        return self.residual(x, self.feed_forward, self.feed_forward_norm, self.dropout)
