"""The Transformer from its formulas: slow, one sentence and one head at a time, no masks, no batches.

It imports nothing from the package, so that it can serve as its oracle. Padding does not exist here:
each sentence is cut to its real tokens first. Weights come by name, settings as a plain dictionary.
"""

import math
from typing import Any

import torch
from torch import Tensor

Weights = dict[str, Tensor]
Settings = dict[str, Any]


def logits(
    weights: Weights,
    settings: Settings,
    source_ids: Tensor,
    source_mask: Tensor,
    decoder_input_ids: Tensor,
) -> Tensor:
    """(B, T, V)."""
    rows = []
    for sentence, is_real, target in zip(source_ids, source_mask, decoder_input_ids, strict=True):
        memory = encode(weights, settings, sentence[is_real])
        rows.append(decode(weights, settings, target, memory))
    return torch.stack(rows)


def encode(weights: Weights, settings: Settings, ids: Tensor) -> Tensor:
    """(S) to (S, D)."""
    x = embed(weights, settings, "source", ids)
    everything = [list(range(len(ids)))] * len(ids)
    for i in range(settings["encoder_layers"]):
        layer = f"encoder.layers.{i}"

        def attend(h: Tensor, name: str = f"{layer}.self_attention") -> Tensor:
            return attention(weights, settings, name, h, h, everything)

        def transform(h: Tensor, name: str = f"{layer}.feed_forward") -> Tensor:
            return feed_forward(weights, settings, name, h)

        x = add(weights, settings, f"{layer}.self_attention_norm", x, attend)
        x = add(weights, settings, f"{layer}.feed_forward_norm", x, transform)
    return final_norm(weights, settings, "encoder.norm", x)


def decode(weights: Weights, settings: Settings, ids: Tensor, memory: Tensor) -> Tensor:
    """(T) and (S, D) to (T, V)."""
    x = embed(weights, settings, "target", ids)
    past = [list(range(t + 1)) for t in range(len(ids))]
    whole_source = [list(range(len(memory)))] * len(ids)
    for i in range(settings["decoder_layers"]):
        layer = f"decoder.layers.{i}"

        reader = "self_attention" if settings["decoder_layer"] == "attention" else "ssru"

        def read_target(h: Tensor, name: str = f"{layer}.{reader}") -> Tensor:
            if name.endswith("ssru"):
                return ssru(weights, name, h)
            return attention(weights, settings, name, h, h, past)

        def attend_to_source(h: Tensor, name: str = f"{layer}.cross_attention") -> Tensor:
            return attention(weights, settings, name, h, memory, whole_source)

        def transform(h: Tensor, name: str = f"{layer}.feed_forward") -> Tensor:
            return feed_forward(weights, settings, name, h)

        x = add(weights, settings, f"{layer}.{reader}_norm", x, read_target)
        x = add(weights, settings, f"{layer}.cross_attention_norm", x, attend_to_source)
        x = add(weights, settings, f"{layer}.feed_forward_norm", x, transform)
    return linear(weights, "output", final_norm(weights, settings, "decoder.norm", x))


def embed(weights: Weights, settings: Settings, side: str, ids: Tensor) -> Tensor:
    """(T) to (T, D): a row of the table for each token, plus its position, then a norm if there is one, then dropout."""
    tied = {"none": (), "target-output": ("target",), "all": ("source", "target")}
    is_tied = side in tied[settings["tie_embeddings"]]
    table = weights["output.weight" if is_tied else f"{side}_embedding.weight"]
    width = table.shape[1]
    rows = []
    for position, token in enumerate(ids.tolist()):
        row = table[token]
        if settings["scale_embeddings"]:
            row = row * math.sqrt(width)
        if settings["positions"] == "learned":
            row = row + weights[f"{side}_positions.weight"][position]
        elif settings["positions"] in ("sinusoidal", "sinusoidal_halves", "sinusoidal_marian"):
            row = row + sinusoids(position, width, settings["positions"]).to(row)
        rows.append(row)
    share = settings["embedding_dropout"]
    share = settings["dropout"] if share is None else share
    x = stack(rows, width, table)
    if settings["embedding_norm"]:
        x = norm(weights, settings, f"{side}_embedding_norm", x)
    return dropped(settings, x, share)


