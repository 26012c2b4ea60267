"""Which runs are one experiment: their configs differ in the seed only, so a plot may show their mean."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.checkpoint.recorded_series import RecordedSeries
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import load_stored_config
from transformer_cli.config.section import flat_settings
from transformer_cli.extensions.lessons.drawing.plots.curves import PlottedRun

_IGNORED = frozenset({"name", "seed"})


def grouped(members: Sequence[tuple[Path, RecordedSeries]]) -> list[PlottedRun]:
    """The runs, with those that differ only in `seed` and `name` put together; in the order of their first run.

    Raises:
        MissingInputError, ConfigError: the config of a run cannot be read.
    """
    groups: dict[frozenset[tuple[str, str]], list[tuple[Path, RecordedSeries]]] = {}
    for folder, series in members:
        config = load_stored_config(RunFolder(folder).config_file)
        settings = flat_settings(config.model_dump(mode="json"))
        key = frozenset(
            (name, repr(value)) for name, value in settings.items() if name not in _IGNORED
        )
        groups.setdefault(key, []).append((folder, series))
    return [PlottedRun(_name([folder.name for folder, _ in of]), of) for of in groups.values()]


def _name(names: Sequence[str]) -> str:
    """The beginning that the names have in common, with the number of the runs."""
    if len(names) == 1:
        return names[0]
    # The beginning of the first and the last name in the order of the alphabet is that of all.
    pairs = zip(min(names), max(names), strict=False)
    common = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = common.rstrip("-_. ").removesuffix("seed").rstrip("-_. ")
    return f"{start or names[0]} ({len(names)} seeds)"
