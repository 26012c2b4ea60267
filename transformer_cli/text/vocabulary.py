"""Learning a vocabulary: whole words, or subwords by byte-pair encoding or a unigram model."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tokenizers import trainers

from transformer_cli.config import TokenizerConfig
from transformer_cli.process.errors import ConfigError
from transformer_cli.text.normalization import (
    SPECIALS,
    UNK,
    are_spaced_words,
    compose,
    count_signs_and_spaces,
    is_one_piece,
)
from transformer_cli.text.tokenizer_file import (
    BYTE_LEVEL_ALPHABET,
    BYTE_TOKENS,
    LEARNED,
    MAX_ENTRIES,
    Layout,
    TokenizerParts,
    build,
)

SUBWORD_VOCAB_SIZE = 8000
# Longer texts are cut: a word of a million characters would make a tokenizer.json that is refused.
MAX_LEARNED_CHARACTERS = 10_000
# Text in which a larger share of the characters is not ASCII is learned on characters, other text on bytes.
MAX_BEYOND_ASCII = 0.1
# The characters of a vocabulary are the most frequent ones, which make up this share of the texts. The others
# are given as bytes.
COVERED_SHARE = 0.9995
_PIECES = re.compile(r"(?s).{1,999}(?:\s|\Z)|.{1,1000}")  # ends at white space if possible
# The entries of a subword vocabulary that are not learned: the bytes and the special tokens.
NUM_FIXED_ENTRIES = len(BYTE_TOKENS) + len(SPECIALS)
# Replaces each character that is not in the alphabet; it is split off as a piece, so no subword contains it.
_SEPARATOR = "\n"


def learn_model(
    texts: Iterable[str],
    config: TokenizerConfig,
    *,
    composes: bool = True,
    tags: Sequence[str] = (),
) -> TokenizerParts:
    """A tokenizer as a value, learned from texts; the same texts give the same value.

    Args:
        texts: read twice.
        config: the kind of tokenizer, and the limits of its vocabulary.
        composes: whether the tokenizer converts text to the Unicode normal form NFC; SentencePiece has its own setting.
        tags: special tokens that name target languages, such as <2it>.

    Raises:
        ConfigError: `vocab_size` is too small for this kind of tokenizer.
        UsageError: the package sentencepiece is needed, and not installed.
    """
    if isinstance(texts, Iterator):
        raise TypeError("give a list of texts, or another collection that can be read twice")
    if config.is_of_library:
        from transformer_cli.text.sentencepiece_model import learn_sentencepiece

        vocab_size = config.vocab_size or SUBWORD_VOCAB_SIZE
        return learn_sentencepiece(_CutTexts(texts), config, vocab_size, tags)
    plain = Layout("BPE", composes=composes, tags=tuple(tags))
    if config.subwords is None:
        return _learn_words(texts, config, replace(plain, kind="WordLevel"))
    vocab_size = config.vocab_size or SUBWORD_VOCAB_SIZE
    num_fixed = len(BYTE_TOKENS) + len(plain.specials)
    if vocab_size < num_fixed:
        raise ConfigError(
            f"tokenizer.vocab_size ({vocab_size}) is below {num_fixed}: a {config.kind} vocabulary "
            f"holds all {len(BYTE_TOKENS)} bytes and {len(plain.specials)} special tokens",
            hint="raise tokenizer.vocab_size, or set tokenizer.kind: wordlevel",
        )
    counts = _count_characters(texts, composes=composes)
    num_ascii = sum(number for character, number in counts.items() if character.isascii())
    if num_ascii >= (1.0 - MAX_BEYOND_ASCII) * counts.total():
        learn = _learn_merges_of_bytes if config.subwords == "bpe" else _learn_scores_of_bytes
        return learn(texts, config, plain)
    num_free = vocab_size - num_fixed
    alphabet = [" ", _SEPARATOR, *_most_frequent(counts, max_size=num_free // 2)][:num_free]
    known = _WithoutOthers(texts, set(alphabet), composes=composes)
    layout = replace(plain, has_byte_fallback=True, has_spaced_words=_has_spaced_words(texts))
    if config.subwords == "bpe":
        return _learn_merges(known, layout, vocab_size, config.min_frequency)
    candidates = _learn_merges(known, layout, 2 * vocab_size, 1)
    return learn_scores(known, candidates, vocab_size)


def _has_spaced_words(texts: Iterable[str]) -> bool:
    """Whether the texts have spaces between the words of a script that is usually written without."""
    num_signs = num_spaces = 0
    for text in texts:
        if not text.isascii():
            signs, spaces = count_signs_and_spaces(text)
            num_signs, num_spaces = num_signs + signs, num_spaces + spaces
    return num_spaces > 0 and are_spaced_words(num_signs, num_spaces)


def _count_characters(texts: Iterable[str], *, composes: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(compose(text) if composes else text)
    return counts


def _most_frequent(counts: Counter[str], *, max_size: int) -> list[str]:
    """The most frequent characters, which make up `COVERED_SHARE` of a text."""
    missing = (1.0 - COVERED_SHARE) * counts.total()
    frequent = sorted(counts, key=lambda character: (-counts[character], character))
    while frequent and (missing := missing - counts[frequent[-1]]) >= 0.0:
        frequent.pop()
    return frequent[:max_size]


def _learn_words(texts: Iterable[str], config: TokenizerConfig, plain: Layout) -> TokenizerParts:
    layout = replace(plain, has_spaced_words=_has_spaced_words(texts))
    trainer = trainers.WordLevelTrainer(
        vocab_size=config.vocab_size or MAX_ENTRIES,
        min_frequency=config.min_frequency,
        special_tokens=list(layout.specials),
        show_progress=False,
    )
    return _learn(layout, trainer, texts)


def _learn_merges_of_bytes(texts: Iterable[str], config: TokenizerConfig, layout: Layout) -> TokenizerParts:
    """Byte-pair encoding (Sennrich et al. 2016) of bytes (Radford et al. 2019); no token reaches beyond a word."""
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size or SUBWORD_VOCAB_SIZE,
        min_frequency=config.min_frequency,
        initial_alphabet=BYTE_LEVEL_ALPHABET,
        special_tokens=list(layout.specials),
        show_progress=False,
    )
    return _learn(layout, trainer, texts)


def _learn_merges(texts: "_WithoutOthers", layout: Layout, vocab_size: int, min_frequency: int) -> TokenizerParts:
    """Byte-pair encoding of characters; a character that is not in the vocabulary is given as its bytes."""
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        initial_alphabet=texts.alphabet,
        limit_alphabet=len(texts.alphabet),
        special_tokens=[*layout.specials, *BYTE_TOKENS],
        show_progress=False,
    )
    return _learn(layout, trainer, texts)


def _learn_scores_of_bytes(texts: Iterable[str], config: TokenizerConfig, plain: Layout) -> TokenizerParts:
    """A unigram language model over subwords (Kudo 2018); no subword reaches beyond a word.

    The trainer accepts a subword only if two different characters follow it in the texts. So it would
    accept a word only if longer words contain it. Therefore words stay joined to the punctuation after
    them, each word is also given once before a full stop, and subwords with punctuation are removed.
    """
    trainer = trainers.UnigramTrainer(
        vocab_size=config.vocab_size or SUBWORD_VOCAB_SIZE,
        initial_alphabet=BYTE_LEVEL_ALPHABET,
        unk_token=UNK,
        special_tokens=list(plain.specials),
        show_progress=False,
    )
    layout = replace(plain, kind="Unigram")
    learned = _learn(layout, trainer, _then_each_word_with_a_mark(texts)).model
    pieces = {piece: score for piece, score in learned["vocab"] if is_one_piece(piece)}
    learned["vocab"] = [[special, 0.0] for special in layout.specials] + _rounded_scores(pieces)
    return TokenizerParts(layout, learned)


def _cut_long_texts(texts: Iterable[str]) -> Iterator[str]:
    """Cut very long texts: time and memory of training grow with the square of a text's length."""
    for text in texts:
        if len(text) <= MAX_LEARNED_CHARACTERS:
            yield text
        else:
            yield from _PIECES.findall(text)


