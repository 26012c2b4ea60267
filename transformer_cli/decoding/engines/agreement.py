"""Checks that two engines of the same model find the same translations."""

from collections.abc import Sequence
from itertools import takewhile

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Engine, Hypothesis, Request
from transformer_cli.process.errors import DataError

TIE = 1e-3
"""Two tokens whose probabilities differ by less than this are equally good: rounding decides between them."""


def require_agreement(
    engine: Engine, reference: Engine, requests: Sequence[Request], *, what: str
) -> None:
    """Check that greedy search finds the same tokens with both engines, in float32, up to the first tie.

    Args:
        engine: the one that is checked.
        reference: the one that is right.
        requests: sources that both translate.
        what: names the checked model in the message.

    Raises:
        DataError: a translation differs.
    """
    options = DecodingConfig(beam_size=1)
    found = engine.translate(requests, options)
    expected = reference.translate(requests, options)
    differing = [
        number
        for number, both in enumerate(zip(requests, found, expected, strict=True), 1)
        if not _agree(reference, *both)
    ]
    if differing:
        raise DataError(
            f"{what}: {len(differing)} of {len(requests)} greedy translations differ from those of PyTorch; "
            f"the first is number {differing[0]}",
            hint="set decoding.engine=torch, and report this model's config",
        )


def _agree(
    reference: Engine, request: Request, found: list[Hypothesis], expected: list[Hypothesis]
) -> bool:
    if not found or not expected:
        return found == expected
    both = [*zip(found[0].ids, expected[0].ids, strict=False)]
    num_equal = len([*takewhile(lambda pair: pair[0] == pair[1], both)])
    if num_equal == len(both):
        return len(found[0].ids) == len(expected[0].ids)
    prefix = found[0].ids[:num_equal]
    probabilities = reference.next_token_probabilities(request.ids, prefix).tolist()
    first, second = (probabilities[token] for token in both[num_equal])
    return abs(first - second) < TIE
