"""Lines in, lines out: same count, same order."""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from transformer_cli.checkpoint import load_trained
from transformer_cli.config import DataConfig, DecodingConfig, RuntimeConfig
from transformer_cli.decoding.length_batches import MAX_LOGITS, length_batches
from transformer_cli.decoding.search import Hypotheses, Symbols, beam_search, greedy_search
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Machine, prepare_machine
from transformer_cli.text.long_lines import split_line
from transformer_cli.text.normalization import is_blank, normalize
from transformer_cli.text.sequence_format import SequenceFormat
from transformer_cli.text.tokenizer import MAX_CHARACTERS_PER_TOKEN, Tokenizer

logger = logging.getLogger(__name__)

# Lines that are sorted by length together.
WINDOW_LINES = 2000
# Whatever somebody may take for the end of a line.
_LINE_BREAKS = dict.fromkeys(map(ord, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")

TokenIds = tuple[int, ...]


class Alternative(NamedTuple):
    """One of the best translations of a line."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of one line; `text` never holds a line break."""

    source: str
    text: str
    score: float
    """Log-probability / length penalty; of a line cut into parts, the sum over its parts."""
    alternatives: tuple[Alternative, ...]
    """At most `decoding.num_best`, all different, best first, `text` among them; none for a blank line."""


@contextmanager
def inference(model: Transformer, machine: Machine) -> Iterator[None]:
    """No gradients, no dropout, the machine's precision; the model's training mode comes back."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode(), machine.autocast():
            yield
    finally:
        model.train(was_training)


@dataclass(slots=True)
class Translator:
    """A trained model with its tokenizers, on a machine.

    A blank line gives an empty one. A line with more tokens than `model.max_length` is cut into
    parts, between sentences where possible, which are translated one by one and joined by spaces;
    `num_lines_cut` counts such lines. `[UNK]` is shown where the model says that it lacks the word.
    """

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    decoding: DecodingConfig
    data: DataConfig
    machine: Machine
    num_lines_cut: int = field(default=0, init=False)

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        """One translation per line, in order; reads a window of lines ahead."""
        remaining = iter(lines)
        while window := list(islice(remaining, WINDOW_LINES)):
            yield from self._translate_window(window)

    def _translate_window(self, lines: Sequence[str]) -> list[Translation]:
        parts_of_lines = [self._parts(line) for line in lines]
        num_cut = sum(len(parts) > 1 for parts in parts_of_lines)
        if num_cut:
            self.num_lines_cut += num_cut
            logger.warning(
                "lines of more than %d tokens, translated in parts: %d",
                self.model.config.max_length,
                num_cut,
            )
        # Equal sentences are searched once.
        found = self._search_all(dict.fromkeys(part for parts in parts_of_lines for part in parts))
        return [
            _joined(line, [found[part] for part in parts])
            for line, parts in zip(lines, parts_of_lines, strict=True)
        ]

    def _parts(self, line: str) -> list[TokenIds]:
        """The ids of a line; several sequences where it is too long for the model."""
        text = normalize(line.rstrip("\r\n"), self.data.cleaning)
        if is_blank(text):
            return []
        limit = self.model.config.max_length
        encoded: dict[str, TokenIds] = {}

        def is_short(part: str) -> bool:
            # A megabyte is not encoded again and again on the way to parts of a sane size.
            if len(part) > MAX_CHARACTERS_PER_TOKEN * limit:
                return False
            encoded[part] = self._encode(part)
            return len(encoded[part]) <= limit

        parts = split_line(text, is_short)
        return [(encoded.get(part) or self._encode(part))[:limit] for part in parts]

    def _encode(self, text: str) -> TokenIds:
        tokenizer = self.source_tokenizer
        return tuple(
            SequenceFormat.of(self.data).with_end(tokenizer.encode(text), tokenizer.eos_id)
        )

    def _search_all(self, sentences: Iterable[TokenIds]) -> dict[TokenIds, list[Alternative]]:
        found: dict[TokenIds, list[Alternative]] = {}
        logits_per_sentence = self.decoding.beam_size * self.target_tokenizer.vocab_size
        max_sentences = max(1, MAX_LOGITS // logits_per_sentence)
        with inference(self.model, self.machine):
            for batch in length_batches(
                sentences, len, max_tokens=self.decoding.batch_tokens, max_items=max_sentences
            ):
                found |= zip(batch, self._read(self._search(batch)), strict=True)
        return found

    def _search(self, sentences: Sequence[TokenIds]) -> Hypotheses:
        source_ids, source_mask = self._padded(sentences)
        max_lengths = torch.tensor([self._max_length(len(ids)) for ids in sentences])
        memory = self.model.encode(source_ids, source_mask)  # (B, S, D)
        state = self.model.start_decoding(memory, source_mask)
        settings = self.decoding
        if settings.beam_size == 1:
            return greedy_search(
                state,
                self._symbols(),
                max_lengths.to(self.machine.device),
                length_penalty=settings.length_penalty,
            )
        return beam_search(
            state,
            self._symbols(),
            max_lengths.to(self.machine.device),
            beam_size=settings.beam_size,
            length_penalty=settings.length_penalty,
            num_best=settings.num_best,
        )

    def _symbols(self) -> Symbols:
        tokenizer = self.target_tokenizer
        forbidden_ids = () if self.decoding.allow_unknown else (tokenizer.unk_id,)
        if SequenceFormat.of(self.data).has_end:
            return Symbols(tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, forbidden_ids)
        return Symbols(tokenizer.pad_id, tokenizer.sos_id, None, (*forbidden_ids, tokenizer.eos_id))

    def _max_length(self, source_length: int) -> int:
        """Most tokens of a translation, the end symbol included; without one, its very length."""
        fixed_length = SequenceFormat.of(self.data).fixed_length(source_length)
        if fixed_length is not None:
            return fixed_length
        limit = self.decoding.max_length or 2 * source_length + 20
        config = self.model.config
        return min(limit, config.max_length) if config.positions == "learned" else limit

    def _padded(self, sentences: Sequence[TokenIds]) -> tuple[Tensor, Tensor]:
        """(B, S) int64 ids, and bool: True is a real token."""
        longest = max(map(len, sentences))
        pad_id = self.source_tokenizer.pad_id
        rows = [[*ids, *[pad_id] * (longest - len(ids))] for ids in sentences]
        lengths = torch.tensor([len(ids) for ids in sentences])
        is_real = torch.arange(longest) < lengths.unsqueeze(1)
        device = self.machine.device
        return torch.tensor(rows).to(device), is_real.to(device)

    def _read(self, hypotheses: Hypotheses) -> Iterator[list[Alternative]]:
        """The texts of each sentence's hypotheses; of equal texts, the one with the best score."""
        all_scores = hypotheses.scores.tolist()
        for ids_of_one, scores in zip(hypotheses.ids.tolist(), all_scores, strict=True):
            texts = map(_on_one_line, self.target_tokenizer.decode_batch(ids_of_one))
            scored = [pair for pair in zip(texts, scores, strict=True) if pair[1] > -math.inf]
            best = dict(reversed(scored))
            yield [Alternative(text, best[text]) for text in dict(scored)]


def load_translator(
    folder: str | PathLike[str],
    *,
    which: Literal["best", "last"] = "best",
    decoding: DecodingConfig | None = None,
    runtime: RuntimeConfig | None = None,
) -> Translator:
    """The translator of a run or checkpoint folder.

    Args:
        folder: `runs/NAME`, or a checkpoint, wherever it was copied.
        which: of a run's checkpoints.
        decoding: instead of what the run's config says.
        runtime: instead of what the run's config says.
    """
    trained = load_trained(Path(folder), which=which)
    machine = prepare_machine(runtime or trained.config.runtime)
    return Translator(
        model=trained.model.to(machine.device),
        source_tokenizer=trained.source_tokenizer,
        target_tokenizer=trained.target_tokenizer,
        decoding=decoding or trained.config.decoding,
        data=trained.config.data,
        machine=machine,
    )


def _joined(line: str, parts: Sequence[Sequence[Alternative]]) -> Translation:
    """The translation of a line from those of its parts; no parts: a blank line."""
    if not parts:
        return Translation(line, "", 0.0, ())
    alternatives = tuple(
        Alternative(
            " ".join(filter(None, (alternative.text for alternative in of_parts))),
            sum(alternative.score for alternative in of_parts),
        )
        for of_parts in zip(*parts, strict=False)
    )
    # Nothing was found only where the translation has no token at all: that is certain.
    best = alternatives[0] if alternatives else Alternative("", 0.0)
    return Translation(line, best.text, best.score, alternatives)


def _on_one_line(text: str) -> str:
    return text.translate(_LINE_BREAKS)
