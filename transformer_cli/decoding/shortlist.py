"""A lexical shortlist: the target tokens among which the output layer chooses for a sentence, instead of the whole vocabulary.

They are the most frequent tokens and the most probable translations of each source token. `tfm shortlist` learns the table from
the training pairs and writes it into the run folder; `decoding.shortlist` uses it.
"""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.checkpoint.run_folder import SHORTLIST_FILE, RunFolder
from transformer_cli.config.decoding import ShortlistConfig
from transformer_cli.decoding.engine import SpecialIds, TokenIds
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.text import Tokenizer

MOST_BEST = 250
"""How many translations of each source token the file holds; `decoding.shortlist.best` may use fewer."""
_ARRAYS = ("starts", "translations", "by_frequency", "vocabularies")


class Restriction(NamedTuple):
    """The tokens among which a batch may choose."""

    ids: NDArray[np.int64]
    """(C,) sorted: of all sentences of the batch together."""
    is_allowed: NDArray[np.bool_]
    """(B, C): which of them each sentence may use, so that a translation does not depend on the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The candidates of any source."""

    starts: NDArray[np.int64]
    """(source vocabulary + 1,), as in `Lexicon`."""
    translations: NDArray[np.int64]
    always: NDArray[np.int64]
    """Sorted ids: the special tokens and the most frequent tokens."""
    num_targets: int
    """The size of the target vocabulary."""
    best: int
    """How many translations of each source token are used."""
    copies: bool
    """Whether source tokens are candidates themselves: both sides have one vocabulary."""
    name: str
    """For signatures of scores: how it was made, and which file it is."""

    def of(self, source: TokenIds) -> NDArray[np.int64]:
        """The sorted ids of the tokens that the translation of a source may consist of."""
        return self.restriction([source]).ids

    def restriction(self, sources: Sequence[TokenIds]) -> Restriction:
        """The tokens among which each source of a batch may choose."""
        tokens = np.array([token for source in sources for token in source], np.int64)
        rows = np.repeat(np.arange(len(sources)), [len(source) for source in sources])
        firsts = self.starts[tokens]
        counts = np.minimum(self.starts[tokens + 1] - firsts, self.best)
        # For each token, the places of its translations, one after the other.
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        translations = self.translations[np.repeat(firsts, counts) + within]
        is_allowed = np.zeros((len(sources), self.num_targets), bool)
        is_allowed[:, self.always] = True
        is_allowed[np.repeat(rows, counts), translations] = True
        if self.copies:
            is_allowed[rows, tokens] = True
        ids = np.flatnonzero(is_allowed.any(0))
        return Restriction(ids, is_allowed[:, ids])

    def vocabulary_map(self, source_names: Sequence[str], target_names: Sequence[str]) -> bytes:
        """The shortlist as vmap.txt, which CTranslate2 reads: a source token, a tab, and its target tokens; without a source token, those for every sentence.

        Args:
            source_names, target_names: what CTranslate2 calls the tokens, in the order of their ids.
        """
        lines = ["\t" + " ".join(target_names[index] for index in self.always.tolist())]
        for token, name in enumerate(source_names):
            found = self.translations_of(token).tolist() + [token] * self.copies
            if found:
                lines.append(f"{name}\t" + " ".join(target_names[index] for index in found))
        return ("\n".join(lines) + "\n").encode()

    def translations_of(self, token: int) -> NDArray[np.int64]:
        """The ids of the translations of a source token, without `always`."""
        start, end = self.starts[token], self.starts[token + 1]
        return self.translations[start : min(end, start + self.best)]


def shortlist_content(
    starts: NDArray[np.int64],
    translations: NDArray[np.int64],
    by_frequency: NDArray[np.int64],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> bytes:
    """The bytes of a file for `load_shortlist`; arrays as in `Lexicon`."""
    content = io.BytesIO()
    vocabularies = np.frombuffer(_digest(tokenizers), np.uint8)
    np.savez_compressed(
        content,
        starts=starts,
        translations=translations.astype(np.uint32),
        by_frequency=by_frequency.astype(np.uint32),
        vocabularies=vocabularies,
    )
    return content.getvalue()


def shortlist_path(checkpoint: Path) -> Path:
    """Where the shortlist of a checkpoint lies: in the run folder; beside a checkpoint that was copied elsewhere."""
    run = RunFolder.containing(checkpoint)
    folder = checkpoint.absolute()
    return folder.with_name(f"{folder.name}.{SHORTLIST_FILE}") if run is None else run.path / SHORTLIST_FILE


def load_shortlist(path: Path, settings: ShortlistConfig, tokenizers: tuple[Tokenizer, Tokenizer]) -> Shortlist:
    """The shortlist in a file, with the sizes of the settings.

    Raises:
        MissingInputError: there is no such file.
        DataError: it was made for other vocabularies, or is damaged.
    """
    again = "make it again: tfm shortlist"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MissingInputError(
            f"decoding.shortlist: {path} cannot be read: {error.strerror}",
            hint="tfm shortlist makes this file; or leave out decoding.shortlist",
        ) from error
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            starts, translations, by_frequency, vocabularies = (stored[name] for name in _ARRAYS)
        starts, translations, by_frequency = (one.astype(np.int64) for one in (starts, translations, by_frequency))
    except Exception as error:  # of zipfile, zlib, and the parser of NumPy
        raise DataError(f"{path}: not a shortlist, or damaged", hint=again) from error
    if vocabularies.tobytes() != _digest(tokenizers):
        raise DataError(f"{path}: made for other vocabularies than those of this run", hint=again)
    source, target = tokenizers
    is_whole = (
        starts.shape == (source.vocab_size + 1,)
        and starts[0] == 0
        and starts[-1] == len(translations)
        and bool((np.diff(starts) >= 0).all())
        and all(_are_ids(one, target) for one in (translations, by_frequency))
    )
    if not is_whole:
        raise DataError(f"{path}: not a shortlist, or damaged", hint=again)
    special = SpecialIds.of(target)
    always = [*special[:4], *by_frequency[: settings.frequent].tolist()]
    never = {*special.tag_ids} - {*special[:4]}
    digest = hashlib.sha256(content).hexdigest()[:8]
    return Shortlist(
        starts,
        translations,
        np.unique(np.array([one for one in always if one not in never], np.int64)),
        target.vocab_size,
        settings.best,
        copies=source is target or source.to_json() == target.to_json(),
        name=f"{settings.frequent}+{settings.best}.{digest}",
    )


def _are_ids(numbers: NDArray[np.int64], tokenizer: Tokenizer) -> bool:
    return numbers.ndim == 1 and bool(((numbers >= 0) & (numbers < tokenizer.vocab_size)).all())


def _digest(tokenizers: tuple[Tokenizer, Tokenizer]) -> bytes:
    """Of the entries of both vocabularies."""
    texts = "\0".join("\n".join(one.entries) for one in tokenizers)
    return hashlib.sha256(texts.encode("utf-8", "surrogatepass")).digest()
