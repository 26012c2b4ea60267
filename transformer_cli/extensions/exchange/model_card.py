"""The model card of a run: README.md with metadata for the Hugging Face hub, and pictures of its learning curves."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint.checkpoints import portable_config
from transformer_cli.checkpoint.run_folder import IMPORTED, RunFolder
from transformer_cli.checkpoint.trained_files import TrainedFiles
from transformer_cli.config import Config, FileCorpus, FilesData, HubCorpus, HubData, to_yaml
from transformer_cli.data.pairs import SentencePair, read_validation_pairs
from transformer_cli.data.preparation import REPORT, VALIDATION
from transformer_cli.decoding import Translator
from transformer_cli.evaluation.curve_pictures import learning_curves, svg_of
from transformer_cli.evaluation.metrics import measure_corpus, score_corpus
from transformer_cli.evaluation.validation import DirectionReport, validate
from transformer_cli.extensions.exchange.exported_files import CARD
from transformer_cli.extensions.exchange.imported_model import FINE_TUNING
from transformer_cli.process.errors import DataError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import counted, on_one_line
from transformer_cli.text.languages import name_of_language

_TIME = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ")
_BEGUN = re.compile(r"model: |resuming .* at step (\d+);")
"""What a process logs before its first update."""
_REACHED = re.compile(r"(?:(?:finished|stopped) .*?after |step )(\d+)\b")
"""A report, a validation, or the end of a process."""
LONGEST_STEP = timedelta(hours=1)
"""A longer time between two lines of the log is a pause between two trainings."""
NUM_PAIRS = 200
"""Validation pairs of each direction that are translated for a card."""
NUM_TYPICAL, NUM_WORST = 6, 4
_ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\|*_`<>[]"})
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_DIGITS = re.compile(r"\d+")
MOST_WORDS = 3
"""A translation of a single word with more words than this adds something that is not in its source."""
NUM_JOINED = 5
NUM_WORDS = 50
NUM_WITH_ADDED = 25
ADDED_NUMBERS = ("7", "42", "1998", "365,000", "10:30")


class PreparationCount(NamedTuple):
    """A row of the report of the preparation: what was read, dropped or changed, and how often."""

    name: str
    number: int


class _Passed(NamedTuple):
    """A step that the log names, and the seconds of training until its line."""

    step: int
    seconds: float


class RunRecords(NamedTuple):
    """The records of a run; a checkpoint that was copied alone has none of them."""

    cleaning: list[PreparationCount]
    """Training pairs: read, dropped by each rule, kept."""
    num_pairs: dict[str, int]
    """Split -> pairs after cleaning."""
    hours: float | None
    """Until the step of the checkpoint, from the times in the log, without pauses."""
    environment: dict[str, Any]
    metrics_file: Path | None
    validation_pairs: list[SentencePair]


def read_records(files: TrainedFiles) -> RunRecords:
    """The records beside a checkpoint; what is missing or damaged is left out."""
    run = RunFolder.containing(files.folder)
    if run is None:
        return RunRecords([], {}, None, {}, None, [])
    report = _json(run.data_folder / REPORT)
    rows = report.get("cleaning")
    counts = report.get("num_pairs")
    rows = rows if isinstance(rows, list) else []
    counts = counts if isinstance(counts, dict) else {}
    return RunRecords(
        cleaning=[PreparationCount(row[0], row[1]) for row in rows if _is_count(row)],
        num_pairs={split: number for split, number in counts.items() if type(number) is int},
        hours=hours_until(run.log_file, files.step),
        environment=_json(run.environment_file),
        metrics_file=run.metrics_file if run.metrics_file.is_file() else None,
        validation_pairs=_pairs(run.data_folder / VALIDATION),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_count(row: Any) -> bool:
    return isinstance(row, list) and len(row) > 1 and isinstance(row[0], str) and type(row[1]) is int


def _pairs(path: Path) -> list[SentencePair]:
    try:
        return read_validation_pairs(path)
    except (OSError, ValueError, TypeError):
        return []


def hours_until(log_file: Path, step: int) -> float | None:
    """How long the updates until a step took, from the times in the log.

    Pauses do not count, nor do updates that a killed process had made after its last checkpoint. Between two lines of the
    log, a step is placed by its share of the updates.
    """
    try:
        lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    passed, before = [_Passed(0, 0.0)], None
    seconds = 0.0
    for line in lines:
        if not (match := _TIME.match(line)):
            continue
        time = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S")
        text = line[match.end() :]
        if begun := _BEGUN.match(text):
            at = int(begun[1] or 0)
            seconds = _seconds_until(at, passed)
            passed = [one for one in passed if one.step <= at] + [_Passed(at, seconds)]
        elif before is not None and timedelta() < time - before < LONGEST_STEP:
            seconds += (time - before).total_seconds()
        before = time
        if reached := _REACHED.match(text):
            passed.append(_Passed(int(reached[1]), seconds))
    return _seconds_until(step, passed) / 3600 if passed[-1].step else None


def _seconds_until(step: int, passed: list[_Passed]) -> float:
    for earlier, later in pairwise(passed):
        if later.step > step:
            share = (step - earlier.step) / (later.step - earlier.step)
            return earlier.seconds + share * (later.seconds - earlier.seconds)
    return passed[-1].seconds


class CardOptions(NamedTuple):
    """What only the user can say."""

    license: str | None = None
    """The licence of the model, as an identifier of the hub, such as cc-by-4.0."""
    datasets: tuple[str, ...] = ()
    """Data sets and their licences, such as Tatoeba=cc-by-2.0-fr."""
    base_model: str | None = None
    """The model on the hub from which this one was fine-tuned."""


def card_files(
    files: TrainedFiles,
    translator: Translator,
    usage: str,
    *,
    options: CardOptions,
    library: str = "tfm",
    notes: Sequence[str] = (),
) -> dict[str, bytes]:
    """README.md and its pictures.

    Args:
        files: of the run.
        translator: of the run, with the PyTorch engine, and the beam of the run.
        usage: how the files are used, as Markdown.
        options: what only the user can say.
        library: reads the folder in which the card lies.
        notes: of the check of an export.

    Raises:
        UsageError: the package huggingface_hub is missing.
    """
    records = read_records(files)
    reports = _reports(translator, records)
    pictures = _pictures(records)
    sections = [
        _head(files, records),
        "## How to use it\n\n" + usage.strip(),
        _scores(reports, translator) or _recorded_scores(files),
        _data(files, options, records),
        _training(files, records, pictures),
        *_examples(reports),
        _weak_spots(translator, reports),
    ]
    if notes:
        sections.insert(2, "## Checked\n\n" + "\n".join(f"- {note}" for note in notes))
    metadata = card_metadata(files.config, reports, options, library, name=files.name)
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
    report = validate(translator, chosen, scores=("bleu", "chrf"), num_samples=0, with_intervals=True)
    return report.parts


def _pictures(records: RunRecords) -> dict[str, str]:
    charts = [] if records.metrics_file is None else learning_curves(records.metrics_file)
    return {f"curve-{chart.title.split()[0].lower().strip(',')}.svg": svg_of(chart) for chart in charts}


def _imported_from(files: TrainedFiles) -> str | None:
    """What an imported run was in another program; None: its own training made it."""
    record = files.checkpoint.state().get(IMPORTED)
    origin = record.get("from") if isinstance(record, dict) else None
    return on_one_line(origin, 200) if isinstance(origin, str) else None


def _head(files: TrainedFiles, records: RunRecords) -> str:
    config = files.config
    ways = [f"{name_of_language(one.source)} to {name_of_language(one.target)}" for one in config.data.directions]
    model = config.model
    version = f" {records.environment['tfm']}" if records.environment.get("tfm") else ""
    origin = _imported_from(files)
    made = f"Trained with tfm{version}; this is step {files.step:,}."
    if origin is not None:
        made = f"Imported by tfm{version}: {origin}."
    with_ssru = " (SSRU in place of self-attention)" if model.decoder_layer == "ssru" else ""
    return (
        f"# {files.name}\n\nA Transformer that translates {', '.join(ways)}: {model.encoder_layers} encoder and "
        f"{model.decoder_layers} decoder layers{with_ssru} of width {model.d_model}, {model.num_heads} heads, "
        f"{files.source_tokenizer.vocab_size:,} source and {files.target_tokenizer.vocab_size:,} target tokens "
        f"({config.tokenizer.kind}). {made}"
    )


def _scores(reports: Sequence[DirectionReport], translator: Translator) -> str:
    if not reports:
        return ""
    decoding = translator.decoding
    lines_whole = "" if decoding.split_sentences else " each line read at once,"
    without = "" if decoding.repair else " without the repairs of `tfm`, which other programs do not have,"
    lines = [
        "## Scores",
        "",
        f"Validation split, beam {decoding.beam_size},{without}{lines_whole} in float32; 95 % confidence intervals by bootstrap.",
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


def _recorded_scores(files: TrainedFiles) -> str:
    """Those of the last validation of the training, where the pairs are not there to measure others."""
    reason = "the validation pairs are not in the folder of the run"
    try:
        validation = files.checkpoint.validation().values
        step, num_sentences = int(validation["step"]), int(validation["num_sentences"])
        rows = [
            f"| {_cell(one['name'])} | {one['value']:.1f} | `{_cell(one['signature'])}` |"
            for one in validation["scores"]
        ]
    except (DataError, KeyError, TypeError, ValueError):
        rows = []
    if not rows:
        return f"## Scores\n\nNot measured: {reason}."
    lines = [
        "## Scores",
        "",
        f"Measured in the training, at step {step:,}, on {num_sentences:,} sentences of the validation split. "
        f"Nothing was measured for this card: {reason}.",
        "",
        "| score | value | signature |",
        "|---|--:|---|",
    ]
    return "\n".join([*lines, *rows])


def _data(files: TrainedFiles, options: CardOptions, records: RunRecords) -> str:
    given = dict(one.partition("=")[::2] for one in options.datasets)
    # The data of a model that another program has trained are a proposal for its fine-tuning.
    is_proposal = _imported_from(files) is not None and files.config.training == FINE_TUNING
    corpora = {} if is_proposal else _corpora(files)
    if not corpora and not given:
        return "## Data\n\nNot known: another program has trained the model."
    lines = ["## Data", "", "| data | licence |", "|---|---|"]
    for name in dict.fromkeys([*corpora, *given]):
        origin, license_ = corpora.get(name, (None, None))
        described = name if origin is None else f"{name}: {origin}"
        lines.append(f"| {_cell(described)} | {_cell(given.get(name) or license_ or 'not stated')} |")
    if records.cleaning:
        lines += ["", "| training pairs | number |", "|---|--:|"]
        shown = [row for row in records.cleaning if row.number or not row.name.startswith(("dropped", "altered"))]
        lines += [f"| {_cell(row.name)} | {row.number:,} |" for row in shown]
        others = [f"{count:,} {split}" for split, count in records.num_pairs.items() if split != "train"]
        if others:
            lines += ["", f"Held out: {', '.join(others)} pairs."]
    return "\n".join(lines)


def _corpora(files: TrainedFiles) -> dict[str, tuple[str | None, str | None]]:
    """The name of each corpus, with origin and licence as far as the config states them."""
    data = files.config.data
    if not isinstance(data, FilesData | HubData):
        return {f"{data.source} (generated by tfm)": (None, None)}
    names: dict[str, tuple[str | None, str | None]] = {}
    for corpus in data.corpora:
        name = ""
        if isinstance(corpus, FileCorpus):
            name = corpus.path or f"{corpus.source_path} / {corpus.target_path}"
        elif isinstance(corpus, HubCorpus):
            name = " ".join(filter(None, (corpus.dataset, corpus.config)))
        names.setdefault(name, (corpus.origin, corpus.license))
    return names


def _training(files: TrainedFiles, records: RunRecords, pictures: Mapping[str, str]) -> str:
    config, environment = files.config, records.environment
    if (origin := _imported_from(files)) is not None:
        facts = [f"imported, not trained here: {origin}", *([counted(files.step, "update")] if files.step else [])]
    else:
        facts = [counted(files.step, "update"), f"seed {config.seed}"]
        if config.training.init_from:
            facts.append(f"fine-tuned from {config.training.init_from}")
        if records.hours is not None:
            facts.append(f"{records.hours:.1f} hours" if records.hours >= 1 else f"{60 * records.hours:.0f} minutes")
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
        directed_translator = translator.towards(report.direction.target, report.direction.source)
        found = weak_spots(directed_translator, report.pairs)
        lines += [f"| {report.direction} | {spot.name} | {spot.result} |" for spot in found]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text that stays in its cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def card_metadata(
    config: Config, reports: Sequence[DirectionReport], options: CardOptions, library: str, *, name: str
) -> str:
    """The metadata as YAML; nothing that neither the run nor the user says.

    Raises:
        UsageError: the package huggingface_hub is missing.
    """
    require_extra("export", ("huggingface_hub",), purpose="a model card")
    from huggingface_hub import EvalResult, ModelCardData

    results: list[Any] = [
        EvalResult(
            task_type="translation",
            dataset_type="validation",
            dataset_name=f"validation split of {name}",
            dataset_config=str(report.direction),
            dataset_split="validation",
            metric_type=score.name.lower(),
            metric_name=score.name,
            metric_value=round(score.value, 2),
            metric_args={"signature": score.signature},
        )
        for report in reports
        for score in report.scores
    ]
    languages = dict.fromkeys(one for pair in config.data.directions for one in pair)
    metadata: Any = ModelCardData(
        language=[*languages],
        license=options.license,
        library_name=library,
        pipeline_tag="translation",
        tags=["translation", "tfm"],
        datasets=_datasets(config) or None,
        metrics=["bleu", "chrf"] if results else None,
        base_model=options.base_model,
        model_name=name,
        eval_results=results or None,
    )
    return f"{metadata.to_yaml()}\n"


def _datasets(config: Config) -> list[str]:
    """Names of data sets on the hub; files have none."""
    data = config.data
    if not isinstance(data, HubData):
        return []
    names = dict.fromkeys(corpus.dataset for corpus in data.corpora if corpus.data_files is None)
    return [name for name in names if not name.startswith((".", "/"))]


def sample_lines(report: DirectionReport) -> str:
    """Two tables: translations evenly spread over the pairs, and those with the lowest chrF of a sentence."""
    texts = [translation.text for translation in report.translations]
    [chrf] = measure_corpus(texts, [pair.target for pair in report.pairs], ["chrf"])
    values = [chrf.value([row]) for row in range(len(texts))]
    count = min(NUM_TYPICAL, len(texts))
    typical = [place * len(texts) // count for place in range(count)]
    others = [row for row in range(len(texts)) if row not in typical]
    worst = sorted(others, key=lambda row: (values[row], row))[:NUM_WORST]
    parts = []
    for title, rows in (("evenly spread", typical), ("the worst", worst)):
        lines = [f"{report.direction}, {title}:", ""]
        lines += ["| source | translation | reference | chrF |", "|---|---|---|--:|"]
        for row in rows:
            pair = report.pairs[row]
            cells = [_text_cell(text) for text in (pair.source, texts[row], pair.target)]
            lines.append(f"| {' | '.join(cells)} | {values[row]:.0f} |")
        if rows:
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _text_cell(text: str) -> str:
    """A text as it is, in a cell of a Markdown table."""
    return on_one_line(text, 300).translate(_ESCAPED)


class WeakSpot(NamedTuple):
    """A probe and its result."""

    name: str
    result: str


def weak_spots(translator: Translator, pairs: Sequence[SentencePair]) -> list[WeakSpot]:
    """Measure a translator with changed validation sentences.

    Args:
        translator: of one direction.
        pairs: validation pairs of this direction; at least one.
    """
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    plain = _chrf(translator, sources, references)
    return [
        WeakSpot("as they are", f"chrF {plain:.1f} on {len(pairs)} sentences"),
        _capitals(translator, sources, references),
        _long_input(translator, sources, references),
        *_single_words(translator, sources),
        _numbers(translator, sources),
    ]


def _capitals(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> WeakSpot:
    lowered = [_texts(translator, lines) for lines in (sources, [one.upper() for one in sources])]
    wanted = [reference.lower() for reference in references]
    plain, capital = (score_corpus([text.lower() for text in texts], wanted, ["chrf"])[0].value for texts in lowered)
    return WeakSpot("all in capitals", f"chrF {capital:.1f}, without capitals {plain:.1f} (case ignored)")


def _long_input(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> WeakSpot:
    starts = range(0, len(sources), NUM_JOINED)
    joined, wanted = (
        [" ".join(side[start : start + NUM_JOINED]) for start in starts] for side in (sources, references)
    )
    how = "split into sentences" if translator.pipeline.splits_sentences else "not split"
    value = _chrf(translator, joined, wanted)
    return WeakSpot(f"{NUM_JOINED} sentences in a line", f"chrF {value:.1f} ({how})")


def _single_words(translator: Translator, sources: Sequence[str]) -> list[WeakSpot]:
    words = dict.fromkeys(word.lower() for source in sources for word in _LETTERS.findall(source))
    chosen = [*words][:NUM_WORDS]
    if not chosen:
        return []
    found = _texts(translator, chosen)
    num_long = sum(len(text.split()) > MOST_WORDS for text in found)
    result = f"{num_long} of {len(chosen)} translations have more than {MOST_WORDS} words"
    return [WeakSpot("single words", result)]


def _numbers(translator: Translator, sources: Sequence[str]) -> WeakSpot:
    """Sentences of the split that contain numbers; without any, numbers put behind sentences."""
    lines, what = [source for source in sources if NUMBER.search(source)], "with numbers"
    if not lines:
        pairs = zip(sources[:NUM_WITH_ADDED], cycle(ADDED_NUMBERS), strict=False)
        lines = [f"{source.rstrip('.!? ')} {number}." for source, number in pairs]
        what = "with a number put at the end"
    found = _texts(translator, lines)
    num_kept = sum(
        sorted(_DIGITS.findall(line)) == sorted(_DIGITS.findall(text)) for line, text in zip(lines, found, strict=True)
    )
    return WeakSpot("numbers", f"{num_kept} of {len(lines)} sentences {what} keep all their digits")


def _texts(translator: Translator, lines: Sequence[str]) -> list[str]:
    return [translation.text for translation in translator.translate(lines)]


def _chrf(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> float:
    return score_corpus(_texts(translator, sources), references, ["chrf"])[0].value
