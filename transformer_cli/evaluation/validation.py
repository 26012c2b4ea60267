"""Validation: the loss of a model on held-out text, and the scores of its translations; exact matches of synthetic tasks; published losses beside ours; pictures of attention."""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_cli.config import Config, Direction, PublishedConfig, SequencesData
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.sources.corpus import sequences_of_length
from transformer_cli.decoding import Translation, UnknownWords
from transformer_cli.decoding.translator import Translator
from transformer_cli.evaluation.metrics import Measurement, Score, measure_corpus
from transformer_cli.evaluation.picture_fonts import readable_labels
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import on_one_line
from transformer_cli.storage import read_json_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

logger = logging.getLogger(__name__)

# The exponential of a larger number is larger than every float.
MAX_EXPONENT = 709.0


class Sample(NamedTuple):
    """A source sentence, its reference, and the model's translation."""

    source: str
    target: str
    predicted: str
    direction: Direction | None = None
    """None if the model has only one direction."""

    def as_json(self) -> dict[str, str]:
        """The texts, and the direction if the model has several."""
        texts = {"source": self.source, "target": self.target, "predicted": self.predicted}
        return texts | ({"direction": str(self.direction)} if self.direction else {})

    def lines(self) -> list[str]:
        """The texts, each on one line after its name; and the direction if the model has several."""
        source, target, predicted = map(on_one_line, self[:3])
        lines = [f"SOURCE     {source}", f"TARGET     {target}", f"PREDICTED  {predicted}"]
        return [f"DIRECTION  {self.direction}", *lines] if self.direction else lines


