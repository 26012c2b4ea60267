"""`tfm align`: one line of links for each pair, as `tfm translate --alignment` prints them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_cli.commands.align import align_command
from transformer_cli.decoding.details import pharaoh
from transformer_cli.process.errors import DataError, MissingInputError, UsageError

from ..decoding.small_translators import tokenizer_of_words, translator

LINES = ["uno due tre", "", "quattro cinque sei", "due\x01 due", "tre quattro cinque sei sette"]
OF_WORDS = translator(tokenizer_of_words(), max_length=10)


@pytest.fixture(autouse=True)
def _run_of_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = SimpleNamespace(translator=OF_WORDS)
    monkeypatch.setattr("transformer_cli.decoding.loading.load_run", lambda *_, **__: loaded)


def aligned(capfd: pytest.CaptureFixture[str], source: str, target: str, *, as_json: bool = False) -> list[str]:
    Path("source").write_text(source)
    Path("target").write_text(target)
    align_command(Path("source"), Path("target"), as_json=as_json)
    return capfd.readouterr().out.splitlines()


def test_a_translation_is_aligned_as_when_it_was_found(capfd: pytest.CaptureFixture[str]) -> None:
    found = list(OF_WORDS.translate(LINES, with_details=True))
    expected = [pharaoh(one.details.links) for one in found if one.details is not None]
    targets = "\n".join(one.text for one in found)
    assert aligned(capfd, "\n".join(LINES), targets) == expected
    assert expected[1] == ""
    assert all(pairs for number, pairs in enumerate(expected) if number != 1)


def test_the_json_tells_the_pair_and_its_probability(capfd: pytest.CaptureFixture[str]) -> None:
    [line] = aligned(capfd, "uno due\n", "tre quattro\n", as_json=True)
    facts = json.loads(line)
    assert (facts["source"], facts["target"]) == ("uno due", "tre quattro")
    assert facts["alignment"]
    pipeline = OF_WORDS.pipeline
    ids = pipeline.source_ids("uno due"), pipeline.target_ids("tre quattro")
    expected = -OF_WORDS.engine.negative_log_likelihood([ids[0]], [ids[1]], batch_tokens=100)
    assert facts["log_probability"] == pytest.approx(expected, abs=1e-4)


def test_line_ends_of_windows_and_white_space_around_a_text_change_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pairs = [("uno due", "tre quattro"), ("cinque", "sei sette")]
    sides = list(zip(*pairs, strict=True))
    plain, windows, spaced = (
        [json.loads(line) for line in aligned(capfd, *(form(side) for side in sides), as_json=True)]
        for form in (
            lambda side: "\n".join(side),
            lambda side: "".join(f"{line}\r\n" for line in side),
            lambda side: "".join(f"\t {line}  \n" for line in side),
        )
    )
    assert windows == plain
    for one, other in zip(plain, spaced, strict=True):
        assert other["alignment"] == one["alignment"]
        assert other["log_probability"] == pytest.approx(one["log_probability"], abs=1e-5)


def test_a_pair_with_a_blank_line_has_no_probability(capfd: pytest.CaptureFixture[str]) -> None:
    lines = aligned(capfd, "uno\n\n\n", "\ndue\n\n", as_json=True)
    assert [json.loads(line)["log_probability"] for line in lines] == [None] * 3


def test_sentences_are_aligned_in_pairs_if_both_lines_have_as_many(
    capfd: pytest.CaptureFixture[str],
) -> None:
    one, two = "Uno due tre. ", "Quattro cinque."
    [together] = aligned(capfd, one + two, one + two)
    links = [tuple(map(int, pair.split("-"))) for pair in together.split()]
    for source, target in links:
        assert (source < 3) == (target < 3)
    assert sorted(target for _, target in links) == [0, 1, 2, 3, 4]


def test_a_long_pair_is_aligned_as_far_as_the_model_reads(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    [pairs] = aligned(capfd, "uno due tre " * 20, "uno due tre " * 20)
    links = [tuple(map(int, pair.split("-"))) for pair in pairs.split()]
    assert sorted(target for _, target in links) == [*range(12)]
    assert "of more than 12 tokens, of which only the beginning was aligned: 1" in caplog.text


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        ("uno\ndue\n", "tre\n", "target has 1 lines, but source has more"),
        ("\n", "", "target has 0"),
    ],
)
def test_files_of_different_lengths_are_refused(
    capfd: pytest.CaptureFixture[str], source: str, target: str, problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        aligned(capfd, source, target)


def test_inputs_that_cannot_be_read_are_refused() -> None:
    Path("source").write_text("uno\n")
    with pytest.raises(UsageError, match="name the same input"):
        align_command(Path("-"), Path("-"))
    with pytest.raises(MissingInputError, match="other: no such file") as refused:
        align_command(Path("source"), Path("other"))
    assert "--target takes a text file" in str(refused.value.hint)
