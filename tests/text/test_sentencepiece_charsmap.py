"""The normalisation table of a SentencePiece model: a damaged one is refused, and never followed."""

import base64
import random
from typing import Any

import pytest
from sentencepiece import sentencepiece_model_pb2
from tokenizers import normalizers

from transformer_cli.process.errors import DataError
from transformer_cli.text.sentencepiece_charsmap import (
    MAX_TABLE_BYTES,
    check_table,
    checked_charsmap,
)

from ..extensions.exchange.marian_folders import trained_spm

TEXTS = [
    "ﬁne ①② \uff46\uff55\uff4c\uff4c",
    "e\u0301 \u1e9b\u0323 \ufdfa",
    "".join(map(chr, range(0x20, 0x3000, 7))),
]


def real_table() -> bytes:
    model: Any = sentencepiece_model_pb2
    found = model.ModelProto()
    found.ParseFromString(trained_spm(0, 400))
    table: bytes = found.normalizer_spec.precompiled_charsmap
    return table


def normalized(table: bytes) -> list[str]:
    normalizer = normalizers.Precompiled(table)
    return [normalizer.normalize_str(text) for text in TEXTS]


def test_the_table_of_a_real_model_is_accepted_and_works() -> None:
    check_table(real_table())
    assert normalized(real_table())[0] == "fine 12 full"


@pytest.mark.long
def test_no_accepted_table_makes_the_library_panic() -> None:
    """The library follows offsets without a check, so a wrong one would end the program."""
    table, numbers = real_table(), random.Random(3)
    num_accepted = 0
    for _ in range(60):
        damaged = bytearray(table)
        for _ in range(numbers.choice([1, 3, 2000])):
            damaged[numbers.randrange(4, len(damaged))] = numbers.randrange(256)
        try:
            check_table(bytes(damaged))
        except DataError:
            continue
        num_accepted += 1
        normalized(bytes(damaged))
    assert num_accepted > 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "it is no text"),
        ([], "it is no text"),
        ("?", "it is not base64"),
        ("A" * (2 * MAX_TABLE_BYTES), "too long"),
        (base64.b64encode(b"abc").decode(), "cannot hold a trie"),
        (base64.b64encode((2**31).to_bytes(4, "little") + bytes(8)).decode(), "cannot hold a trie"),
        (base64.b64encode((8).to_bytes(4, "little") + bytes(8)).decode(), "outside its trie"),
    ],
)
def test_what_is_no_table_is_refused(text: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        checked_charsmap(text)


def test_an_offset_behind_the_texts_is_refused() -> None:
    table = real_table()
    size = 4 + int.from_bytes(table[:4], "little")
    with pytest.raises(DataError, match="outside its texts"):
        check_table(table[: size + 10] + b"\0")


def test_no_table_is_no_normalisation() -> None:
    assert checked_charsmap("") == ""


def test_a_table_without_an_entry_is_refused() -> None:
    trie = bytes(4 * 256)
    with pytest.raises(DataError, match="it holds no entry"):
        check_table(len(trie).to_bytes(4, "little") + trie + b"a\0")
