"""The settings of text: how pairs are cleaned, and how text becomes token ids."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.section import Count, Positive, Section, Share, Switch


class CleaningConfig(Section):
    """Rules that drop or change pairs of the training corpus; each rule can be switched off."""

    normalize_unicode: Switch = True
    """Convert text to the Unicode normal form NFC."""
    remove_control_characters: Switch = True
    """Remove byte-order marks, and control characters other than white space, from the text; the pair is kept."""
    drop_empty: Switch = True
    """Drop pairs in which one side is empty or white space only."""
    drop_equal: Switch = True
    """Drop pairs whose source and target are equal."""
    drop_duplicates: Switch = True
    """Keep only the first of several equal pairs."""
    min_words: Count | None = None
    """Drop pairs in which one side has fewer words than this."""
    max_words: Count | None = 250
    """Drop pairs in which one side has more words than this."""
    max_characters: Count | None = 2000
    """Drop pairs in which one side has more characters than this."""
    max_length_ratio: Positive | None = 3.0
    """Drop pairs in which the longer side divided by the shorter side, in characters, is greater than this; 15 is added to both lengths first, so short sentences may differ more."""
    max_dropped_share: Share = 0.5
    """Refuse to train if the rules drop a larger share of the pairs than this."""


class TokenizerConfig(Section):
    """How text becomes token ids."""

    kind: Literal["wordlevel", "bpe", "unigram", "sentencepiece"] = "wordlevel"
    """wordlevel: whole words and punctuation; bpe (Sennrich et al. 2016) and unigram (Kudo 2018): parts of words; sentencepiece: a model of the SentencePiece library, which `tfm import` takes over and no training changes; needs training.init_from."""
    vocab_size: Annotated[int, Field(strict=True, ge=8, le=1_000_000)] | None = None
    """Largest number of entries of a vocabulary, special tokens included; absent: no limit for wordlevel, 8,000 for the others."""
    min_frequency: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 1
    """Leave out words (wordlevel) or merges (bpe) that occur less often in the training split; not for unigram."""
    shared: Switch = False
    """One vocabulary for both languages."""

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> Self:
        if self.kind == "unigram" and self.min_frequency != 1:
            raise ValueError("min_frequency has no effect on a unigram tokenizer; leave it out")
        if self.kind == "sentencepiece" and self.vocab_size is not None:
            raise ValueError("vocab_size has no effect on an imported tokenizer; leave it out")
        if self.kind == "sentencepiece" and self.min_frequency != 1:
            raise ValueError("min_frequency has no effect on an imported tokenizer; leave it out")
        return self
