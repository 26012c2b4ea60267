"""The options of one `tfm translate` command that are not settings of the config."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of one `tfm translate` command that are not settings of the config."""

    to: str | None = None
    """The target language; None: the only possible one."""
    from_: str | None = None
    """The source language; None: the only possible one."""
    num_best: int | None = None
    """Number of translations that are printed for each line; None: one, without its rank and score."""
    prefix: str | None = None
    """The text with which each translation begins; None: any."""
    prefixes: Path | None = None
    """A file with the prefix of each line, instead of `prefix`."""
    glossary: Path | None = None
    """A file of terms that the translations contain."""
    alignment: bool = False
    """Whether the word alignment stands beside each translation."""
    details: bool = False
    """Whether the JSON has the tokens of source and translation, with their probabilities."""
    attention: bool = False
    """Whether the JSON has the tokens, and the attention weights between them."""
    protects_spans: bool = False
    """See `Translator.protects_spans`."""
    is_strict: bool = False
    """See `Translator.is_strict`."""
    replace_unknown: bool = False
    """Whether a word of the source, or its dictionary entry, replaces each [UNK]."""
    dictionary: Path | None = None
    """A file with translations of words for `replace_unknown`."""
    comet: Path | None = None
    """The folder of a COMET model, by which `decoding.mbr` chooses; None: chrF."""
    resume: bool = False
    """Whether the output so far of an interrupted translation is kept, and continued."""

    @property
    def any_details(self) -> bool:
        """Whether the translations need their details."""
        return self.alignment or self.details or self.attention


NO_WISHES = Wishes()
