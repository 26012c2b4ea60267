import itertools
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config.data import CleaningConfig, FilesData
from transformer_cli.data.pairs import CleaningReport, ReadingReport, SentencePair, pair_digest
from transformer_cli.data.selection import alterations, check_dropped_share, clean, compared
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.process.errors import DataError
from transformer_cli.text.normalization import is_clean_ascii

GOOD = SentencePair("The sea is blue.", "Il mare è blu.")
NO_RULES = CleaningConfig(
    normalize_invisible=False,
    normalize_unicode=False,
    join_white_space=False,
    remove_control_characters=False,
    drop_empty=False,
    drop_equal=False,
    drop_duplicates=False,
    max_words=None,
    max_characters=None,
    max_length_ratio=None,
)
# For each rule: a setting that switches it off, a config with this rule only, and pairs that it drops.
DROPS = {
    "drop_empty": (
        {"drop_empty": False},
        {"drop_empty": True},
        [("", "a"), ("a", " "), ("\u200b", "\u3000")],
    ),
    "drop_equal": ({"drop_equal": False}, {"drop_equal": True}, [("Roma", "Roma")]),
    "min_words": ({"min_words": None}, {"min_words": 2}, [("sea", "il mare"), ("the sea", "mare")]),
    "max_words": ({"max_words": None}, {"max_words": 4}, [("a b c d e", "a"), ("a", "a b c d e")]),
    "max_characters": (
        {"max_characters": None},
        {"max_characters": 16},
        [("seventeen letters", "a"), ("a", "seventeen letters")],
    ),
    "max_length_ratio": (
        {"max_length_ratio": None},
        {"max_length_ratio": 2.0},
        [("a", "b" * 18), ("b" * 18, "a")],
    ),
    "drop_duplicates": ({"drop_duplicates": False}, {"drop_duplicates": True}, [tuple(GOOD[:2])]),
}


def _only(**rules: object) -> CleaningConfig:
    return NO_RULES.model_copy(update=rules)


def _clean(
    pairs: list[SentencePair], rules: CleaningConfig, **options: frozenset[bytes]
) -> tuple[list[SentencePair], CleaningReport]:
    report = CleaningReport()
    return list(clean(pairs, rules, report, **options)), report


@pytest.mark.parametrize("rule", DROPS)
def test_a_rule_drops_its_pairs_counts_them_and_keeps_the_first_as_example(rule: str) -> None:
    _, only, bad = DROPS[rule]
    pairs = [GOOD, *(SentencePair(*sides) for sides in bad)]
    kept, report = _clean(pairs, _only(**only))
    assert kept == [GOOD]
    assert {name: finding.count for name, finding in report.dropped.items()} == {rule: len(bad)}
    assert report.dropped[rule].example
    assert (report.num_read, report.num_kept) == (len(pairs), len(pairs) - len(bad))


@pytest.mark.parametrize("rule", DROPS)
def test_a_rule_that_is_switched_off_drops_nothing_and_is_not_reported(rule: str) -> None:
    off, only, bad = DROPS[rule]
    pairs = [GOOD, *(SentencePair(*sides) for sides in bad)]
    kept, report = _clean(pairs, _only(**{**only, **off}))
    assert kept == pairs
    assert rule not in report.dropped


def test_a_pair_at_a_limit_is_kept() -> None:
    rules = _only(min_words=2, max_words=2, max_characters=3, max_length_ratio=1.0)
    assert _clean([SentencePair("a b", "c d")], rules)[0] == [SentencePair("a b", "c d")]
    ratio = _only(max_length_ratio=2.0)
    assert _clean([SentencePair("a", "b" * 17)], ratio)[1].num_kept == 1


@given(st.integers(1, 40), st.integers(0, 60), st.sampled_from([" ", "  ", "\u00a0", "\t"]))
def test_words_are_counted_exactly_however_short(limit: int, num_words: int, space: str) -> None:
    pair = SentencePair(space.join(["a"] * num_words), "b")
    assert _clean([pair], _only(max_words=limit))[1].dropped["max_words"].count == (num_words > limit)


def test_rules_are_reported_in_the_order_in_which_they_apply() -> None:
    _, report = _clean([GOOD], CleaningConfig(min_words=1), held_out=frozenset([b"x"]))
    assert list(report.altered) == [
        *("remove_control_characters", "normalize_invisible", "normalize_unicode", "join_white_space"),
    ]
    assert list(report.dropped) == [
        *("drop_empty", "drop_equal", "min_words", "max_words", "max_characters"),
        *("max_length_ratio", "leakage", "drop_duplicates"),
    ]


def test_a_pair_counts_for_its_first_rule_only() -> None:
    _, report = _clean([SentencePair("", "")], CleaningConfig())
    assert sum(found.count for found in report.dropped.values()) == report.dropped["drop_empty"].count == 1


