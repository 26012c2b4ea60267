"""Tags of target languages: one token each, which no text gives and no translation shows."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import TokenizerConfig
from transformer_cli.process.errors import DataError
from transformer_cli.text import SequenceFormat
from transformer_cli.text.normalization import SPECIALS
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

TAGS = ("<2it>", "<2pt-BR>")
# The text is full of what a tag looks like, and half of it is beyond ASCII in the last two kinds.
TEXTS = ["<2it> one < 2 it > two", "<2pt-BR> it it 2 <2 it>", "il gatto <2it>"] * 3
JAPANESE = ["日本語のテキスト", "<2it>日本語"] * 5
KINDS = {
    "wordlevel": (TEXTS, TokenizerConfig()),
    "bpe": (TEXTS, TokenizerConfig(kind="bpe", vocab_size=300)),
    "unigram": (TEXTS, TokenizerConfig(kind="unigram", vocab_size=320)),
    "bpe of characters": (JAPANESE, TokenizerConfig(kind="bpe", vocab_size=300)),
    "unigram of characters": (JAPANESE, TokenizerConfig(kind="unigram", vocab_size=300)),
}
TOKENIZERS = {kind: train_tokenizer(texts, config, tags=TAGS) for kind, (texts, config) in KINDS.items()}
PIECES = st.sampled_from([*TAGS, "[EOS]", "<", "2", "it", ">", " ", "<2", "it>", "日", "\0"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_tag_is_one_token_behind_the_other_special_tokens(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.special_tokens == (*SPECIALS, *TAGS)
    assert [tokenizer.tag_id(tag) for tag in TAGS] == list(tokenizer.tag_ids) == [4, 5]
    assert tokenizer.tokens([4, 5]) == list(TAGS)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_no_text_gives_a_tag(text: str) -> None:
    for tokenizer in TOKENIZERS.values():
        assert not set(tokenizer.tag_ids) & set(tokenizer.encode(text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_tag_is_never_shown(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    text = "日本語" if "characters" in kind else "one two"
    ids = tokenizer.encode(text)
    assert tokenizer.decode([4, *ids, 5]) == tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_keeps_the_tags(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert again.special_tokens == tokenizer.special_tokens


@pytest.mark.parametrize("kind", KINDS)
def test_tags_change_nothing_else(kind: str) -> None:
    texts, config = KINDS[kind]
    size = config.vocab_size
    larger = config.model_copy(update={"vocab_size": size and size - len(TAGS)})
    plain = train_tokenizer(texts, larger)
    assert plain.tokens(plain.encode(texts[0])) == TOKENIZERS[kind].tokens(TOKENIZERS[kind].encode(texts[0]))
    assert plain.tag_ids == ()


@pytest.mark.parametrize("tag", ["<2>", "2it", "<2it>x", "[EOS]", "<2" + "a" * 200 + ">", 7])
def test_a_file_with_another_special_token_is_refused(tag: object) -> None:
    content = json.loads(TOKENIZERS["wordlevel"].to_json())
    content["added_tokens"][4]["content"] = tag
    with pytest.raises(DataError, match=r"added_tokens.* is not what tfm writes"):
        Tokenizer.from_json(json.dumps(content))


def test_a_file_whose_vocabulary_lacks_a_tag_is_refused() -> None:
    content = json.loads(TOKENIZERS["wordlevel"].to_json())
    vocabulary = content["model"]["vocab"]
    vocabulary["<2fr>"] = vocabulary.pop("<2it>")
    with pytest.raises(DataError, match=r"first entries are not .* <2it> <2pt-BR>"):
        Tokenizer.from_json(json.dumps(content))


def test_the_tag_of_the_direction_stands_before_a_source_and_the_end_behind_it() -> None:
    tokenizer = TOKENIZERS["wordlevel"]
    tagged = SequenceFormat(tags=("<2pt-BR>", "<2it>"))
    assert tagged.source([9, 8], tokenizer, 0) == [5, 9, 8, tokenizer.eos_id]
    assert tagged.source([9, 8], tokenizer, 1) == [4, 9, 8, tokenizer.eos_id]
    assert SequenceFormat().source([9, 8], tokenizer, 0) == [9, 8, tokenizer.eos_id]
    with pytest.raises(DataError, match="has no tag <2fr>"):
        SequenceFormat(tags=("<2fr>", "<2it>")).source([9], tokenizer, 0)