class _CutTexts:
    """Texts that can be read several times, without very long ones."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        return _cut_long_texts(self._texts)


def _learn(layout: Layout, trainer: trainers.Trainer, texts: Iterable[str]) -> TokenizerParts:
    empty = layout.empty_model()
    parts = TokenizerParts(layout, empty)
    tokenizer = build(parts, keeps_marks_with_words=layout.kind == "Unigram")
    tokenizer.train_from_iterator(_cut_long_texts(texts), trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    # The trainer of Unigram makes a new model, without the settings of the empty one.
    return TokenizerParts(layout, empty | {name: learned[name] for name in LEARNED & empty.keys()})


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
    highest_by_chance = lowest + 1e-4 * len(BYTE_LEVEL_ALPHABET)
    by_chance = {byte for byte in BYTE_LEVEL_ALPHABET if pieces[byte] <= highest_by_chance}
    rounded = [[piece, round(lowest if piece in by_chance else score, 4)] for piece, score in pieces.items()]
    return sorted(rounded, key=lambda entry: (-entry[1], entry[0]))


class _WithoutOthers:
    """Texts in which each character that is not in an alphabet is replaced by a separator."""

    def __init__(self, texts: Iterable[str], alphabet: Iterable[str], *, composes: bool) -> None:
        self.alphabet = sorted(alphabet)
        self._composes = composes
        self._texts = texts
        known = "".join(map(re.escape, self.alphabet))
        self._others = re.compile(f"[^{known}]" if known else "(?s:.)")

    def __iter__(self) -> Iterator[str]:
        for text in _cut_long_texts(self._texts):
            yield self._others.sub(_SEPARATOR, compose(text) if self._composes else text)


# Of the candidates beyond the vocabulary, each round keeps this share; the last round keeps none.
KEPT_SHARES = (0.5, 0.2, 0.0, 0.0)
TEXTS_AT_ONCE = 10_000
# Log of a count below 1: for bytes, and for characters that occur only inside longer subwords.
_RARER = math.log(0.5)


def learn_scores(texts: Iterable[str], candidates: TokenizerParts, vocab_size: int) -> TokenizerParts:
    """A Unigram tokenizer of at most `vocab_size` entries; all single characters of the candidates stay.

    The candidates are the subwords that byte-pair encoding finds. The trainer of the `tokenizers` library finds its candidates in
    a list of different words, without their frequencies, so that it loses the short frequent words of Japanese. Here each
    round splits the texts in the most probable way, and the next round has the frequencies of this one (Viterbi training);
    each round drops the rarest candidates.

    Source of the scores of a unigram language model: Kudo 2018.

    Args:
        texts: read several times.
        candidates: a BPE tokenizer with more entries.
    """
    layout = replace(candidates.layout, kind="Unigram")
    vocabulary = candidates.model["vocab"]
    subwords = sorted(vocabulary.keys() - {*layout.specials, *BYTE_TOKENS})
    counts = _count_tokens(candidates, texts)
    max_subwords = vocab_size - len(layout.specials) - len(BYTE_TOKENS)
    for kept_share in KEPT_SHARES:
        num_extra = max(0, len(vocabulary) - vocab_size) * kept_share
        subwords = _most_frequent_subwords(subwords, counts, max_subwords + int(num_extra))
        parts = TokenizerParts(layout, _model_of_counts(layout, subwords, counts))
        counts = _count_tokens(parts, texts)
    return TokenizerParts(layout, _model_of_counts(layout, subwords, counts))


def _most_frequent_subwords(subwords: list[str], counts: Counter[str], number: int) -> list[str]:
    """At most so many subwords: all single characters, and the most frequent of the others."""
    order = sorted(subwords, key=lambda piece: (len(piece) > 1, -counts[piece], piece))
    return order[:number]


def _model_of_counts(layout: Layout, subwords: list[str], counts: Counter[str]) -> dict[str, Any]:
    log_total = math.log(max(1, sum(counts[piece] for piece in subwords)))
    scores = {piece: round((math.log(counts[piece]) if counts[piece] else _RARER) - log_total, 4) for piece in subwords}
    lowest = round(_RARER - log_total, 4)
    fixed = [[special, 0.0] for special in layout.specials] + [[token, lowest] for token in BYTE_TOKENS]
    order = sorted(scores, key=lambda piece: (-scores[piece], piece))
    entries = [[piece, scores[piece]] for piece in order]
    return layout.empty_model() | {"vocab": fixed + entries}


def _count_tokens(parts: TokenizerParts, texts: Iterable[str]) -> Counter[str]:
    engine = build(parts)
    counts: Counter[int] = Counter()
    for chunk in _chunks(texts):
        for encoding in engine.encode_batch_fast(chunk, add_special_tokens=False):
            counts.update(encoding.ids)
    names = {engine.id_to_token(index): number for index, number in counts.items()}
    return Counter({name: number for name, number in names.items() if name is not None})


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(texts)
    while chunk := list(islice(remaining, TEXTS_AT_ONCE)):
        yield chunk
