"""A run is named as its user names it."""

import pytest

from transformer_cli.extensions.serving.served_runs import load_served_runs


@pytest.mark.long
def test_the_model_that_comes_along_is_named_as_it_was_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """Its config has the name of its training, which nobody has heard of."""
    caplog.set_level("INFO")
    runs = load_served_runs(["demonstration"], [], cache_bytes=0)
    runs.close()
    assert [*runs.batchers] == ["demonstration"]
    assert [one for one in caplog.messages if one.startswith("demonstration: of the translations marked green")]
