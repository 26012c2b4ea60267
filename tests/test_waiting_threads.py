"""Threads of OpenMP that wait for others sleep, unless the user wants them to spin."""

import os
import subprocess
import sys

import pytest

COMMAND = """
import os, sys
from transformer_cli import __main__, cli
cli.main = lambda: print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
__main__.main()
"""
SCRIPT = """
import os, sys
from transformer_cli import Callback
print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
"""
NOTEBOOK = """
import os, sys, types
sys.modules["torch"] = types.ModuleType("torch")
import transformer_cli
print(os.environ.get("OMP_WAIT_POLICY"), "torch" in sys.modules)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "given", "expected"),
    [
        (COMMAND, None, "passive False"),
        (COMMAND, "active", "active False"),
        (SCRIPT.replace("from transformer_cli import Callback", "import transformer_cli"), None, "passive False"),
        (SCRIPT, None, "passive True"),  # the policy was set before the class was asked for
        (NOTEBOOK, None, "None True"),  # OpenMP has read its variables already
    ],
    ids=["command", "command of a user who wants them to spin", "import", "script", "torch was first"],
)
def test_the_policy_is_set_before_torch_is_imported_unless_the_user_has_set_it(
    program: str, given: str | None, expected: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if given is not None:
        environment["OMP_WAIT_POLICY"] = given
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == expected
