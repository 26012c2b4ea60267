"""The measurement of two trees in turns."""

import re
import sys

import pytest

from . import in_turns


def test_a_row_has_medians_and_the_ratios_of_the_rounds() -> None:
    found = in_turns.row("greedy", [1.0, 2.0, 4.0], [1.1, 1.0, 8.0])
    assert re.sub(r" +", " ", found) == "greedy 2.000 1.100 1.100 (0.50-2.00)"


@pytest.mark.process
def test_this_tree_is_found_from_its_python() -> None:
    tree = in_turns.tree_of(sys.executable)
    assert tree == in_turns.HERE
    assert (tree / "configs" / in_turns.UPDATES["small"][0]).is_file()
