"""Tokenizers with the entries that a config asks for: words that they do not know, and tags of corpora."""

import logging
from pathlib import Path

from transformer_cli.config import Config
from transformer_cli.data.text_file import StoredText
from transformer_cli.process.errors import DataError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.added_entries import with_added_entries, with_tags
from transformer_cli.text.tokenizer import Tokenizers

logger = logging.getLogger(__name__)


def are_extended(config: Config) -> bool:
    """Whether `extended_tokenizers` may add an entry."""
    return config.training.add_words is not None or bool(_tags(config))


def extended_tokenizers(config: Config, text: Path, tokenizers: Tokenizers) -> Tokenizers:
    """The tokenizers with the words of `training.add_words` and the tags of `data.corpora`.

    Args:
        text: the cleaned training pairs, a file of `write_text`.
        tokenizers: of source and target; their entries keep their ids.
    """
    source, target = tokenizers
    if (num_added := config.training.add_words) is not None:
        source, target = _with_words(config, text, tokenizers, num_added)
    tagged = with_tags(source, _tags(config))
    if source is target:
        return tagged, tagged
    return tagged, with_tags(target, _tags(config)) if config.tokenizer.shared else target


def require_tags(config: Config, tokenizers: Tokenizers) -> None:
    """Check that the source vocabulary has an entry for each tag.

    Raises:
        DataError: an entry is missing; the model of a run that has begun has no row for a further entry.
    """
    if missing := [tag for tag in _tags(config) if tag not in tokenizers[0].entries]:
        raise DataError(
            f"data.corpora: the vocabulary of this run has no entry for the tag {missing[0]}",
            hint="start a new run with training.init_from: its vocabulary gets the tag",
        )


def _tags(config: Config) -> list[str]:
    return list(dict.fromkeys(tag for tag in SequenceFormat.of(config.data).corpus_tags if tag))


def _with_words(config: Config, text: Path, tokenizers: Tokenizers, num_added: int) -> Tokenizers:
    def extended(tokenizer: Tokenizer, *sides: str) -> Tokenizer:
        texts, min_frequency = StoredText(text, sides), config.tokenizer.min_frequency
        return with_added_entries(tokenizer, texts, num_added, min_frequency=min_frequency)

    source, target = tokenizers
    if config.tokenizer.shared:
        shared = extended(source, "source", "target")
        more = shared, shared
    else:
        more = extended(source, "source"), extended(target, "target")
    if [one.vocab_size for one in more] == [source.vocab_size, target.vocab_size]:
        logger.warning(
            "training.add_words=%d adds nothing: the tokenizers know all words of the training split",
            num_added,
        )
    return more
