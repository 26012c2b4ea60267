"""Trainings of synthetic tasks are small."""

from collections.abc import Iterator

import pytest

from ..experiments import few_sequences


@pytest.fixture(autouse=True, scope="module")
def _few_sequences(request: pytest.FixtureRequest) -> Iterator[None]:
    """Only in this process: a file that compares with child processes sets `HAS_CHILDREN`, because those have all sequences."""
    if getattr(request.module, "HAS_CHILDREN", False):
        yield
        return
    with few_sequences():
        yield
