"""The settings of text: how pairs are cleaned, how text becomes token ids, and training noise."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.section import Count, Positive, Probability, Section, Share, Switch


class CleaningConfig(Section):
    """Rules that drop or change pairs of the training corpus; each rule can be switched off."""

    normalize_unicode: Switch = True
    """Convert text to the Unicode normal form NFC."""
    remove_control_characters: Switch = True
    """Remove byte-order marks, and control characters other than white space, from the text; the pair is kept."""
    normalize_invisible: Switch | None = True
    """In source text, make every space a plain one (no-break, narrow and wide spaces), and remove what nobody sees: soft hyphens, zero-width spaces, word joiners, marks of direction, variation selectors, and joiners outside of emoji and of scripts that are spelled with them. Target text keeps all of them. false: neither in training nor in text to translate. null, which is what older runs have: only in text to translate. It never applies to an imported SentencePiece tokenizer, which has its own normalisation."""
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


class NoiseConfig(Section):
    """Probabilities of changes, drawn anew for each training pair in each epoch; several may meet in one pair."""

    capitals: Probability = 0.0
    """Probability that source and target stand in capital letters throughout."""
    small_letters: Probability = 0.0
    """Probability that the source stands in small letters throughout; the target stays as it is."""
    missing_accents: Probability = 0.0
    """Probability that the letters of the source lose their accents; the target stays as it is."""
    typographic_marks: Probability = 0.0
    """Probability that straight quotation marks, apostrophes, hyphens and three dots of the source become typographic ones, or typographic ones straight; the target stays as it is."""
    missing_end: Probability = 0.0
    """Probability that the mark at the end is left out, in source and target, where both end with one."""
    typos: Probability = 0.0
    """Probability of a typing error, for each source word of four letters or more: two letters swapped, or one letter missing, doubled or replaced; the target stays as it is."""

    @model_validator(mode="after")
    def _has_an_effect(self) -> Self:
        if not any(self.model_dump().values()):
            raise ValueError(
                "noise has no probability above 0; set one of its settings, or leave it out"
            )
        return self
