"""A config that fits a corpus, as YAML with a reason beside each line."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformer_cli.config.data import CleaningConfig, FilesData, LanguageData
from transformer_cli.config.loading import check_settings, parse_yaml
from transformer_cli.config.schema import Config
from transformer_cli.config.section import Section

_WORDS_PER_ENTRY = 10
_SMALLEST_VOCABULARY, _VOCABULARIES = 300, ((5e6, 8_000), (1e8, 16_000), (float("inf"), 32_000))
# Tokens for each word: 0.94 + 40 / sqrt(entries of a vocabulary). Measured for the longer side of ten corpora of 1,000 to 30,000
# pairs: 2.5 with 660 entries, 1.8 with 1,900, 1.4 with 8,000 (docs/experiments.md).
_TOKENS_OF_WORD, _TOKENS_OF_PARTS = 0.94, 40.0
_SHARE_OF_VALIDATIONS, _MOST_VALIDATED = 0.1, 2000
_NUM_VALIDATIONS = 12
_CHARACTERS_PER_WORD = 2.0  # of languages without spaces
_HELD_OUT_PAIRS = (40, 2000)
_LARGEST_SHARE, _LARGEST_TEST_SHARE = 0.2, 0.1
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
_SPECIAL = frozenset({"true", "false", "null"})
_COMMENT_COLUMN = 36


@dataclass(frozen=True, slots=True)
class CorpusSize:
    """The numbers of a corpus that decide the settings."""

    num_pairs: int
    """Pairs for training; unless `has_splits`, they include the pairs that will be held out."""
    source_words: float
    target_words: float
    num_characters: tuple[int, int]
    """How many different characters each side has."""
    num_different_words: tuple[int, int]
    """How many different words each side has, in a part of the corpus."""
    share_a_script: bool
    """Whether both languages are written with the same letters, so that one vocabulary serves both."""
    has_splits: bool
    """Whether files are named for training and validation."""
    num_validation: int | None = None
    """Pairs of the files for validation; None: pairs are held out."""


@dataclass(frozen=True, slots=True)
class InitialRun:
    """A run whose weights, vocabularies and architecture the new run takes (`training.init_from`)."""

    name: str
    config: Config


@dataclass(frozen=True, slots=True)
class _Scale:
    """Sizes of the model and the batch for corpora of fewer than `below` pairs."""

    below: float
    model: dict[str, Any]
    dropout: float
    batch_tokens: int
    epochs: int
    learning_rate: str
    optimizer: str = "muon"


_SCALES = (
    _Scale(
        1_000,
        {"d_model": 128, "num_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2},
        0.3,
        256,
        60,
        "3e-3",
    ),
    _Scale(10_000, {"preset": "small", "d_ff": 512, "encoder_layers": 2, "decoder_layers": 2}, 0.3, 1024, 40, "3e-3"),
    _Scale(20_000, {"preset": "small", "d_ff": 512}, 0.3, 2048, 25, "3e-3"),
    _Scale(100_000, {"preset": "small", "d_ff": 512}, 0.2, 2048, 25, "3e-3"),
    _Scale(1_000_000, {"preset": "small"}, 0.1, 4096, 15, "3e-3"),
    _Scale(float("inf"), {"preset": "base"}, 0.1, 8192, 10, "7e-4", "adam"),
)
_OPTIMIZER_REASONS = {
    "muon": "learns in fewer updates than Adam, where the model is small",
    "adam": "the optimizer of the paper",
}
_WORDS_OF_BLEU = 4
# Measured with as many updates: 0.6 BLEU and 1.4 chrF more with 3,000 pairs, 0.5 and 0.6 less with 1,000 (docs/experiments.md); with 29,000
# captions nothing.
_REVERSED_PAIRS, _SHARE_OF_REVERSED = (2_000, 20_000), 0.6
_MIN_STEPS, _MAX_STEPS = 400, 100_000
# Of a run that begins with the weights of another one: the best checkpoint came after three passes over 311 pairs (docs/experiments.md).
_FURTHER_EPOCHS, _MIN_FURTHER_STEPS = 5, 60
# A wider model keeps what it knows only with a lower learning rate.
_WIDE, _FEW_THOUSAND_PAIRS = 256, 10_000


def recipe(
    name: str,
    data: FilesData,
    size: CorpusSize,
    *,
    origin: str,
    doubts: Sequence[str] = (),
    initial: InitialRun | None = None,
) -> str:
    """The text of a config for a corpus; the text is checked as a config file is.

    Args:
        name: the name of the run.
        data: the data section that reads the corpus.
        origin: the command that writes the config; the first line shows it.
        doubts: what is odd about the corpus, each on one line.
        initial: the run with whose weights the run begins; None: with random ones.
    """
    lines = [
        f"# Written by `{origin}` for {size.num_pairs:,} sentence pairs; change what you like.",
        "# Each line says what it does and why; docs/configuration.md lists all settings.",
        *(f"# Check: {doubt}." for doubt in doubts),
        *_table(0, [("name", name, f"the run lies in runs/{name}")]),
        "",
        *_data_lines(data, size, initial),
        "",
        *(_model_lines(size) if initial is None else _lines_of_run(initial)),
        "",
        *_training_lines(size, initial),
    ]
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    check_settings(parse_yaml(text, name), name)
    return text


def held_out_share(num_pairs: int) -> float:
    """The share of validation: 5 %, but at least 40 pairs if a fifth has as many, and at most 2,000."""
    fewest, most = _HELD_OUT_PAIRS
    share = min(max(0.05, fewest / num_pairs), most / num_pairs, _LARGEST_SHARE)
    digits = 1 - math.floor(math.log10(share))
    return math.floor(share * 10**digits + 1e-6) / 10**digits


def held_out_for_test(num_pairs: int) -> float:
    """The share of the test split: as for validation, but at most a tenth, so that training keeps most pairs."""
    return min(held_out_share(num_pairs), _LARGEST_TEST_SHARE)


def _data_lines(data: FilesData, size: CorpusSize, initial: InitialRun | None) -> list[str]:
    lines = ["data:"]
    lines += _table(
        2,
        [
            ("source", "files", "local files"),
            ("source_language", data.source_language, "translate from this language"),
            ("target_language", data.target_language, "translate into this language"),
        ],
    )
    lines.append("  corpora:")
    for corpus in data.corpora:
        given = corpus.model_dump(exclude_none=True, exclude={"weight"})
        entry = _table(6, [(key, value, _CORPUS_REASONS[key]) for key, value in given.items()])
        entry[0] = "    - " + entry[0].removeprefix(" " * 6)
        lines += entry
    share, test_share = held_out_share(size.num_pairs), held_out_for_test(size.num_pairs)
    reason = "a hash of each pair decides, so a pair never changes its split"
    drawn = [
        ("validation_share", share, f"about {share * size.num_pairs:,.0f} pairs choose the best checkpoint; {reason}"),
        ("test_share", test_share, f"about {test_share * size.num_pairs:,.0f} pairs for: tfm validate --split test"),
    ]
    if any(corpus.split == "test" for corpus in data.corpora):
        drawn[1] = "test_share", 0.0, "the test has files of its own"
    lines += [] if size.has_splits else _table(2, drawn)
    if initial is None and size.share_a_script and _REVERSED_PAIRS[0] <= size.num_pairs < _REVERSED_PAIRS[1]:
        reason = (
            "these first epochs read each pair the other way round, too: a small corpus teaches more so (null: none)"
        )
        lines += _table(2, [("reversed_epochs", _reversed_epochs(size), reason)])
    if initial is not None and isinstance(initial.config.data, LanguageData) and initial.config.data.target_tag:
        lines += _table(2, [("target_tag", True, f"as in the run {_scalar(initial.name)}")])
    usual, cleaning = CleaningConfig(), list[tuple[str, Any, str]]()
    ratio = data.cleaning.max_length_ratio
    if ratio is not None and ratio != usual.max_length_ratio:
        reason = "pairs that differ by more in their lengths are dropped: one language needs far fewer characters"
        cleaning.append(("max_length_ratio", int(ratio), reason))
    if initial is not None:
        rules, reason = initial.config.data.cleaning, f"as in the run {_scalar(initial.name)}"
        cleaning += [
            (key, getattr(rules, key), reason)
            for key in ("normalize_unicode", "normalize_invisible", "join_white_space")
            if getattr(rules, key) != getattr(usual, key)
        ]
    return [*lines, "  cleaning:", *_table(4, cleaning)] if cleaning else lines


_CORPUS_REASONS = {
    "split": "what these pairs are for",
    "source_path": "one sentence per line; relative to the current folder",
    "target_path": "line N translates line N of source_path",
    "path": "relative to the current folder",
    "format": "named here, because the file name does not show the format",
    "encoding": "how letters are written in this file; UTF-8 needs no such line",
    "source_field": "the column of the source sentences",
    "target_field": "the column of their translations",
    "has_header": "whether the first row names the columns",
}


def _model_lines(size: CorpusSize) -> list[str]:
    scale, share_one = _scale(size), size.share_a_script
    vocab_size = vocabulary_size(size)
    whose = "both languages together" if share_one else "each language"
    tied = "all" if share_one else "target-output"
    what_is_tied = "both embeddings and the output layer" if share_one else "target embedding and output layer"
    tokenizer = [
        ("kind", "bpe", "parts of words: no word is unknown"),
        ("vocab_size", vocab_size, f"entries for {whose}; in a small corpus, more would be too rare to be learned"),
        (
            "shared",
            share_one,
            "one vocabulary for both languages, which share letters and names"
            if share_one
            else "the languages have different letters, so each has its own vocabulary",
        ),
    ]
    reasons = {
        "preset": "sizes of the model: tiny, small, base or big"
        + ("; base needs a GPU" if scale.model.get("preset") == "base" else ""),
        "d_model": "width of the model: small, because the corpus is",
        "num_heads": "attention heads",
        "d_ff": "inner width of the feed-forward network",
        "encoder_layers": "layers; more need more pairs",
        "decoder_layers": "as many as in the encoder",
    }
    model = [(key, value, reasons[key]) for key, value in scale.model.items()]
    model += [
        ("dropout", scale.dropout, "the fewer pairs, the more dropout: it hinders learning by heart"),
        ("init", "pytorch", "the initial weights from which a model learns faster"),
        ("tie_embeddings", tied, f"one table for {what_is_tied}: fewer numbers to learn"),
    ]
    return ["tokenizer:", *_table(2, tokenizer), "", "model:", *_table(2, model)]


def _lines_of_run(initial: InitialRun) -> list[str]:
    """The sections tokenizer and model of a run; what it leaves at the default is left out."""
    lines = []
    for key in ("tokenizer", "model"):
        section: Section = getattr(initial.config, key)
        values = section.model_dump(mode="json", exclude_defaults=True)
        head = f"{key}:" if values else f"{key}: {{}}"
        lines += ["", f"{head:<{_COMMENT_COLUMN}}# as in the run {_scalar(initial.name)}, whose weights this run takes"]
        lines += [f"  {name}: {_scalar(value)}" for name, value in values.items()]
    return lines[1:]


def _training_lines(size: CorpusSize, initial: InitialRun | None) -> list[str]:
    scale, steps = _scale(size), num_steps(size)
    optimizer, learning_rate = scale.optimizer, scale.learning_rate
    begin: list[tuple[str, Any, str]] = []
    if initial is not None:
        steps = _further_steps(size)
        begin = [("init_from", initial.name, "the run with whose weights this run begins")]
        if initial.config.model.d_model < _WIDE:
            learning_rate = "1e-3"
        else:
            optimizer, learning_rate = "adam", "3e-5" if size.num_pairs < _FEW_THOUSAND_PAIRS else "1e-4"
    interval = _two_digits(steps / _NUM_VALIDATIONS)
    warmup_steps = min(4000, _two_digits(steps / 10))
    validated = num_validated(size, steps)
    has_sentences = size.target_words >= _WORDS_OF_BLEU * size.num_pairs
    why_chrf = "" if has_sentences else "; BLEU counts four words in a row, and most lines have fewer"
    training = [
        *begin,
        # How many passes these are depends on the vocabulary, which is learned later: the plan of tfm train counts them.
        ("max_steps", steps, "updates of the weights; tfm train says how many passes over the pairs these are"),
        ("batch_tokens", _batch_tokens(size), "tokens of an update, on its longer side, with padding"),
        ("optimizer", optimizer, _OPTIMIZER_REASONS[optimizer]),
        ("schedule", "cosine", "the learning rate rises, then falls to 0 at max_steps"),
        ("learning_rate", learning_rate, "the peak of the learning rate; lower it if the loss jumps"),
        ("warmup_steps", warmup_steps, "updates in which the learning rate rises: a tenth of all"),
        ("log_every", max(10, min(100, 10 * round(interval / 40))), "updates between two reports of the loss"),
        (
            "validate_every",
            interval,
            f"updates between validations: about {steps // interval} in the run, with sample translations",
        ),
        ("save_every", interval, "updates between checkpoints; an interrupted run continues from the last"),
        (
            "best_metric",
            "bleu" if has_sentences else "chrf",
            f"the score that decides which checkpoint translates{why_chrf}",
        ),
    ]
    validation = [
        (
            "max_sentences",
            validated,
            "sentences of a validation: at most a tenth of the pairs that are read between two of them",
        )
    ]
    return ["training:", *_table(2, training), "", "validation:", *_table(2, validation)]


def vocabulary_size(size: CorpusSize) -> int:
    """Entries of the vocabulary, so that each occurs often enough to be learned."""
    words = size.source_words, size.target_words
    num_words = sum(words) if size.share_a_script else min(words)
    largest = next(entries for limit, entries in _VOCABULARIES if num_words < limit)
    # A character that has no entry of its own costs two or three tokens.
    num_characters = sum(size.num_characters) if size.share_a_script else max(size.num_characters)
    wanted = max(num_words / _WORDS_PER_ENTRY, min(num_characters * 1.2, num_words / 8))
    # Further entries would be whole words, so the model would learn nothing about parts of words.
    words_of_sides = size.num_different_words
    num_different = sum(words_of_sides) if size.share_a_script else min(words_of_sides)
    most = _SMALLEST_VOCABULARY + num_different / 2
    return max(_SMALLEST_VOCABULARY, min(largest, _two_digits(min(wanted, most))))


def num_steps(size: CorpusSize) -> int:
    """Updates of a run: more passes over a small corpus, fewer over a large one."""
    wanted = _scale(size).epochs * _steps_per_epoch(size)
    return _two_digits(min(_MAX_STEPS, max(_MIN_STEPS, wanted)))


def _reversed_epochs(size: CorpusSize) -> int:
    """In how many first epochs, whose updates are twice as many, the pairs are read the other way round, too."""
    return max(1, round(_SHARE_OF_REVERSED * num_steps(size) / (2 * _steps_per_epoch(size))))


def _further_steps(size: CorpusSize) -> int:
    """Updates of a run that begins with the weights of another one."""
    return _two_digits(min(_MAX_STEPS, max(_MIN_FURTHER_STEPS, _FURTHER_EPOCHS * _steps_per_epoch(size))))


def num_validated(size: CorpusSize, steps: int) -> int:
    """Sentences of a validation: at most a tenth of the pairs that training reads between two of them, so that its time is small.

    But at least 40, at most 2,000, and at most as many as there are.

    Args:
        steps: the updates of the run.
    """
    epochs = steps / _NUM_VALIDATIONS / _steps_per_epoch(size)
    wanted = _SHARE_OF_VALIDATIONS * epochs * size.num_pairs
    there_are = size.num_validation
    if there_are is None:
        there_are = round(held_out_share(size.num_pairs) * size.num_pairs)
    return max(1, min(there_are, max(_HELD_OUT_PAIRS[0], min(_MOST_VALIDATED, _two_digits(wanted)))))


def words_of(num_words: float, num_characters: float, *, is_spaced: bool) -> float:
    """The number of words; in a language without spaces, two characters count as one."""
    return num_words if is_spaced else num_characters / _CHARACTERS_PER_WORD


def _steps_per_epoch(size: CorpusSize) -> float:
    return max(1.0, _tokens_per_epoch(size) / _batch_tokens(size))


def _batch_tokens(size: CorpusSize) -> int:
    """Tokens of a batch: as in the scale, but fewer if an epoch would have less than eight updates."""
    return min(_scale(size).batch_tokens, max(64, _two_digits(_tokens_per_epoch(size) / 8)))


def _tokens_per_epoch(size: CorpusSize) -> float:
    held_out = held_out_share(size.num_pairs) + held_out_for_test(size.num_pairs)
    held_out = 0.0 if size.has_splits else held_out
    longer = max(size.source_words, size.target_words)
    # A little is added for padding, and because the longer side differs from pair to pair.
    # Of two vocabularies, each has all its entries for one language.
    entries = vocabulary_size(size) * (1 if size.share_a_script else 2)
    tokens_per_word = _TOKENS_OF_WORD + _TOKENS_OF_PARTS / math.sqrt(entries)
    return 1.06 * (longer * tokens_per_word + size.num_pairs) * (1 - held_out)


def _scale(size: CorpusSize) -> _Scale:
    return next(scale for scale in _SCALES if size.num_pairs < scale.below)


def _two_digits(number: float) -> int:
    """A whole number with two significant digits."""
    return max(1, int(float(f"{number:.2g}")))


def _table(indent: int, rows: list[tuple[str, Any, str]]) -> list[str]:
    """Lines `key: value` with comments in one column."""
    lines = [f"{' ' * indent}{key}: {_scalar(value)}" for key, value, _ in rows]
    width = max(_COMMENT_COLUMN, *(len(line) + 2 for line in lines)) if len(lines) > 1 else 0
    width = width or max(_COMMENT_COLUMN, len(lines[0]) + 2)
    return [f"{line:<{width}}# {row[2]}" for line, row in zip(lines, rows, strict=True)]


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        digits = f"{value:.12f}".rstrip("0")
        return digits + "0" * digits.endswith(".")
    if not isinstance(value, str):
        return json.dumps(value)
    is_plain = _PLAIN.fullmatch(value) and value not in _SPECIAL
    if is_plain or re.fullmatch(r"[0-9.]+e-[0-9]+", value):  # a learning rate
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())