def sinusoids(position: int, width: int, layout: str) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / d))."""
    divisor = max(width - 2, 1) if layout == "sinusoidal_marian" else width
    sines = [math.sin(position / 10000 ** (2 * i / divisor)) for i in range(width // 2)]
    cosines = [math.cos(position / 10000 ** (2 * i / divisor)) for i in range(width // 2)]
    if layout in ("sinusoidal_halves", "sinusoidal_marian"):
        return torch.tensor(sines + cosines, dtype=torch.float64)
    pairs = [number for pair in zip(sines, cosines, strict=True) for number in pair]
    return torch.tensor(pairs, dtype=torch.float64)


def add(weights: Weights, settings: Settings, norm_name: str, x: Tensor, f: Any) -> Tensor:
    """One sub-layer with its residual and its norm."""
    share = settings["dropout"]
    if settings["norm_placement"] == "pre":
        return x + dropped(settings, f(norm(weights, settings, norm_name, x)), share)
    if settings["norm_placement"] == "post":
        return norm(weights, settings, norm_name, x + dropped(settings, f(x), share))
    return x + norm(weights, settings, norm_name, dropped(settings, f(x), share))


def final_norm(weights: Weights, settings: Settings, name: str, x: Tensor) -> Tensor:
    has_one = settings["final_norm"]
    if has_one is None:
        has_one = settings["norm_placement"] != "post"
    return norm(weights, settings, name, x) if has_one else x


def norm(weights: Weights, settings: Settings, name: str, x: Tensor) -> Tensor:
    """(..., D), each vector on its own."""
    kind, eps, width = settings["norm"], settings["norm_eps"], x.shape[-1]
    gain = weights[f"{name}.weight"]
    if kind == "rmsnorm":
        return rms_norm(gain, eps, x)
    centred = x - x.sum(-1, keepdim=True) / width
    squares = (centred**2).sum(-1, keepdim=True)
    if kind == "layernorm":
        return gain * centred / (squares / width + eps) ** 0.5 + weights[f"{name}.bias"]
    assert gain.numel() == (1 if kind == "scalar_std_layernorm" else width)
    varies = squares > 0  # where nothing varies, std and its gradient are 0
    std = (squares.where(varies, 1) / (width - 1)) ** 0.5 * varies
    return gain * centred / (std + eps) + weights[f"{name}.bias"]


def rms_norm(gain: Tensor, eps: float, x: Tensor) -> Tensor:
    return gain * x / ((x**2).sum(-1, keepdim=True) / x.shape[-1] + eps) ** 0.5


def attention(
    weights: Weights,
    settings: Settings,
    name: str,
    x: Tensor,
    context: Tensor,
    visible: list[list[int]],
) -> Tensor:
    """(Q, D) and (C, D) to (Q, D); `visible` lists for each of the Q the positions that it may see."""
    num_heads = settings["num_heads"]
    width = settings["head_dim"] or settings["d_model"] // num_heads
    group_size = num_heads // (settings["num_kv_heads"] or num_heads)
    queries, keys, values = (
        linear(weights, f"{name}.{part}", side) for part, side in (("query", x), ("key", context), ("value", context))
    )
    heads = []
    for head in range(num_heads):
        own = slice(head * width, (head + 1) * width)
        group = slice(head // group_size * width, (head // group_size + 1) * width)
        q, k, v = queries[:, own], keys[:, group], values[:, group]
        if settings["qk_norm"]:
            q = rms_norm(weights[f"{name}.query_norm.weight"], settings["norm_eps"], q)
            k = rms_norm(weights[f"{name}.key_norm.weight"], settings["norm_eps"], k)
        if settings["positions"] == "rotary" and name.endswith("self_attention"):
            q, k = turned(q), turned(k)
        heads.append(head_attention(settings, q, k, v, visible))
    return linear(weights, f"{name}.output", torch.cat(heads, dim=-1))


def ssru(weights: Weights, name: str, x: Tensor) -> Tensor:
    """(T, D) to the same, position after position: the formula of Kim et al. 2019."""
    state, outputs = torch.zeros_like(x[0]), []
    for position in x:
        gate = weights[f"{name}.forget_gate.weight"] @ position + weights[f"{name}.forget_gate.bias"]
        forget = 1 / (1 + (-gate).exp())
        state = forget * state + (1 - forget) * (weights[f"{name}.input.weight"] @ position)
        outputs.append(state.clamp(min=0))
    return torch.stack(outputs)


def head_attention(settings: Settings, q: Tensor, k: Tensor, v: Tensor, visible: list[list[int]]) -> Tensor:
    """softmax(q k^T / sqrt(K)) v over the visible positions; zeros if no position is visible."""
    rows = []
    for i, seen in enumerate(visible):
        if not seen:
            rows.append(torch.zeros_like(q[i]))
            continue
        scores = torch.stack([(q[i] * k[j]).sum() / math.sqrt(q.shape[1]) for j in seen])
        powers = (scores - scores.max()).exp()
        shares = dropped(settings, powers / powers.sum(), settings["attention_dropout"])
        rows.append((shares[:, None] * v[seen]).sum(0))
    return stack(rows, q.shape[1], q)


def turned(x: Tensor) -> Tensor:
    """(T, K): columns 2i and 2i + 1 of position p are rotated by the angle p / 10000^(2i / K)."""
    rows = []
    for position, row in enumerate(x):
        numbers = []
        for i in range(x.shape[1] // 2):
            angle = position / 10000 ** (2 * i / x.shape[1])
            a, b = row[2 * i], row[2 * i + 1]
            numbers.append(a * math.cos(angle) - b * math.sin(angle))
            numbers.append(a * math.sin(angle) + b * math.cos(angle))
        rows.append(torch.stack(numbers))
    return stack(rows, x.shape[1], x)


def feed_forward(weights: Weights, settings: Settings, name: str, x: Tensor) -> Tensor:
    """(T, D) to the same."""
    activations = {
        "relu": lambda h: h.clamp(min=0),
        "gelu": lambda h: h * (1 + torch.erf(h / math.sqrt(2))) / 2,
        "silu": lambda h: h / (1 + (-h).exp()),
    }
    ungated = {"reglu": "relu", "geglu": "gelu", "swiglu": "silu"}
    kind = settings["activation"]
    inner = linear(weights, f"{name}.up", x)
    if kind in ungated:
        inner = activations[ungated[kind]](linear(weights, f"{name}.gate", x)) * inner
    else:
        inner = activations[kind](inner)
    return linear(weights, f"{name}.down", dropped(settings, inner, settings["ff_dropout"]))


def linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    """x W^T + b, without b where there is none."""
    y = x @ weights[f"{name}.weight"].T
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def dropped(settings: Settings, x: Tensor, share: float) -> Tensor:
    """No dropout; tests of the places of dropout replace this function by a factor."""
    return x * (1 + share) if settings.get("dropout_multiplies") else x


def loss(logits: Tensor, target_ids: Tensor, *, pad_id: int, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """Sums over real tokens: - sum_v q(v) log p(v), where q is the smoothed label; and - log p(truth)."""
    objective = likelihood = logits.sum() * 0
    vocab_size = logits.shape[-1]
    for scores, truths in zip(logits, target_ids.tolist(), strict=True):
        for row, truth in zip(scores, truths, strict=True):
            if truth == pad_id:
                continue
            log_probabilities = row - row.exp().sum().log()
            labels = torch.full_like(row, label_smoothing / vocab_size)
            labels[truth] += 1 - label_smoothing
            objective = objective - (labels * log_probabilities).sum()
            likelihood = likelihood - log_probabilities[truth]
    return objective, likelihood


def stack(rows: list[Tensor], width: int, like: Tensor) -> Tensor:
    """(T, width), also for no rows."""
    return torch.stack(rows) if rows else like.new_zeros(0, width)
