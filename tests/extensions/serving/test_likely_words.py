"""Likely words: their probabilities are those of the model, and a translation can begin with each of them."""

from pathlib import Path

import pytest

from transformer_cli import load_translator
from transformer_cli.config import TokenizerConfig
from transformer_cli.decoding import Translator
from transformer_cli.extensions.serving.sentences import likely_words
from transformer_cli.process.errors import DataError
from transformer_cli.text.tokenizer import train_tokenizer

from ...decoding.small_translators import random_model, translator
from .served_translators import small_translator

ITALIAN = [
    "L'amica dell'uomo parla un po' d'italiano.",
    "Dov'è la stazione? È qui, all'angolo.",
    "Il treno blu-verde parte alle 10:30, credo.",
]
LINE = "uno due tre"
ROOT = Path(__file__).parents[3]


def no_check() -> None:
    """Nobody has gone away."""


@pytest.fixture(scope="module")
def subwords() -> Translator:
    tokenizer = train_tokenizer(ITALIAN, TokenizerConfig(kind="bpe", vocab_size=300))
    return translator(tokenizer, model=random_model(tokenizer, max_length=64), beam_size=2)


@pytest.mark.parametrize("prefix", ["", "uno", "tre due"])
def test_whole_words_have_the_probabilities_of_their_tokens(prefix: str) -> None:
    words = small_translator()
    found = likely_words(words, LINE, prefix, num_words=4, check=no_check)
    tokenizer = words.pipeline.target_tokenizer
    source_ids = words.pipeline.prepare(LINE).requests[0].ids
    probabilities = words.engine.next_token_probabilities(source_ids, words.pipeline.prefix_ids(prefix))
    specials = {tokenizer.unk_id, tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id}
    ranked = sorted(
        (i for i in range(tokenizer.vocab_size) if i not in specials),
        key=lambda index: -float(probabilities[index]),
    )
    likely = [index for index in ranked[:4] if probabilities[index] >= 1e-4]
    assert [one.text.strip() for one in found] == [tokenizer.decode([i]) for i in likely]
    for one, index in zip(found, ranked, strict=False):
        assert one.probability == pytest.approx(float(probabilities[index]))
        assert one.prefix == " ".join([*prefix.split(), one.text.strip()])


def completions(translator: Translator, source_ids: tuple[int, ...], before: tuple[int, ...]) -> dict[str, float]:
    """By hand: for each first token, the word that grows token by token until it is whole and the most probable token begins another one."""
    tokenizer, engine = translator.pipeline.target_tokenizer, translator.engine
    goes_on = set(tokenizer.continuing_ids)
    words: dict[str, float] = {}
    first = engine.next_token_probabilities(source_ids, before)
    for token in range(4, tokenizer.vocab_size):
        ids, probability = [*before, token], float(first[token])
        while len(ids) < len(before) + 20 and probability > 1e-6:
            following = engine.next_token_probabilities(source_ids, tuple(ids))
            best, word = int(following.argmax()), ids[len(before) :]
            if best not in goes_on and tokenizer.has_whole_characters(word) and tokenizer.decode(word).strip():
                break
            ids.append(best)
            probability *= float(following[best])
        text = tokenizer.decode(ids)[len(tokenizer.decode(before)) :]
        words[text] = max(probability, words.get(text, 0.0))
    return words


@pytest.mark.long
@pytest.mark.parametrize("prefix", ["", "Dov'è", "Il treno"])
def test_words_of_several_tokens_are_whole_and_have_the_product(subwords: Translator, prefix: str) -> None:
    found = likely_words(subwords, ITALIAN[0], prefix, num_words=5, check=no_check)
    assert found
    assert [one.probability for one in found] == sorted((one.probability for one in found), reverse=True)
    tokenizer = subwords.pipeline.target_tokenizer
    source_ids = subwords.pipeline.prepare(ITALIAN[0]).requests[0].ids
    before = subwords.pipeline.prefix_ids(prefix)
    by_hand = completions(subwords, source_ids, before)
    for one in found:
        assert by_hand[one.text] == pytest.approx(one.probability)
        assert tokenizer.decode(before) + one.text == one.prefix
    assert len({one.text for one in found}) == len(found)


@pytest.mark.long
def test_a_translation_begins_with_each_likely_word() -> None:
    words = small_translator()
    for one in likely_words(words, LINE, "uno", num_words=4, check=no_check):
        [translation] = words.translate([LINE], prefixes=[one.prefix])
        assert translation.text == one.prefix or translation.text.startswith(f"{one.prefix} ")


def test_it_ends_when_nobody_waits_any_more() -> None:
    class Gone(Exception):
        pass

    def gone() -> None:
        raise Gone

    with pytest.raises(Gone):
        likely_words(small_translator(), LINE, "", num_words=4, check=gone)


@pytest.mark.parametrize(("line", "prefix"), [(" ", ""), (LINE, "zzz"), ("uno " * 40, "")])
def test_what_the_model_cannot_read_or_write_is_refused(line: str, prefix: str) -> None:
    with pytest.raises(DataError):
        likely_words(small_translator(), line, prefix, num_words=4, check=no_check)


@pytest.mark.long
def test_a_mark_has_the_space_before_it_and_stands_once() -> None:
    """French has a space before a question mark: a token of its own, and no word."""
    french = load_translator(ROOT / "docs/demonstration")
    found = likely_words(french, "Where is the station?", "Où se trouve la gare", num_words=6, check=no_check)
    assert (found[0].text, found[0].prefix) == (" ?", "Où se trouve la gare ?")
    assert found[0].probability > 0.5
    assert [one.text.strip() for one in found].count("?") == 1
