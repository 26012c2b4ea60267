import json
from dataclasses import asdict

from transformer_cli.data.encoded import DataReport, TokenPair

from .encoded_pairs import encoded_pairs


def test_tokens_are_counted_without_the_end_symbol() -> None:
    report = DataReport()
    pairs = [TokenPair([5, 0, 3], [6, 3]), TokenPair([7, 3], [0, 3])]
    report.count(encoded_pairs(pairs, [0, 0]), "train")
    assert (report.source.train.num_sentences, report.source.train.num_tokens) == (2, 3)
    assert next(line for line in report.lines() if "source" in line).split()[:3] == ["source", "0", "1.5"]
    assert report.source.train.unknown_rate == 1 / 3
    assert report.target.train.unknown_rate == 1 / 2
    report.count(encoded_pairs([TokenPair([5], [6])], [0]), "validation")
    assert report.source.validation.num_tokens == 1


def test_an_empty_report_has_rates_and_lines_all_the_same() -> None:
    report = DataReport()
    assert report.source.train.unknown_rate == 0.0
    assert report.lines()


def test_a_report_comes_back_from_its_file() -> None:
    report = DataReport(
        num_pairs={"train": 3},
        reading=[("rows read", 4, "")],
        cleaning=[("dropped: leakage", 1, "a | b")],
        held_out={"test": [("dropped: drop_empty", 2, "| b")]},
        num_too_long=1,
        longest_example="a a a",
        padding_share=0.25,
    )
    report.count(encoded_pairs([TokenPair([5, 0, 3], [6, 3])], [0]), "train")
    assert DataReport.from_json(json.loads(json.dumps(asdict(report)))) == report


def test_rows_that_count_nothing_are_not_told() -> None:
    report = DataReport(cleaning=[("dropped: leakage", 0, ""), ("dropped: drop_empty", 3, "a |")])
    text = "\n".join(report.lines())
    assert "drop_empty" in text
    assert "leakage" not in text
