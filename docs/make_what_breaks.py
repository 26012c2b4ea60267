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
tfm ablate no-causal-mask --set seed=2   # the same with another seed; --set takes any setting
tfm ablate no-causal-mask --answer       # only the answer
```

- An ablation takes at most two minutes on one idle core. It uses one thread and float32, so the same machine gives the same
  figures again. The models are small and the trainings short: the direction of a difference is what counts.
- The runs lie in `ablations/NAME` of the current folder, or in the folder of `--output`. Because they are not under `runs/`,
  `tfm translate` without `--run` never takes a broken model. `tfm explain --run ablations/no-positions/no-positions "1 2 3 4 5"`
  looks into one of them.
- "Right tokens if the target is given" is the accuracy with teacher forcing: at each place, the model reads the true tokens before
  it. "Right symbols when generated" counts what it writes by itself.
- The figures are those of one run each, with seed 1, on two Xeon cores that other programs used too. CPU seconds include the
  measurements.

"""
TAIL = """\
## How a part is taken away

Some parts are settings: without positions, the config has `model.positions: none`. Four parts are no settings, because nobody
wants a model without them: the causal mask, cross-attention, the scaling of the scores, and residual connections. For
them, `tfm ablate` puts another function in the place of the usual one, for as long as the ablation runs
(`transformer_cli/extensions/lessons/laboratory.py`). Then it deletes the checkpoints of this run. Other commands would load the weights into a
whole model, and what they print would be wrong.
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
    yield f"*{ablation.subject[0].upper()}{ablation.subject[1:]}.* `tfm ablate {ablation.name}`, {ablation.cpu_seconds} CPU seconds.\n"
    yield f"{ablation.question}\n"
    yield from (f"{number}. {option}" for number, option in enumerate(ablation.options, start=1))
    yield f"\n<details><summary>Answer</summary>\n\n**{ablation.right}.** {ablation.came_out}\n"
    yield f"![{_described(ablation)}](pictures/ablations/{ablation.name}.png)\n"
    yield f"**Why:** {ablation.why}\n"
    yield f"**Read on:** {ablation.read_on}.\n\n</details>\n"


def _described(ablation: Ablation) -> str:
    return f"Curves of the training loss: {', '.join(variant.label for variant in ablation.variants)}"


if __name__ == "__main__":
    main()