@dataclass(frozen=True, slots=True)
class DirectionReport:
    """The results of a validation in one direction."""

    direction: Direction
    negative_log_likelihood: float
    """Of all target tokens together, in nats."""
    scores: list[Score]
    num_sentences: int
    num_target_tokens: int
    pairs: Sequence[SentencePair] = ()
    translations: Sequence[Translation] = ()
    """One for each pair; without scores, of the samples only."""
    measurements: Sequence[Measurement] = ()
    """One for each score."""

    @property
    def loss(self) -> float:
        """In nats per target token; NaN if there is no token."""
        return self.negative_log_likelihood / self.num_target_tokens if self.num_target_tokens else math.nan

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`, with None for NaN."""
        return {
            "direction": str(self.direction),
            "num_sentences": self.num_sentences,
            "num_target_tokens": self.num_target_tokens,
            "loss": self.loss if math.isfinite(self.loss) else None,
            "scores": [score.as_json() for score in self.scores],
        }


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The results of a validation."""

    loss: float
    """Negative log-likelihood per target token, [EOS] included, in nats, without label smoothing."""
    perplexity: float
    """exp(loss); infinity if that is too large for a float."""
    scores: list[Score]
    """If the model has several directions: the mean of the scores of the directions."""
    num_sentences: int
    num_target_tokens: int
    samples: list[Sample]
    unknown_words: UnknownWords = field(default_factory=UnknownWords)
    """Of the sources that were translated."""
    parts: list[DirectionReport] = field(default_factory=list)
    """The same figures for each direction, also if there is only one."""

    @property
    def directions(self) -> list[DirectionReport]:
        """The figures of each direction; empty if there is only one, whose figures are those of the report."""
        return self.parts if len(self.parts) > 1 else []

    def metric(self, name: str) -> float:
        """A number by its name: loss, perplexity, or the name of a score; upper or lower case."""
        values = {"loss": self.loss, "perplexity": self.perplexity}
        values |= {score.name.lower(): score.value for score in self.scores}
        return values[name.lower()]

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`; None for infinity and NaN, which JSON does not have."""
        figures: dict[str, Any] = {
            "num_sentences": self.num_sentences,
            "num_target_tokens": self.num_target_tokens,
            "loss": self.loss if math.isfinite(self.loss) else None,
            "perplexity": self.perplexity if math.isfinite(self.perplexity) else None,
            "scores": [score.as_json() for score in self.scores],
        }
        if num_words := self.unknown_words.num_words:
            counts = {"unknown": self.unknown_words.num_unknown, "words": num_words}
            figures["unknown_words_of_sources"] = counts
        direction_figures = [report.as_json() for report in self.directions]
        return figures | ({"directions": direction_figures} if direction_figures else {})


def validate(
    translator: Translator,
    pairs: Sequence[SentencePair],
    *,
    scores: Sequence[str] = ("bleu", "chrf", "ter", "cer", "wer"),
    num_samples: int = 4,
    with_intervals: bool = False,
    with_details: bool = False,
) -> ValidationReport:
    """Measure the loss of a model on pairs, translate the sources, and score the translations.

    It changes neither the weights nor the state of the random number generators.

    Args:
        translator: its engine gives the loss and the translations; a PyTorch model must be in eval mode. If no
            direction is chosen for it, each pair is translated in its own direction.
        pairs: held-out text; the targets, unchanged, are the references.
        scores: names of `validation.scores`; if empty, only the samples are translated.
        num_samples: how many pairs, evenly spread, the report shows with their translations.
        with_intervals: compute the confidence interval of each score of each direction.
        with_details: let each translation have its details, such as the probabilities of its tokens.

    Raises:
        DataError: `pairs` is empty.
    """
    if not pairs:
        raise DataError("there are no pairs to validate on", hint="check the split and its corpora")
    num_samples = min(num_samples, len(pairs))
    shown = [i * len(pairs) // num_samples for i in range(num_samples)]
    reports: list[DirectionReport] = []
    samples: list[Sample] = []
    unknown_words = UnknownWords()
    num_before = 0
    has_several = len(translator.pipeline.data.directions) > 1
    for direction_translator, group in by_direction(translator, pairs):
        here = [i - num_before for i in shown if 0 <= i - num_before < len(group)]
        num_before += len(group)
        translated = range(len(group)) if scores else here
        sources = [group[i].source for i in translated]
        translations = list(direction_translator.translate(sources))
        if with_details:
            translations = _detailed(direction_translator, sources, translations)
        for translation in translations:
            unknown_words.add(translation)
        texts = [translation.text for translation in translations]
        report = _report(direction_translator, group, translations, scores)
        reports.append(_with_intervals(report) if with_intervals else report)
        predicted = dict(zip(translated, texts, strict=True))
        direction = direction_translator.pipeline.languages if has_several else None
        samples += [Sample(*group[i][:2], predicted[i], direction) for i in here]
    num_tokens = sum(report.num_target_tokens for report in reports)
    total = sum(report.negative_log_likelihood for report in reports)
    loss = total / num_tokens if num_tokens else math.nan
    return ValidationReport(
        loss=loss,
        perplexity=math.inf if loss > MAX_EXPONENT else math.exp(loss),
        scores=mean_scores(reports),
        num_sentences=len(pairs),
        num_target_tokens=num_tokens,
        samples=samples,
        unknown_words=unknown_words,
        parts=reports,
    )


def _detailed(translator: Translator, sources: Sequence[str], translations: Sequence[Translation]) -> list[Translation]:
    """The translations, with the details of the lines as whole texts.

    They are translated again: details know no layout, and the scores must not depend on whether details are wanted.
    """
    again = translator.translate(sources, with_details=True)
    return [replace(one, details=other.details) for one, other in zip(translations, again, strict=True)]


def by_direction(
    translator: Translator, pairs: Sequence[SentencePair]
) -> list[tuple[Translator, Sequence[SentencePair]]]:
    """The pairs of each direction, and the translator of this direction."""
    if translator.pipeline.direction is not None:
        return [(translator, pairs)]
    groups: dict[int, list[SentencePair]] = {}
    for pair in pairs:
        groups.setdefault(pair.direction, []).append(pair)
    return [(translator.in_direction(number), groups[number]) for number in sorted(groups)]


def _report(
    translator: Translator,
    pairs: Sequence[SentencePair],
    translations: Sequence[Translation],
    scores: Sequence[str],
) -> DirectionReport:
    """The loss of the pairs of a direction, in nats of all target tokens together, and the scores of their translations."""
    pipeline = translator.pipeline
    limit = pipeline.max_length  # what the model can read
    source_ids = (pipeline.source_ids(pipeline.normalize_source(pair.source)) for pair in pairs)
    target_ids = (pipeline.target_ids(pipeline.normalize_target(pair.target)) for pair in pairs)
    encoded = list(zip(source_ids, target_ids, strict=True))
    if num_cut := sum(max(map(len, sides)) > limit for sides in encoded):
        logger.warning("pairs of more than %d tokens, shortened to measure the loss: %d", limit, num_cut)
    kept = [(source[:limit], target[:limit]) for source, target in encoded if source and target]
    total = translator.engine.negative_log_likelihood(
        [source for source, _ in kept],
        [target for _, target in kept],
        batch_tokens=translator.decoding.batch_tokens,
    )
    languages, measured = pipeline.languages, list[Measurement]()
    if scores:
        texts = [translation.text for translation in translations]
        references = [pair.target for pair in pairs]
        measured = [
            replace(measurement, conditions=conditions_of(translator))
            for measurement in measure_corpus(texts, references, scores, target_language=languages.target)
        ]
    return DirectionReport(
        languages,
        total,
        [measurement.score() for measurement in measured],
        num_sentences=len(pairs),
        num_target_tokens=sum(len(target) for _, target in kept),
        pairs=pairs,
        translations=translations,
        measurements=measured,
    )


def conditions_of(translator: Translator) -> str:
    """For signatures: whether translations keep all text (`decoding.keep_text`), whether doubtful ones are searched again
    (`decoding.repair`), whether lines are split into sentences (`decoding.split_sentences`), other switches of the text that
    are off, the shortlist and the models of `decoding.rescore`, if there are any; nothing for the sequences of a task."""
    if isinstance(translator.pipeline.data, SequencesData):
        return ""
    pipeline, decoding = translator.pipeline, translator.decoding
    settings = {
        "keep_text": pipeline.keeps_text,
        "repair": translator.repairs,
        "split_sentences": pipeline.splits_sentences,
    }
    conditions = [f"{name}:{'yes' if is_on else 'no'}" for name, is_on in settings.items()]
    rarely_off = {"keep_layout": decoding.keep_layout, "known_spellings": pipeline.spellings is not None}
    conditions += [f"{name}:no" for name, is_on in rarely_off.items() if not is_on]
    if (shortlist := getattr(translator.engine, "shortlist", None)) is not None:
        conditions.append(f"shortlist:{shortlist.name}")
    if translator.rescorers and translator.decoding.rescore is not None:
        conditions.append(f"rescore:{'+'.join(map(str, translator.rescorers))}")
    return "|".join(conditions)


def _with_intervals(report: DirectionReport) -> DirectionReport:
    scores = [measurement.score(with_interval=True) for measurement in report.measurements]
    return replace(report, scores=scores)


def mean_scores(reports: Sequence[DirectionReport]) -> list[Score]:
    """The mean over the directions of each score, each direction with the same weight."""
    if len(reports) == 1:
        return reports[0].scores
    means = []
    for direction_scores in zip(*(report.scores for report in reports), strict=True):
        value = sum(score.value for score in direction_scores) / len(direction_scores)
        signatures = dict.fromkeys(score.signature for score in direction_scores)
        directions = ",".join(str(report.direction) for report in reports)
        signature = f"mean of {directions}|{' / '.join(signatures)}"
        means.append(Score(direction_scores[0].name, value, signature))
    return means


# Results of synthetic tasks, those of the tutorials and ours: exact matches, and our losses beside published ones.


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


def summary_lines(config: Config, metrics_file: Path, translator: Translator | None) -> Iterator[str]:
    """The last log lines of a finished run of a synthetic task; none for other runs.

    Args:
        config: the config of the run.
        metrics_file: the metrics.jsonl of the run.
        translator: with the best checkpoint; None for other data.
    """
    if config.published.training_loss or config.published.validation_loss:
        yield from published_table(config.published, metrics_file)
    if isinstance(config.data, SequencesData):
        if not config.data.shift_target:
            yield UNSHIFTED_NOTE
        assert translator is not None
        yield from exact_match_table(exact_matches(translator, config), config.data.task)


def exact_matches(translator: Translator, config: Config) -> list[ExactMatch]:
    """One row for each length of a synthetic task; none for other data.

    The sequences are fresh ones, or those of training where the task is to memorise them.
    """
    data = config.data
    if not isinstance(data, SequencesData):
        return []
    lengths = config.validation.sequence_lengths or range(data.min_length, data.max_length + 1)
    rows: list[ExactMatch] = []
    for length in lengths:
        pairs = sequences_of_length(data, length, seed=config.seed)
        if not pairs:  # the task `memorise` may have no sequence of a length that is asked for
            continue
        translations = translator.translate([pair.source for pair in pairs])
        num_exact = num_right = num_symbols = 0
        for pair, translation in zip(pairs, translations, strict=True):
            symbols, wanted = translation.text.split(), pair.target.split()
            num_exact += symbols == wanted
            num_right += sum(map(str.__eq__, symbols, wanted))
            num_symbols += len(wanted)
        exact, right = 100.0 * num_exact / len(pairs), 100.0 * num_right / num_symbols
        rows.append(ExactMatch(length, len(pairs), exact, right))
    return rows


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


# The picture of the cross-attention weights of one translation.


MAX_LABEL = 24
"""The most characters of a label."""
MAX_TOKENS = 40
"""The most tokens of a side in a picture. A model that is hardly trained writes hundreds, and their picture would take more memory than
the training."""


def attention_picture(translator: Translator, source: str, predicted: str) -> "Figure | None":
    """A picture of the cross-attention of the last decoder layer, averaged over its heads; of the first `MAX_TOKENS` of each side.

    Returns:
        None for a text without tokens, and for an engine other than the PyTorch engine.
    """
    # Scores of files need this module, and no PyTorch.
    from transformer_cli.decoding.pytorch_engine import PyTorchEngine

    pipeline, engine = translator.pipeline, translator.engine
    source_ids = pipeline.source_ids(pipeline.normalize_source(source))
    target_ids = pipeline.target_ids(predicted)
    if not (source_ids and target_ids and isinstance(engine, PyTorchEngine)):
        return None
    # The weights of a target token do not depend on the tokens after it; those of a source token depend on the whole source.
    first_ids = target_ids[:MAX_TOKENS]
    weights = engine.cross_attention(source_ids, first_ids)[-1].mean(0)[:, :MAX_TOKENS]
    source_tokens = pipeline.source_tokenizer.tokens(source_ids[:MAX_TOKENS])
    figure = draw_attention(weights, source_tokens, pipeline.target_tokenizer.tokens(first_ids))
    sides = {"source": len(source_ids), "target": len(target_ids)}
    cut = [f"{MAX_TOKENS} of {num} {side} tokens" for side, num in sides.items() if num > MAX_TOKENS]
    if cut:
        figure.suptitle(f"the first {' and '.join(cut)}")
    return figure


def draw_attention(weights: "Tensor", source_tokens: Sequence[str], target_tokens: Sequence[str]) -> "Figure":
    """Draw attention weights: the source from left to right, the target from top to bottom.

    Args:
        weights: (T, S); row t holds the weights with which target token t was predicted.
        source_tokens: S labels.
        target_tokens: T labels.
    """
    from matplotlib.figure import Figure

    num_source = len(source_tokens)
    names = (on_one_line(token.strip(), MAX_LABEL) for token in (*source_tokens, *target_tokens))
    # A dollar sign without a backslash would begin a formula.
    labels, families = readable_labels([name.replace("$", r"\$") or "␣" for name in names])
    source_labels, target_labels = labels[:num_source], labels[num_source:]
    # In inches. The part of the longest label beyond 8 characters gets room of its own; else labels would fill the picture.
    beside, below = (0.11 * max(0, max(map(len, side)) - 8) for side in (target_labels, source_labels))
    size = 2.0 + 0.4 * num_source + beside, 1.6 + 0.32 * len(target_tokens) + below
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    axes = figure.add_subplot()
    shown = weights.float().cpu().numpy()
    image = axes.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(num_source), source_labels, rotation=60, ha="right")
    axes.set_yticks(range(len(target_tokens)), target_labels)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(families)
    axes.set_xlabel("source")
    axes.set_ylabel("predicted target token")
    figure.colorbar(image, ax=axes, label="attention")
    return figure
