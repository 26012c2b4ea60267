"""The public names of `import transformer_cli`."""

import pytest

import transformer_cli


@pytest.mark.parametrize("name", transformer_cli.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(transformer_cli, name) is not None


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = transformer_cli.nonsense
