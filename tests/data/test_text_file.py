from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.data.pairs import SentencePair, StoredText, pairs_of_rows, read_rows, write_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
PAIRS = st.lists(st.builds(SentencePair, TEXT, TEXT, st.integers(0, 999), st.integers(0, 999)), max_size=9)


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(PAIRS, st.integers(1, 4))
def test_text_comes_back_whatever_is_in_it(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[SentencePair], at_once: int
) -> None:
    path = tmp_path_factory.mktemp("text") / "text.arrow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer_cli.data.pairs.PAIRS_AT_ONCE", at_once)
        write_text(path, iter(pairs))
    chunks = list(map(pairs_of_rows, read_rows(path)))
    assert [pair for chunk in chunks for pair in chunk] == pairs
    assert all(len(chunk) <= at_once for chunk in chunks)
    assert list(StoredText(path, ("source",))) == [pair.source for pair in pairs]
    assert list(StoredText(path, ("target",))) == [pair.target for pair in pairs]


def test_a_file_can_be_deleted_while_it_is_read(tmp_path: Path) -> None:
    write_text(tmp_path / "a", [SentencePair("uno", "one")])
    chunks = map(pairs_of_rows, read_rows(tmp_path / "a"))
    assert next(chunks) == [SentencePair("uno", "one")]
    (tmp_path / "a").unlink()
    assert list(chunks) == []
