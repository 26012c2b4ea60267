"""The finale: a learner's functions together are a small Transformer, which learns to copy its input."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.acceleration.optimizers import step as update
from transformer_cli.acceleration.optimizers import without_tracer
from transformer_cli.extensions.lessons.exercises.catalogue import WrongAnswer

PAD, BOS, EOS, NUM_SYMBOLS, NUM_TOKENS = 0, 1, 2, 8, 11
MIN_LENGTH, MAX_LENGTH = 3, 7
WIDTH, NUM_HEADS, BATCH_SENTENCES = 32, 4, 32
NUM_UPDATES, WARMUP_STEPS, EPSILON = 300, 60, 0.1
NUM_TESTS = 20
ENOUGH_BLEU = 80.0

Functions = Mapping[str, Any]


class _Attention(nn.Module):
    """Multi-head attention with the learner's functions."""

    def __init__(self, functions: Functions) -> None:
        super().__init__()
        self.functions = functions
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """(B, Q, D) and (B, C, D) to (B, Q, D)."""
        inputs = self.query(x), self.key(context), self.value(context)
        heads = (self.functions["heads"].split_heads(one, NUM_HEADS) for one in inputs)
        attended = self.functions["scaled_attention"].attention(*heads, mask)
        return self.output(self.functions["heads"].join_heads(attended))


class _Layer(nn.Module):
    """Attention to the sentence itself, perhaps to a memory, and a feed-forward network; each after a norm."""

    def __init__(self, functions: Functions, *, reads_memory: bool) -> None:
        super().__init__()
        self.own = _Attention(functions)
        self.cross = _Attention(functions) if reads_memory else None
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """(B, T, D) to the same shape."""
        normed = self.norms[0](x)
        x = x + self.own(normed, normed, mask)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory, memory_mask)
        return x + self.feed_forward(self.norms[2](x))


class SmallTransformer(nn.Module):
    """An encoder and a decoder of one layer each.

    Args:
        functions: the modules of the learner, by the name of their exercise.
    """

    def __init__(self, functions: Functions) -> None:
        super().__init__()
        self.functions = functions
        self.embedding = nn.Embedding(NUM_TOKENS, WIDTH)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.encoder = _Layer(functions, reads_memory=False)
        self.decoder = _Layer(functions, reads_memory=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, NUM_TOKENS)

    def forward(self, source_ids: Tensor, decoder_input_ids: Tensor) -> Tensor:
        """(B, S) and (B, T) int64 to logits (B, T, V)."""
        is_real = (source_ids != PAD)[:, None, None, :]  # (B, 1, 1, S)
        x = self._embedded(source_ids)
        memory = self.encoder(x, is_real, x, is_real)
        causal = self.functions["causal_mask"].causal_mask(decoder_input_ids.size(1))
        y = self.decoder(self._embedded(decoder_input_ids), causal, memory, is_real)
        return self.output(self.norm(y))

    def _embedded(self, ids: Tensor) -> Tensor:
        table = self.functions["sinusoids"].sinusoids(ids.size(1), WIDTH)
        return self.embedding(ids) * WIDTH**0.5 + table


def play_finale(functions: Functions, num_updates: int = NUM_UPDATES) -> Iterator[str]:
    """Train and translate with the learner's functions; the lines that tell about it.

    Raises:
        WrongAnswer: the model does not learn to copy.
    """
    torch.manual_seed(1)
    model = SmallTransformer(functions)
    first, last = _train(model, functions, num_updates)
    yield f"loss per token: {first:.2f} in update 1, {last:.2f} in update {num_updates} (the best possible is {_least_loss():.2f})"
    sources = _sentences(NUM_TESTS)
    results = {name: [_translate(model, functions, name, one) for one in sources] for name in ("greedy", "beam")}
    for source, greedy, beam in list(zip(sources, *results.values(), strict=True))[:3]:
        yield f"source {_shown(source)}   greedy search {_shown(greedy)}   beam search {_shown(beam)}"
    wanted = [_shown(one).split() for one in sources]
    scores = {
        name: functions["bleu"].corpus_bleu([_shown(one).split() for one in found], wanted)
        for name, found in results.items()
    }
    told = ", ".join(f"{score:.1f} with {name} search" for name, score in scores.items())
    if min(scores.values()) < ENOUGH_BLEU:
        raise WrongAnswer(f"the model has not learned to copy: BLEU {told}")
    yield f"BLEU of {NUM_TESTS} new sequences: {told}"


def _least_loss() -> float:
    """The entropy of a smoothed label: no model has a smaller loss."""
    label = torch.full((NUM_TOKENS,), EPSILON / NUM_TOKENS)
    label[0] += 1 - EPSILON
    return float(-(label * label.log()).sum())


def _train(model: SmallTransformer, functions: Functions, num_updates: int) -> tuple[float, float]:
    """Train the model; the losses of the first and the last update."""
    without_tracer()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(1, num_updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = functions["warmup"].learning_rate(step, WIDTH, WARMUP_STEPS)
        sentences = _sentences(BATCH_SENTENCES)
        source = _padded([[*one, EOS] for one in sentences])
        given = _padded([[BOS, *one] for one in sentences])
        logits = model(source, given)
        loss = functions["label_smoothing"].smoothed_loss(logits, source, PAD, EPSILON)
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update(optimizer)
        losses.append(float(loss.detach()))
    return losses[0], losses[-1]


def _translate(model: SmallTransformer, functions: Functions, name: str, source: list[int]) -> list[int]:
    ids = torch.tensor([[*source, EOS]])

    def next_log_probs(beginning: list[int]) -> Tensor:
        with torch.no_grad():
            return model(ids, torch.tensor([beginning]))[0, -1].log_softmax(-1)

    limit = MAX_LENGTH + 3
    if name == "greedy":
        return list(functions["greedy_search"].greedy_search(next_log_probs, BOS, EOS, limit))
    return list(functions["beam_search"].beam_search(next_log_probs, BOS, EOS, 4, limit, 0.6))


def _sentences(number: int) -> list[list[int]]:
    """Random sequences of symbols."""
    lengths = torch.randint(MIN_LENGTH, MAX_LENGTH + 1, (number,)).tolist()
    return [torch.randint(3, 3 + NUM_SYMBOLS, (length,)).tolist() for length in lengths]


def _padded(sequences: list[list[int]]) -> Tensor:
    rows = [torch.tensor(one) for one in sequences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def _shown(ids: list[int]) -> str:
    """The symbols as digits 1 to 8."""
    return " ".join(str(int(one) - 2) for one in ids)
