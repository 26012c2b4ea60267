"""Learning a vocabulary: whole words, or subwords by byte-pair encoding or a unigram model."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tokenizers import pre_tokenizers, trainers

from transformer_cli.config import TokenizerConfig
from transformer_cli.errors import ConfigError
from transformer_cli.text.tokenizer_file import EMPTY_MODELS, MAX_ENTRIES, build
from transformer_cli.text.word_split import SPECIALS, UNK, is_one_piece

SUBWORD_VOCAB_SIZE = 8000
# Longer texts are cut: a word of a million characters would make a tokenizer.json that is refused.
MAX_LEARNED_CHARACTERS = 10_000
_PIECES = re.compile(r"(?s).{1,999}(?:\s|\Z)|.{1,1000}")  # ends at white space if possible
_TRAINER: dict[str, Any] = {"special_tokens": list(SPECIALS), "show_progress": False}
_BYTES = pre_tokenizers.ByteLevel.alphabet()
# The entries of a subword vocabulary that are not learned: the bytes and the special tokens.
NUM_FIXED_ENTRIES = len(_BYTES) + len(SPECIALS)


def learn_model(texts: Iterable[str], config: TokenizerConfig) -> dict[str, Any]:
    """The `model` entry of a tokenizer.json, learned from texts; the same texts give the same model.

    Raises:
        ConfigError: `vocab_size` is too small for this kind of tokenizer.
    """
    texts = _cut_long_texts(texts)
    if config.kind == "wordlevel":
        return _learn_words(texts, config)
    vocab_size = config.vocab_size or SUBWORD_VOCAB_SIZE
    if vocab_size < NUM_FIXED_ENTRIES:
        raise ConfigError(
            f"tokenizer.vocab_size ({vocab_size}) is below {NUM_FIXED_ENTRIES}: a {config.kind} vocabulary "
            f"holds all {len(_BYTES)} bytes and {len(SPECIALS)} special tokens",
            hint="raise tokenizer.vocab_size, or set tokenizer.kind: wordlevel",
        )
    if config.kind == "bpe":
        return _learn_merges(texts, vocab_size, config.min_frequency)
    return _learn_scores(texts, vocab_size)


def _cut_long_texts(texts: Iterable[str]) -> Iterator[str]:
    """Cut very long texts: time and memory of training grow with the square of a text's length."""
    for text in texts:
        if len(text) <= MAX_LEARNED_CHARACTERS:
            yield text
        else:
            yield from _PIECES.findall(text)


def _learn_words(texts: Iterable[str], config: TokenizerConfig) -> dict[str, Any]:
    trainer = trainers.WordLevelTrainer(
        vocab_size=config.vocab_size or MAX_ENTRIES, min_frequency=config.min_frequency, **_TRAINER
    )
    return _learn("WordLevel", trainer, texts)


def _learn_merges(texts: Iterable[str], vocab_size: int, min_frequency: int) -> dict[str, Any]:
    """Byte-pair encoding (Sennrich et al. 2016); no token reaches beyond a word."""
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, initial_alphabet=_BYTES, **_TRAINER
    )
    return _learn("BPE", trainer, texts)


def _learn_scores(texts: Iterable[str], vocab_size: int) -> dict[str, Any]:
    """A unigram language model over subwords (Kudo 2018); no subword reaches beyond a word.

    The trainer accepts a subword only if two different characters follow it in the texts. So it would
    accept a word only if longer words contain it. Therefore words stay joined to the punctuation after
    them, each word is also given once before a full stop, and subwords with punctuation are removed.
    """
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, initial_alphabet=_BYTES, unk_token=UNK, **_TRAINER
    )
    learned = _learn("Unigram", trainer, _then_each_word_with_a_mark(texts))
    pieces = {piece: score for piece, score in learned["vocab"] if is_one_piece(piece)}
    learned["vocab"] = [[special, 0.0] for special in SPECIALS] + _rounded_scores(pieces)
    return learned


def _learn(kind: str, trainer: trainers.Trainer, texts: Iterable[str]) -> dict[str, Any]:
    empty = EMPTY_MODELS[kind]
    tokenizer = build(empty, keeps_marks_with_words=kind == "Unigram")
    tokenizer.train_from_iterator(texts, trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    return {name: learned[name] for name in empty}


def _then_each_word_with_a_mark(texts: Iterable[str]) -> Iterator[str]:
    words = set()
    for text in texts:
        words.update(text.split())
        yield text
    yield from (f"{word}." for word in sorted(words) if word[-1].isalpha())


def _rounded_scores(pieces: dict[str, float]) -> list[list[Any]]:
    """Subwords with scores that do not depend on the trainer's order of additions, which varies.

    The order changes the last digits, which are rounded away. Bytes that occur in no text get random
    scores a little above the lowest; they are set to the lowest.
    """
    lowest = min(pieces.values())
    by_chance = {byte for byte in _BYTES if pieces[byte] <= lowest + 1e-4 * len(_BYTES)}
    rounded = [
        [piece, round(lowest if piece in by_chance else score, 4)]
        for piece, score in pieces.items()
    ]
    return sorted(rounded, key=lambda entry: (-entry[1], entry[0]))
