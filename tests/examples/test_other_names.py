"""examples/other_names.py: pairs with other names and numbers say the same on both sides."""

import random
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples/other_names.py"


def test_a_name_is_replaced_on_both_sides_and_french_drops_a_vowel_before_it() -> None:
    script = runpy.run_path(str(SCRIPT))
    women = script["WOMEN"].split()
    found = [
        script["with_other_names"]("I know that Mary likes it.", "Je sais que Marie l'aime.", random.Random(seed))
        for seed in range(60)
    ]
    for source, target in found:
        name = source.split()[3]
        assert name in women
        link = "qu'" if name[0] in "AEIOU" else "que "
        assert (source, target) == (f"I know that {name} likes it.", f"Je sais {link}{name} l'aime.")
    assert len(set(found)) > 20


@pytest.mark.parametrize(
    "pair",
    [
        ("Tom and Tom's dog.", "Tom et le chien de Tom."),  # twice
        ("Mary sings.", "Elle chante."),  # on one side
        ("Tomorrow is Monday.", "Demain est lundi."),
    ],
)
def test_a_pair_without_a_name_of_both_sides_stays(pair: tuple[str, str]) -> None:
    script = runpy.run_path(str(SCRIPT))
    assert script["with_other_names"](*pair, random.Random(1)) == pair
    assert script["with_other_number"](*pair, random.Random(1)) == pair


def test_a_name_that_was_put_in_is_not_replaced_again() -> None:
    """Mary may become Jane, which stands in the table, too."""
    script = runpy.run_path(str(SCRIPT))
    for seed in range(300):
        source, target = script["with_other_names"]("Mary sings.", "Marie chante.", random.Random(seed))
        assert source.split()[0] == target.split()[0]


@pytest.mark.parametrize(
    ("source", "target", "is_changed"),
    [
        ("I have 12 dogs.", "J'ai 12 chiens.", True),
        ("I have 12 dogs.", "J'ai douze chiens.", False),
        ("At 2:30 there are 2.", "À 2 h 30 il y en a 2.", False),
        ("It costs $20.", "Ça coûte 20 $.", False),
        ("They are 1,250.", "Ils sont 1 250.", False),
        ("I have 1 dog.", "J'ai 1 chien.", False),  # another number could want a plural
    ],
)
def test_a_number_is_replaced_only_where_both_sides_have_the_same_one(
    source: str, target: str, is_changed: bool
) -> None:
    script = runpy.run_path(str(SCRIPT))
    found = script["with_other_number"](source, target, random.Random(3))
    assert (found != (source, target)) is is_changed
    if is_changed:
        [number] = script["NUMBER"].findall(found[0])
        assert len(number) == 2
        assert found == (f"I have {number} dogs.", f"J'ai {number} chiens.")


@pytest.mark.long
def test_the_files_that_it_writes_have_a_line_for_each_pair(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("Tom sings.\nIt rains.\nI see 7 birds.\n", encoding="utf-8")
    (tmp_path / "a.fr").write_text("Tom chante.\nIl pleut.\nJe vois 7 oiseaux.\n", encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "a.en", "a.fr", "b", "--copies", "3", "--number-copies", "1"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    sources, targets = ((tmp_path / f"b.{one}").read_text(encoding="utf-8").splitlines() for one in ("en", "fr"))
    assert done.stdout == f"{len(sources)} pairs\n"
    assert 3 <= len(sources) == len(targets) <= 4
    assert all("Tom" not in line for line in (*sources, *targets))
