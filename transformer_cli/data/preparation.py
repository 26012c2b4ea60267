"""From a config to the data that training reads: ids, tokenizers, validation pairs and a report."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from transformer_cli.config import Config, FilesData, HubData
from transformer_cli.data import fingerprint as fingerprints
from transformer_cli.data.batches.encoded import (
    EncodedCorpus,
    encode_pairs,
    write_encoded,
)
from transformer_cli.data.batches.order import epoch_order, padding_share
from transformer_cli.data.encoding import encoded_text
from transformer_cli.data.extended_tokenizers import are_extended, extended_tokenizers, require_tags
from transformer_cli.data.pairs import ReadingReport, SentencePair, rows_of
from transformer_cli.data.report import DataReport
from transformer_cli.data.selection import clean
from transformer_cli.data.selection.cleaning import CleaningReport, check_dropped_share
from transformer_cli.data.selection.digest_set import DigestSet
from transformer_cli.data.selection.held_out import (
    HeldOutSplits,
    all_held_out_pairs,
    held_out_digests,
)
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.data.sources.streams import streams_kept_in
from transformer_cli.data.streaming.resumable import first_pairs, is_streaming
from transformer_cli.data.text_file import (
    StoredText,
    read_validation_pairs,
    write_text,
    write_validation_pairs,
)
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.storage import make_folders, staged_folder
from transformer_cli.text import SequenceFormat, Tokenizer, train_tokenizer
from transformer_cli.text.added_entries import is_extension
from transformer_cli.text.tokenizer import Tokenizers, load_tokenizers, tokenizer_files

logger = logging.getLogger(__name__)

TRAIN, TEXT, VALIDATION, REPORT = "train.arrow", "text.arrow", "validation.jsonl", "report.json"
TOKENIZER_PAIRS = 1_000_000
"""Of a corpus that is streamed: the first pairs, from which the tokenizers are learned; only they are prepared."""
NUM_EXAMPLES = 10
"""The number of pairs of each split that the report shows."""


@dataclass(frozen=True, slots=True)
class PreparedData:
    """The data that training reads."""

    config: Config
    train: EncodedCorpus
    validation: list[SentencePair]
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    report: DataReport
    fingerprint: Mapping[str, str]

    @property
    def tokenizers(self) -> Tokenizers:
        """Of source and target."""
        return self.source_tokenizer, self.target_tokenizer

    def train_text(self) -> Iterator[SentencePair]:
        """The cleaned training pairs, read from the corpus again."""
        held_out = all_held_out_pairs(self.config)
        return _cleaned(self.config, held_out, ReadingReport(), CleaningReport())


def prepare_data(
    config: Config,
    folder: Path,
    *,
    accept_change: bool = False,
    has_begun: bool = True,
    is_finished: bool = False,
    tokenizers: Tokenizers | None = None,
) -> PreparedData:
    """Open the prepared data in a folder, or prepare it; the folder appears complete or not at all.

    Args:
        folder: runs/<name>/data.
        accept_change: if the corpus or the cleaning changed, prepare the data again, with the tokenizers of
            the run. They are not trained again, because the model was trained with their ids.
        has_begun: whether a model was trained on the data in the folder; if not, any change is accepted, and
            given tokenizers get the entries of `training.add_words` and of the tags.
        is_finished: whether the run is finished: no step will be trained, so changed data are not prepared.
        tokenizers: the tokenizers of the model, or those with which fine-tuning begins; used also if the folder
            was lost. None: they are in the folder, or are learned.

    Raises:
        ConfigError: a change is accepted for a run that is finished.
        DataError: the corpus cannot be used, or has changed since the run began.
        TryAgainError: a file of the corpus changed while it was read.
    """
    watched = fingerprints.WatchedFiles(config)
    sought = fingerprints.fingerprint(config)
    found = fingerprints.read_seal(folder)
    if found is not None:
        changed = fingerprints.changes(found, sought)
        is_extended = not has_begun and are_extended(config)
        if not changed and _are_those_of(folder, tokenizers, is_extended=is_extended):
            return _open(config, folder, sought)
        if has_begun:
            is_acceptable = accept_change and not fingerprints.needs_other_tokenizers(found, sought)
            if changed and not is_acceptable:
                raise fingerprints.refusal(folder, found, sought)
            if changed and is_finished:
                raise _nothing_to_train(folder, changed)
            tokenizers = tokenizers or _read_tokenizers(folder)
        for change in changed:
            logger.info("data changed: %s", change)
    make_folders(folder.parent)
    with staged_folder(folder) as partial:
        with watched.unchanged(sought), streams_kept_in(partial):
            _build(config, partial, tokenizers, has_begun=has_begun)
        fingerprints.seal(partial, sought)
    return _open(config, folder, sought)


def open_prepared(config: Config, folder: Path) -> PreparedData | None:
    """The data in a folder, if they are whole and were made from this config and these files; else None."""
    sought = fingerprints.fingerprint(config)
    found = fingerprints.read_seal(folder)
    if found is None or fingerprints.changes(found, sought):
        return None
    return _open(config, folder, sought)


def open_shared(config: Config, folder: Path, made_from: Mapping[str, str]) -> PreparedData:
    """The data that another process has just prepared in a folder, with their fingerprint."""
    return _open(config, folder, made_from)


def _nothing_to_train(folder: Path, changed: Sequence[str]) -> ConfigError:
    lines = "".join(f"\n    {line}" for line in changed)
    return ConfigError(
        f"{folder.parent}: this run is finished, so nothing is trained on the changed data:{lines}",
        hint="raise training.max_steps (--set training.max_steps=N) to go on with the changed data, "
        "or train a new run: another name, or --from-scratch",
    )


def write_report(folder: Path, report: DataReport) -> None:
    """Write the report to its file in a folder of prepared data."""
    (folder / REPORT).write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")


def _build(config: Config, folder: Path, tokenizers: Tokenizers | None, *, has_begun: bool) -> None:
    report = DataReport()
    held_out = all_held_out_pairs(config)
    report.num_pairs = {split: len(found.pairs) for split, found in held_out.items()}
    report.held_out = {split: found.table() for split, found in held_out.items()}
    text = folder / TEXT
    reading, cleaning = ReadingReport(), CleaningReport()
    report.examples = {split: found.pairs[:NUM_EXAMPLES] for split, found in held_out.items()}
    with closing(DigestSet(folder)) as seen:
        pairs = _cleaned(config, held_out, reading, cleaning, seen)
        first = list(islice(pairs, NUM_EXAMPLES))
        report.examples["train"] = first
        num_pairs = write_text(text, chain(first, pairs))
    check_dropped_share(cleaning, config.data.cleaning, reading)
    report.reading, report.cleaning = reading.table(), cleaning.table()
    if tokenizers is None:
        tokenizers = extended_tokenizers(config, text, _train_tokenizers(config, text))
    elif not has_begun:
        tokenizers = extended_tokenizers(config, text, tokenizers)
    require_tags(config, tokenizers)
    vocab_sizes = [tokenizer.vocab_size for tokenizer in tokenizers]
    report.source.vocab_size, report.target.vocab_size = vocab_sizes
    chunks = encoded_text(text, num_pairs, tokenizers, config, report)
    write_encoded(folder / TRAIN, chunks, vocab_size=max(vocab_sizes))
    text.unlink()
    check_lengths(config, report)
    report.num_pairs = {"train": report.source.train.num_sentences, **report.num_pairs}
    validation = held_out["validation"].pairs
    sequence_format = SequenceFormat.of(config.data)
    encoded = encode_pairs(rows_of(validation), *tokenizers, sequence_format)
    report.count(encoded, "validation")
    train = EncodedCorpus.open(folder / TRAIN, num_corpora=num_corpora(config))
    order = epoch_order(train.lengths, train.corpus_sizes, config)
    report.padding_share = padding_share(order)
    write_validation_pairs(folder / VALIDATION, validation)
    _write_tokenizers(folder, tokenizers)
    write_report(folder, report)


def _cleaned(
    config: Config,
    held_out: HeldOutSplits,
    reading: ReadingReport,
    cleaning: CleaningReport,
    seen: DigestSet | None = None,
) -> Iterator[SentencePair]:
    if is_streaming(config.data):
        num_pairs = config.data.tokenizer_pairs or TOKENIZER_PAIRS
        pairs = first_pairs(config.data, num_pairs, reading)
    else:
        pairs = read_pairs(config.data, "train", seed=config.seed, report=reading)
    digests = held_out_digests(config, held_out)
    return clean(pairs, config.cleaning, cleaning, held_out=digests, seen=seen)


def _train_tokenizers(config: Config, text: Path) -> Tokenizers:
    composes = config.data.cleaning.normalize_unicode
    tags = tuple(dict.fromkeys(SequenceFormat.of(config.data).tags))

    def train(*sides: str, tags: tuple[str, ...] = tags) -> Tokenizer:
        texts = StoredText(text, sides)
        return train_tokenizer(texts, config.tokenizer, composes=composes, tags=tags)

    if config.tokenizer.shared:
        shared = train("source", "target")
        return shared, shared
    return train("source"), train("target", tags=())


def check_lengths(config: Config, report: DataReport) -> None:
    """Raise DataError if too many of the training pairs were too long."""
    num_kept, limit = report.source.train.num_sentences, config.data.cleaning.max_dropped_share
    num_pairs = num_kept + report.num_too_long
    if not num_kept or report.num_too_long > limit * num_pairs:
        raise DataError(
            f"{report.num_too_long:,} of {num_pairs:,} training pairs have more than "
            f"{config.model.max_length} tokens (model.max_length), such as: {report.longest_example}",
            hint="raise model.max_length, or check that the corpus has one sentence per line",
        )


def _open(config: Config, folder: Path, made_from: Mapping[str, str]) -> PreparedData:
    source_tokenizer, target_tokenizer = _read_tokenizers(folder)
    return PreparedData(
        config=config,
        train=EncodedCorpus.open(folder / TRAIN, num_corpora=num_corpora(config)),
        validation=read_validation_pairs(folder / VALIDATION),
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        report=DataReport.from_json(json.loads((folder / REPORT).read_text(encoding="utf-8"))),
        fingerprint=made_from,
    )


def _write_tokenizers(folder: Path, tokenizers: Tokenizers) -> None:
    for name, text in tokenizer_files(tokenizers).items():
        (folder / name).write_text(text, encoding="utf-8")


def _read_tokenizers(folder: Path) -> Tokenizers:
    return load_tokenizers(
        lambda name: (folder / name).exists(),
        lambda name: Tokenizer.from_json((folder / name).read_text(encoding="utf-8")),
    )


def _are_those_of(folder: Path, tokenizers: Tokenizers | None, *, is_extended: bool) -> bool:
    if tokenizers is None:
        return True
    both = list(zip(tokenizers, _read_tokenizers(folder), strict=True))
    if is_extended:
        return all(is_extension(there, of=given) for given, there in both)
    return all(given.to_json() == there.to_json() for given, there in both)


def num_corpora(config: Config) -> int:
    """How many corpora the config has."""
    return len(config.data.corpora) if isinstance(config.data, FilesData | HubData) else 1
