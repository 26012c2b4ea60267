"""Searches over the scores of the next token, independent of model and text."""

from transformer_cli.decoding.search.beam import AttendingScorer as AttendingScorer
from transformer_cli.decoding.search.beam import Hypotheses as Hypotheses
from transformer_cli.decoding.search.beam import Scorer as Scorer
from transformer_cli.decoding.search.beam import beam_search as beam_search
from transformer_cli.decoding.search.constrained import (
    constrained_search as constrained_search,
)
from transformer_cli.decoding.search.diverse_beam import diverse_beam_search as diverse_beam_search
from transformer_cli.decoding.search.single_path import greedy_search as greedy_search
from transformer_cli.decoding.search.single_path import sample_search as sample_search
