"""Prints docs/what_breaks.md, from the ablations of the package.

python docs/make_what_breaks.py > docs/what_breaks.md
"""

import sys
from collections.abc import Iterator

from transformer_cli.extensions.lessons.ablations import ABLATIONS, Ablation

HEAD = """\
# What breaks if …

<!-- Made by `python docs/make_what_breaks.py > docs/what_breaks.md`; edit transformer_cli/extensions/lessons/ablations.py, not this file. -->

The best way to understand a part of the Transformer is to take it away. Each section below asks a question. Choose your
prediction first, then open the answer, or better, run the command: it asks for your prediction, trains the model with and without the
part, prints both side by side, and draws the curves of the loss.

```bash
tfm ablate                               # lists all ablations, with their CPU time
tfm ablate no-causal-mask                # asks, trains, compares, explains
tfm ablate no-causal-mask --set seed=2   # the same with another seed; --set changes other settings, too
tfm ablate no-causal-mask --answer       # only the answer
```

- An ablation takes about two minutes at most on one idle core. The models are small and the trainings short: the direction of a
  difference is what counts. The figures are those of one run each, with seed 1; another processor gives other ones.
- The runs lie in `ablations/NAME` of the current folder, or in the folder of `--output`, and not under `runs/`, so that
  `tfm translate` does not take a broken model. `tfm explain --run ablations/no-positions/no-positions "1 2 3 4 5"` looks into one.
- "Right tokens if the target is given" is the accuracy with teacher forcing: at each place, the model reads the true tokens before
  it. "Right symbols when generated" counts what it writes by itself.

"""
TAIL = """\
## How a part is taken away

Some parts are settings, such as `model.positions: none`. Four are not: the causal mask, cross-attention, the scaling of the scores,
and residual connections. For them, `tfm ablate` replaces a function of the model while it runs
(`transformer_cli/extensions/lessons/laboratory.py`), and then deletes the checkpoints of this run: other commands would load the
weights into a whole model.
"""


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n".join(lines()))


def lines() -> Iterator[str]:
    """The lines of the page, the last one empty."""
    links = " · ".join(f"[{one.name}](#{one.name})" for one in ABLATIONS)
    yield f"{HEAD}Contents: {links}\n"
    for ablation in ABLATIONS:
        yield from _section(ablation)
    yield TAIL


def _section(ablation: Ablation) -> Iterator[str]:
    yield f"## {ablation.name}\n"
    yield f"*{ablation.subject[0].upper()}{ablation.subject[1:]}.*\n"
    yield f"{ablation.question}\n"
    yield from (f"{number}. {option}" for number, option in enumerate(ablation.options, start=1))
    yield f"\n<details><summary>Answer</summary>\n\n**{ablation.right}.** {ablation.came_out}\n"
    yield f"![{_described(ablation)}](pictures/ablations/{ablation.name}.png)\n"
    yield f"**Why:** {ablation.why}\n\n</details>\n"


def _described(ablation: Ablation) -> str:
    return f"Curves of the training loss: {', '.join(variant.label for variant in ablation.variants)}"


if __name__ == "__main__":
    main()
