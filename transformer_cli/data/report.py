"""The numbers of a corpus on its way to token ids: pairs read, dropped and kept, tokens, padding."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from transformer_cli.data.batches.encoded import EncodedPairs
from transformer_cli.data.pairs import Row, SentencePair, table_lines
from transformer_cli.text import Tokenizer
from transformer_cli.text.token_arrays import IdLists


@dataclass(slots=True)
class TokenCount:
    """Numbers of tokens of some sentences, without [EOS]."""

    num_sentences: int = 0
    num_tokens: int = 0
    num_unknown: int = 0

    def add(self, sentences: IdLists) -> None:
        self.num_sentences += len(sentences.lengths)
        self.num_tokens += int((sentences.ids != Tokenizer.eos_id).sum())
        self.num_unknown += int((sentences.ids == Tokenizer.unk_id).sum())

    @property
    def tokens_per_sentence(self) -> float:
        return self.num_tokens / max(1, self.num_sentences)

    @property
    def unknown_rate(self) -> float:
        """Share of the tokens that are [UNK]."""
        return self.num_unknown / max(1, self.num_tokens)


@dataclass(slots=True)
class SideReport:
    """The tokens of one language."""

    vocab_size: int = 0
    train: TokenCount = field(default_factory=TokenCount)
    validation: TokenCount = field(default_factory=TokenCount)


@dataclass(slots=True)
class DataReport:
    """The numbers of a corpus."""

    num_pairs: dict[str, int] = field(default_factory=dict)
    """Split -> number of pairs after cleaning."""
    reading: list[Row] = field(default_factory=list)
    """Problems in the files of the training split, and of corpora whose pairs get a split by hash."""
    cleaning: list[Row] = field(default_factory=list)
    """Training split: pairs that each rule dropped or changed, and pairs that are held-out pairs (leakage)."""
    held_out: dict[str, list[Row]] = field(default_factory=dict)
    """Split -> pairs that were skipped, dropped or changed."""
    num_too_long: int = 0
    """Number of training pairs dropped because they have more tokens than model.max_length."""
    longest_example: str = ""
    """The first of these pairs."""
    source: SideReport = field(default_factory=SideReport)
    target: SideReport = field(default_factory=SideReport)
    padding_share: float = 0.0
    """Share of padding among the tokens of training batches."""
    examples: dict[str, list[SentencePair]] = field(default_factory=dict)
    """Split -> its first pairs after cleaning."""

    def count(self, pairs: EncodedPairs, split: str) -> None:
        """Add encoded pairs to the numbers of a split."""
        getattr(self.source, split).add(pairs.source)
        getattr(self.target, split).add(pairs.target)

    def dropped_share(self) -> float:
        """The share (0 to 1) of the training pairs that reading skipped or cleaning dropped."""
        skipped = sum(count for what, count, _ in self.reading if what.startswith("skipped:"))
        dropped = sum(count for what, count, _ in self.cleaning if what.startswith("dropped:"))
        num_read = sum(count for what, count, _ in self.cleaning if what == "pairs read")
        return (skipped + dropped) / max(1, skipped + num_read)

    def lines(self) -> list[str]:
        """Lines for people."""
        splits = ", ".join(f"{split} {count:,}" for split, count in self.num_pairs.items())
        lost = (
            "dropped: more tokens than model.max_length",
            self.num_too_long,
            self.longest_example,
        )
        return [
            f"pairs: {splits}",
            *_table("reading the training split", self.reading),
            *_table("cleaning the training split", [*self.cleaning, lost]),
            *(
                line
                for split, rows in self.held_out.items()
                for line in _table(f"reading and cleaning the {split} split", rows)
            ),
            f"{'tokens':9}{'vocabulary':>12}{'per sentence':>14}{'unknown':>10}{'in validation':>15}",
            *(
                f"  {name:7}{side.vocab_size:>12,}{side.train.tokens_per_sentence:>14.1f}"
                f"{side.train.unknown_rate:>10.2%}{side.validation.unknown_rate:>15.2%}"
                for name, side in (("source", self.source), ("target", self.target))
            ),
            f"padding: {self.padding_share:.1%} of a training batch",
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "DataReport":
        """The report from the values of `to_json`."""
        return TypeAdapter(cls).validate_python(values)


def _table(title: str, rows: Sequence[Row]) -> list[str]:
    """A table of the rows whose number is not 0."""
    lines = table_lines([row for row in rows if row[1]])
    return [f"{title}:", *lines] if lines else []
