"""Searches over the scores of the next token, independent of model and text."""

from transformer_cli.decoding.search.beam import beam_search as beam_search
from transformer_cli.decoding.search.diverse_beam import diverse_beam_search as diverse_beam_search
from transformer_cli.decoding.search.greedy import greedy_search as greedy_search
from transformer_cli.decoding.search.hypotheses import Hypotheses as Hypotheses
from transformer_cli.decoding.search.sampling import sample_search as sample_search
from transformer_cli.decoding.search.scorer import AttendingScorer as AttendingScorer
from transformer_cli.decoding.search.scorer import Scorer as Scorer
from transformer_cli.decoding.search.terms.constrained import (
    constrained_search as constrained_search,
)
