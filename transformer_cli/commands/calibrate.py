"""`tfm calibrate`: which translations of a run may be trusted, measured on text that it was not trained on, and kept in its folder."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transformer_cli.checkpoint import trained_files
from transformer_cli.checkpoint.run_folder import CALIBRATION_FILE, IMPORTED, RunFolder
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    BeamOption,
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    ToOption,
    set_option,
)
from transformer_cli.commands.output import show
from transformer_cli.commands.validate import (
    ReferenceOption,
    SourceOption,
    check_text,
    pairs_to_score,
)
from transformer_cli.data.pairs import SentencePair
from transformer_cli.process.errors import CannotCreateError, DataError, TfmError, UsageError
from transformer_cli.storage import replace_file, require_place
from transformer_cli.text.seen_words import SeenWords, WordsOfOneToken, folded, word_pattern, write_seen_words

if TYPE_CHECKING:
    from transformer_cli.decoding.loading import LoadedRun
    from transformer_cli.decoding.text_pipeline import TextPipeline
    from transformer_cli.evaluation.green import Calibrated

logger = logging.getLogger(__name__)

_METRICS = ("chrf", "chrf++", "bleu")
SAMPLES = 6
"""With how many samples of the model a translation is compared, if nothing else is asked for."""


def calibrate_command(
    run: RunOption = None,
    split: Annotated[
        Literal["validation", "test"] | None,
        typer.Option("--split", help="Which part of the corpus. Default: test."),
    ] = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    metric: Annotated[
        str, typer.Option("--metric", help="The score of a sentence, in which higher is better.")
    ] = "chrf",
    below: Annotated[
        float,
        typer.Option("--below", min=1, max=100, help="A translation with a lower score is bad."),
    ] = 60.0,
    share: Annotated[
        float,
        typer.Option("--share", help="At most this share of the green translations may be bad: 0 to 1."),
    ] = 0.05,
    certainty: Annotated[float, typer.Option("--certainty", help="How sure the promise is: 0 to 1.")] = 0.95,
    samples: Annotated[
        int,
        typer.Option(
            "--samples",
            min=0,
            max=64,
            help="Compare each translation with so many samples of the model, here and whenever the calibration is used. 0: faster, "
            "and fewer translations are green.",
        ),
    ] = 6,
    reverse: Annotated[
        str | None,
        typer.Option(
            "--reverse",
            metavar="RUN",
            help="A run of the reverse direction: how probable is each source after its translation? The run is needed whenever "
            "the calibration is used.",
        ),
    ] = None,
    overrides: Annotated[Overrides, set_option("decoding.beam_size=8", completion.settings_of_validating)] = None,
    beam_size: BeamOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find out which translations of a run can be trusted. `tfm translate --mark` and `--only-green` use the result."""
    _check(split, source, reference, metric, {"--share": share, "--certainty": certainty})

    settings = list(overrides or [])
    if beam_size is not None:
        settings.append(f"decoding.beam_size={beam_size}")
    facts, lines = calibrated_run(
        run,
        split=split,
        text=None if source is None or reference is None else (source, reference),
        promise=(metric, below, share, certainty),
        samples=samples,
        reverse=reverse,
        overrides=settings,
        languages=(to, from_),
    )
    show(facts, lines, as_json=as_json)


