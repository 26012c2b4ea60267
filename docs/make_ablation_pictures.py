"""Makes the pictures of docs/what_breaks.md: trains the models of ablations, and draws their curves.

    python docs/make_ablation_pictures.py                  # all ablations; about 10 minutes of one core
    python docs/make_ablation_pictures.py no-positions     # only these

It prints the figures, which stand in the texts of transformer_cli/extensions/lessons/ablations.py. With --seed, it draws nothing.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from making.pictures import FOLDER

from transformer_cli.extensions.lessons.ablations import ABLATIONS, ablation_named
from transformer_cli.extensions.lessons.laboratory import curves_picture, try_variants


def main() -> None:
    """Train, print the figures, and write the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="names of ablations; absent: all")
    parser.add_argument("--seed", type=int, help="another seed than that of the configs")
    asked = parser.parse_args()
    overrides = [] if asked.seed is None else [f"seed={asked.seed}"]
    for ablation in map(ablation_named, asked.names or [one.name for one in ABLATIONS]):
        with tempfile.TemporaryDirectory() as folder:
            outcomes = try_variants(ablation, Path(folder), overrides)
            for outcome in outcomes:
                figures = ", ".join(f"{name} {value:.4g}" for name, value in outcome.figures.items())
                sys.stdout.write(
                    f"{ablation.name}, {outcome.label}: {figures}; {outcome.translation!r}; {outcome.cpu_seconds:.0f} CPU seconds\n"
                )
            if asked.seed is None:
                png = curves_picture(ablation, outcomes)
                (FOLDER / "ablations" / f"{ablation.name}.png").write_bytes(png)


if __name__ == "__main__":
    main()
