"""From a config to the data that training reads: ids, tokenizers, validation pairs and a report; their fingerprint; data of another run taken over; entries added to tokenizers."""

import hashlib
import json
import logging
import math
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeGuard

import numpy as np

from transformer_cli.config import Config, DataConfig, FilesData, HubData, SequencesData, SplitName
from transformer_cli.config.section import flat_settings
from transformer_cli.data.encoded import (
    DataReport,
    EncodedCorpus,
    encode_pairs,
    encoded_text,
    seen_words_in,
    write_encoded,
)
from transformer_cli.data.order import epoch_order, padding_share
from transformer_cli.data.pairs import (
    PAIRS_AT_ONCE,
    CleaningReport,
    ReadingReport,
    ReversedText,
    SentencePair,
    SideTexts,
    TrainingText,
    pair_digest,
    read_validation_pairs,
    rows_of_pairs,
    write_validation_pairs,
)
from transformer_cli.data.selection import (
    DigestSet,
    all_held_out_pairs,
    check_dropped_share,
    clean,
    compared,
    held_out_digests,
    pairs_to_validate,
    rules_of_given_splits,
)
from transformer_cli.data.sources import corpus
from transformer_cli.data.sources.corpus import (
    HeldOutSplits,
    KeptPairs,
    first_of_each_corpus,
    is_streaming,
    read_pairs,
    training_corpora,
)
from transformer_cli.data.sources.hub import COMMIT_OF, streams_kept_in
from transformer_cli.data.sources.lines import file_digest
from transformer_cli.data.sources.watching import recorded_warnings, warn_of_corpus
from transformer_cli.process.errors import ConfigError, DataError, MissingInputError, TryAgainError
from transformer_cli.storage import checksum, make_folders, staged_folder
from transformer_cli.text import SequenceFormat, Tokenizer, train_tokenizer
from transformer_cli.text.added_entries import is_extension, with_added_entries, with_tags
from transformer_cli.text.seen_words import SeenWords, read_seen_words, write_seen_words
from transformer_cli.text.sentences import FEWEST_TOKENS, SeenLengths
from transformer_cli.text.tokenizer import Tokenizers, read_tokenizers, tokenizer_files, tokenizer_names

logger = logging.getLogger(__name__)

TRAIN, TEXT, VALIDATION, REPORT = "train.arrow", "text.arrow", "validation.jsonl", "report.json"
SEEN_WORDS = "seen_words.json"
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
    seen_words: SeenWords | None = None
    """The words of the training text; None for a task, for a stream of which a part was read, and for data of an earlier version."""

    @property
    def tokenizers(self) -> Tokenizers:
        """Of source and target."""
        return self.source_tokenizer, self.target_tokenizer

    def train_text(self) -> Iterator[SentencePair]:
        """The cleaned training pairs, read from the corpus again."""
        held_out = all_held_out_pairs(self.config)
        return _training_pairs(self.config, held_out, ReadingReport(), CleaningReport())