def calibrated_run(
    run: str | None,
    *,
    split: Literal["validation", "test"] | None = None,
    text: tuple[Path, Path] | None = None,
    promise: tuple[str, float, float, float] = ("chrf", 60.0, 0.05, 0.95),
    samples: int = SAMPLES,
    reverse: str | None = None,
    overrides: Sequence[str] = (),
    languages: tuple[str | None, str | None] = (None, None),
) -> tuple[dict[str, Any], list[str]]:
    """Calibrate a run and keep the result in its folder; the result as facts for programs, and as lines for people.

    Args:
        run: its name; None: the run that saved last.
        split: of its corpus; None: test, unless there is a `text`.
        text: files of a source and a reference, instead of a split.
        promise: metric, below, share and certainty, as of `QualityPromise`.
        samples: of the model for each translation, with which it is compared.
        reverse: a run of the reverse direction; None: none.
        overrides: settings of the translations.
        languages: the target and the source; None: the only one.

    Raises:
        UsageError: the run is a checkpoint outside of a run folder.
        CannotCreateError: the folder of the run may not be written.
        DataError: there is too little text.
    """
    from transformer_cli.commands.sentence_progress import sentence_progress
    from transformer_cli.decoding.checks.quality import (
        STATISTICS,
        Drift,
        QualityPromise,
        quality_json,
        read_quality,
    )
    from transformer_cli.decoding.loading import load_run
    from transformer_cli.evaluation.green import FEWEST_SENTENCES, calibrated
    from transformer_cli.evaluation.metrics import measure_corpus
    from transformer_cli.evaluation.validation import conditions_of

    source, reference = text or (None, None)
    loaded = load_run(run, list(overrides), command="validate --source" if source else "validate")
    folder = RunFolder.containing(loaded.trained.folder)
    if folder is None:
        raise UsageError(
            f"{loaded.trained.folder}: a checkpoint outside of a run has no place for a calibration",
            hint="name a run folder: --run FOLDER",
        )
    if folder.path.resolve() == trained_files.PACKAGED_RUN:
        raise CannotCreateError(
            f"{run or trained_files.DEMONSTRATION}: this model is a part of the installed package, and so is its calibration",
            hint=f"copy its folder, {folder.path.resolve()}, to runs/NAME; then: tfm calibrate --run NAME --source FILE --reference FILE",
        )
    path = folder.path / CALIBRATION_FILE
    require_place(path)
    translator = loaded.translator.towards(*languages)
    name = "test" if split is None and source is None else split
    pairs = pairs_to_score(loaded, translator, name, source, reference)
    _warn_of_known_pairs(loaded, pairs, name)
    with sentence_progress():
        # An earlier calibration of the run has no part in this one.
        pipeline = replace(translator.pipeline, qualities={})
        pipeline, words = _with_seen_words(pipeline, loaded, folder, [pair.source for pair in pairs])
        pair_translator = replace(
            translator,
            pipeline=pipeline,
            estimates=True,
            num_samples=samples,
            reverse=reverse,
            reports_lines=source is not None,
        )
        translations = list(pair_translator.translate([pair.source for pair in pairs]))
    texts, references = [each.text for each in translations], [pair.target for pair in pairs]
    metric, below, share, certainty = promise
    direction = translator.pipeline.languages
    [measured] = measure_corpus(texts, references, [metric], target_language=direction.target)
    scores = [measured.value([index]) for index in range(len(pairs))]
    conditions: dict[str, Any] = {
        "checkpoint": loaded.trained.folder.name,
        "step": loaded.trained.step,
        "text": f"{source} / {reference}" if source else name,
        "sentences": len(pairs),
        "beam_size": translator.decoding.beam_size,
        "settings": conditions_of(translator),
        "reads_seen_words": words is None,  # the record of the run
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if reverse is not None and pair_translator.load_reader is not None:
        conditions["reverse_step"] = pair_translator.load_reader(reverse).step
    promised = QualityPromise(metric, below, share, certainty)
    found = calibrated(
        translations,
        scores,
        promised,
        conditions=conditions,
        num_samples=samples,
        words=words,
        reverse=reverse,
    )
    if found is None:
        raise DataError(
            f"{len(pairs)} sentences in {conditions['text'] if source else f'the {name} split'}: a calibration needs at least {FEWEST_SENTENCES} that the model translates",
            hint="give more text that the run has not read: --source FILE --reference FILE",
        )
    try:
        before = read_quality(folder.path)
    except DataError:  # loading the run has told it
        before = {}
    # Of this checkpoint: another one is sure of other translations, and its promise is void.
    earlier = translator.pipeline.quality
    if earlier is not None:
        drift = Drift(earlier)
        drift.add(translations)
        if differing := [STATISTICS[each] for each in drift.differences()]:
            logger.warning(
                "this text is not like that of the calibration that is there; it differs in: %s. Of one kind of text, nothing is "
                "promised about the other",
                ", ".join(differing),
            )
    # A calibration that keeps its promise is not given up for one that keeps none.
    has_promise = earlier is not None and earlier.threshold is not None
    is_kept = found.quality.threshold is None and has_promise
    use = "stays as it was"
    if not is_kept:
        replace_file(path, quality_json(before | {str(direction): found.quality}))
        used = "tfm translate --mark and --only-green use it"
        refused = (
            "--mark and --only-green refuse it, and what is less probable than 99 % of these translations is named"
        )
        use = f"is written; {refused if found.quality.threshold is None else used}"
    return {"direction": str(direction), **_facts(found)}, [*_lines(found), f"{path} {use}"]


def _warn_of_known_pairs(loaded: LoadedRun, pairs: Sequence[SentencePair], split: str | None) -> None:
    """Say so if the pairs of a calibration had a part in the training; without a split, they are a given text."""
    if split == "validation":
        logger.warning(
            "the validation split has chosen the checkpoint, so its translations are a little better than others"
        )
    if split is None and _are_of_training(loaded, pairs):
        logger.warning(
            "most of the pairs of --source and --reference are training pairs of the run, whose translations are better than those of "
            "new text; the promise of this calibration will not hold. Give pairs that training has not seen, or leave out both options"
        )


def _are_of_training(loaded: LoadedRun, pairs: Sequence[SentencePair]) -> bool:
    """Whether the larger part of some pairs is in the training corpus of a run; false if this is not there any more."""
    from transformer_cli.data.preparation import num_trained_on

    try:
        return 2 * num_trained_on(loaded.config, pairs) > len(pairs)
    except TfmError:
        return False


def _with_seen_words(
    pipeline: TextPipeline, loaded: LoadedRun, folder: RunFolder, sources: Sequence[str]
) -> tuple[TextPipeline, SeenWords | None]:
    """The pipeline that knows which words training has seen; and the words of the calibration text, if these have to tell it."""
    if pipeline.seen_words is not None:
        return pipeline, None
    if (seen := words_seen_by_training(loaded, folder)) is not None:
        return replace(pipeline, seen_words=seen), None
    words, in_two_lines = _calibration_words(pipeline, sources)
    return replace(pipeline, seen_words=in_two_lines), words


def words_seen_by_training(loaded: LoadedRun, folder: RunFolder) -> SeenWords | None:
    """The words of the training text of a run that has not recorded them, from its corpus; they are recorded now.

    None if the corpus is not there, has changed or is streamed, or if the model began with the weights of another one. Where
    the records of the data are lost, the digest in the checkpoint tells whether it has changed.
    """
    from transformer_cli.data.preparation import (
        changes,
        fingerprint,
        fingerprint_digest,
        read_claim,
        seen_words_of_corpus,
    )

    state = loaded.trained.checkpoint.state()
    if IMPORTED in state or loaded.config.training.init_from is not None:
        return None
    try:
        trained_on, now = folder.data_of_training() or read_claim(folder.data_folder), fingerprint(loaded.config)
        changed = changes(trained_on, now) if trained_on else []
        is_other = not trained_on and loaded.trained.checkpoint.manifest.data_fingerprint != fingerprint_digest(now)
        if not changed and not is_other:
            words = seen_words_of_corpus(loaded.config)
            if words is not None:
                write_seen_words(folder.seen_words_file, words)
            return words
        problem = f"the data has changed since the training: {'; '.join(changed)}"
        if is_other:
            problem = (
                "the records of the data of the training are lost, and the checkpoint has another digest of them, as of a changed "
                "corpus or of an earlier version of tfm"
            )
    except TfmError as error:
        problem = error.message
    logger.warning(
        "%s, so it is not known which words training has seen; the text of the calibration tells it roughly",
        problem,
    )
    return None


def _calibration_words(pipeline: TextPipeline, sources: Sequence[str]) -> tuple[SeenWords, Container[str]]:
    """The words of a calibration text, and those of them that count as seen while it is translated: they are in two lines or more."""
    pattern, counts = word_pattern(pipeline.languages.source), Counter[str]()
    for source in sources:
        counts.update(set(map(folded, pattern.findall(source))))
    often = SeenWords.of(counts, least=2)
    return SeenWords.of(counts), WordsOfOneToken(often, pipeline.source_tokenizer)


def _check(
    split: str | None,
    source: Path | None,
    reference: Path | None,
    metric: str,
    shares: Mapping[str, float],
) -> None:
    """Refuse what cannot work, before a model is loaded.

    Raises:
        UsageError: an option has no sense, or two do not fit together.
    """
    for option, value in shares.items():
        if not 0.0 < value < 1.0:
            raise UsageError(
                f"{option} {value:g}: a number between 0 and 1 is expected",
                hint=f"5 % is 0.05, and 95 % is 0.95; leave out {option} for the usual value",
            )
    if metric not in _METRICS:
        raise UsageError(
            f"--metric {metric}: not a score of sentences here",
            hint=f"name one of {', '.join(_METRICS)}",
        )
    check_text(split, source, reference)


def _facts(found: Calibrated) -> dict[str, Any]:
    """The result for other programs."""
    quality = found.quality
    return {
        "promise": quality.promise._asdict(),
        "threshold": quality.threshold,
        "least_confidence": quality.least_confidence,
        "sentences_of_threshold": found.num_sentences,
        "green": found.num_green,
        "bad_among_green": found.num_bad,
        "share_of_bad": found.share_bad,
        "samples": quality.num_samples,
        "reverse": quality.reverse,
        "with_unseen_words": found.num_unseen,
        "unseen_words_are_green": quality.unseen_words_are_green,
        **quality.conditions,
    }


def _lines(found: Calibrated) -> list[str]:
    """The result for people."""
    promise = found.quality.promise
    bad = f"below {promise.metric} {promise.below:g}"
    if found.quality.threshold is None:
        from transformer_cli.evaluation.green import fewest_sentences

        return [
            f"no threshold keeps the promise: {promise}",
            f"of the {found.num_sentences} sentences on which it was looked for, {found.share_bad:.1%} are {bad}; among the "
            f"{fewest_sentences(promise)} or more with the best estimates there must be hardly any",
            "with a lower --below, a larger --share, or more text there may be one",
        ]
    unseen = f"{found.num_unseen} of them have words that training has not seen; these " + (
        "keep the promise, too" if found.quality.unseen_words_are_green else "are never green"
    )
    return [
        f"promise: {promise}",
        f"green: {found.num_green} of {found.num_sentences} sentences ({found.num_green / found.num_sentences:.1%}), of which "
        f"{found.num_bad} are {bad} (of all, {found.share_bad:.1%} are)",
        unseen,
    ]
