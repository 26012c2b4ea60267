"""Prepared data that another run has made from the same corpus and settings, taken over instead of made again.

The files are hard links, or copies where the file system has no links. So each run folder has all its files, may be
copied or deleted alone, and equal data take their room on the disk once. No file of prepared data is ever changed.
"""

import json
import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path

from transformer_cli.config import Config
from transformer_cli.data import fingerprint as fingerprints
from transformer_cli.data.batches.encoded import EncodedCorpus
from transformer_cli.data.batches.order import epoch_order, padding_share
from transformer_cli.data.preparation import (
    REPORT,
    TRAIN,
    check_lengths,
    num_corpora,
    write_report,
)
from transformer_cli.data.report import DataReport
from transformer_cli.storage import make_folders, staged_folder

logger = logging.getLogger(__name__)


def take_over(config: Config, folder: Path, runs: Path) -> None:
    """If a folder holds no prepared data, and another run holds the data for this config, take those over.

    Whoever calls this calls `prepare_data` next, which opens the data or prepares them. Two runs that prepare equal
    data at the same time do not wait for each other.

    Args:
        folder: runs/<name>/data of a run that has not begun.
        runs: the folder of all runs.

    Raises:
        DataError: too many of the pairs are too long.
    """
    if fingerprints.read_seal(folder) is not None:
        return
    sought = fingerprints.fingerprint(config)
    for other in sorted(runs.glob("*/data")):
        made_from = fingerprints.read_claim(other)
        if made_from is None or fingerprints.changes(made_from, sought):
            continue
        make_folders(folder.parent)
        with suppress(_NotTakenOverError), staged_folder(folder) as partial:
            _fill(partial, other, config)
            fingerprints.seal(partial, sought)
        if folder.is_dir():
            logger.info(
                "%s: made from the same corpus, so its data are used for this run too", other
            )
            return


class _NotTakenOverError(Exception):
    """The data of another run cannot be used."""


def _fill(partial: Path, other: Path, config: Config) -> None:
    """Link the files of another run, check them, and make the report anew."""
    claimed = fingerprints.read_claim(other)
    try:
        _link_files(other, partial)
    except OSError as error:  # the other run is being deleted, for example
        raise _NotTakenOverError from error
    # Only now: between a check and a link, another process might replace the files.
    if claimed is None or fingerprints.read_seal(partial) != claimed:
        raise _NotTakenOverError
    report = DataReport.from_json(json.loads((partial / REPORT).read_text(encoding="utf-8")))
    if report.dropped_share() > config.data.cleaning.max_dropped_share:
        raise _NotTakenOverError  # the preparation says what was dropped
    check_lengths(config, report)
    train = EncodedCorpus.open(partial / TRAIN, num_corpora=num_corpora(config))
    report.padding_share = padding_share(epoch_order(train.lengths, train.corpus_sizes, config))
    # Both are links: writing to them would change the other run.
    for name in (REPORT, fingerprints.FILE_NAME):
        (partial / name).unlink()
    write_report(partial, report)


def _link_files(other: Path, partial: Path) -> None:
    for name in fingerprints.sealed_files(other):
        file, new = other / name, partial / name
        if file.is_symlink():
            raise OSError(f"{file} is a symbolic link")
        try:
            os.link(file, new)
        except OSError:
            shutil.copyfile(file, new)
