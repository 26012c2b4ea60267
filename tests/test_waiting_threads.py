"""Threads of OpenMP that wait for others sleep, unless the user wants them to spin."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from transformer_cli import __main__, cli
cli.main = lambda: print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
__main__.main()
"""


@pytest.mark.process
@pytest.mark.parametrize(("given", "expected"), [(None, "passive"), ("active", "active")])
def test_the_policy_is_set_before_torch_is_imported_unless_the_user_has_set_it(
    given: str | None, expected: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if given is not None:
        environment["OMP_WAIT_POLICY"] = given
    found = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [expected, "False"]
