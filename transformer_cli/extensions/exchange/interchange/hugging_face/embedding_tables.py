"""Tables of embeddings: those of source, target and output, in the forms that transformers knows.

transformers has one vocabulary for both sides, except in Marian. So two tables are joined to one where needed: first the rows of the
target, then those of the source, whose ids begin behind those of the target. The bias of the source rows keeps them out of translations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.interchange.hugging_face.model_classes import ModelClass
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer

NEVER = -1e4
"""The bias of a token that no translation contains: exp(-1e4) is 0, and float16 can hold the number."""

SHARED_TABLE = "model.shared.weight"
SOURCE_TABLE = "model.encoder.embed_tokens.weight"
TARGET_TABLE = "model.decoder.embed_tokens.weight"
OUTPUT_TABLE = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"


class Tables(NamedTuple):
    """The three tables; one object stands in several places where tables are tied."""

    source: Tensor
    """(V of the source, D)."""
    target: Tensor
    """(V of the target, D)."""
    output: Tensor
    """(V of the target, D)."""


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The sizes of both vocabularies."""

    source_size: int
    target_size: int
    are_shared: bool
    """Whether both sides have the same tokenizer."""
    num_unlisted: int = 0
    """Pieces with which a source is split, but which count as unknown (`text/tokenizer_file.py`). In transformers they have ids of their own,
    the last ones, whose rows are copies of the row of [UNK]."""


class TableForm(Enum):
    """How the tables of a model are stored in transformers."""

    ONE = "one table, for source, target and output"
    TWO = "a table of the source and one of the target, with equal ids"
    JOINED = "one table, with the rows of the target and behind them those of the source"

    @classmethod
    def of(
        cls, config: ModelConfig, vocabularies: Vocabularies, model_class: ModelClass
    ) -> "TableForm":
        """The form for a model."""
        if config.tie_embeddings == "all":
            return cls.ONE
        # transformers 4 gives both sides of Marian one size, so two vocabularies are joined there, too.
        if vocabularies.are_shared and not model_class.joins_tables:
            return cls.TWO
        return cls.JOINED

    def source_offset(self, vocabularies: Vocabularies) -> int:
        """The id of the first source token in transformers."""
        return vocabularies.target_size if self is TableForm.JOINED else 0

    def size(self, vocabularies: Vocabularies) -> int:
        """The number of ids in transformers."""
        first = self.source_offset(vocabularies)
        return first + vocabularies.source_size + vocabularies.num_unlisted


def written_tables(
    tables: Tables, bias: Tensor | None, form: TableForm, *, num_unlisted: int = 0
) -> dict[str, Tensor]:
    """The tensors of transformers for three tables; a tied table stands there once.

    Args:
        tables: ours.
        bias: (V of the target,), of the output layer; None: it has none.
        form: of the tables in transformers.
        num_unlisted: as in `Vocabularies`.
    """
    source, target, output = tables
    is_tied = output is target
    unknown = source[Tokenizer.unk_id].expand(num_unlisted, -1)
    added = torch.cat([source, unknown]) if form is TableForm.JOINED else unknown
    bias = output.new_zeros(len(output)) if bias is None else bias
    bias = torch.cat([bias, bias.new_full((len(added),), NEVER)])
    source, target = torch.cat([source, unknown]), torch.cat([target, added])
    output = target if is_tied else torch.cat([output, torch.zeros_like(added)])
    written = {OUTPUT_BIAS: bias[None]}
    if form is TableForm.TWO:
        written |= {SOURCE_TABLE: source, TARGET_TABLE: target}
    elif is_tied:
        written[SHARED_TABLE] = target
    else:
        # Without tying, transformers 5 fills three tables and not one.
        written |= dict.fromkeys((SHARED_TABLE, SOURCE_TABLE, TARGET_TABLE), target)
    if not is_tied:
        written[OUTPUT_TABLE] = output
    return written


def read_tables(tensors: Mapping[str, Tensor], *, is_shared: bool, is_tied: bool) -> Tables:
    """The three tables that transformers would use.

    Args:
        tensors: of transformers.
        is_shared: whether source and target share their table.
        is_tied: whether the output layer shares the table of the target.

    Raises:
        DataError: a table is missing.
    """
    if is_shared and is_tied:
        table = _first(tensors, SHARED_TABLE, TARGET_TABLE, SOURCE_TABLE, OUTPUT_TABLE)
        return Tables(table, table, table)
    of_both = (SHARED_TABLE,) if is_shared else ()
    source = _first(tensors, SOURCE_TABLE, *of_both)
    target = _first(tensors, TARGET_TABLE, *of_both, *((OUTPUT_TABLE,) if is_tied else ()))
    return Tables(source, target, target if is_tied else _first(tensors, OUTPUT_TABLE))


def our_tables(tables: Tables, vocabularies: Vocabularies, form: TableForm) -> Tables:
    """Our tables: the inverse of `written_tables`."""
    first, size = form.source_offset(vocabularies), vocabularies.target_size
    target = tables.target[:size]
    output = target if tables.output is tables.target else tables.output[:size]
    return Tables(tables.source[first : first + vocabularies.source_size], target, output)


def _first(tensors: Mapping[str, Tensor], *names: str) -> Tensor:
    for name in names:
        if name in tensors:
            return tensors[name]
    raise DataError(f"the weights have no {' and no '.join(names)}")
