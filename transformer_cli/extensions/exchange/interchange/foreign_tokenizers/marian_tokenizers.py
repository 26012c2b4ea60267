"""The tokenizers of Marian (OPUS-MT): two SentencePiece models, and a vocabulary of both or one of each."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.sentencepiece_file import (
    SentencePieceModel,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer_file import (
    MAX_ENTRIES,
    UNLISTED,
    SentencePieceLayout,
    TokenizerParts,
    hidden,
    tokenizer_errors_explained,
)
from transformer_cli.text.words import SPECIALS, TAG, tag_of

LANGUAGE_CODE = re.compile(r">>([A-Za-z][A-Za-z0-9_-]{0,98})<<")
"""What stands before the source in a model of several target languages; the tokenizer has an entry for it."""


class SpecialEntries(NamedTuple):
    """The ids of the special tokens in the other program."""

    unk: int
    pad: int
    start: int
    """What the decoder reads first."""
    end: int


class ForeignTokenizers(NamedTuple):
    """Both tokenizers as ours, and the ids that their entries had."""

    source: Tokenizer
    target: Tokenizer
    """The same object as `source` if both sides split text in the same way."""
    source_rows: list[int]
    """For each of our ids, the id in the other program."""
    target_rows: list[int]
    are_shared: bool
    """Whether both sides have one vocabulary, with the same ids."""


def marian_tokenizers(
    models: tuple[SentencePieceModel, SentencePieceModel],
    vocabularies: tuple[Mapping[str, int], Mapping[str, int]],
    specials: tuple[SpecialEntries, SpecialEntries],
    *,
    languages: Sequence[str] = (),
) -> ForeignTokenizers:
    """Tokenizers of source and target that give the ids of a Marian tokenizer, in our order.

    Args:
        models: of source and target.
        vocabularies: ids by piece, of source and target; the same object twice if both sides share it.
        specials: their ids on both sides.
        languages: the codes of target languages, such as fra for the entry >>fra<<, in the order of their tags.

    Raises:
        DataError: a vocabulary has gaps or lacks a language code, or is too large.
    """
    are_shared = vocabularies[0] is vocabularies[1]
    entries = [ordered_entries(vocabulary) for vocabulary in vocabularies]
    codes = [f">>{language}<<" for language in languages]
    missing = [code for code in codes if code not in vocabularies[0]]
    if missing:
        raise DataError(f"the vocabulary has no entry {missing[0]}")
    sides = []
    for side, (model, names) in enumerate(zip(models, entries, strict=True)):
        has_codes = side == 0 or are_shared
        tagged = {code: tag_of(code[2:-2]) for code in codes if has_codes}
        rows = _rows(len(names), specials[side], [vocabularies[side][code] for code in tagged])
        layout = SentencePieceLayout(tags=tuple(tagged.values()), charsmap=model.charsmap)
        sides.append((_tokenizer(layout, model, [names[row] for row in rows]), rows))
    (source, source_rows), (target, target_rows) = sides
    if are_shared and models[0] == models[1]:
        target = source
    return ForeignTokenizers(source, target, source_rows, target_rows, are_shared)


def language_codes(vocabulary: Mapping[str, int]) -> list[str]:
    """The languages for which a vocabulary has an entry such as >>fra<<, in the order of their ids."""
    found = (LANGUAGE_CODE.fullmatch(entry) for entry in sorted(vocabulary, key=vocabulary.__getitem__))  # fmt: skip
    codes = [match[1] for match in found if match is not None]
    return [code for code in codes if TAG.fullmatch(tag_of(code))]


def ordered_entries(vocabulary: Mapping[str, int]) -> list[str]:
    """The entries in the order of their ids.

    Raises:
        DataError: the ids are not 0, 1, 2, ... without gaps.
    """
    entries = sorted(vocabulary, key=vocabulary.__getitem__)
    if len(entries) > MAX_ENTRIES:
        raise DataError(f"a vocabulary of {len(entries):,} entries; at most {MAX_ENTRIES:,}")
    if [vocabulary[entry] for entry in entries] != list(range(len(entries))):
        raise DataError("the ids of the vocabulary are not 0, 1, 2, ... without gaps and duplicates")  # fmt: skip
    return entries


def _rows(vocab_size: int, specials: SpecialEntries, tags: Sequence[int]) -> list[int]:
    """For each of our ids, the old id: special tokens first, tags, then all others in their old order."""
    first = [specials.unk, specials.pad, specials.start, specials.end, *tags]
    used = {*first}
    return [*first, *(index for index in range(vocab_size) if index not in used)]


def _tokenizer(
    layout: SentencePieceLayout, model: SentencePieceModel, entries: Sequence[str]
) -> Tokenizer:
    """A tokenizer with these entries in this order; an entry that the model lacks is hidden.

    The lowest score of a hidden entry keeps the cost of an unknown character, which is 10 below the lowest score.
    """
    num_fixed, lowest = len(layout.specials), model.lowest_score
    vocabulary: list[list[Any]] = [[hidden(special), lowest] for special in layout.specials]
    for entry in entries[num_fixed:]:
        score = model.scores.get(entry)
        vocabulary.append([hidden(entry), lowest] if score is None else [entry, score])
    listed = {*entries[num_fixed:]}
    unlisted = [[piece, score] for piece, score in model.scores.items() if piece not in listed]
    if collisions := listed & {*SPECIALS}:
        raise DataError(f"the vocabulary has an entry {min(collisions)}, the name of a special token of ours")  # fmt: skip
    content = layout.empty_model() | {"vocab": vocabulary, UNLISTED: unlisted}
    with tokenizer_errors_explained("the tokenizer cannot be built"):
        return Tokenizer(TokenizerParts(layout, content))
