"""Columns of pyarrow: equal to those of pyarrow's own conversions, and made without pandas."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.text.token_ids import number_column, numbers_of, text_column


@given(st.lists(st.text(max_size=20), max_size=10))
def test_a_column_of_texts_is_that_of_pyarrow(texts: list[str]) -> None:
    column = text_column(texts)
    column.validate(full=True)
    assert column.equals(pa.array(texts, pa.string()))


@pytest.mark.long
@pytest.mark.parametrize("number_type", [pa.uint16(), pa.uint32(), pa.int32(), pa.int64()])
@given(numbers=st.lists(st.integers(0, 2**15), max_size=10), start=st.integers(0, 3))
def test_a_column_of_numbers_is_that_of_pyarrow(number_type: pa.DataType, numbers: list[int], start: int) -> None:
    for given_numbers in (numbers, np.array(numbers, np.int64), np.repeat(numbers, 2)[::2]):
        column = number_column(given_numbers, number_type)
        column.validate(full=True)
        assert column.equals(pa.array(numbers, number_type))
        assert numbers_of(column[start:]).tolist() == numbers[start:]


def test_no_text_becomes_invalid_and_no_number_wraps_around() -> None:
    with pytest.raises(UnicodeEncodeError):
        text_column(["\ud800"])
    with pytest.raises(OverflowError):
        number_column([2**16], pa.uint16())


@pytest.mark.process
def test_a_corpus_is_prepared_and_read_without_pandas(tmp_path: Path) -> None:
    for name, word in (("a", "house"), ("b", "casa")):
        lines = [f"{word} {number} {'x' * (number % 7)}" for number in range(400)]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    script = f"""
import sys
from pathlib import Path
from transformer_cli.config import load_config
from transformer_cli.data.preparation import prepare_data
config = load_config("europarl-en-it.yaml", [
    "data.root={tmp_path}", "data.corpora=[{{source_path: a, target_path: b}}]", "data.validation_share=0.1",
    "tokenizer.vocab_size=400",
])
data = prepare_data(config, Path("{tmp_path}") / "data")
print(len(data.train) > 300, [name for name in ("pandas", "datasets") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "True []", done.stderr
