"""Measured trainings of synthetic tasks are small."""

from collections.abc import Iterator

import pytest

from ...experiments import few_sequences


@pytest.fixture(autouse=True, scope="module")
def _few_sequences() -> Iterator[None]:
    with few_sequences():
        yield
