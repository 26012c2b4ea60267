"""Tokens of a source and of its hypotheses: their names, their places in the text, and what else was probable."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from transformer_cli.decoding import Explanation, TokenIds
from transformer_cli.decoding.details import linked_words, spans_in_line, word_spans, words_at
from transformer_cli.decoding.text_pipeline import LINE_BREAKS
from transformer_cli.extensions.lessons.explaining.explanation import (
    Alternative,
    DecoderToken,
    ExplainedHypothesis,
    Source,
    SourceToken,
    Span,
    TargetToken,
)
from transformer_cli.text import Tokenizer

_NOWHERE = (-2, -1)


def explained_source(ids: TokenIds, text: str, start: int, tokenizer: Tokenizer) -> Source:
    """The tokens of a sentence, with a tag before them and [EOS] behind them where the model reads these.

    Args:
        start: where the sentence begins in the line.
    """
    pieces = tokenizer.tokens(ids)
    places = spans_in_line(ids, text, 0, tokenizer)
    tokens = tuple(
        SourceToken(
            index,
            piece,
            tokenizer.entries[index],
            _kind(index, tokenizer),
            None if begin < 0 else begin,
            None if begin < 0 else end,
        )
        for index, piece, (begin, end) in zip(ids, pieces, places, strict=True)
    )
    return Source(text, start, tokens, tuple(word_spans(text)))


def _kind(index: int, tokenizer: Tokenizer) -> Literal["text", "tag", "end"]:
    if index in tokenizer.tag_ids:
        return "tag"
    return "end" if index == tokenizer.eos_id else "text"


def explained_hypothesis(
    source: Source,
    ids: TokenIds,
    explanation: Explanation,
    tokenizer: Tokenizer,
    numbers: tuple[float, float, float],
) -> ExplainedHypothesis:
    """A hypothesis with its tokens, and their links to the source.

    Args:
        ids: of the hypothesis.
        tokenizer: of the target.
        numbers: score, log-probability and length penalty.
    """
    text = tokenizer.decode(ids).translate(LINE_BREAKS)
    spans = tokenizer.decoded_spans(ids)
    tokens = _target_tokens(ids, spans, explanation, tokenizer)
    words = word_spans(text)
    of_source = [
        _NOWHERE if one.start is None or one.end is None else (one.start, one.end)
        for one in source.tokens
    ]
    of_target = [span if span[0] < len(text) else _NOWHERE for span in spans]
    links = linked_words(
        explanation.attention, words_at(of_source, source.words), words_at(of_target, words)
    )
    alignment = tuple(
        (place, aligned, float(explanation.attention[place, aligned]))
        for place, aligned in enumerate(explanation.alignment)
        if ids[place] != tokenizer.eos_id
    )
    return ExplainedHypothesis(
        text, *numbers, tokens, alignment, tuple(words), tuple((one[0], one[1]) for one in links)
    )


def _target_tokens(
    ids: TokenIds, spans: Sequence[Span], explanation: Explanation, tokenizer: Tokenizer
) -> tuple[TargetToken, ...]:
    log_probs = explanation.token_log_probs.tolist()
    best = zip(explanation.best_ids, explanation.best_log_probs, strict=True)
    rows = zip(ids, tokenizer.tokens(ids), spans, log_probs, best, strict=True)
    return tuple(
        TargetToken(
            index,
            piece,
            tokenizer.entries[index],
            start,
            end,
            log_prob,
            float(np.exp(log_prob)),
            _alternatives(best_ids.tolist(), best_log_probs.tolist(), tokenizer),
        )
        for index, piece, (start, end), log_prob, (best_ids, best_log_probs) in rows
    )


def _alternatives(
    ids: Sequence[int], log_probs: Sequence[float], tokenizer: Tokenizer
) -> tuple[Alternative, ...]:
    rows = zip(ids, tokenizer.tokens(ids), log_probs, strict=True)
    return tuple(Alternative(index, piece, log, float(np.exp(log))) for index, piece, log in rows)


def decoder_tokens(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[DecoderToken, ...]:
    """What the decoder reads."""
    return tuple(map(DecoderToken, ids, tokenizer.tokens(ids)))
