"""The settings of corpora and of their text: where pairs come from, their languages, splits and weights, cleaning, tokens, and noise."""

import codecs
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from transformer_cli.config.section import Contradiction, Count, Positive, Probability, Section, Share, Switch

# The settings of text: how pairs are cleaned, how text becomes token ids, and training noise.


class CleaningConfig(Section):
    """Rules that drop or change pairs of the training corpus; each rule can be switched off."""

    normalize_unicode: Switch = True
    """Convert text to the Unicode normal form NFC."""
    remove_control_characters: Switch = True
    """Remove byte-order marks, and control characters other than white space, from the text; the pair is kept."""
    normalize_invisible: Switch | None = True
    """In source text, make every space a plain one (no-break, narrow and wide spaces), and remove what nobody sees: soft hyphens, zero-width spaces, word joiners, marks of direction, variation selectors, and joiners outside of emoji and of scripts that are spelled with them. Target text keeps all of them. false: neither in training nor in text to translate. null, which is what older runs have: only in text to translate. It never applies to an imported SentencePiece tokenizer, which has its own normalisation."""
    join_white_space: Switch = True
    """In source and target, make each run of plain spaces, tabs and line ends one plain space, and remove it at both ends, as in a cell of a table; text to translate is read so, too. Absent, as in older runs: such white space stays, and a tokenizer of subwords reads it."""
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


Symbol = Annotated[str, Field(min_length=1, max_length=100)]


Subwords = Literal["unigram", "bpe"]


class TokenizerKind(NamedTuple):
    """What distinguishes a kind of tokenizer."""

    subwords: Subwords | None
    """How words are cut; None: they are not."""
    counts_entries: bool = True
    """Whether an entry can be left out because it is rare (`min_frequency`)."""
    is_of_library: bool = False
    """Whether the SentencePiece library learns and cuts, by `algorithm`; it keeps its pieces and normalises text itself."""


KindName = Literal["wordlevel", "bpe", "unigram", "sentencepiece"]
TOKENIZER_KINDS: dict[KindName, TokenizerKind] = {
    "wordlevel": TokenizerKind(None),
    "bpe": TokenizerKind("bpe"),
    "unigram": TokenizerKind("unigram", counts_entries=False),
    "sentencepiece": TokenizerKind("unigram", counts_entries=False, is_of_library=True),
}
"""All kinds. How each is learned, `learn_model` of text/vocabulary.py says."""


class TokenizerConfig(Section):
    """How text becomes token ids."""

    kind: KindName = "wordlevel"
    """wordlevel: whole words and punctuation; bpe (Sennrich et al. 2016) and unigram (Kudo 2018): parts of words; sentencepiece (Kudo and Richardson 2018): parts of words, learned and found by the SentencePiece library, whose files other programs read (pip install ".[sentencepiece]"); `tfm import` makes runs with this kind, too."""
    vocab_size: Annotated[int, Field(strict=True, ge=8, le=1_000_000)] | None = None
    """Largest number of entries of a vocabulary, special tokens included; absent: no limit for wordlevel, 8,000 for the others."""
    min_frequency: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 1
    """Leave out words (wordlevel) or merges (bpe) that occur less often in the training split; not for unigram and sentencepiece."""
    shared: Switch = False
    """One vocabulary for both languages."""
    algorithm: Subwords | None = None
    """sentencepiece: how the library finds subwords; absent: unigram."""
    normalization: Literal["nmt_nfkc", "identity"] | None = None
    """sentencepiece: what the library does to text before it is cut, in training and in translation. nmt_nfkc: Unicode NFKC, and spaces and control characters as the library cleans them; identity: only several spaces become one; absent: nmt_nfkc."""
    byte_fallback: Switch | None = None
    """sentencepiece: cut a character that is not in the vocabulary into its bytes, which takes 256 entries; absent: false, such a character is [UNK]."""
    user_symbols: Annotated[tuple[Symbol, ...], Field(min_length=1, max_length=1000)] | None = None
    """sentencepiece: texts that are always one entry, wherever they stand, such as a placeholder."""

    @property
    def subwords(self) -> Subwords | None:
        """How words are cut into subwords; None: they are not."""
        return self.algorithm or TOKENIZER_KINDS[self.kind].subwords

    @property
    def is_of_library(self) -> bool:
        """Whether the SentencePiece library learns and cuts."""
        return TOKENIZER_KINDS[self.kind].is_of_library

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> Self:
        if self.min_frequency != 1 and not TOKENIZER_KINDS[self.kind].counts_entries:
            raise ValueError(f"min_frequency has no effect on a {self.kind} tokenizer; leave it out")
        for name in ("algorithm", "normalization", "byte_fallback", "user_symbols"):
            if getattr(self, name) is not None and not self.is_of_library:
                raise ValueError(f"{name} has no effect with kind {self.kind}; remove it, or set kind: sentencepiece")
        symbols = [symbol.strip() for symbol in self.user_symbols or ()]
        if "" in symbols or len({*symbols}) < len(symbols):
            raise ValueError("user_symbols has an empty symbol, or one that stands there twice")
        return self


