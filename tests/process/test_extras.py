"""Commands that need optional packages."""

import pytest

from transformer_cli.process.errors import UsageError
from transformer_cli.process.imports import require_extra


def test_an_extra_that_is_installed_passes() -> None:
    require_extra("serve", ("json", "tokenize"), purpose="tfm serve")


def test_a_missing_extra_names_the_purpose_the_modules_and_the_command() -> None:
    with pytest.raises(UsageError) as raised:
        require_extra("serve", ("json", "no_such_module", "nor_this"), purpose="tfm serve")
    assert raised.value.message == ("tfm serve needs no_such_module, nor_this, which are not installed")
    assert raised.value.hint == 'in the folder of this project: pip install ".[serve]"'
