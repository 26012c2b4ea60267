"""The model card of a run: README.md with metadata for the Hugging Face hub, and pictures of its learning curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli import __version__
from transformer_cli.checkpoint import TrainedFiles
from transformer_cli.checkpoint.trained_files import portable_config
from transformer_cli.config import FileCorpus, FilesData, HubCorpus, HubData, to_yaml
from transformer_cli.decoding import Translator
from transformer_cli.evaluation.report import learning_curves
from transformer_cli.evaluation.validation import DirectionReport, validate
from transformer_cli.extensions.exchange.porting.card.card_metadata import metadata_of
from transformer_cli.extensions.exchange.porting.card.curve_picture import svg_of
from transformer_cli.extensions.exchange.porting.card.run_records import RunRecords, read_records
from transformer_cli.extensions.exchange.porting.card.samples import sample_lines
from transformer_cli.extensions.exchange.porting.card.weak_spots import weak_spots
from transformer_cli.text.languages import name_of_language

NUM_PAIRS = 200
"""Validation pairs of each direction that are translated for a card."""
CARD = "README.md"


class CardWishes(NamedTuple):
    """What only the user can say."""

    license: str | None = None
    """The licence of the model, as an identifier of the hub, such as cc-by-4.0."""
    datasets: tuple[str, ...] = ()
    """Data sets and their licences, such as Tatoeba=cc-by-2.0-fr."""
    base_model: str | None = None
    """The model on the hub from which this one was fine-tuned."""


@dataclass(frozen=True, slots=True)
class CardSource:
    """What a card is made from."""

    files: TrainedFiles
    translator: Translator
    """With the PyTorch engine, and the beam of the run."""
    wishes: CardWishes
    library: str = "tfm"
    """The library that reads the folder in which the card lies."""


def card_files(source: CardSource, usage: str, notes: Sequence[str] = ()) -> dict[str, bytes]:
    """README.md and its pictures.

    Args:
        source: of the card.
        usage: how the files are used, as Markdown.
        notes: of the check of an export.

    Raises:
        UsageError: the package huggingface_hub is missing.
    """
    records = read_records(source.files)
    reports = _reports(source.translator, records)
    pictures = _pictures(records)
    sections = [
        _head(source.files),
        "## How to use it\n\n" + usage.strip(),
        _scores(reports, source.translator),
        _data(source.files, source.wishes, records),
        _training(source.files, records, pictures),
        *_examples(reports),
        _weak_spots(source.translator, reports),
    ]
    if notes:
        sections.insert(2, "## Checked\n\n" + "\n".join(f"- {note}" for note in notes))
    metadata = metadata_of(source.files.config, reports, source.wishes, source.library)
    text = f"---\n{metadata}---\n\n" + "\n\n".join(filter(None, sections)) + "\n"
    return {CARD: text.encode(), **{name: svg.encode() for name, svg in pictures.items()}}


def _reports(translator: Translator, records: RunRecords) -> list[DirectionReport]:
    """The validation of each direction on the first stored pairs; none if no pair is stored."""
    directions = range(len(translator.pipeline.data.directions))
    chosen = [
        pair
        for number in directions
        for pair in [one for one in records.validation_pairs if one.direction == number][:NUM_PAIRS]
    ]
    if not chosen:
        return []
    report = validate(translator, chosen, scores=("bleu", "chrf"), num_samples=0, with_intervals=True)  # fmt: skip
    return report.parts


def _pictures(records: RunRecords) -> dict[str, str]:
    charts = [] if records.metrics_file is None else learning_curves(records.metrics_file)
    return {f"curve-{chart.title.split()[0].lower().strip(',')}.svg": svg_of(chart) for chart in charts}  # fmt: skip


def _head(files: TrainedFiles) -> str:
    config = files.config
    ways = [f"{name_of_language(one.source)} to {name_of_language(one.target)}" for one in config.data.directions]  # fmt: skip
    model = config.model
    return (
        f"# {config.name}\n\nA Transformer that translates {', '.join(ways)}: {model.encoder_layers} encoder and "
        f"{model.decoder_layers} decoder layers of width {model.d_model}, {model.num_heads} heads, "
        f"{files.source_tokenizer.vocab_size:,} source and {files.target_tokenizer.vocab_size:,} target tokens "
        f"({config.tokenizer.kind}). Trained with tfm {__version__}; this is step {files.step:,}."
    )


def _scores(reports: Sequence[DirectionReport], translator: Translator) -> str:
    if not reports:
        return "## Scores\n\nNot measured: the validation pairs are not in the folder of the run."
    beam = translator.decoding.beam_size
    lines = [
        "## Scores",
        "",
        f"Validation split, beam {beam}; 95 % confidence intervals by bootstrap.",
        "",
        "| direction | sentences | score | value | signature |",
        "|---|--:|---|--:|---|",
    ]
    for report in reports:
        for score in report.scores:
            spread = f" ± {score.interval.half_width:.1f}" if score.interval else ""
            row = f"{score.name} | {score.value:.1f}{spread} | `{_cell(score.signature)}`"
            lines.append(f"| {report.direction} | {report.num_sentences} | {row} |")
    return "\n".join(lines)


def _data(files: TrainedFiles, wishes: CardWishes, records: RunRecords) -> str:
    lines = ["## Data", "", "| data | licence |", "|---|---|"]
    given = dict(one.partition("=")[::2] for one in wishes.datasets)
    for name in dict.fromkeys([*_corpora(files), *given]):
        lines.append(f"| {_cell(name)} | {_cell(given.get(name) or 'not stated')} |")
    if records.cleaning:
        lines += ["", "| training pairs | number |", "|---|--:|"]
        shown = [row for row in records.cleaning if row.number or not row.name.startswith(("dropped", "altered"))]  # fmt: skip
        lines += [f"| {_cell(row.name)} | {row.number:,} |" for row in shown]
        others = [f"{count:,} {split}" for split, count in records.num_pairs.items() if split != "train"]  # fmt: skip
        if others:
            lines += ["", f"Held out: {', '.join(others)} pairs."]
    return "\n".join(lines)


def _corpora(files: TrainedFiles) -> list[str]:
    data = files.config.data
    if not isinstance(data, FilesData | HubData):
        return [f"{data.source} (generated by tfm)"]
    names = []
    for corpus in data.corpora:
        if isinstance(corpus, FileCorpus):
            names.append(corpus.path or f"{corpus.source_path} / {corpus.target_path}")
        elif isinstance(corpus, HubCorpus):
            names.append(" ".join(filter(None, (corpus.dataset, corpus.config))))
    return [*dict.fromkeys(names)]


def _training(files: TrainedFiles, records: RunRecords, pictures: Mapping[str, str]) -> str:
    config, environment = files.config, records.environment
    facts = [f"{files.step:,} updates", f"seed {config.seed}"]
    if config.training.init_from:
        facts.append(f"fine-tuned from {config.training.init_from}")
    if records.hours is not None:
        facts.append(f"{records.hours:.1f} hours" if records.hours >= 1 else f"{60 * records.hours:.0f} minutes")  # fmt: skip
    facts += [str(environment[key]) for key in ("device", "gpu", "system") if environment.get(key)]
    packages = environment.get("packages")
    if isinstance(packages, dict) and "torch" in packages:
        facts.append(f"PyTorch {packages['torch']}")
    images = [f"![{name.removesuffix('.svg')}]({name})" for name in pictures]
    settings = to_yaml(portable_config(config))
    folded = f"<details><summary>All settings</summary>\n\n```yaml\n{settings}```\n\n</details>"
    return "\n\n".join(["## Training", "; ".join(facts) + ".", *images, folded])


def _examples(reports: Sequence[DirectionReport]) -> list[str]:
    return ["## Examples\n\n" + "\n\n".join(map(sample_lines, reports))] if reports else []


def _weak_spots(translator: Translator, reports: Sequence[DirectionReport]) -> str:
    if not reports:
        return ""
    lines = ["## Weak spots", "", "The same validation sentences, changed.", ""]
    lines += ["| direction | input | result |", "|---|---|---|"]
    for report in reports:
        of_direction = translator.towards(report.direction.target, report.direction.source)
        found = weak_spots(of_direction, report.pairs)
        lines += [f"| {report.direction} | {spot.name} | {spot.result} |" for spot in found]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text that stays in its cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