class NoiseConfig(Section):
    """Probabilities of changes, drawn anew for each training pair in each epoch; several may meet in one pair."""

    capitals: Probability = 0.0
    """Probability that source and target stand in capital letters throughout, among the pairs whose source does not stand in small letters."""
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
            raise ValueError("noise has no probability above 0; set one of its settings, or leave it out")
        return self


# The settings of corpora: where pairs come from, their languages, splits and weights.


Text = Annotated[str, Field(min_length=1, max_length=4096)]
LANGUAGE_PATTERN = r"^[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*$"
Language = Annotated[str, Field(pattern=LANGUAGE_PATTERN)]
Column = Annotated[int, Field(strict=True, ge=0, le=9999)] | Text

# These write text for names of hosts, source code or mail, and not in files.
_NO_FILES = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7")


def known_encoding(name: str) -> str | None:
    """The name that Python has for an encoding of text, such as cp1252 for windows-1252; None if it is none."""
    try:
        "".encode(name.strip())  # fails for rot13 and hex, which are no encodings of text
        found = codecs.lookup(name.strip()).name
    except (LookupError, ValueError):
        return None
    return None if found.replace("_", "-") in _NO_FILES else found


def _require_encoding(name: str) -> str:
    if known_encoding(name) is None:
        raise ValueError("no such encoding is known; one is windows-1252, iso-8859-2 or shift_jis")
    return name


Encoding = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(_require_encoding)]
SplitName = Literal["train", "validation", "test"]
WeightFrom = tuple[
    Annotated[int, Field(strict=True, ge=0, le=1_000_000)], Annotated[float, Field(strict=True, ge=0.0, le=1000.0)]
]
Weight = (
    Annotated[float, Field(strict=True, gt=0.0, le=1000.0)]
    | Annotated[tuple[WeightFrom, ...], Field(min_length=1, max_length=1000)]
)
TAG_PATTERN = r"^<[A-Za-z][A-Za-z0-9_-]{0,29}>$"
Tag = Annotated[str, Field(pattern=TAG_PATTERN)]


