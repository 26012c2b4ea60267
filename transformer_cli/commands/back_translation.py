"""The way from text of the target language to training pairs whose sources a model has written; see `back_translate.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_cli.commands.recorded_steps import Steps, chosen_languages, digest_of_file
from transformer_cli.commands.synthetic_corpus import (
    CandidateChoice,
    GivenText,
    RealPairs,
    Writer,
    bytes_of_lines,
    choose,
    config_of_folder,
    cost_lines,
    given_text,
    held_out_entries,
    lines_of_text_file,
    new_sentences,
    one_direction,
    read_n_best,
    real_entries,
    swapped,
    train_run,
    translate_file,
    write_config,
    write_likelihoods,
    write_real_pairs,
)
from transformer_cli.config import load_config
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import replace_file


def back_translated(
    config: str,
    *,
    overrides: Sequence[str],
    runs: Sequence[str],
    teacher_overrides: Sequence[str],
    texts: Sequence[str],
    tag: str,
    weight: float,
    num_best: int,
    judge: str | None,
    dropped_share: float,
    folder: Path | None,
) -> tuple[dict[str, Any], list[str]]:
    """Make the pairs; facts for other programs, and lines for people. The options of `tfm data back-translate` describe the arguments."""
    given = load_config(config, overrides)
    name = f"{given.name}-back-translated"
    place = folder or Path(name)
    given_texts = [given_text(one) for one in texts]
    direction = one_direction(given)
    languages = chosen_languages(runs, direction.reverse, "--run")
    judge_languages = chosen_languages([judge] if judge else [], direction, "--judge")
    writer = Writer(
        tuple(runs or [f"{given.name}-reverse"]),
        tuple(teacher_overrides),
        from_=languages.from_,
        to=languages.to,
    )
    steps = Steps(place)
    real = write_real_pairs(given, place, steps)
    choice = CandidateChoice(judge, dropped_share=dropped_share, languages=judge_languages)
    way = BackTranslation(real, place, steps, given_texts, writer, num_best, choice)
    way.write_texts()
    way.check_translations(writer.conditions(num_best) if runs else writer.settings(num_best))
    if not runs:
        way.train_reverse()
    kept = {str(one.path): way.translate(number) for number, one in enumerate(given_texts)}
    written = write_config(config_of_folder(given, place, way.entries(tag, weight), name=name), place)
    costs = steps.costs()
    facts = {
        "config": str(written),
        "name": name,
        "real_pairs": real.num_pairs,
        "pairs": kept,
        "costs": {step: cost._asdict() for step, cost in costs.items()},
    }
    lines = [f"{path}: {number:,} pairs" for path, number in kept.items()]
    lines += ["", *cost_lines(costs), "", f"next: tfm train --config {for_shell(written)}"]
    return facts, lines


@dataclass(frozen=True)
class BackTranslation:
    """The way from text of the target language to pairs whose sources a model has written; text number N has files of its own."""

    real: RealPairs
    folder: Path
    steps: Steps
    texts: Sequence[GivenText]
    writer: Writer
    num_best: int
    choice: CandidateChoice

    def write_texts(self) -> None:
        """The new sentences of each text."""
        outputs = [self._text(number) for number in range(len(self.texts))]

        def work() -> None:
            paths = [self.folder / one["target_path"] for one in real_entries(self.real, self.folder)]
            known = [line for path in paths for line in lines_of_text_file(path)]
            held_out = [pair.target for pairs in self.real.held_out.values() for pair in pairs]
            most = self.real.config.applied_cleaning.max_words or 250
            found = new_sentences(self.texts, known, held_out, max_words=most)
            if not any(found):
                raise DataError(
                    f"{', '.join(str(one.path) for one in self.texts)}: no sentence that the corpus does not have",
                    hint="give text of the target language from elsewhere",
                )
            for path, lines in zip(outputs, found, strict=True):
                replace_file(path, bytes_of_lines(lines))

        conditions = {str(one.path): digest_of_file(one.path) for one in self.texts}
        self.steps.run("texts", conditions, outputs, work, is_fixed=True)

    def check_translations(self, conditions: dict[str, Any]) -> None:
        """Refuse translations of an earlier command with other conditions, before a model is trained for hours.

        Raises:
            UsageError: the folder has such translations.
        """
        for number in range(len(self.texts)):
            step = f"translate {self._text(number).stem}"
            self.steps.check(step, conditions, is_partial=True)

    def train_reverse(self) -> None:
        """Train the model that translates back."""
        untagged = [
            {key: value for key, value in one.items() if key != "tag"} for one in real_entries(self.real, self.folder)
        ]
        pairs = swapped([*untagged, *held_out_entries(self.real)])
        given = self.real.config
        name = f"{given.name}-reverse"
        train_run(config_of_folder(given, self.folder, pairs, name=name, is_reversed=True), self.steps)

    def translate(self, number: int) -> int:
        """Translate a text and choose among the translations; the number of pairs that are kept."""
        text, n_best = self._text(number), self.folder / f"text-{number}.n-best.tsv"
        translate_file(text, n_best, self.writer, self.num_best, self.steps)
        outputs = self._pairs(number)

        def work() -> dict[str, Any]:
            lines, candidates = lines_of_text_file(text), list(read_n_best(n_best))
            likelihoods = None
            if self.choice.judge is not None:
                output = self.folder / f"text-{number}.likelihoods.txt"
                likelihoods = write_likelihoods(lines, candidates, output, self.choice)
            chosen = choose(lines, (), candidates, likelihoods, self.choice.dropped_share)
            replace_file(outputs[0], bytes_of_lines(chosen.texts))
            replace_file(outputs[1], bytes_of_lines(lines[row] for row in chosen.rows))
            return {"pairs": len(chosen.rows)}

        step, conditions = f"choose {text.stem}", self.choice.conditions(n_best)
        num_pairs: int = self.steps.run(step, conditions, outputs, work)["pairs"]
        return num_pairs

    def entries(self, tag: str, weight: float) -> list[dict[str, Any]]:
        """The entries of `data.corpora`: real pairs, those that the model has written, and held-out pairs.

        Args:
            tag: stands before each source that a model wrote.
            weight: how often an epoch reads each real pair whose corpus says nothing else.
        """
        found = real_entries(self.real, self.folder)
        for entry in found:
            if "tag" not in entry and weight != 1.0:
                entry.setdefault("weight", weight)
        for number, text in enumerate(self.texts):
            source, target = self._pairs(number)
            found.append(
                {
                    "split": "train",
                    "source_path": source.name,
                    "target_path": target.name,
                    "tag": tag,
                    "origin": f"{text.path.name}, translated back by {self.writer.describe()}",
                    "license": f"targets: {text.license or 'not stated'}",
                }
            )
        return [*found, *held_out_entries(self.real)]

    def _text(self, number: int) -> Path:
        return self.folder / f"text-{number}.target"

    def _pairs(self, number: int) -> list[Path]:
        return [self.folder / f"back-{number}.{side}" for side in ("source", "target")]
