"""Words of scripts without spaces: tokens stand for them, and the text that they cover is whole."""

from functools import cache

import pytest

from transformer_cli.config import TokenizerConfig
from transformer_cli.decoding import Translator
from transformer_cli.extensions.serving.sentences import detailed_sentences, unspaced_words
from transformer_cli.text import train_tokenizer

from ...decoding.small_translators import random_model, translator
from .served_translators import small_translator

LINES = [
    "火车站在哪里",
    "我想要两个房间",
    "红色的汽车在车站前面",
    "火车 是 红色的",
    "สวัสดีครับ",
    "你好 world",
]


@cache
def chinese() -> Translator:
    tokenizer = train_tokenizer(LINES * 20, TokenizerConfig(kind="bpe", vocab_size=420))
    model = random_model(tokenizer, max_length=60)
    return translator(tokenizer, model=model, beam_size=1, max_length=12, split_sentences=False)


@pytest.mark.long
@pytest.mark.parametrize("line", LINES)
def test_words_and_white_space_make_up_both_texts(line: str) -> None:
    [explained] = chinese().translate([line], with_details=True)
    found = unspaced_words(chinese().pipeline, line, explained)
    assert found is not None
    for text, words in ((line, found.source), (explained.text, found.target)):
        assert "".join(text[start:end] for start, end in words) == "".join(text.split())
    assert max(len(found.source), 1) > len(line.split()) - 1
    assert all(link.source < len(found.source) for link in found.links)
    assert all(link.target < len(found.target) for link in found.links)


def test_a_sentence_without_spaces_has_several_words_with_probabilities_of_their_own() -> None:
    sentences = detailed_sentences(chinese(), LINES)
    several = [one for one in sentences if one.words and len(one.words.target) > len(one.target.split())]
    assert several
    for one in several:
        values = one.as_json(0, 0)
        assert len(values["target"]["words"]) == len(values["target"]["probabilities"])
        assert len({*values["target"]["probabilities"]}) > 1


def test_other_scripts_have_the_words_between_white_space() -> None:
    made = small_translator(max_length=6)
    [explained] = made.translate(["uno due"], with_details=True)
    assert unspaced_words(made.pipeline, "uno due", explained) is None
