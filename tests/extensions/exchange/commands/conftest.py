"""The commands of the exchange run in this process."""

import pytest

from ....launcher import TfmHere


@pytest.fixture
def tfm(tfm_here: TfmHere) -> TfmHere:
    return tfm_here