def prepare_data(
    config: Config,
    folder: Path,
    *,
    accept_change: bool = False,
    has_begun: bool = True,
    is_finished: bool = False,
    tokenizers: Tokenizers | None = None,
    trained_on: Mapping[str, str] | None = None,
    digest_of_training: str = "",
    runs: Path | None = None,
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
        trained_on: the fingerprint of the data of the training, as the run has recorded it elsewhere; it counts if the folder
            was lost or damaged. None: not known.
        digest_of_training: `fingerprint_digest` of the data of the training, which counts where nothing else is known; empty: not known.
        runs: the folder of all runs, of which one may hold the data for this config already; None: none of them is asked.

    Raises:
        ConfigError: a change is accepted for a run that is finished.
        DataError: the corpus cannot be used, or has changed since the run began.
        TryAgainError: a file of the corpus changed while it was read.
    """
    has_files = isinstance(config.data, FilesData | HubData)
    watched = WatchedFiles(config) if has_files else None
    sought = fingerprint(config)
    found = read_seal(folder) if os.path.exists(folder) else None
    if found is None and runs is not None:
        found = _taken_over(config, folder, runs, sought)
    before = trained_on if found is None and has_begun else found
    if before is not None:
        changed = changes(before, sought)
        is_extended = not has_begun and are_extended(config)
        is_there = found is not None and not changed
        if is_there and _are_those_of(folder, tokenizers, is_extended=is_extended):
            return _opened_again(config, folder, sought)
        if has_begun:
            is_acceptable = accept_change and not needs_other_tokenizers(before, sought)
            if changed and not is_acceptable:
                raise changed_data_error(folder, before, sought)
            if changed and is_finished:
                raise _nothing_to_train(folder, changed)
            if found is not None:
                tokenizers = tokenizers or _tokenizers_in(folder)
        for change in changed:
            logger.info("data changed: %s", change)
    elif has_begun and not accept_change and digest_of_training not in ("", fingerprint_digest(sought)):
        # No refusal: an earlier version may have described the same data in other words.
        logger.warning(
            "the data may differ from those on which this run was trained: %s and environment.json are lost, and the checkpoint "
            "has another digest, as of a changed corpus or of an earlier version of tfm",
            folder,
        )
    make_folders(folder.parent)
    with staged_folder(folder) as partial:
        watching = nullcontext() if watched is None else watched.unchanged(sought)
        keeping = streams_kept_in(partial) if isinstance(config.data, HubData) else nullcontext()
        # What is generated, or comes with the package, has nothing odd.
        recording: AbstractContextManager[Iterable[str]] = recorded_warnings() if has_files else nullcontext(())
        with watching, keeping, recording as found_odd:
            _build(config, partial, tokenizers, found_odd, has_begun=has_begun)
        seal(partial, sought)
    return open_unchecked(config, folder, sought)


def open_prepared(config: Config, folder: Path) -> PreparedData | None:
    """The data in a folder, if they are whole and were made from this config and these files; else None."""
    sought = fingerprint(config)
    found = read_seal(folder)
    if found is None or changes(found, sought):
        return None
    return _opened_again(config, folder, sought)


def _opened_again(config: Config, folder: Path, made_from: Mapping[str, str]) -> PreparedData:
    """The data in a folder; what was odd about the corpus when they were prepared is told again."""
    found = open_unchecked(config, folder, made_from)
    for warning in found.report.warnings:
        warn_of_corpus(warning)
    return found


def _nothing_to_train(folder: Path, changed: Sequence[str]) -> ConfigError:
    lines = "".join(f"\n    {line}" for line in changed)
    return ConfigError(
        f"{folder.parent}: this run is finished, so nothing is trained on the changed data:{lines}",
        hint="to go on with the changed data, give both: --accept-data-change --set training.max_steps=N, with more steps than before; "
        "or train a new run: another name, or --from-scratch",
    )


def write_report(folder: Path, report: DataReport) -> None:
    """Write the report to its file in a folder of prepared data."""
    (folder / REPORT).write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")


def _build(
    config: Config, folder: Path, tokenizers: Tokenizers | None, found_odd: Iterable[str], *, has_begun: bool
) -> None:
    """Read, clean and encode the corpus; write all files of a folder of prepared data.

    Args:
        config: of the run.
        folder: an empty one.
        tokenizers: those of the run or of the model that is trained further; None: they are trained with this corpus.
        found_odd: what looks odd in the corpus: a list that fills while the pairs are read, so it is looked at last.
        has_begun: whether the run has a checkpoint; then its vocabularies must not grow.
    """
    report = DataReport()
    is_read = isinstance(config.data, FilesData | HubData) and not config.data.streaming
    kept = KeptPairs() if is_read else None
    held_out = all_held_out_pairs(config, kept)
    report.num_pairs = {split: len(found.pairs) for split, found in held_out.items()}
    report.held_out = {split: found.table() for split, found in held_out.items()}
    reading, cleaning = ReadingReport(), CleaningReport()
    report.examples = {split: found.pairs[:NUM_EXAMPLES] for split, found in held_out.items()}
    with closing(DigestSet(folder)) as seen:
        pairs = _training_pairs(config, held_out, reading, cleaning, seen, kept)
        first = list(islice(pairs, NUM_EXAMPLES))
        report.examples["train"] = first
        text = TrainingText.of(chain(first, pairs), folder / TEXT)
    check_dropped_share(cleaning, config.applied_cleaning, reading)
    report.reading, report.cleaning = reading.table(), cleaning.table()
    may_grow = tokenizers is None or not has_begun
    tokenizers = tokenizers or _train_tokenizers(config, text)
    if are_extended(config):
        if may_grow:
            tokenizers = extended_tokenizers(config, text, tokenizers)
        require_tags(_tags(config), tokenizers)
    vocab_sizes = [tokenizer.vocab_size for tokenizer in tokenizers]
    report.source.vocab_size, report.target.vocab_size = vocab_sizes
    chunks = encoded_text(text, text.num_pairs, tokenizers, config, report)
    if has_reversed_pairs(config.data):
        turned = ReversedText(text, len(config.data.corpora))
        chunks = chain(chunks, encoded_text(turned, text.num_pairs, tokenizers, config, DataReport()))
    has_links = config.training.guided_alignment is not None
    write_encoded(folder / TRAIN, chunks, vocab_size=max(vocab_sizes), has_links=has_links)
    # The sequences of a task are no text.
    if not isinstance(config.data, SequencesData) and _is_all_read(config.data, reading):
        write_seen_words(folder / SEEN_WORDS, seen_words_in(text, config.data))
    (folder / TEXT).unlink(missing_ok=True)
    check_lengths(config, report)
    report.num_pairs = {"train": report.source.train.num_sentences, **report.num_pairs}
    validation = held_out["validation"].pairs
    sequence_format = SequenceFormat.of(config.data)
    encoded = encode_pairs(rows_of_pairs(validation), *tokenizers, sequence_format)
    report.count(encoded, "validation")
    train = EncodedCorpus.open(folder / TRAIN, num_corpora=num_corpora(config))
    order = epoch_order(train.lengths, train.corpus_sizes, config)
    report.padding_share = padding_share(order)
    report.warnings = list(found_odd)
    write_validation_pairs(folder / VALIDATION, validation)
    for name, content in tokenizer_files(tokenizers).items():
        (folder / name).write_bytes(content)
    write_report(folder, report)


def _training_pairs(
    config: Config,
    held_out: HeldOutSplits,
    reading: ReadingReport,
    cleaning: CleaningReport,
    seen: DigestSet | None = None,
    kept: KeptPairs | None = None,
) -> Iterator[SentencePair]:
    if is_streaming(config.data):
        pairs = first_of_each_corpus(config.data, _num_first_pairs(config.data), reading)
    else:
        pairs = read_pairs(config.data, "train", seed=config.seed, report=reading, kept=kept)
    digests = held_out_digests(config, held_out)
    return clean(pairs, config.applied_cleaning, cleaning, held_out=digests, seen=seen)


def _num_first_pairs(data: FilesData | HubData) -> int:
    """How many pairs of each corpus that is streamed are prepared."""
    num_pairs = data.tokenizer_pairs or TOKENIZER_PAIRS
    return -(-num_pairs // len(training_corpora(data)))


def _is_all_read(data: DataConfig, reading: ReadingReport) -> bool:
    """Whether `_training_pairs` has read all that the model will be trained on, and not only the first pairs of a stream."""
    return not is_streaming(data) or reading.num_read < _num_first_pairs(data)


def seen_words_of_corpus(config: Config) -> SeenWords | None:
    """The words of the training text, read from the corpus again.

    None for a task, which has no text, and for a corpus that is streamed, unless its first pairs are all that it has.

    Raises:
        TfmError: the corpus cannot be read.
    """
    if isinstance(config.data, SequencesData):
        return None
    held_out = all_held_out_pairs(config)
    reading = ReadingReport()
    pairs = _training_pairs(config, held_out, reading, CleaningReport())
    batches = iter(lambda: list(islice(pairs, PAIRS_AT_ONCE)), [])
    words = seen_words_in(map(rows_of_pairs, batches), config.data)
    return words if _is_all_read(config.data, reading) else None


_MOST_LOOKED_AT = 2_000_000


def num_trained_on(config: Config, pairs: Sequence[SentencePair]) -> int:
    """How many of some pairs are training pairs of a config, whose corpus is read again; 0 for one of the hub or of a task.

    No more is read than the first `_MOST_LOOKED_AT` pairs, or what shows that it is the larger part of them.

    Raises:
        TfmError: the corpus cannot be read.
    """
    if isinstance(config.data, SequencesData | HubData):
        return 0
    rules, sought = config.applied_cleaning, Counter[bytes]()
    for altered in clean(pairs, rules_of_given_splits(rules), CleaningReport()):
        sought[pair_digest(compared(altered, rules))] += 1
    num_found, most = 0, len(pairs) // 2
    held_out = all_held_out_pairs(config)
    for pair in islice(_training_pairs(config, held_out, ReadingReport(), CleaningReport()), _MOST_LOOKED_AT):
        num_found += sought.pop(pair_digest(compared(pair, rules)), 0)
        if num_found > most:
            break
    return num_found


def _train_tokenizers(config: Config, text: TrainingText) -> Tokenizers:
    composes = config.applied_cleaning.normalize_unicode
    tags = tuple(dict.fromkeys(SequenceFormat.of(config.data).tags))
    trained = []
    for sides in [("source", "target")] if config.tokenizer.shared else [("source",), ("target",)]:
        texts, own_tags = SideTexts(text, sides), tags if "source" in sides else ()
        trained.append(train_tokenizer(texts, config.tokenizer, composes=composes, tags=own_tags))
    return trained[0], trained[-1]


def check_lengths(config: Config, report: DataReport) -> None:
    """Raise DataError if too many of the training pairs were too long."""
    num_kept, limit = report.source.train.num_sentences, config.applied_cleaning.max_dropped_share
    num_pairs = num_kept + report.num_too_long
    if not num_kept or report.num_too_long > limit * num_pairs:
        raise DataError(
            f"{report.num_too_long:,} of {num_pairs:,} training pairs have more than "
            f"{config.model.max_length} tokens (model.max_length), such as: {report.longest_example}",
            hint="raise model.max_length, or check that the corpus has one sentence per line",
        )


def open_unchecked(config: Config, folder: Path, made_from: Mapping[str, str]) -> PreparedData:
    """The data in a folder, which this process or another one has just prepared or checked.

    Args:
        made_from: their fingerprint.
    """
    source_tokenizer, target_tokenizer = _tokenizers_in(folder)
    is_task = isinstance(config.data, SequencesData)  # whose sequences are no text
    return PreparedData(
        config=config,
        train=EncodedCorpus.open(folder / TRAIN, num_corpora=num_corpora(config)),
        validation=read_validation_pairs(folder / VALIDATION),
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        report=DataReport.from_json(json.loads((folder / REPORT).read_text(encoding="utf-8"))),
        fingerprint=made_from,
        seen_words=None if is_task else read_seen_words(folder / SEEN_WORDS),
    )


def _tokenizers_in(folder: Path) -> Tokenizers:
    names = tokenizer_names({file.name for file in folder.iterdir()})
    return read_tokenizers({name: (folder / name).read_bytes() for name in names}, folder)


def _are_those_of(folder: Path, tokenizers: Tokenizers | None, *, is_extended: bool) -> bool:
    if tokenizers is None:
        return True
    both = list(zip(tokenizers, _tokenizers_in(folder), strict=True))
    if is_extended:
        return all(is_extension(there, of=given) for given, there in both)
    return all(given.to_file() == there.to_file() for given, there in both)


def num_corpora(config: Config, *, with_reversed: bool = True) -> int:
    """How many corpora the encoded pairs have: those of the config, then as many of reversed pairs with `data.reversed_epochs`."""
    if not isinstance(config.data, FilesData | HubData):
        return 1
    return len(config.data.corpora) * (2 if with_reversed and has_reversed_pairs(config.data) else 1)


def has_reversed_pairs(data: DataConfig) -> TypeGuard[FilesData | HubData]:
    """Whether the first epochs read each training pair the other way round, too."""
    return isinstance(data, FilesData | HubData) and data.reversed_epochs is not None


def validation_pairs(config: Config, data: PreparedData) -> list[SentencePair]:
    """The validation pairs that a run uses; if these are not all, the log says so."""
    pairs = pairs_to_validate(config, data.validation)
    if config.validation.max_sentences is None and len(pairs) < len(data.validation):
        logger.info(
            "validating on %s of the %s validation pairs; --set validation.max_sentences=... sets another "
            "number, and tfm validate scores all",
            f"{len(pairs):,}",
            f"{len(data.validation):,}",
        )
    return pairs


# The lengths of the training pairs, which a checkpoint records: a translation of longer texts loses some of them.


MOST_PAIRS = 1_000_000
"""Of a larger corpus, so many pairs are measured, evenly spread."""
_RARE = 0.01
_MOST_COUNTED = 10_000  # pairs: the entropy of frequencies needs no more


def lengths_seen_in(train: EncodedCorpus) -> SeenLengths:
    """The quantiles of the lengths of a corpus."""
    if not len(train):
        return SeenLengths()
    step = -(-len(train) // MOST_PAIRS)
    sources, targets = train.lengths(np.arange(0, len(train), step))
    is_long = sources >= FEWEST_TOKENS
    ratio = None
    if is_long.any():
        ratios = targets[is_long] / sources[is_long]
        ratio = round(float(np.quantile(ratios, _RARE, method="lower")), 4)
    # The length of a real sentence, not a value between two.
    return SeenLengths(int(np.quantile(sources, 1 - _RARE, method="higher")), ratio)


def frequency_loss(train: EncodedCorpus) -> float:
    """The loss of a model that knows only how often each target token occurs: the entropy of the frequencies, in nats per token."""
    if not len(train):
        return math.inf
    indices = np.linspace(0, len(train) - 1, min(len(train), _MOST_COUNTED)).astype(np.int64)
    _, (ids, is_real) = train.padded(indices, Tokenizer.pad_id)
    counts = np.bincount(ids[is_real])
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


# Prepared data taken over from another run, which has made them from the same corpus and settings.
#
# The files are hard links, or copies where the file system has no links. So each run folder has all its files, may be
# copied or deleted alone, and equal data take their room on the disk once. No file of prepared data is ever changed.


def _taken_over(config: Config, folder: Path, runs: Path, sought: dict[str, str]) -> dict[str, str] | None:
    """The fingerprint of a folder that now holds the data of another run; None if no run holds the data for this config.

    Two runs that prepare equal data at the same time do not wait for each other.

    Args:
        folder: runs/<name>/data of a run that has not begun; it holds no prepared data.
        sought: the fingerprint of the config.

    Raises:
        DataError: too many of the pairs are too long.
    """
    for other in sorted(runs.glob("*/data")):
        made_from = read_claim(other)
        if made_from is None or changes(made_from, sought):
            continue
        make_folders(folder.parent)
        try:
            with staged_folder(folder) as partial:
                _fill(partial, other, config)
                seal(partial, sought)
        except _NotTakenOverError:
            continue
        logger.info("%s: made from the same corpus, so its data are used for this run too", other)
        return sought
    return None


class _NotTakenOverError(Exception):
    """The data of another run cannot be used."""


def _fill(partial: Path, other: Path, config: Config) -> None:
    """Link the files of another run, check them, and make the report anew."""
    claimed = read_claim(other)
    try:
        _link_files(other, partial)
    except OSError as error:  # the other run is being deleted, for example
        raise _NotTakenOverError from error
    # Only now: between a check and a link, another process might replace the files.
    if claimed is None or read_seal(partial) != claimed:
        raise _NotTakenOverError
    report = DataReport.from_json(json.loads((partial / REPORT).read_text(encoding="utf-8")))
    if report.dropped_share() > config.applied_cleaning.max_dropped_share:
        raise _NotTakenOverError  # the preparation says what was dropped
    check_lengths(config, report)
    train = EncodedCorpus.open(partial / TRAIN, num_corpora=num_corpora(config))
    report.padding_share = padding_share(epoch_order(train.lengths, train.corpus_sizes, config))
    # Both are links: writing to them would change the other run.
    for name in (REPORT, FILE_NAME):
        (partial / name).unlink()
    write_report(partial, report)


def _link_files(other: Path, partial: Path) -> None:
    for name in (*_sealed(other)[1], FILE_NAME):
        file, new = other / Path(name).name, partial / Path(name).name  # without any path in it
        if file.is_symlink():
            raise OSError(f"{file} is a symbolic link")
        try:
            os.link(file, new)
        except OSError:
            shutil.copyfile(file, new)


# Added entries of tokenizers: words that they do not know, and tags of corpora.


def are_extended(config: Config) -> bool:
    """Whether `extended_tokenizers` may add an entry."""
    return config.training.add_words is not None or any(SequenceFormat.of(config.data).corpus_tags)


def extended_tokenizers(config: Config, text: TrainingText, tokenizers: Tokenizers) -> Tokenizers:
    """The tokenizers with the words of `training.add_words` and the tags of `data.corpora`.

    Args:
        text: the cleaned training pairs.
        tokenizers: of source and target; their entries keep their ids.
    """
    source, target = tokenizers
    if (num_added := config.training.add_words) is not None:
        source, target = _with_words(config, text, tokenizers, num_added)
    tagged = with_tags(source, _tags(config))
    if source is target:
        return tagged, tagged
    return tagged, with_tags(target, _tags(config)) if config.tokenizer.shared else target


def require_tags(tags: Sequence[str], tokenizers: Tokenizers) -> None:
    """Check that the source vocabulary has an entry for each tag.

    Raises:
        DataError: an entry is missing; the model of a run that has begun has no row for a further entry.
    """
    if missing := [tag for tag in tags if tag not in tokenizers[0].entries]:
        raise DataError(
            f"data.corpora: the vocabulary of this run has no entry for the tag {missing[0]}",
            hint="start a new run with training.init_from: its vocabulary gets the tag",
        )


def _tags(config: Config) -> list[str]:
    return list(dict.fromkeys(tag for tag in SequenceFormat.of(config.data).corpus_tags if tag))


def _with_words(config: Config, text: TrainingText, tokenizers: Tokenizers, num_added: int) -> Tokenizers:
    def extended(tokenizer: Tokenizer, *sides: str) -> Tokenizer:
        texts, min_frequency = SideTexts(text, sides), config.tokenizer.min_frequency
        return with_added_entries(tokenizer, texts, num_added, min_frequency=min_frequency)

    source, target = tokenizers
    if config.tokenizer.shared:
        shared = extended(source, "source", "target")
        more = shared, shared
    else:
        more = extended(source, "source"), extended(target, "target")
    if [one.vocab_size for one in more] == [source.vocab_size, target.vocab_size]:
        logger.warning(
            "training.add_words=%d adds nothing: the tokenizers know all words of the training split", num_added
        )
    return more


# The fingerprint of a corpus, and the seal of prepared data.


FILE_NAME = "fingerprint.json"
VERSION = "1"  # of the preparation; raised if the same config would give other ids
# These settings say where the corpus lies, or how the pairs are used later; they do not change the ids.
_WITHOUT_EFFECT = {"root", "weight", "temperature", "max_dropped_share"}
# Settings that came later, each with the value at which the ids are the same as before.
_ABSENT_AT = {
    "data.both_directions": "false",
    "data.reversed_epochs": "null",
    "data.cleaning.join_white_space": "false",
    "data.cleaning.normalize_invisible": "null",
    "data.streaming": "false",
    "data.target_tag": "false",
}
_AGAIN = "run the command again when no program writes to the corpus"


def fingerprint(config: Config, *, split: SplitName | None = None) -> dict[str, str]:
    """Map each setting or file that decides the ids to its value, or to the SHA-256 of its content.

    Args:
        split: only the files that have pairs of this split; None: all files.
    """
    flat = flat_settings(
        {
            "data": config.data.model_dump(mode="json"),
            "tokenizer": config.tokenizer.model_dump(mode="json"),
            "model": {"max_length": config.model.max_length},
        }
    )
    settings = {
        name: json.dumps(value)
        for name, value in flat.items()
        if _WITHOUT_EFFECT.isdisjoint(name.split(".")) and json.dumps(value) != _ABSENT_AT.get(name)
    }
    training = config.training
    initial = {"training.init_from": training.init_from, "training.add_words": training.add_words}
    settings |= {name: json.dumps(value) for name, value in initial.items() if value is not None}
    sources = corpus.source_digests(config.data, seed=config.seed, split=split)
    return {"version": VERSION} | settings | sources


def fingerprint_digest(made_from: Mapping[str, str]) -> str:
    """The SHA-256 of a fingerprint, which a checkpoint holds."""
    return hashlib.sha256(json.dumps(dict(made_from), sort_keys=True).encode()).hexdigest()


class WatchedFiles:
    """Notices files of a corpus that change while data is prepared: each split opens them again.

    Make it before the fingerprint is computed. Sizes and times of all files are compared; the content only
    of those that differ in them, because copying a file anew may change nothing.
    """

    def __init__(self, config: Config) -> None:
        self._data = config.data
        self._stamps = self._current_stamps()

    @contextmanager
    def unchanged(self, made_from: Mapping[str, str]) -> Iterator[None]:
        """At the end of the block, also by an error about the data, compare the files.

        Args:
            made_from: the fingerprint of the files.

        Raises:
            TryAgainError: a file has changed, was removed or added.
        """
        try:
            yield
        except (DataError, MissingInputError):
            self._compare(made_from)
            raise
        self._compare(made_from)

    def _compare(self, made_from: Mapping[str, str]) -> None:
        try:
            now = self._current_stamps()
        except (DataError, MissingInputError) as error:
            raise TryAgainError(f"the corpus changed while it was read: {error.message}", hint=_AGAIN) from error
        for name in {**self._stamps, **now}:
            before, (path, stamp) = self._stamps.get(name), now.get(name, (Path(name), None))
            is_same = before is not None and before[1] == stamp is not None
            if not is_same and (stamp is None or file_digest(path) != made_from.get(name)):
                what = "was removed" if stamp is None else "changed"
                raise TryAgainError(f"{path}: {what} while the corpus was read", hint=_AGAIN)

    def _current_stamps(self) -> dict[str, tuple[Path, tuple[int, ...] | None]]:
        files = corpus.local_files(self._data)
        return {name: (path, _stamp(path)) for name, path in files.items()}


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """One line for each setting or file that differs, with both values; null and an absent setting are equal.

    A commit on the hub that was not known, before or now, is no difference.
    """
    unknown = {name for name in before.keys() ^ now.keys() if name.startswith(COMMIT_OF)}
    values = ((name, before.get(name, "null"), now.get(name, "null")) for name in {*before, *now} - unknown)
    return [f"{name}: was {_short(old)}, now {_short(new)}" for name, old, new in sorted(values) if old != new]


def seal(folder: Path, made_from: Mapping[str, str]) -> None:
    """Write the fingerprint of a folder, and the checksums of its files."""
    files = {file.name: checksum(file) for file in sorted(folder.iterdir())}
    content = {"made_from": dict(made_from), "files": files}
    (folder / FILE_NAME).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_seal(folder: Path) -> dict[str, str] | None:
    """The fingerprint of a folder; None if a file is missing or damaged."""
    made_from, files = _sealed(folder)
    try:
        is_whole = all((folder / name).is_file() and checksum(folder / name) == files[name] for name in files)
    except (OSError, ValueError):
        return None
    return made_from if is_whole else None


def read_claim(folder: Path) -> dict[str, str] | None:
    """As `read_seal`, but the files of the folder are not read, so that they may be missing or damaged."""
    return _sealed(folder)[0]


def _sealed(folder: Path) -> tuple[dict[str, str] | None, dict[str, str]]:
    """What `seal` has written: the fingerprint, and the checksums of the files; None and nothing if it is missing or damaged."""
    try:
        content = json.loads((folder / FILE_NAME).read_bytes())
        made_from, files = content["made_from"], content["files"]
        is_text = all(isinstance(value, str) for value in (*made_from.values(), *files.values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, {}
    return (made_from, files) if is_text else (None, {})


def needs_other_tokenizers(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a setting of the tokenizers changed, so that they would have to be trained again."""
    return any(change.startswith("tokenizer.") for change in changes(before, now))


def changed_data_error(folder: Path, before: Mapping[str, str], now: Mapping[str, str]) -> DataError:
    """The error for data that differs from the data on which a run was trained."""
    lines = "".join(f"\n    {line}" for line in changes(before, now))
    hint = "undo the change; or continue with the changed data: --accept-data-change"
    if _has_other_built_in_pairs(before, now):
        hint = (
            "an earlier version of tfm generated the built-in pairs of this run from its seed; this version has other "
            "pairs, the same for every seed. Continue the run with that version, or with the pairs of this one: "
            "--accept-data-change"
        )
    if any(line.strip().startswith(COMMIT_OF) for line in lines.splitlines()):
        hint += "; to stay with the earlier commit, also give it as data.corpora.N.revision"
    if needs_other_tokenizers(before, now):
        hint = "undo the change; or start again, with another name or with --from-scratch"
    return DataError(f"{folder}: the data differs from the data on which this run was trained:{lines}", hint=hint)


def _has_other_built_in_pairs(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether as many pairs of the built-in corpus are other ones."""
    names = ("phrasebook", "data.num_pairs")
    return all(name in before.keys() & now.keys() for name in names) and [
        before[name] == now[name] for name in names
    ] == [False, True]


def _short(value: str) -> str:
    if value == "null":
        return "not there"
    return f"{value[:12]}..." if len(value) == 64 else value
