"""Requests with terms: the width of their beam, and the states of their search."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Hypothesis, Request
from transformer_cli.decoding.engines.hypothesis_lists import hypothesis_lists
from transformer_cli.decoding.search.hypotheses import Hypotheses
from transformer_cli.decoding.search.terms.term_states import TermStates
from transformer_cli.decoding.search.terms.term_table import TermTable
from transformer_cli.text.whole_words.word_edges import WordEdges

# A character of UTF-8 that has begun may need this many further bytes, before a term can begin.
MAX_BYTES_LEFT = 3
# More places cost more time than they gain (docs/glossary.md).
PLACES_PER_BANK = 2
MAX_BEAM_SIZE = 64


class Search(Protocol):
    """A search for the hypotheses of requests."""

    def __call__(
        self, requests: Sequence[Request], options: DecodingConfig, *, goes_past_end: bool
    ) -> Hypotheses:
        """The hypotheses of each request; `goes_past_end` is explained at `TermStates`."""


def hypotheses_with_terms(
    requests: Sequence[Request], options: DecodingConfig, search: Search
) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each request; those with terms contain all of them.

    A request with terms may get no hypothesis, because the model wants to end before all terms stand there. It is
    searched again, and its terms may then stand behind the end that the model wants.
    """
    found = hypothesis_lists(search(requests, options, goes_past_end=False))
    for request, of_sentence in zip(requests, found, strict=True):
        if request.terms and not of_sentence:
            yield from hypothesis_lists(search([request], options, goes_past_end=True))
        else:
            yield of_sentence


def beam_groups(
    requests: Sequence[Request], options: DecodingConfig
) -> list[tuple[DecodingConfig, list[int]]]:
    """The indices of requests that can be searched together, and the options of their search.

    Requests without terms come together, with the given options. Those with terms are grouped by their beam size, so that
    a translation does not depend on the other requests.
    """
    groups: dict[int, list[int]] = {}
    for index, request in enumerate(requests):
        beam_size = beam_size_for(request, options) if request.terms else 0
        groups.setdefault(beam_size, []).append(index)
    return [
        (options.model_copy(update={"beam_size": beam_size or options.beam_size}), indices)
        for beam_size, indices in groups.items()
    ]


def beam_size_for(request: Request, options: DecodingConfig) -> int:
    """The beam size for a request with terms: at least `PLACES_PER_BANK` places for each bank, and `options.beam_size`."""
    num_banks = 1 + sum(max(map(len, term.all_forms)) for term in request.terms)
    return max(options.beam_size, min(PLACES_PER_BANK * num_banks, MAX_BEAM_SIZE))


def without_bans_of_terms(options: DecodingConfig) -> DecodingConfig:
    """The options for the hooks of a search with terms: they ban neither [UNK] nor repeated n-grams.

    A term may need both. The search itself bans [UNK] where it stands for no term (`decoding.allow_unknown`).
    """
    return options.model_copy(update={"no_repeat_ngram_size": None, "allow_unknown": True})


def term_states(
    requests: Sequence[Request],
    edges: WordEdges,
    device: torch.device,
    *,
    has_bytes: bool,
    goes_past_end: bool,
) -> TermStates:
    """The states of a search for the terms of requests.

    Args:
        edges: of the target vocabulary.
        has_bytes: whether a character may be several tokens.
        goes_past_end: see `TermStates`.
    """
    table = TermTable.of([request.terms for request in requests], edges).to(device)
    goes_on = torch.from_numpy(edges.goes_on).to(device)
    reserve = MAX_BYTES_LEFT if has_bytes else 0
    return TermStates(table, goes_on, reserve=reserve, goes_past_end=goes_past_end)


def room_for_terms(requests: Sequence[Request], states: TermStates, *, most: int | None) -> Tensor:
    """(B,) int64: the number of tokens that the prefix, the terms and [EOS] need.

    Args:
        requests: B of them.
        states: of the terms of these requests.
        most: the largest number of tokens that the model can write; None: any number.
    """
    of_prefixes = torch.tensor([len(request.prefix) for request in requests])
    needed = of_prefixes.to(states.num_needed) + states.num_needed + states.reserve + 1
    return needed if most is None else needed.clamp(max=most)