class Direction(NamedTuple):
    """A direction of translation: from one language into another."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def reverse(self) -> "Direction":
        return Direction(self.target, self.source)


class DataSection(Section):
    """The settings that every source of sentence pairs has."""

    source_language: Language = "en"
    """Language of the source text; used to find files and fields of data sets, and to split lines into sentences."""
    target_language: Language = "it"
    """Language of the target text; translations into Chinese, Japanese, Thai, Lao, Khmer and Burmese get no white space between sentences."""
    cleaning: CleaningConfig = Field(default_factory=CleaningConfig)
    """Rules that drop or change training pairs."""

    def directions_of(self, corpus: int) -> tuple[Direction, ...]:
        """The directions in which the pairs of a corpus are read, by its index."""
        return self.directions

    @cached_property  # asked for by nearly every room
    def directions(self) -> tuple[Direction, ...]:
        """All directions of the corpora, each once, in the order of the corpora."""
        return (Direction(self.source_language, self.target_language),)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As of pydantic; the directions are found anew, because an update may change the languages."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("directions", None)
        return copied


class LanguageData(DataSection):
    """The settings of every source of pairs in two languages."""

    both_directions: Switch = False
    """Read each pair also in the reverse direction, so that one model translates both ways; needs tokenizer.shared. A tag such as <2it> before the source says into which language to translate (Johnson et al. 2017)."""

    target_tag: Switch = False
    """Read a tag such as <2it> before each source also if the data have one target language only: needed to fine-tune a model of several target languages on one of them. With several target languages there is always a tag."""

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        written = Direction(self.source_language, self.target_language)
        return (written, written.reverse) if self.both_directions else (written,)


def check_vocabularies(data: LanguageData) -> None:
    """Refuse a language of both sides, if each side has a vocabulary of its own."""
    if getattr(data, "reversed_epochs", None) is not None:
        raise Contradiction(
            "data.reversed_epochs makes each language a source and a target, so both sides need one vocabulary",
            hint="set tokenizer.shared: true, or leave out data.reversed_epochs",
        )
    sources, targets = map(set, zip(*data.directions, strict=True))
    if len(targets) > 1 and (both := sorted(sources & targets)):
        raise Contradiction(
            f"{both[0]} is a source language and also a target language, so both sides need one vocabulary",
            hint="set tokenizer.shared: true",
        )


class PhrasebookData(LanguageData):
    """The built-in English-Italian corpus."""

    source: Literal["phrasebook"] = "phrasebook"
    """phrasebook: sentence pairs that are part of the package; needs no file."""
    # More than there are is refused where pairs are read: trained models of earlier versions had more, and translate.
    num_pairs: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = 60_000
    """Number of training pairs: the first ones of the 60,000 that there are."""
    source_language: Literal["en"] = "en"
    """English."""
    target_language: Literal["it"] = "it"
    """Italian."""


class _Corpus(Section):
    split: SplitName | None = None
    """The split of these pairs; absent: a hash of each pair decides its split."""
    weight: Weight = 1.0
    """How often the model reads each training pair of this corpus per epoch; with 0.5, each epoch reads a half of the pairs, drawn anew in each epoch. Or a list of [epoch, weight]: this weight counts from this epoch on; the first epoch is 0, and weight 0 leaves the corpus out. Not with data.streaming."""
    source_language: Language | None = None
    """Language of the source text of this corpus; absent: data.source_language. Corpora of several target languages give a model that translates into each of them."""
    target_language: Language | None = None
    """Language of the target text of this corpus; absent: data.target_language."""
    tag: Tag | None = None
    """A tag such as <BT>, which the model reads before each source text of this corpus: one token, with its own entry in the source vocabulary (Caswell et al. 2019). Only for corpora with split: train, because validation and translation use no tag."""

    origin: Text | None = None
    """Where these pairs come from, in words, for the model card; tfm student, tfm data back-translate and tfm data diversify write here which model has translated what."""
    license: Text | None = None
    """The licence of these pairs, such as cc-by-2.0-fr, for the model card."""

    @model_validator(mode="after")
    def _tag_is_for_training(self) -> Self:
        if self.tag is not None and self.split != "train":
            raise ValueError("tag needs split: train, because validation and translation use none")
        return self

    @model_validator(mode="after")
    def _weight_has_an_effect(self) -> Self:
        if self.weight != 1.0 and self.split in ("validation", "test"):
            raise ValueError(f"weight has no effect on a corpus of split {self.split}")
        if isinstance(self.weight, tuple):
            epochs = [epoch for epoch, _ in self.weight]
            if epochs[0] != 0 or epochs != sorted(set(epochs)):
                raise Contradiction(
                    f"weight: a list of [epoch, weight] begins with epoch 0, and the epochs rise; found {epochs}",
                    hint="such as weight: [[0, 1], [5, 0.2]]: weight 1 in the epochs 0 to 4, then 0.2",
                )
            if not any(weight for _, weight in self.weight):
                raise ValueError("weight is 0 in each epoch, so this corpus is never read; leave it out")
        return self

    def weight_in(self, epoch: int) -> float:
        """The weight in an epoch; the first epoch is 0."""
        if not isinstance(self.weight, tuple):
            return self.weight
        return [weight for start, weight in self.weight if start <= epoch][-1]

    @property
    def has_training_pairs(self) -> bool:
        """Whether some of its pairs may be training pairs."""
        return self.split in (None, "train")


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
    encoding: Encoding | None = None
    """The encoding of the text, such as windows-1252, iso-8859-2, shift_jis or utf-16; absent: UTF-8. A training never guesses it; tfm init finds it out and writes it here. Not for Parquet, which is always UTF-8."""
    source_field: Column | None = None
    """Column of the source: a name, a number from 0 (TSV and CSV), or a path such as translation.en (JSON Lines, Parquet). Absent: translation.SOURCE_LANGUAGE or SOURCE_LANGUAGE if a column has this name, else the first column."""
    target_field: Column | None = None
    """Column of the target; absent: translation.TARGET_LANGUAGE or TARGET_LANGUAGE if a column has this name, else the second column."""
    has_header: Switch | None = None
    """TSV and CSV: whether the first row holds the names of the columns; absent: true if the fields are given by name."""
    alignment_path: Text | None = None
    """Word alignments of the pairs, for training.guided_alignment: line N holds the links of pair N in the Pharaoh format, such as 0-0 1-2, as eflomal, fast_align, simalign and, for text with spaces between words, tfm align write them. Words are what white space separates, counted from 0. An empty line: the pair has no links."""

    @model_validator(mode="after")
    def _one_way_to_name_files(self) -> Self:
        given = [self.source_path is not None, self.target_path is not None, self.path is not None]
        if given not in ([True, True, False], [False, False, True]):
            raise ValueError("give either source_path and target_path, or path")
        fields = (self.source_field, self.target_field, self.has_header)
        if self.path is None and any(field is not None for field in fields):
            raise ValueError("source_field, target_field and has_header are for path only")
        if self.encoding is not None and self.format == "parquet":
            raise ValueError("encoding is for text: a Parquet file is always UTF-8")
        if self.alignment_path is not None and self.split in ("validation", "test"):
            raise ValueError(
                f"alignment_path has no effect with split: {self.split}, because alignments are for training"
            )
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
    """Read the data set while it is downloaded, without a copy in the cache of the hub. The pairs are still prepared before the training. While they are prepared, the run folder holds a file with their text, because each split is read separately; afterwards it holds their ids only. (With data.streaming, it holds neither.)"""
    max_pairs: Count | None = None
    """Stop after this many pairs."""


class _DrawnSplits(LanguageData):
    root: Text = "."
    """Relative paths of corpora start in this folder; a relative one starts in the current folder."""
    validation_share: Annotated[float, Field(strict=True, ge=0.0, le=0.5)] = 0.02
    """How much of the corpora without a split becomes validation pairs: 0.02 is one pair of 50. A hash of each pair decides."""
    test_share: Annotated[float, Field(strict=True, ge=0.0, le=0.5)] = 0.02
    """How much of the corpora without a split becomes test pairs."""
    temperature: Annotated[float, Field(strict=True, gt=1.0, le=1000.0)] | None = None
    """Sampling temperature T of several corpora, instead of weights: the share of a corpus in an epoch is proportional to n^(1 / T), where n is the number of its training pairs; an epoch has as many pairs as all corpora together (Arivazhagan et al. 2019, who use 5). Absent: the weights decide."""
    reversed_epochs: Count | None = None
    """Number of epochs at the beginning in which each training pair is also read the other way round, with the tag <REVERSED> before the source: a small corpus then teaches more. Later epochs read the wanted direction alone; absent: all do. Recipe: Gao et al. 2022. Translations need no tag. Needs tokenizer.shared."""
    streaming: Switch = False
    """For corpora that no disk holds: read the training pairs from the corpus while the model trains, in each epoch again, and keep no copy of them. They are shuffled, sorted by length and searched for duplicates among 50,000 pairs at a time, so the corpus should be in random order. Every corpus needs a split, and training.max_steps ends the run."""
    tokenizer_pairs: Count | None = None
    """With streaming: how many of the first training pairs the tokenizers are learned from; absent: 1,000,000."""
    stream_parts: Annotated[int, Field(strict=True, ge=1, le=4096)] = 1
    """With streaming and several processes: in how many parts the corpus is read. Each process reads, cleans and encodes its parts only, and the batches of an update come in turn from all parts. Best is the number of processes; with more processes than parts, several of them read the same part. training.accumulate times the number of processes must be a multiple of it. A part consists of whole files, if the parts can be made of files so that their sizes differ by less than a tenth; else it consists of every n-th row of each file."""
    corpora: tuple[_Corpus, ...]

    def directions_of(self, corpus: int) -> tuple[Direction, ...]:
        given = self.corpora[corpus]
        written = Direction(
            given.source_language or self.source_language, given.target_language or self.target_language
        )
        return (written, written.reverse) if self.both_directions else (written,)

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        corpora = range(len(self.corpora))
        return tuple(dict.fromkeys(one for index in corpora for one in self.directions_of(index)))

    @model_validator(mode="after")
    def _reversed_pairs_are_possible(self) -> Self:
        if self.reversed_epochs is not None:
            for setting, is_set, why in (
                ("both_directions", self.both_directions, "reads all pairs the other way round in each epoch"),
                ("streaming", self.streaming, "stores no pairs that could be turned round"),
            ):
                if is_set:
                    raise Contradiction(
                        f"data.reversed_epochs is set, but data.{setting}: true {why}",
                        hint=f"leave out data.reversed_epochs or data.{setting}",
                    )
        return self

    @model_validator(mode="after")
    def _pairs_are_left_for_training(self) -> Self:
        is_taken = self.validation_share + self.test_share >= 1.0
        if is_taken and not any(corpus.split == "train" for corpus in self.corpora):
            raise Contradiction(
                "validation_share and test_share are 1 together, so no training pair is left",
                hint="lower data.validation_share and data.test_share: 0.02 each is usual",
            )
        return self

    @model_validator(mode="after")
    def _languages_fit_together(self) -> Self:
        trained = [
            direction
            for index, corpus in enumerate(self.corpora)
            if corpus.split in (None, "train")
            for direction in self.directions_of(index)
        ]
        for index, corpus in enumerate(self.corpora):
            for direction in self.directions_of(index):
                if self.both_directions and direction.source == direction.target:
                    raise ValueError(
                        f"both_directions needs two languages, and both sides of corpora.{index} are {direction.source}"
                    )
                sources, targets = {one.source for one in trained}, {one.target for one in trained}
                if trained and not (direction.source in sources and direction.target in targets):
                    raise ValueError(
                        f"corpora.{index} is for {corpus.split} and translates {direction}, "
                        f"but the training corpora translate {', '.join(map(str, dict.fromkeys(trained)))}"
                    )
        return self


class FilesData(_DrawnSplits):
    """Local files."""

    source: Literal["files"]
    """files: local files under data.root."""
    corpora: Annotated[tuple[FileCorpus, ...], Field(min_length=1, max_length=1000)]
    """The files, each with its split and weight."""
    undecodable: Literal["error", "skip", "replace"] = "error"
    """For bytes that are no text in the encoding of the corpus (UTF-8, unless it has another one): error stops, skip drops the pair and counts it, replace puts U+FFFD in place of the bad bytes."""

    @model_validator(mode="after")
    def _corpora_can_be_mixed(self) -> Self:
        _check_mixture(self.corpora, self.temperature)
        return self


class HubData(_DrawnSplits):
    """Data sets through the Hugging Face `datasets` library."""

    source: Literal["hub"]
    """hub: Hugging Face data sets, by name."""
    corpora: Annotated[tuple[HubCorpus, ...], Field(min_length=1, max_length=1000)]
    """The data sets, each with its split and weight."""

    @model_validator(mode="after")
    def _corpora_can_be_mixed(self) -> Self:
        _check_mixture(self.corpora, self.temperature)
        return self


def _check_mixture(corpora: Sequence[_Corpus], temperature: float | None) -> None:
    mixed = [corpus for corpus in corpora if corpus.has_training_pairs]
    if temperature is not None:
        if len(mixed) < 2:
            raise ValueError("temperature has no effect on a single corpus of training pairs")
        if any(corpus.weight != 1.0 for corpus in mixed):
            raise Contradiction(
                "both temperature and the weights of data.corpora decide how often each corpus is read",
                hint="leave out data.temperature or every weight",
            )
    schedules = [corpus.weight for corpus in mixed if isinstance(corpus.weight, tuple)]
    for epoch in sorted({epoch for schedule in schedules for epoch, _ in schedule}):
        if not any(corpus.weight_in(epoch) for corpus in mixed):
            raise Contradiction(
                f"from epoch {epoch} on every corpus of training pairs has weight 0",
                hint="give one of data.corpora a weight above 0 from this epoch on",
            )


# The settings of synthetic tasks over random symbols, and losses that others publish.


SequenceLength = Annotated[int, Field(strict=True, ge=1, le=1000)]
_TASK_RULES = CleaningConfig(drop_equal=False, drop_duplicates=False, max_length_ratio=None)
Figures = Annotated[tuple[tuple[Count, Positive], ...], Field(max_length=1000)]


class SequencesData(DataSection):
    """Synthetic tasks over symbols that are written as numbers."""

    source: Literal["sequences"]
    """sequences: random symbols, generated when they are needed."""
    task: Literal["copy", "drop-first", "reverse", "sort", "memorise"] = "copy"
    """How the target follows from the source."""
    num_pairs: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = 20_000
    """Number of training pairs; validation and test have 1,000 pairs each (memorise: the training pairs)."""
    num_symbols: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 10
    """The symbols are the numbers from 1 to this."""
    min_length: SequenceLength = 5
    """Length of the shortest source, in symbols."""
    max_length: SequenceLength = 20
    """Length of the longest source, in symbols."""
    end_symbol: Switch = True
    """Sequences end with [EOS]; false: the length of the source decides when generation stops."""
    shift_target: Switch = True
    """The target that the decoder reads in training is shifted right by one position, behind [SOS], as in the paper. false: it is not shifted, so the decoder reads the symbol that it must predict, as in one tutorial; this needs end_symbol: false."""
    cleaning: CleaningConfig = _TASK_RULES
    """Rules that would drop pairs of the task are switched off, unless the config switches them on."""

    @field_validator("cleaning", mode="before")
    @classmethod
    def _fill_in_rules_of_the_task(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {**_TASK_RULES.model_dump(exclude_unset=True), **values}

    @model_validator(mode="after")
    def _lengths_are_ordered(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) is above max_length ({self.max_length})")
        if self.task == "drop-first" and self.min_length < 2:
            raise ValueError("task drop-first needs min_length of 2 or more, because it drops one symbol")
        if self.end_symbol and not self.shift_target:
            raise ValueError(
                "shift_target: false needs end_symbol: false, because a model that reads the symbol which "
                "it must predict cannot learn where a sequence ends"
            )
        return self


class PublishedConfig(Section):
    """Losses that others publish for the same experiment; `tfm train` shows them beside its own."""

    training_loss: Figures = ()
    """Pairs of a step and the training loss per token at that step, in nats."""
    validation_loss: Figures = ()
    """Pairs of a step and the validation loss per token at that step, in nats."""
