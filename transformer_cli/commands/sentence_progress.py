"""The progress bar of `tfm validate` and `tfm export`: the sentences that a model has read or translated."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from transformer_cli.decoding.engine import batches_watched


@contextmanager
def sentence_progress() -> Iterator[None]:
    """A bar on standard error, if that is a terminal, for the work of engines in the block.

    It begins anew for each pass over the sentences: their translation, then their loss. At the end it disappears.
    """
    if not sys.stderr.isatty():
        yield
        return
    bar: tqdm[Any] | None = None

    def watch(num_done: int, num_all: int) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(total=num_all, unit=" sentences", dynamic_ncols=True, leave=False)
        elif bar.total != num_all or num_done < bar.n:
            bar.reset(total=num_all)
        bar.update(num_done - bar.n)

    try:
        with batches_watched(watch):
            yield
    finally:
        if bar is not None:
            bar.close()
