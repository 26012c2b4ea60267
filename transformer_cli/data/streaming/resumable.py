"""Training pairs that are read while the model trains, and the place up to which they were read."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, TypeGuard

from transformer_cli.config import DataConfig, FilesData, HubData
from transformer_cli.data.corpus_part import WHOLE, CorpusPart
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources.corpus import direction_numbers, in_directions
from transformer_cli.data.sources.hub import read_hub
from transformer_cli.data.sources.local_files import find_files, is_streamed, read_file, read_files


class Place(NamedTuple):
    """Where reading a corpus goes on."""

    file: int = 0
    """The number of the file, in the order of reading; a data set of the hub counts as one file."""
    row: int = 0
    """Rows of this file, or of the part of it that is read, that were read already."""


class StreamedCorpora:
    """A part of the training corpora, each read once from its place to its end.

    Args:
        data: a data section with `streaming`.
        places: one for each training corpus, within the part.
        part: which of the `data.stream_parts` parts is read.
    """

    def __init__(
        self, data: FilesData | HubData, places: list[Place], part: CorpusPart = WHOLE
    ) -> None:
        self._data = data
        self._part = part
        self._corpora = training_corpora(data)
        self.places = list(places)
        both = zip(self._corpora, places, strict=True)
        self._rows = [self._rows_from(index, place) for index, place in both]

    def take(self, num_pairs: int) -> list[SentencePair]:
        """The next pairs: of each corpus an equal part of this number, or the pairs that it still has.

        With `data.both_directions` each of them is followed by its reverse, which the number does not count.
        """
        share = -(-num_pairs // len(self._corpora))
        taken: list[SentencePair] = []
        for number, index in enumerate(self._corpora):
            directions = direction_numbers(self._data, index)
            for row, place in islice(self._rows[number], share):
                taken += in_directions(row, index, directions)
                self.places[number] = place
        return taken

    def _rows_from(self, index: int, start: Place) -> Iterator[tuple[tuple[str, str], Place]]:
        data, part = self._data, self._part
        if isinstance(data, HubData):
            yield from _placed(
                lambda report, first: read_hub(data, index, report, first=first, part=part), start
            )
            return
        all_files = find_files(data, index)
        own_files = part.files(all_files, [files.num_bytes for files in all_files])
        part_of_file = part if own_files is None else WHOLE
        for number, files in enumerate(all_files if own_files is None else own_files):
            if number >= start.file:
                yield from _placed(
                    lambda report, first, files=files: read_file(  # type: ignore[misc]
                        files, data, index, report, first=first, part=part_of_file
                    ),
                    start if number == start.file else Place(number),
                )


def _placed(
    read: Callable[[ReadingReport, int], Iterator[tuple[str, str]]], start: Place
) -> Iterator[tuple[tuple[str, str], Place]]:
    """Each row with the place after it; rows that reading skips are counted too."""
    report = ReadingReport()
    for row in read(report, start.row):
        yield row, Place(start.file, start.row + report.num_rows)


def first_pairs(
    data: FilesData | HubData, num_pairs: int, report: ReadingReport
) -> Iterator[SentencePair]:
    """At most so many training pairs: an equal part of each corpus, one corpus after the other.

    With `data.both_directions` each of them is followed by its reverse, which the number does not count.
    """
    corpora = training_corpora(data)
    for index in corpora:
        if isinstance(data, HubData):
            rows = read_hub(data, index, report)
        else:
            rows = read_files(data, index, report)
        directions = direction_numbers(data, index)
        for row in islice(rows, -(-num_pairs // len(corpora))):
            report.num_read += 1
            yield from in_directions(row, index, directions)


def is_streaming(data: DataConfig) -> TypeGuard[FilesData | HubData]:
    """Whether the training pairs are read while the model trains."""
    return isinstance(data, FilesData | HubData) and data.streaming


def training_corpora(data: FilesData | HubData) -> list[int]:
    """The indices of the corpora that are streamed."""
    return [index for index in range(len(data.corpora)) if is_streamed(data, index)]
