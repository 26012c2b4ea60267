import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.pairs import ReadingReport, SentencePair, pair_digest


@pytest.mark.process
def test_the_digest_of_a_pair_is_the_same_in_every_process() -> None:
    program = (
        "from transformer_cli.data.pairs import *;print(pair_digest(SentencePair('The sea.', 'Il mare è blu.')).hex())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(2)
    ]
    expected = pair_digest(SentencePair("The sea.", "Il mare è blu.")).hex()
    assert [run.stdout.strip() for run in runs] == [expected, expected]
    # The digest decides the splits of every corpus, so a new version of tfm must not change it.
    assert expected == "53612754331db143e234b3bf7c473e18"


@given(st.text(), st.text(), st.integers(0, 3))
def test_the_digest_does_not_depend_on_the_corpus(source: str, target: str, corpus: int) -> None:
    assert pair_digest(SentencePair(source, target, corpus)) == pair_digest(SentencePair(source, target))


@given(st.text(), st.text(), st.text())
def test_the_digest_knows_where_the_source_ends(a: str, b: str, c: str) -> None:
    one, other = SentencePair(a + b, c), SentencePair(a, b + c)
    assert (pair_digest(one) == pair_digest(other)) == (b == "")


def test_composed_and_decomposed_text_have_the_same_digest() -> None:
    assert pair_digest(SentencePair("é", "è")) == pair_digest(SentencePair("e\u0301", "e\u0300"))


def test_half_a_surrogate_pair_has_a_digest() -> None:
    assert len(pair_digest(SentencePair("\ud800", ""))) == 16


def test_a_report_keeps_the_count_and_the_first_place_of_each_reason() -> None:
    report = ReadingReport(num_rows=4)
    report.skip("a NUL byte", "a.txt:3")
    report.skip("a NUL byte", "a.txt:9")
    report.notice("a carriage return inside a sentence", "b.txt:1")
    report.num_usable["train"] += 1
    report.num_usable["validation"] += 1
    assert report.num_skipped == 2
    assert report.table() == [
        ("rows read", 4, ""),
        ("skipped: a NUL byte", 2, "a.txt:3"),
        ("drawn for validation", 1, ""),
        ("kept: a carriage return inside a sentence", 1, "b.txt:1"),
    ]
