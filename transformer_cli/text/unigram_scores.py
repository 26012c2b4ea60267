"""The scores of a unigram language model over subwords of characters (Kudo 2018).

The candidates are the subwords that byte-pair encoding finds. The trainer of the `tokenizers` library finds its
candidates in a list of different words, without their frequencies, so that it loses the short frequent words of
Japanese. Here each round splits the texts in the most probable way, and the next round has the frequencies of
this one (Viterbi training); each round drops the rarest candidates.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from transformer_cli.text.tokenizer_file import TokenizerParts, build
from transformer_cli.text.tokenizer_layout import BYTE_TOKENS, Layout

# Of the candidates beyond the vocabulary, each round keeps this share; the last round keeps none.
KEPT_SHARES = (0.5, 0.2, 0.0, 0.0)
TEXTS_AT_ONCE = 10_000
# Log of a count below 1: for bytes, and for characters that occur only inside longer subwords.
_RARER = math.log(0.5)


def learn_scores(
    texts: Iterable[str], candidates: TokenizerParts, vocab_size: int
) -> TokenizerParts:
    """A Unigram tokenizer of at most `vocab_size` entries; all single characters of the candidates stay.

    Args:
        texts: read several times.
        candidates: a BPE tokenizer with more entries.
    """
    layout = replace(candidates.layout, kind="Unigram")
    vocabulary = candidates.model["vocab"]
    subwords = sorted(vocabulary.keys() - {*layout.specials, *BYTE_TOKENS})
    counts = _count_tokens(candidates, texts)
    max_subwords = vocab_size - len(layout.specials) - len(BYTE_TOKENS)
    for kept_share in KEPT_SHARES:
        num_extra = max(0, len(vocabulary) - vocab_size) * kept_share
        subwords = _most_frequent(subwords, counts, max_subwords + int(num_extra))
        parts = TokenizerParts(layout, _model(layout, subwords, counts))
        counts = _count_tokens(parts, texts)
    return TokenizerParts(layout, _model(layout, subwords, counts))


def _most_frequent(subwords: list[str], counts: Counter[str], number: int) -> list[str]:
    """At most so many subwords: all single characters, and the most frequent of the others."""
    order = sorted(subwords, key=lambda piece: (len(piece) > 1, -counts[piece], piece))
    return order[:number]


def _model(layout: Layout, subwords: list[str], counts: Counter[str]) -> dict[str, Any]:
    log_total = math.log(max(1, sum(counts[piece] for piece in subwords)))
    scores = {
        piece: round((math.log(counts[piece]) if counts[piece] else _RARER) - log_total, 4)
        for piece in subwords
    }
    lowest = round(_RARER - log_total, 4)
    fixed = [[special, 0.0] for special in layout.specials] + [
        [token, lowest] for token in BYTE_TOKENS
    ]
    order = sorted(scores, key=lambda piece: (-scores[piece], piece))
    entries = [[piece, scores[piece]] for piece in order]
    return layout.empty_model() | {"vocab": fixed + entries}


def _count_tokens(parts: TokenizerParts, texts: Iterable[str]) -> Counter[str]:
    engine = build(parts)
    counts: Counter[int] = Counter()
    for chunk in _chunks(texts):
        for encoding in engine.encode_batch_fast(chunk, add_special_tokens=False):
            counts.update(encoding.ids)
    names = {engine.id_to_token(index): number for index, number in counts.items()}
    return Counter({name: number for name, number in names.items() if name is not None})


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(texts)
    while chunk := list(islice(remaining, TEXTS_AT_ONCE)):
        yield chunk
