"""Subword regularisation: the words of training pairs are cut into other subwords in each epoch.

The ids of a pair are a pure function of (seed, epoch, visit), so a resumed run gets the same ids. They are sampled
for a whole pool of pairs at once, because the pool is divided into batches by the new lengths.
"""

from dataclasses import replace
from random import Random

import numpy as np

from transformer_cli.config import Config, TrainingConfig
from transformer_cli.data.batches.encoded import EncodedCorpus, TokenPair
from transformer_cli.data.batches.order import EpochOrder, Indices, epoch_order
from transformer_cli.runtime import derive_seed
from transformer_cli.text import Tokenizer
from transformer_cli.text.padding import Padded, pad_ids
from transformer_cli.text.sampling.lattice import LatticeSampling
from transformer_cli.text.sampling.merge_dropout import MergeDropout
from transformer_cli.text.sampling.word_sampler import WordSampler

SAMPLED_POOL_SIZE = 10_000
MAX_KEPT_PAIRS = 15_000


class ResampledPairs:
    """The pairs of a corpus with the subwords of an epoch.

    Args:
        corpus: the training split in its ordinary encoding.
        samplers: cut the words of source and target.
        seed: different seeds give different subwords.
        max_length: a pair with a longer side keeps its ordinary encoding, which is not longer than this.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        samplers: tuple[WordSampler, WordSampler],
        *,
        seed: int,
        max_length: int,
    ) -> None:
        self._corpus = corpus
        self._samplers = samplers
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
                pair = kept[key] = self._sampled(*key)
            found.append(pair)
        return found

    def padded(self, epoch: int, visits: Indices, pad_id: int) -> tuple[Padded, Padded]:
        """The source ids and the target ids of the pairs at these visits of an epoch."""
        sources, targets = zip(*self.pairs(epoch, visits), strict=True)
        return pad_ids(sources, pad_id), pad_ids(targets, pad_id)

    def _sampled(self, epoch: int, visit: int) -> TokenPair:
        ordinary = self._corpus[visit % len(self._corpus)]
        numbers = Random(derive_seed(self._seed, "subwords", epoch, visit))
        sides = zip(self._samplers, ordinary, strict=True)
        sampled = TokenPair(*(sampler.sample(ids, numbers) for sampler, ids in sides))
        is_too_long = max(map(len, sampled)) > self._max_length
        return ordinary if is_too_long else sampled


def training_pairs(
    corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer], config: Config
) -> tuple[EncodedCorpus | ResampledPairs, EpochOrder]:
    """The pairs that training reads, and their order, for the settings of a config."""
    order = epoch_order(corpus.lengths, corpus.corpus_sizes, config)
    if config.training.bpe_dropout is None and config.training.unigram_alpha is None:
        return corpus, order
    source, target = tokenizers
    of_source = _word_sampler(source, config.training)
    of_target = of_source if target is source else _word_sampler(target, config.training)
    pairs = ResampledPairs(
        corpus, (of_source, of_target), seed=config.seed, max_length=config.model.max_length
    )
    return pairs, replace(order, sampled_lengths=pairs.lengths, pool_size=SAMPLED_POOL_SIZE)


def _word_sampler(tokenizer: Tokenizer, training: TrainingConfig) -> WordSampler:
    if training.bpe_dropout is not None:
        return WordSampler(tokenizer, MergeDropout(tokenizer.parts, training.bpe_dropout))
    assert training.unigram_alpha is not None
    return WordSampler(tokenizer, LatticeSampling(tokenizer.parts, training.unigram_alpha))
