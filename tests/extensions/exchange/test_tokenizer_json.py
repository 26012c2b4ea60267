"""Our tokenizers in transformers: the same ids, the same texts, from one tokenizer.json for both sides."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import CleaningConfig, TokenizerConfig
from transformer_cli.extensions.exchange.hugging_face_models import TableForm
from transformer_cli.extensions.exchange.tokenizer_json import (
    TARGET_MARK,
    tokenizer_config,
    tokenizer_json,
)
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import normalize
from transformer_cli.text.tokenizer import train_tokenizer

ENGLISH = ["The cat doesn't sleep here.", "I'd like 20 euros (very cold)!", "Blue-green at 10:30"]
ITALIAN = ["Il gatto non dorme qui.", "L'acqua verde-blu costa 20 €!", "città “vecchia” 猫が好き"]
CLEANING = CleaningConfig()
KINDS = ("wordlevel", "bpe", "unigram")
TAGS = ("<2it>", "<2fr>")
INVISIBLE_TEXT = (
    "The\u00a0c\u00adat\u200b sleeps\u3000\u2060here\ufeff \u0645\u200c\u062e \u2764\ufe0f\u200d\U0001f525 \U000e0041"
)
SPECIAL_TEXT = "[EOS] [UNK] [PAD] [SOS] [SOURCE_EOS] \ufdd1gatto <s> \x07x e\u0301"
FORMS = pytest.mark.parametrize("form", [TableForm.ONE, TableForm.JOINED])
pytestmark = [pytest.mark.parametrize("kind", KINDS)]


def tokenizers(kind: str, form: TableForm, tags: tuple[str, ...] = ()) -> tuple[Tokenizer, ...]:
    size = None if kind == "wordlevel" else 400
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": size})
    if form is TableForm.ONE:
        both = train_tokenizer(ENGLISH + ITALIAN, config, tags=tags)
        return both, both
    return tuple(train_tokenizer(texts, config, tags=tags) for texts in (ENGLISH, ITALIAN))


def in_transformers(source: Tokenizer, content: dict[str, Any], folder: Path) -> Any:
    from transformers import AutoTokenizer

    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(source, 512)))
    (folder / "config.json").write_text(json.dumps({"model_type": "marian"}))
    return AutoTokenizer.from_pretrained(folder)


@pytest.mark.long
@FORMS
@pytest.mark.parametrize("text", [*ENGLISH, *ITALIAN, SPECIAL_TEXT, INVISIBLE_TEXT, "", " ", "unknown ζ words"])
def test_transformers_gives_our_ids(kind: str, form: TableForm, text: str, tmp_path: Path) -> None:
    source, target = tokenizers(kind, form)
    loaded = in_transformers(source, tokenizer_json(source, target, form, CLEANING), tmp_path)
    first = target.vocab_size if form is TableForm.JOINED else 0
    expected = [*source.encode(normalize(text, CLEANING, removes_invisible=True)), source.eos_id]
    assert [index - first for index in loaded(text)["input_ids"]] == expected


@pytest.mark.long
@FORMS
def test_transformers_makes_our_texts_of_target_ids(kind: str, form: TableForm, tmp_path: Path) -> None:
    source, target = tokenizers(kind, form)
    loaded = in_transformers(source, tokenizer_json(source, target, form, CLEANING), tmp_path)
    for text in [*ITALIAN, *ENGLISH, SPECIAL_TEXT, "una ζ"]:
        ids = target.encode(text)
        written = [target.sos_id, *ids, target.eos_id, target.pad_id]
        assert loaded.decode(written, skip_special_tokens=True) == target.decode(ids)
        assert loaded.batch_decode([written], skip_special_tokens=True) == [target.decode(ids)]


@pytest.mark.long
@FORMS
@pytest.mark.parametrize("space", ["", " "])
def test_a_tag_before_the_text_is_the_token_of_this_tag(kind: str, form: TableForm, space: str, tmp_path: Path) -> None:
    source, target = tokenizers(kind, form, TAGS)
    loaded = in_transformers(source, tokenizer_json(source, target, form, CLEANING), tmp_path)
    first = target.vocab_size if form is TableForm.JOINED else 0
    for text in ENGLISH:
        found = [index - first for index in loaded(f"<2fr>{space}{text}")["input_ids"]]
        assert found == [source.tag_id("<2fr>"), *source.encode(text), source.eos_id]


@pytest.mark.long
def test_no_source_text_gets_a_token_of_the_target(kind: str) -> None:
    from tokenizers import Tokenizer as HuggingFaceTokenizer

    source, target = tokenizers(kind, TableForm.JOINED)
    content = tokenizer_json(source, target, TableForm.JOINED, CLEANING)
    loaded = HuggingFaceTokenizer.from_str(json.dumps(content))
    loaded.encode_special_tokens = True
    names = st.sampled_from(target.entries)
    pieces = st.one_of(names, names.map(TARGET_MARK.__add__), st.text(max_size=4), st.just(TARGET_MARK))

    @given(st.lists(pieces, max_size=8).map("".join))
    def holds(text: str) -> None:
        ids = loaded.encode(text).ids
        assert min(ids) >= target.vocab_size
        expected = source.encode(normalize(text, CLEANING, removes_invisible=True))
        assert [index - target.vocab_size for index in ids] == [*expected, source.eos_id]

    holds()


@pytest.mark.long
def test_a_text_that_is_cut_still_ends_with_the_end_symbol(kind: str, tmp_path: Path) -> None:
    source, target = tokenizers(kind, TableForm.JOINED)
    content = tokenizer_json(source, target, TableForm.JOINED, CLEANING)
    loaded = in_transformers(source, content, tmp_path)
    found = loaded(ENGLISH[0] * 200, truncation=True)["input_ids"]
    assert len(found) == 512
    assert found[-1] == target.vocab_size + source.eos_id


def test_rules_that_are_off_leave_the_text_alone(kind: str, tmp_path: Path) -> None:
    rules = CleaningConfig(normalize_unicode=False, remove_control_characters=False, normalize_invisible=False)
    source, _ = tokenizers(kind, TableForm.ONE)
    content = tokenizer_json(source, source, TableForm.ONE, rules)
    assert content["normalizer"] == json.loads(source.to_json())["normalizer"]
