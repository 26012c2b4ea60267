"""Sequence formats: whether sequences end with [EOS], and what the decoder reads in training.

In the ordinary format (Vaswani et al. 2017) source and target end with [EOS], and the decoder reads the
target shifted right by one position, behind [SOS]. Two exercises of tutorials differ from it:
`drop-first` has no [EOS], and in `memorise` the decoder reads the target without the shift, so its input
contains the token that it must predict. Both deviations are defined here and nowhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_cli.config import DataConfig, FilesData, HubData, SequencesData
from transformer_cli.text.tokenizer import Tokenizer
from transformer_cli.text.words import tag_of

if TYPE_CHECKING:  # numpy is imported where it computes: a translation by CTranslate2 does without
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SequenceFormat:
    """The format of source, target and decoder input; the default is the ordinary format."""

    has_end: bool = True
    """Whether source and target end with [EOS]."""
    is_shifted: bool = True
    """Whether the decoder reads [SOS] and then the target; if not, it reads the target itself."""
    length_change: int = 0
    """Without [EOS]: the number of target tokens minus the number of source tokens."""
    tags: tuple[str, ...] = ()
    """For each of `data.directions`, the tag before its sources; empty if there is only one target language, and no `data.target_tag`."""
    corpus_tags: tuple[str | None, ...] = ()
    """In training, the tag before each source of the corpus of this number; empty: no corpus has one."""

    @classmethod
    def of(cls, data: DataConfig) -> "SequenceFormat":
        """The format for the settings under `data`."""
        if not isinstance(data, SequencesData):
            tags = tuple(tag_of(direction.target) for direction in data.directions)
            corpora = data.corpora if isinstance(data, FilesData | HubData) else ()
            of_corpora = tuple(corpus.tag for corpus in corpora)
            return cls(
                tags=tags if len(set(tags)) > 1 or data.target_tag else (),
                corpus_tags=of_corpora if any(of_corpora) else (),
            )
        length_change = -1 if data.task == "drop-first" else 0
        return cls(data.end_symbol, data.shift_target, length_change)

    def with_end(self, ids: Sequence[int], eos_id: int) -> list[int]:
        """The ids of a text, followed by [EOS] if the format has one."""
        return [*ids, eos_id] if self.has_end else [*ids]

    def source(self, ids: Sequence[int], tokenizer: Tokenizer, direction: int) -> list[int]:
        """The ids of a source text, with the tag of the target language before them and [EOS] behind them.

        Args:
            direction: index into `data.directions`.

        Source: Johnson et al. 2017, section 3.
        """
        ended = self.with_end(ids, tokenizer.eos_id)
        return [tokenizer.tag_id(self.tags[direction]), *ended] if self.tags else ended

    def tags_of(self, corpus: int, direction: int) -> list[str]:
        """The tags before the source of a training pair, in their order.

        Args:
            corpus: index into `data.corpora`.
            direction: index into `data.directions`.
        """
        of_corpus = self.corpus_tags[corpus] if self.corpus_tags else None
        return [*([of_corpus] if of_corpus else []), *self.tags[direction : direction + 1]]

    def fixed_length(self, source_length: int) -> int | None:
        """The number of tokens of a translation if the format has no [EOS], else None."""
        return None if self.has_end else source_length + self.length_change

    def decoder_inputs(
        self, target_ids: "NDArray[Any]", is_real: "NDArray[np.bool_]", *, sos_id: int, pad_id: int
    ) -> "NDArray[Any]":
        """The decoder input ids from which the decoder must predict `target_ids`.

        Args:
            target_ids: (B, T), padded at the end.
            is_real: (B, T), True where there is a token.
            sos_id: the id of [SOS].
            pad_id: the id of [PAD].

        Returns:
            (B, T) ids, with padding at the same positions.
        """
        inputs = target_ids.copy()
        if self.is_shifted:
            inputs[:, :1] = sos_id
            inputs[:, 1:] = target_ids[:, :-1]
            inputs[~is_real] = pad_id
        return inputs
