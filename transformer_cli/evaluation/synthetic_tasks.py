"""Results of synthetic tasks, those of the tutorials and ours: exact matches, and our losses beside published ones."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from transformer_cli.config import Config, PublishedConfig, SequencesData
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.sources.built_in import sequences_of_length
from transformer_cli.decoding.translator import Translator
from transformer_cli.storage import read_json_lines

UNSHIFTED_NOTE = (
    "note: the decoder read the same symbols that it had to predict (data.shift_target: false), so a low "
    "loss is easy to reach and says nothing about generating"
)


class ExactMatch(NamedTuple):
    """How much was right for the sources of one length."""

    length: int
    """Number of symbols of the source."""
    num_sequences: int
    exact: float
    """Percentage of sequences that are right from the first symbol to the last."""
    symbols: float
    """Percentage of the target's symbols that stand in their place."""


def summary_lines(
    config: Config, metrics_file: Path, make_translator: Callable[[], Translator]
) -> Iterator[str]:
    """The last log lines of a finished run of a synthetic task; none for other runs.

    Args:
        config: the config of the run.
        metrics_file: the metrics.jsonl of the run.
        make_translator: loads the best checkpoint; called for synthetic tasks only.
    """
    yield from published_table(config.published, metrics_file)
    if isinstance(config.data, SequencesData):
        if not config.data.shift_target:
            yield UNSHIFTED_NOTE
        yield from exact_match_table(exact_matches(make_translator(), config), config.data.task)


def exact_matches(translator: Translator, config: Config) -> list[ExactMatch]:
    """One row for each length of a synthetic task; none for other data.

    The sequences are fresh ones, or those of training where the task is to memorise them.
    """
    data = config.data
    if not isinstance(data, SequencesData):
        return []
    lengths = config.validation.sequence_lengths or range(data.min_length, data.max_length + 1)
    tests = ((length, sequences_of_length(data, length, seed=config.seed)) for length in lengths)
    # The task `memorise` may have no sequence of a length that is asked for.
    return [_exact_match(translator, pairs, length) for length, pairs in tests if pairs]


def exact_match_table(rows: Sequence[ExactMatch], task: str) -> Iterator[str]:
    """The table as text."""
    if not rows:
        yield f"{task}: no sequence has one of the lengths asked for"
        return
    which = "its own" if task == "memorise" else "fresh"
    yield f"{task} on {which} sequences, generated, by length:"
    yield f"{'length':>10}{'sequences':>12}{'exact match':>14}{'right symbols':>16}"
    for length, num_sequences, exact, symbols in rows:
        yield f"{length:>10}{num_sequences:>12}{exact:>12.1f} %{symbols:>14.1f} %"


def published_table(published: PublishedConfig, metrics_file: Path) -> Iterator[str]:
    """Lines for people: the losses of each published step that the run has reached."""
    wanted = {"train": published.training_loss, "validation": published.validation_loss}
    if not any(wanted.values()):
        return
    records = list(read_json_lines(metrics_file))
    for kind, figures in wanted.items():
        ours = {
            step: loss
            for record in records
            if record.get("kind") == kind
            and isinstance(step := record.get("step"), int)
            and isinstance(loss := record.get("loss"), float)
        }
        shown = [(step, ours[step], loss) for step, loss in figures if ours.get(step) is not None]
        if shown:
            yield f"{kind} loss, ours and published:"
            yield f"{'step':>10}{'ours':>12}{'published':>12}"
        for step, our_loss, loss in shown:
            yield f"{step:>10}{our_loss:>12.5f}{loss:>12.5f}"


def _exact_match(translator: Translator, pairs: Sequence[SentencePair], length: int) -> ExactMatch:
    translations = translator.translate([pair.source for pair in pairs])
    num_exact = num_right = num_symbols = 0
    for pair, translation in zip(pairs, translations, strict=True):
        symbols, wanted = translation.text.split(), pair.target.split()
        num_exact += symbols == wanted
        num_right += sum(map(str.__eq__, symbols, wanted))
        num_symbols += len(wanted)
    exact, right = 100.0 * num_exact / len(pairs), 100.0 * num_right / num_symbols
    return ExactMatch(length, len(pairs), exact, right)
