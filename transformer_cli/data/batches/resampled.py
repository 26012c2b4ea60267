"""Training pairs that change in each epoch: by training noise, and by subword regularisation.

Noise changes the text of a pair; subword regularisation cuts its words into other subwords. The ids of a pair are a
pure function of (seed, epoch, visit), so a resumed run gets the same ids. They are drawn for a whole pool of pairs at
once, because the pool is divided into batches by the new lengths.
"""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import Config, NoiseConfig, TrainingConfig
from transformer_cli.data.batches.encoded import EncodedCorpus, TokenPair
from transformer_cli.data.batches.order import EpochOrder, Indices, epoch_order
from transformer_cli.process.device import derive_seed
from transformer_cli.text import Tokenizer
from transformer_cli.text.sampling import LatticeSampling, MergeDropout, WordSampler
from transformer_cli.text.token_arrays import Padded, pad_ids
from transformer_cli.text.typing_noise import with_noise

Ids = NDArray[Any]
SAMPLED_POOL_SIZE = 10_000
MAX_KEPT_PAIRS = 15_000


class PairNoise:
    """Training noise for pairs of ids: it changes their texts, and encodes them again.

    Args:
        tokenizers: of source and target.
        noise: the probability of each change.
    """

    def __init__(self, tokenizers: tuple[Tokenizer, Tokenizer], noise: NoiseConfig) -> None:
        self._tokenizers = tokenizers
        self._noise = noise

    def changed(self, pair: TokenPair, numbers: Random) -> TokenPair:
        """The pair with the changes that are drawn for it; tags and [EOS] stay.

        A pair with [UNK] stays as it is, because its text is not known.
        """
        sides = [np.asarray(ids) for ids in pair]
        tokenizers = self._tokenizers
        if any(tokenizer.unk_id in ids for tokenizer, ids in zip(tokenizers, sides, strict=True)):
            return pair
        texts = [
            tokenizer.decode(ids.tolist()) for tokenizer, ids in zip(tokenizers, sides, strict=True)
        ]
        if not all(texts):
            return pair
        changed = with_noise(texts[0], texts[1], self._noise, numbers)
        parts = zip(tokenizers, sides, texts, changed, strict=True)
        return TokenPair(
            *(
                ids if new == old else _encoded_like(tokenizer, ids, new)
                for tokenizer, ids, old, new in parts
            )
        )


def _encoded_like(tokenizer: Tokenizer, ids: Ids, text: str) -> Ids:
    """The ids of a text, between the special tokens that begin and end `ids`."""
    is_text = np.flatnonzero(ids >= len(tokenizer.special_tokens))
    before, after = ids[: is_text[0]], ids[is_text[-1] + 1 :]
    return np.concatenate([before, np.array(tokenizer.encode(text), ids.dtype), after])


class ResampledPairs:
    """The pairs of a corpus as they are in an epoch.

    Args:
        corpus: the training split in its ordinary encoding.
        samplers: cut the words of source and target; None: the subwords stay.
        noise: changes the texts; None: they stay.
        seed: different seeds give different noise and different subwords.
        max_length: a pair with a longer side keeps its ordinary encoding, which is not longer than this.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        samplers: tuple[WordSampler, WordSampler] | None,
        *,
        noise: PairNoise | None = None,
        seed: int,
        max_length: int,
    ) -> None:
        self._corpus = corpus
        self._samplers = samplers
        self._noise = noise
        self._seed = seed
        self._max_length = max_length
        self._kept: dict[tuple[int, int], TokenPair] = {}  # (epoch, visit) -> pair

    def lengths(self, epoch: int, visits: Indices) -> tuple[Indices, Indices]:
        """Number of source tokens and of target tokens at these visits of an epoch."""
        pairs = self.pairs(epoch, visits)
        lengths = np.array([(len(source), len(target)) for source, target in pairs], np.int64)
        return lengths[:, 0], lengths[:, 1]

    def pairs(self, epoch: int, visits: Indices) -> list[TokenPair]:
        """The pairs at these visits of an epoch; visit v reads pair v modulo the number of pairs."""
        keys = [(epoch, visit) for visit in visits.tolist()]
        kept = self._kept
        if len(kept) + sum(key not in kept for key in keys) > MAX_KEPT_PAIRS:
            kept = self._kept = {}
        found = []
        for key in keys:
            pair = kept.get(key)
            if pair is None:
                pair = kept[key] = self._drawn(*key)
            found.append(pair)
        return found

    def padded(self, epoch: int, visits: Indices, pad_id: int) -> tuple[Padded, Padded]:
        """The source ids and the target ids of the pairs at these visits of an epoch."""
        sources, targets = zip(*self.pairs(epoch, visits), strict=True)
        return pad_ids(sources, pad_id), pad_ids(targets, pad_id)

    def _drawn(self, epoch: int, visit: int) -> TokenPair:
        ordinary = drawn = self._corpus[visit % len(self._corpus)]
        if self._noise is not None:
            drawn = self._noise.changed(
                drawn, Random(derive_seed(self._seed, "noise", epoch, visit))
            )
        if self._samplers is not None:
            numbers = Random(derive_seed(self._seed, "subwords", epoch, visit))
            sides = zip(self._samplers, drawn, strict=True)
            drawn = TokenPair(*(sampler.sample(ids, numbers) for sampler, ids in sides))
        is_too_long = max(map(len, drawn)) > self._max_length
        return ordinary if is_too_long else drawn


def training_pairs(
    corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer], config: Config
) -> tuple[EncodedCorpus | ResampledPairs, EpochOrder]:
    """The pairs that training reads, and their order, for the settings of a config."""
    order, training = epoch_order(corpus.lengths, corpus.corpus_sizes, config), config.training
    if not training.changes_pairs:
        return corpus, order
    pairs = ResampledPairs(
        corpus,
        _word_samplers(tokenizers, training),
        noise=None if training.noise is None else PairNoise(tokenizers, training.noise),
        seed=config.seed,
        max_length=config.model.max_length,
    )
    return pairs, replace(order, sampled_lengths=pairs.lengths, pool_size=SAMPLED_POOL_SIZE)


def _word_samplers(
    tokenizers: tuple[Tokenizer, Tokenizer], training: TrainingConfig
) -> tuple[WordSampler, WordSampler] | None:
    if training.bpe_dropout is None and training.unigram_alpha is None:
        return None
    source, target = tokenizers
    of_source = _word_sampler(source, training)
    return of_source, of_source if target is source else _word_sampler(target, training)


def _word_sampler(tokenizer: Tokenizer, training: TrainingConfig) -> WordSampler:
    if training.bpe_dropout is not None:
        return WordSampler(tokenizer, MergeDropout(tokenizer.parts, training.bpe_dropout))
    assert training.unigram_alpha is not None
    return WordSampler(tokenizer, LatticeSampling(tokenizer.parts, training.unigram_alpha))