def test_altered_text_is_counted_per_rule_and_shown_as_it_was() -> None:
    pairs = [SentencePair("perche\u0301", "why", 2), SentencePair("a\x07", "b\x07"), GOOD]
    kept, report = _clean(pairs, CleaningConfig())
    assert kept == [SentencePair("perché", "why", 2), SentencePair("a", "b"), GOOD]
    assert report.altered["normalize_unicode"].count == 1
    assert report.altered["remove_control_characters"].count == 1
    assert "\\x07" in report.altered["remove_control_characters"].example


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u169b\u1681\u1690\u1680\u1689\u1691  \u169c", "\u169b\u1681\u1690\\u1680\u1689\u1691  \u169c"),  # Ogham
        ("L'h\u00f4tel\u00a0 !", "L'h\u00f4tel\\xa0 !"),
        (
            "\U00010d50\U00010d70  \u200b",
            "\U00010d50\U00010d70  \\u200b",
        ),  # Garay, younger than the tables of Python 3.11
    ],
)
def test_only_the_signs_of_an_altered_text_that_nobody_sees_are_shown_as_codes(text: str, shown: str) -> None:
    _, report = _clean([SentencePair(f" {text}", "b")], CleaningConfig(normalize_invisible=False))
    assert report.altered["join_white_space"].example == f" {shown} | b"


def test_only_the_source_loses_invisible_characters_and_other_spaces() -> None:
    pair = SentencePair("The\u00a0ho\u00adtel\u200b", "L'h\u00f4\u00adtel\u00a0!")
    kept, report = _clean([pair, GOOD], CleaningConfig())
    assert kept == [SentencePair("The hotel", pair.target), GOOD]
    assert report.altered["normalize_invisible"].count == 1
    for setting in (False, None):  # None: a run of an earlier version goes on as it began
        assert _clean([pair], CleaningConfig(normalize_invisible=setting))[0] == [pair]


def test_the_white_space_inside_a_cell_of_a_table_is_one_space() -> None:
    pair = SentencePair(" The dog\r\nis\t big. ", "Il cane\u00a0\n\u00e8  grande.\n")
    kept, report = _clean([pair, GOOD], CleaningConfig())
    assert kept == [SentencePair("The dog is big.", "Il cane\u00a0 \u00e8 grande."), GOOD]
    assert report.altered["join_white_space"].count == 1
    assert _clean([pair], CleaningConfig(join_white_space=False))[0] == [pair]
    digests = frozenset([pair_digest(compared(pair, CleaningConfig()))])
    assert _clean(kept[:1], CleaningConfig(), held_out=digests)[0] == []


def test_a_held_out_pair_is_found_whatever_its_invisible_characters() -> None:
    held_out, rules = SentencePair("the hotel", "l'ho\u00adtel"), CleaningConfig()
    digests = frozenset([pair_digest(compared(held_out, rules))])
    for source, target in (("the\u00a0hotel", "l'ho\u00adtel"), ("the hotel", "l'hotel")):
        _, report = _clean([SentencePair(source, target)], rules, held_out=digests)
        assert report.dropped["leakage"].count == 1


def test_duplicates_that_differ_in_unicode_form_or_corpus_only_are_duplicates() -> None:
    pairs = [SentencePair("é", "a", 0), SentencePair("e\u0301", "a", 1), SentencePair("é", "b", 0)]
    kept, _ = _clean(pairs, CleaningConfig())
    assert kept == [pairs[0], pairs[2]]


def test_held_out_pairs_are_removed_from_train_and_each_occurrence_is_counted() -> None:
    other = SentencePair("The sky.", "Il cielo.")
    kept, report = _clean([GOOD, other, GOOD], CleaningConfig(), held_out=frozenset([pair_digest(GOOD)]))
    assert kept == [other]
    assert report.dropped["leakage"].count == 2
    assert report.dropped["drop_duplicates"].count == 0


def test_a_pair_with_one_held_out_side_only_stays() -> None:
    other = SentencePair(GOOD.source, "Il mare è azzurro.")
    assert _clean([other], CleaningConfig(), held_out=frozenset([pair_digest(GOOD)]))[0] == [other]


@pytest.mark.long
@given(st.lists(st.builds(SentencePair, st.text(max_size=5), st.text(max_size=5))))
def test_every_pair_is_either_kept_or_counted_as_dropped(pairs: list[SentencePair]) -> None:
    kept, report = _clean(pairs, CleaningConfig(max_words=1))
    num_dropped = sum(found.count for found in report.dropped.values())
    assert report.num_read == len(pairs) == len(kept) + num_dropped
    assert report.num_kept == len(kept)


