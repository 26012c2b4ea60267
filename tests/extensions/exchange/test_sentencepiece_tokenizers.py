"""Imported tokenizers give the ids of `MarianTokenizer` of transformers, and its texts."""

import json
import random
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from transformer_cli.extensions.exchange.sentencepiece_tokenizers import (
    ForeignTokenizers,
    SpecialEntries,
    marian_tokenizers,
    read_sentencepiece,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer

from .marian_folders import pieces, sentences, trained_spm

ORDINARY = [
    "The  train leaves at 7:45, doesn't it?",
    "(blue-green) “quotes” — dashes… and 3.50 €",
    "L'università è lì: perché no?",
    "",
    "   ",
    " a\tb\u00a0c ",
    "ﬁne ①②  \uff46\uff55\uff4c\uff4c\u3000width",
    "Привет, мир; 日本語 ☃☃ ☃",
    "e\u0301 cafe\u0301 a\u200bb",
    "[EOS] [UNK] is plain text, and so is <2ita>",
    "x" * 300,
    "▁ is a piece ▁of its own",
]


def tokenizers(
    *, num_missing: int = 30, languages: tuple[str, ...] = ("fra", "ita"), **options: Any
) -> tuple[ForeignTokenizers, dict[str, int], tuple[bytes, bytes]]:
    contents = trained_spm(0, 400, **options), trained_spm(1, 300, **options)
    found = sorted({*pieces(contents[0]), *pieces(contents[1])})
    random.Random(0).shuffle(found)
    codes = [f">>{language}<<" for language in ("ita", "pt_BR", "fra")]
    entries = ["</s>", "<unk>", *found[num_missing:], *codes, "<pad>"]
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    specials = SpecialEntries(1, len(entries) - 1, len(entries) - 1, 0)
    models = tuple(read_sentencepiece(content, "a.spm") for content in contents)
    both = marian_tokenizers(
        (models[0], models[1]), (vocabulary, vocabulary), (specials, specials), languages=languages
    )
    return both, vocabulary, contents


def marian(folder: Path, vocabulary: dict[str, int], contents: tuple[bytes, bytes]) -> Any:
    from transformers import MarianTokenizer

    for name, content in zip(("source.spm", "target.spm"), contents, strict=True):
        (folder / name).write_bytes(content)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    files = (str(folder / name) for name in ("source.spm", "target.spm", "vocab.json"))
    return MarianTokenizer(*files)


@pytest.mark.long
def test_ids_and_texts_are_those_of_transformers(tmp_path: Path) -> None:
    found, vocabulary, contents = tokenizers()
    theirs = marian(tmp_path, vocabulary, contents)
    for line in [*sentences()[0][:300], *sentences()[1][:300], *ORDINARY]:
        source = [found.source_rows[index] for index in found.source.encode(line)]
        assert source == theirs(line)["input_ids"][:-1], line
        ids = found.target.encode(line)
        their_ids = theirs(text_target=line)["input_ids"][:-1]
        assert [found.target_rows[index] for index in ids] == their_ids, line
        known = [index for index in ids if index != found.target.unk_id]
        shown = theirs.decode([found.target_rows[index] for index in known], use_source_tokenizer=False)
        assert found.target.decode(known).strip() == shown, line


@pytest.mark.long
def test_texts_of_random_characters_have_the_same_ids_but_for_one_in_fifty(tmp_path: Path) -> None:
    found, vocabulary, contents = tokenizers()
    theirs = marian(tmp_path, vocabulary, contents)
    numbers = random.Random(1)
    blocks = [(32, 127), (0xA0, 0x250), (0x370, 0x500), (0x2000, 0x2400), (0x3040, 0x30FF), (0x300, 0x370)]
    num_different = 0
    for _ in range(500):
        text = "".join(chr(numbers.randrange(*numbers.choice(blocks))) for _ in range(numbers.randrange(1, 20)))
        text = unicodedata.normalize("NFC", text)
        ids = [found.source_rows[index] for index in found.source.encode(text)]
        num_different += ids != theirs(text)["input_ids"][:-1]
    assert num_different <= 10


@pytest.mark.long
def test_a_language_code_becomes_a_tag(tmp_path: Path) -> None:
    found, vocabulary, contents = tokenizers()
    theirs = marian(tmp_path, vocabulary, contents)
    ours = found.source
    assert ours.special_tokens[4:] == ("<2fra>", "<2ita>")
    for code in ("fra", "ita"):
        expected = theirs(f">>{code}<< Good morning.")["input_ids"]
        ids = [ours.tag_id(f"<2{code}>"), *ours.encode("Good morning."), ours.eos_id]
        assert [found.source_rows[index] for index in ids] == expected
    assert found.target.tag_ids == (4, 5), "no translation contains a tag"


@pytest.mark.long
def test_a_written_tokenizer_reads_back_the_same() -> None:
    found, *_ = tokenizers()
    for tokenizer in (found.source, found.target):
        text = tokenizer.to_json()
        again = Tokenizer.from_json(text)
        assert again.to_json() == text
        assert again.entries == tokenizer.entries
        for line in ORDINARY:
            assert again.encode(line) == tokenizer.encode(line)
            assert again.encode_column(pa.array([line])).ids.tolist() == tokenizer.encode(line)


@pytest.mark.long
def test_the_cache_of_words_changes_no_id() -> None:
    found, *_ = tokenizers()
    for line in [*sentences()[0][:100], *ORDINARY]:
        whole = found.source._encode_whole(line)
        assert found.source.encode(line) == whole, line


@pytest.mark.long
def test_spans_cover_the_text() -> None:
    found, *_ = tokenizers()
    text = "The train leaves first, at  7:45."
    spans = found.source.spans(text)
    assert len(spans) == len(found.source.encode(text))
    assert "".join(text[start:end] for start, end in spans).replace(" ", "") == text.replace(" ", "")
    assert found.source.unknown_words("hello ☃☃ train") == ["☃☃"]


def test_equal_models_give_one_tokenizer() -> None:
    model = read_sentencepiece(trained_spm(0, 400), "a.spm")
    vocabulary = {"</s>": 0, "<unk>": 1, **{piece: 2 + index for index, piece in enumerate(model.scores)}}
    vocabulary["<pad>"] = len(vocabulary)
    pad = vocabulary["<pad>"]
    specials = SpecialEntries(1, pad, pad, 0)
    both = marian_tokenizers((model, model), (vocabulary, vocabulary), (specials, specials))
    assert both.source is both.target


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model_type": "bpe"}, "of the type bpe"),
        ({"add_dummy_prefix": False}, "without add_dummy_prefix"),
        ({"remove_extra_whitespaces": False}, "without remove_extra_whitespaces"),
        ({"byte_fallback": True}, "with byte fallback"),
        ({"user_defined_symbols": ["<br>"]}, "with user-defined symbols, such as '<br>'"),
        ({"split_by_whitespace": False}, "with pieces that contain a space"),
        ({"treat_whitespace_as_suffix": True}, "with treat_whitespace_as_suffix"),
    ],
)
def test_a_model_that_splits_in_another_way_is_refused(options: dict[str, Any], problem: str) -> None:
    size = 700 if "byte_fallback" in options else 400
    content = _trained(size, options)
    with pytest.raises(DataError) as raised:
        read_sentencepiece(content, "a.spm")
    assert problem in raised.value.message


def _trained(size: int, options: dict[str, Any]) -> bytes:
    if "user_defined_symbols" in options:
        import io

        import sentencepiece

        output = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences()[0]),
            model_writer=output,
            vocab_size=size,
            minloglevel=2,
            **options,
        )
        return output.getvalue()
    return trained_spm(0, size, **options)


def test_a_file_that_is_no_model_is_refused() -> None:
    with pytest.raises(DataError, match="not a SentencePiece model, or cut off"):
        read_sentencepiece(trained_spm(0, 400)[:-7], "a.spm")


def test_a_vocabulary_with_gaps_is_refused() -> None:
    model = read_sentencepiece(trained_spm(0, 400), "a.spm")
    vocabulary = {"</s>": 0, "<unk>": 1, "<pad>": 3}
    specials = SpecialEntries(1, 3, 3, 0)
    with pytest.raises(DataError, match="without gaps and duplicates"):
        marian_tokenizers((model, model), (vocabulary, vocabulary), (specials, specials))
