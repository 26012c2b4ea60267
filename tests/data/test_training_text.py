from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.data.pairs import PairRows, ReversedText, SentencePair, SideTexts, TrainingText, pairs_of_rows

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
PAIRS = st.lists(st.builds(SentencePair, TEXT, TEXT, st.integers(0, 999), st.integers(0, 999)), max_size=9)


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(PAIRS, st.integers(1, 4), st.integers(1, 400))
def test_text_comes_back_whatever_is_in_it(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[SentencePair], at_once: int, most_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("text") / "text.arrow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer_cli.data.pairs.PAIRS_AT_ONCE", at_once)
        patch.setattr("transformer_cli.data.pairs.MOST_BYTES_IN_MEMORY", most_bytes)
        text = TrainingText.of(iter(pairs), path)
    assert text.num_pairs == len(pairs)
    assert path.exists() == (sum(rows.num_rows for rows in text.kept) < len(pairs))
    chunks = list(map(pairs_of_rows, text))
    assert [pair for chunk in chunks for pair in chunk] == pairs
    assert all(len(chunk) <= at_once for chunk in chunks)
    assert list(SideTexts(text, ("source",))) == [pair.source for pair in pairs]
    assert list(SideTexts(text, ("target",))) == [pair.target for pair in pairs]
    assert [pair for rows in ReversedText(text, 3) for pair in pairs_of_rows(rows)] == [
        pair._replace(source=pair.target, target=pair.source, corpus=pair.corpus + 3) for pair in pairs
    ]


def test_a_small_corpus_is_not_written_to_be_read_back(tmp_path: Path) -> None:
    text = TrainingText.of([SentencePair("uno", "one")] * 25_000, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    assert sum(rows.num_rows for rows in text) == 25_000


def test_a_large_corpus_lies_in_a_file_and_little_of_it_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer_cli.data.pairs.MOST_BYTES_IN_MEMORY", 1 << 20)
    text = TrainingText.of([SentencePair(f"{number:040}", "one") for number in range(60_000)], tmp_path / "a")
    kept: list[PairRows] = list(text.kept)
    assert sum(rows.nbytes for rows in kept[:-1]) < 1 << 20
    assert sum(rows.num_rows for rows in kept) < 60_000
    assert (tmp_path / "a").stat().st_size > 0
    assert [pair.source for rows in text for pair in pairs_of_rows(rows)][-1] == f"{59_999:040}"


def test_the_file_can_be_deleted_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_cli.data.pairs.MOST_BYTES_IN_MEMORY", 1)
    monkeypatch.setattr("transformer_cli.data.pairs.PAIRS_AT_ONCE", 1)
    pairs = [SentencePair("uno", "one"), SentencePair("due", "two"), SentencePair("tre", "three")]
    chunks = map(pairs_of_rows, TrainingText.of(pairs, tmp_path / "a"))
    assert next(chunks) == pairs[:1]
    assert next(chunks) == pairs[1:2]
    (tmp_path / "a").unlink()
    assert next(chunks) == pairs[2:]