@pytest.mark.parametrize(
    "rule", ["remove_control_characters", "normalize_invisible", "normalize_unicode", "join_white_space"]
)
def test_no_rule_changes_the_texts_that_are_not_asked_about_rules(rule: str) -> None:
    [(_, alter)] = alterations(_only(**{rule: True}))
    texts = [form.format(chr(code)) for code in range(0x380) for form in ("a{}b", "{}b", "a{}", "a {}b")]
    changed = [text for text in texts if alter(text, text) != (text, text)]
    assert changed
    assert not any(map(is_clean_ascii, changed))
    assert is_clean_ascii("The dog is big.")


@pytest.mark.long
@given(st.lists(st.builds(SentencePair, st.text(max_size=5), st.text(max_size=5))))
def test_cleaning_clean_pairs_changes_nothing(pairs: list[SentencePair]) -> None:
    kept, _ = _clean(pairs, CleaningConfig())
    again, report = _clean(kept, CleaningConfig())
    assert again == kept
    assert not any(finding.count for finding in report.altered.values())


@pytest.mark.long
@pytest.mark.parametrize("text", ["x" * 1_000_000, "a " * 500_000, "e\u0301\u0316" * 300_000, " " * 1_000_000])
def test_a_line_of_a_megabyte_is_dropped_without_delay(text: str) -> None:
    started_at = time.process_time()
    _, report = _clean([SentencePair(text, text + "b")], CleaningConfig())
    assert time.process_time() - started_at < 5
    assert (report.num_read, report.num_kept) == (1, 0)


def test_pairs_flow_one_by_one() -> None:
    endless = (SentencePair(f"a {number}", f"b {number}") for number in itertools.count())
    first = list(itertools.islice(clean(endless, CleaningConfig(), CleaningReport()), 3))
    assert [pair.source for pair in first] == ["a 0", "a 1", "a 2"]


def test_an_example_is_one_short_line() -> None:
    _, report = _clean([SentencePair("word " * 1000, "b\nc")], CleaningConfig())
    example = report.dropped["max_words"].example
    assert example.startswith("word word ")
    assert "\n" not in example
    assert len(example) < 140


def test_a_corpus_that_loses_too_much_is_refused_with_the_table_of_reasons() -> None:
    pairs = [SentencePair("same", "same"), SentencePair("", ""), GOOD]
    _, report = _clean(pairs, CleaningConfig())
    with pytest.raises(DataError, match=r"lost 2 of its 3 pairs.*allows 50%") as caught:
        check_dropped_share(report, CleaningConfig(), ReadingReport())
    assert caught.value.exit_code == 65
    assert "dropped: drop_equal" in caught.value.message
    assert "same | same" in caught.value.message
    assert "data.cleaning" in str(caught.value.hint)


def test_a_corpus_that_loses_no_more_than_is_allowed_passes() -> None:
    _, report = _clean([SentencePair("same", "same"), GOOD], CleaningConfig())
    check_dropped_share(report, CleaningConfig(max_dropped_share=0.5), ReadingReport())


def test_a_corpus_of_which_nothing_is_left_is_refused_whatever_is_allowed() -> None:
    rules = CleaningConfig(max_dropped_share=1.0)
    _, report = _clean([SentencePair("same", "same")], rules)
    with pytest.raises(DataError, match="no training pair is left"):
        check_dropped_share(report, rules, ReadingReport())


def test_a_corpus_whose_pairs_were_all_drawn_for_other_splits_is_refused_with_this_reason() -> None:
    _, report = _clean([], CleaningConfig())
    with pytest.raises(DataError, match="the corpus has no training pair") as refused:
        check_dropped_share(report, CleaningConfig(), ReadingReport())
    assert "equal pairs come into one split together" in str(refused.value.hint)


def test_pairs_that_reading_skipped_count_as_lost() -> None:
    reading = ReadingReport()
    for _ in range(2):
        reading.skip("not UTF-8", "a.txt:1: byte 1")
    _, report = _clean([GOOD], CleaningConfig())
    with pytest.raises(DataError, match=r"(?s)lost 2 of its 3 pairs.*skipped: not UTF-8 .* 2 .*a\.txt:1"):
        check_dropped_share(report, CleaningConfig(), reading)


@pytest.mark.slow
@pytest.mark.skipif("TFM_DATA" not in os.environ, reason="needs the corpora that TFM_DATA points to")
def test_multi30k_is_read_and_cleaned_in_two_seconds_with_its_known_faults() -> None:
    data = FilesData.model_validate(
        {
            "source": "files",
            "source_language": "en",
            "target_language": "de",
            "root": str(Path(os.environ["TFM_DATA"]) / "multi30k"),
            "corpora": [{"source_path": "train.en.gz", "target_path": "train.de.gz", "split": "train"}],
        }
    )
    report = CleaningReport()
    started_at = time.process_time()
    kept = list(clean(read_pairs(data, "train", seed=1), data.cleaning, report))
    assert time.process_time() - started_at < 2
    assert report.num_read == 29_000
    assert report.dropped["drop_duplicates"].count == 3
    assert report.dropped["max_length_ratio"].count == 2
    assert len(kept) == 29_000 - 5
