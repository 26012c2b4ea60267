"""The settings of corpora, cleaning and tokenizers."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.section import Count, Positive, Section, Share, Switch

Text = Annotated[str, Field(min_length=1, max_length=4096)]
Language = Annotated[str, Field(pattern=r"^[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*$")]
Column = Annotated[int, Field(strict=True, ge=0, le=9999)] | Text
SplitName = Literal["train", "validation", "test"]


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


class DataSection(Section):
    """The settings that every source of sentence pairs has."""

    source_language: Language = "en"
    """Language of the source text; used to find files and fields of data sets, and to split lines into sentences."""
    target_language: Language = "it"
    """Language of the target text; translations into Chinese, Japanese, Thai, Lao, Khmer and Burmese get no white space between sentences."""
    cleaning: CleaningConfig = CleaningConfig()
    """Rules that drop or change training pairs."""


class PhrasebookData(DataSection):
    """The built-in English-Italian corpus."""

    source: Literal["phrasebook"] = "phrasebook"
    """phrasebook: sentences that a grammar generates; needs no file."""
    num_pairs: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = 60_000
    """Number of training pairs, all distinct."""
    source_language: Literal["en"] = "en"
    """English."""
    target_language: Literal["it"] = "it"
    """Italian."""


class _Corpus(Section):
    split: SplitName | None = None
    """The split of these pairs; absent: a hash of each pair decides its split."""
    weight: Annotated[float, Field(strict=True, gt=0.0, le=1000.0)] = 1.0
    """How often the model reads each training pair of this corpus per epoch; 0.5: in each epoch another random half of the pairs."""

    @model_validator(mode="after")
    def _weight_has_an_effect(self) -> Self:
        if self.weight != 1.0 and self.split in ("validation", "test"):
            raise ValueError(f"weight has no effect on a corpus of split {self.split}")
        return self


class FileCorpus(_Corpus):
    """One corpus in local files: two plain-text files, or one file (or folder, or glob) with both sides."""

    source_path: Text | None = None
    """Plain text, one sentence per line; line N of target_path is the translation of line N. May be a glob."""
    target_path: Text | None = None
    """The translations, with the same number of lines."""
    path: Text | None = None
    """A TSV, CSV, JSON Lines or Parquet file, a JSON file of one array of objects, a glob, a folder of such files, or a folder that `save_to_disk` of the datasets library wrote; a folder may also hold plain text in pairs of files named NAME.SOURCE_LANGUAGE and NAME.TARGET_LANGUAGE."""
    format: Literal["text", "tsv", "csv", "jsonl", "parquet"] | None = None
    """Absent: the end of the file name decides, before .gz, .bz2, .xz or .zst."""
    source_field: Column | None = None
    """Column of the source: a name, a number from 0 (TSV and CSV), or a path such as translation.en (JSON Lines, Parquet). Absent: translation.SOURCE_LANGUAGE or SOURCE_LANGUAGE if a column has this name, else the first column."""
    target_field: Column | None = None
    """Column of the target; absent: translation.TARGET_LANGUAGE or TARGET_LANGUAGE if a column has this name, else the second column."""
    has_header: Switch | None = None
    """TSV and CSV: whether the first row holds the names of the columns; absent: true if the fields are given by name."""

    @model_validator(mode="after")
    def _one_way_to_name_files(self) -> Self:
        given = [self.source_path is not None, self.target_path is not None, self.path is not None]
        if given not in ([True, True, False], [False, False, True]):
            raise ValueError("give either source_path and target_path, or path")
        fields = (self.source_field, self.target_field, self.has_header)
        if self.path is None and any(field is not None for field in fields):
            raise ValueError("source_field, target_field and has_header are for path only")
        return self


class HubCorpus(_Corpus):
    """One data set that the `datasets` library can load."""

    dataset: Text
    """The name of a data set on the Hugging Face hub; or a folder, also one that `save_to_disk` wrote; or a format such as parquet, together with data_files."""
    config: Text | None = None
    """The configuration (subset), such as en-it."""
    revision: Text | None = None
    """Branch, tag or commit of the data set on the hub."""
    data_files: Text | None = None
    """Files, if dataset is a format; from data.root."""
    dataset_split: Text = "train"
    """The split or slice of the data set to read, such as train or train[:1%]."""
    source_field: Text | None = None
    """Field of the source text; absent: translation.SOURCE_LANGUAGE or SOURCE_LANGUAGE if there is such a field, else the first field."""
    target_field: Text | None = None
    """Field of the target text; absent: translation.TARGET_LANGUAGE or TARGET_LANGUAGE if there is such a field, else the second field."""
    streamed: Switch = False
    """Read the data set while it is downloaded, without a copy in the cache of the hub. It is downloaded once: while the data are prepared, its pairs are kept in a file in the run folder, because each split is read separately."""
    max_pairs: Count | None = None
    """Stop after this many pairs."""


class _DrawnSplits(DataSection):
    root: Text = "."
    """Relative paths of corpora start in this folder; a relative one starts in the current folder."""
    validation_share: Annotated[float, Field(strict=True, ge=0.0, le=0.5)] = 0.02
    """Share of the pairs without a split that become validation pairs; a hash of each pair decides."""
    test_share: Annotated[float, Field(strict=True, ge=0.0, le=0.5)] = 0.02
    """Share of the pairs without a split that become test pairs."""


class FilesData(_DrawnSplits):
    """Local files."""

    source: Literal["files"]
    """files: local files under data.root."""
    corpora: Annotated[tuple[FileCorpus, ...], Field(min_length=1, max_length=1000)]
    """The files, each with its split and weight."""
    undecodable: Literal["error", "skip", "replace"] = "error"
    """For text that is not UTF-8: error stops, skip drops the pair and counts it, replace puts U+FFFD in place of the bad bytes."""


class HubData(_DrawnSplits):
    """Data sets through the Hugging Face `datasets` library."""

    source: Literal["hub"]
    """hub: Hugging Face data sets, by name."""
    corpora: Annotated[tuple[HubCorpus, ...], Field(min_length=1, max_length=1000)]
    """The data sets, each with its split and weight."""


class TokenizerConfig(Section):
    """How text becomes token ids."""

    kind: Literal["wordlevel", "bpe", "unigram"] = "wordlevel"
    """wordlevel: whole words and punctuation; bpe (Sennrich et al. 2016) and unigram (Kudo 2018): parts of words."""
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
        return self
