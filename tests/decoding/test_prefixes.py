"""Forced prefixes as text: each translation begins with the whole words that were asked for."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import PhrasebookData, TokenizerConfig
from transformer_cli.decoding import Translator
from transformer_cli.process.errors import DataError
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .small_translators import WORDS, random_model, tokenizer_of_words, translator

ITALIAN = [
    "L'amica dell'uomo parla un po' d'italiano.",
    "Dov'è la stazione? È qui, all'angolo.",
    "Il treno blu-verde parte alle 10:30, credo.",
    "Perché no? Costa 3,50 euro (circa).",
]
SUBWORDS = train_tokenizer(ITALIAN, TokenizerConfig(kind="bpe", vocab_size=330))
UNIGRAM = train_tokenizer(ITALIAN, TokenizerConfig(kind="unigram", vocab_size=330))
CHINESE = train_tokenizer(["我喜欢你。", "你好吗", "我们去"], TokenizerConfig(kind="bpe", vocab_size=290))
beginnings = st.sampled_from(ITALIAN).flatmap(
    lambda line: st.integers(0, line.count(" ") + 1).map(lambda number: " ".join(line.split(" ")[:number]))
)


def of_tokenizer(tokenizer: Tokenizer, **settings: object) -> Translator:
    return translator(tokenizer, **settings)


@pytest.mark.long
@pytest.mark.parametrize("tokenizer", [SUBWORDS, UNIGRAM], ids=["bpe", "unigram"])
@settings(max_examples=15, deadline=None)
@given(prefix=beginnings, source=st.sampled_from(ITALIAN))
def test_every_translation_begins_with_the_prefix_and_then_a_new_word_begins(
    tokenizer: Tokenizer, prefix: str, source: str
) -> None:
    model = random_model(tokenizer, max_length=100)
    of_all = of_tokenizer(tokenizer, model=model, beam_size=4, num_best=4, max_length=3, split_sentences=False)
    [translation] = of_all.translate([source], prefixes=[prefix])
    assert len(translation.alternatives) == 4 or not prefix
    for alternative in translation.alternatives:
        assert alternative.text.startswith(prefix)
        following = alternative.text[len(prefix) :][:1]
        # A letter outside ASCII may consist of several byte tokens, of which none is a letter.
        is_letter = following.isascii() and following.isalnum()
        assert not (prefix[-1:].isalnum() and is_letter)


@pytest.mark.parametrize("tokenizer", [SUBWORDS, UNIGRAM, CHINESE], ids=["bpe", "unigram", "zh"])
def test_tokens_that_continue_a_word_change_it_and_all_others_leave_it(
    tokenizer: Tokenizer,
) -> None:
    word = "我" if tokenizer is CHINESE else "una"
    before = tokenizer.encode(word)
    num_continuing = 0
    for token in range(len(tokenizer.special_tokens), tokenizer.vocab_size):
        text = tokenizer.decode([*before, token])
        if "\ufffd" in text:
            continue  # the first bytes of a character
        continues = token in tokenizer.continuing_ids
        num_continuing += continues
        following = text.removeprefix(word)
        is_sign = not following[:1].isascii()  # also a single letter such as è, in two bytes
        assert continues == (following[:1].isalnum() and not (tokenizer is CHINESE and is_sign))
    assert num_continuing > 20


def test_a_prefix_that_ends_with_an_elision_is_split_as_in_training() -> None:
    pipeline = of_tokenizer(SUBWORDS).pipeline
    [whole] = [tuple(SUBWORDS.encode("dell'uomo"))]
    ids = pipeline.prefix_ids("dell'")
    assert whole[: len(ids)] == ids
    assert SUBWORDS.decode(ids) == "dell'"
    assert pipeline.prefix_ids(" un po' ") == pipeline.prefix_ids("un po'")


@pytest.mark.long
def test_only_the_first_sentence_of_a_line_takes_the_prefix_and_a_blank_line_none() -> None:
    of_words = of_tokenizer(tokenizer_of_words(), data=PhrasebookData())
    lines = ["Uno due. Tre quattro.", " ", "Uno due. Tre quattro."]
    free = list(of_words.translate(lines))
    forced = list(of_words.translate(lines, prefixes=["sei", "sei", ""]))
    prepared = of_words.pipeline.prepare(lines[0], "sei")
    assert [bool(part.prefix) for part in prepared.requests] == [True, False]
    assert forced[0].text.startswith("sei")
    assert forced[1].text == " "
    assert forced[2] == free[2]
    assert forced[0].text != free[0].text


def test_the_prefix_is_no_part_of_the_limit() -> None:
    of_words = of_tokenizer(tokenizer_of_words(), max_length=1)
    [translation] = of_words.translate(["uno"], prefixes=["due tre quattro"])
    assert translation.text.startswith("due tre quattro")
    assert len(translation.text.split()) <= 4


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("uno toner due", "the prefix uno toner due: not in the vocabulary of the model: toner"),
        (" ".join(WORDS * 2), "16 tokens, but the model writes at most 12"),
    ],
)
def test_a_prefix_that_the_model_cannot_write_is_refused(prefix: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(of_tokenizer(tokenizer_of_words()).translate(["uno"], prefixes=[prefix]))


@pytest.mark.parametrize(
    ("num_prefixes", "message"),
    [(2, "there are 2 prefixes, but more lines"), (4, "there are 3 lines, but more prefixes")],
)
def test_each_line_needs_its_prefix(num_prefixes: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(of_tokenizer(tokenizer_of_words()).translate(WORDS[:3], prefixes=[""] * num_prefixes))


def test_forced_scores_are_log_probabilities_of_the_whole_translation() -> None:
    of_words = of_tokenizer(tokenizer_of_words(), beam_size=3, length_penalty=0.0)
    [translation] = of_words.translate(["uno due"], prefixes=["sei sette"])
    pipeline = of_words.pipeline
    [part] = pipeline.prepare("uno due", "sei sette").requests
    [[hypothesis]] = of_words.engine.translate([part], of_words.decoding)
    expected = of_words.engine.negative_log_likelihood([part.ids], [hypothesis.ids], batch_tokens=100)
    assert translation.score == pytest.approx(-expected, abs=1e-6)
    assert torch.isfinite(torch.tensor(expected))
