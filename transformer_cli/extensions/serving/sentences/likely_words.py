"""Likely words: what else the model could write at a place of a translation, as whole words with their probabilities."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.decoding import Engine, TokenIds, Translator
from transformer_cli.process.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

# A word of more tokens than this is left out.
_MAX_TOKENS = 16
# First tokens that are less probable than this make no likely word.
_MIN_PROBABILITY = 1e-4


class LikelyWord(NamedTuple):
    """A word or a mark that could follow the beginning of a translation."""

    text: str
    """With the space before it, if there is one."""
    prefix: str
    """The beginning of the translation with this word."""
    probability: float
    """The product over the tokens of the word."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What the model is asked about one source."""

    engine: Engine
    source_ids: TokenIds
    continuing_ids: frozenset[int]
    check: Callable[[], None]

    def next_probabilities(self, prefix: TokenIds) -> "Tensor":
        """(V,) probabilities of the token that follows the beginning of a target."""
        self.check()
        return self.engine.next_token_probabilities(self.source_ids, prefix)

    def word_after(
        self, prefix: TokenIds, first: int, probability: float
    ) -> tuple[TokenIds, float] | None:
        """The most probable word that begins with a token, and its probability; None if it does not end."""
        word: TokenIds = (first,)
        while len(word) <= _MAX_TOKENS:
            best_probability, best = self.next_probabilities((*prefix, *word)).max(0)
            if int(best) not in self.continuing_ids:
                return word, probability
            word, probability = (*word, int(best)), probability * float(best_probability)
        return None


def likely_words(
    translator: Translator,
    sentence: str,
    prefix: str,
    *,
    num_words: int,
    check: Callable[[], None],
) -> list[LikelyWord]:
    """The words that most probably follow the beginning of a translation, the most probable one first.

    A word of several tokens is completed by the most probable tokens. A translation can end at this place, too, so the
    probabilities of all words together are below 1.

    Args:
        translator: of one direction.
        sentence: the source, one sentence.
        prefix: the beginning of the translation: whole words and marks, or nothing.
        num_words: at most this many are told.
        check: called before each step; raises an exception if nobody waits for the words any more.

    Raises:
        DataError: the sentence is too long for the model, or the model cannot write the prefix.
    """
    pipeline = translator.pipeline
    tokenizer = pipeline.target_tokenizer
    source_ids = source_ids_of(translator, sentence)
    before = pipeline.prefix_ids(prefix)
    specials = [tokenizer.unk_id, tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id]
    excluded = frozenset([*specials, *tokenizer.tag_ids])
    continuing = frozenset(tokenizer.continuing_ids)
    source = _Source(translator.engine, source_ids, continuing, check)
    written = tokenizer.decode(before)
    found: dict[str, LikelyWord] = {}
    first_probabilities = source.next_probabilities(before)
    most = min(4 * num_words, len(first_probabilities))
    best = first_probabilities.topk(most)
    for token, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True):
        if len(found) == num_words or probability < _MIN_PROBABILITY:
            break
        if token in excluded or (before and token in continuing):
            continue
        word = source.word_after(before, token, probability)
        if word is None or not tokenizer.has_whole_characters(word[0]):
            continue
        text = tokenizer.decode([*before, *word[0]])
        of_word = text[len(written) :]
        if text.startswith(written) and of_word.strip() and of_word not in found:
            found[of_word] = LikelyWord(of_word, text, word[1])
    return sorted(found.values(), key=lambda each: -each.probability)


def source_ids_of(translator: Translator, sentence: str) -> TokenIds:
    """The token ids of one sentence.

    Raises:
        DataError: it is blank, or the model cannot read it as a whole.
    """
    parts = replace(translator.pipeline, splits_sentences=False).prepare(sentence).parts
    if len(parts) != 1:
        raise DataError(
            "the sentence is blank or too long for the model",
            hint="give one sentence that the model can read as a whole",
        )
    return parts[0].ids
