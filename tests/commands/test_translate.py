"""What `tfm translate` refuses before it loads a model."""

import io
import json
import os
import shutil
import statistics
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from transformer_cli.commands.translate_lines import (
    TranslateOptions,
    input_lines,
    translate_lines,
)
from transformer_cli.config import PhrasebookData, TokenizerConfig
from transformer_cli.process.errors import DataError, MissingInputError, UsageError
from transformer_cli.text.tokenizer import train_tokenizer

from ..decoding.small_translators import WORDS, tokenizer_of_words, translator
from ..launcher import TfmHere


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_that_says_itself_to_be_utf_16_is_refused_before_a_model_is_sought(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no run is here
    path = tmp_path / "in.txt"

    def translate(content: bytes) -> None:
        path.write_bytes(content)
        translate_lines(path, None, TranslateOptions(run="none"))

    with pytest.raises(DataError, match=r"in\.txt: UTF-16 text, where UTF-8 is") as refusal:
        translate("\ufeffHello\nyou\n".encode(encoding))
    assert "iconv -f UTF-16 -t UTF-8 in.txt" in str(refusal.value.hint)
    text = "perch\u00e9\n".encode() * 20
    for content in (b"Hello\n", b"\xef\xbb\xbfHello\n", text + b"\xff\n", b"", text + b"a\xff\xfe"):
        with pytest.raises(MissingInputError):
            translate(content)


def test_an_output_that_is_the_input_is_refused_by_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("Hello\n")
    Path("link").symlink_to("in.txt")
    Path("hard").hardlink_to("in.txt")
    with Path("in.txt").open("r+b") as opened:
        here = f"/dev/fd/{opened.fileno()}"
        for given, output in (
            ("in.txt", "link"),
            ("link", "hard"),
            (here, "in.txt"),
            ("hard", here),
        ):
            with pytest.raises(UsageError, match="this output is the same file as the input"):
                translate_lines(Path(given), Path(output), TranslateOptions())
    for given, output in (("in.txt", "out.txt"), ("/dev/null", "/dev/null")):
        with pytest.raises(MissingInputError, match="none: no such run"):
            translate_lines(Path(given), Path(output), TranslateOptions(run="none"))
    assert Path("in.txt").read_text() == "Hello\n"


def test_an_output_that_another_option_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.tsv").write_text("hello\tciao\n")
    Path("link").symlink_to("table.tsv")
    for option, given in (
        ("glossary", {}),
        ("memory", {}),
        ("prefixes", {}),
        ("dictionary", {"replace_unknown": True}),
    ):
        options = TranslateOptions(run="none", **{option: Path("table.tsv")}, **given)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=f"this output is the same file as --{option}"):
            translate_lines(["Hello"], Path("link"), options)
    assert Path("table.tsv").read_text() == "hello\tciao\n"


@pytest.mark.long
def test_an_output_in_the_corpus_of_the_run_or_in_a_run_is_refused(tfm_here: TfmHere) -> None:
    run = tfm_here.folder / "runs" / "mine"
    shutil.copytree(Path(__file__).parents[2] / "docs" / "run", run)
    for name in ("train.en", "train.it", "other.it"):
        (tfm_here.folder / name).write_text("Good morning.\n")
    corpus = {"source_path": "train.en", "target_path": "train.it"}
    data = {"source": "files", "source_language": "en", "target_language": "it"}
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["data"] = {**data, "corpora": [corpus]}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    [step] = (run / "checkpoints").glob("average-*")
    (tfm_here.folder / "en-it.hf" / "tokenizer").mkdir(parents=True)
    (tfm_here.folder / "en-it.hf" / "tfm-export.json").write_text("{}")
    (tfm_here.folder / "MANIFEST.json").write_text("{}")  # of something else
    before = {path: path.read_bytes() for path in tfm_here.folder.rglob("*") if path.is_file()}
    for name, problem in {
        "train.it": "train.it, which is in the corpus of runs/mine",
        "runs/mine/config.yaml": "this belongs to a run",
        "runs/mine/calibration.json": "this belongs to a run",
        "runs/mine/checkpoints/out.txt": "this belongs to a run",
        str(step / "out.txt"): "this belongs to a checkpoint",
        "en-it.hf/tokenizer/out.txt": "this belongs to an export",
    }.items():
        answer = tfm_here("translate", "--input", "train.en", "--output", name)
        assert answer.exit_code != 0
        assert problem in answer.talk
    assert before == {path: path.read_bytes() for path in tfm_here.folder.rglob("*") if path.is_file()}
    for name in ("other.it", "runs/mine/out.txt", "runs/mine/out.txt"):
        assert tfm_here("translate", "--input", "train.en", "--output", name).exit_code == 0
        assert (tfm_here.folder / name).read_text() == "Buongiorno.\n"


@pytest.mark.long
def test_without_a_run_the_demonstration_model_translates_and_says_so(
    tfm_here: TfmHere,
) -> None:
    typed = tfm_here("translate", "Where is the station?", "Good morning.")
    assert typed.text == "Où se trouve la gare ?\nBonjour.\n"
    assert typed.talk.count("the small demonstration model that comes with tfm answers") == 1
    assert "tfm init TABLE" in typed.talk
    assert "quotation marks" not in typed.talk
    unquoted = tfm_here("translate", "Where", "is", "it")
    assert unquoted.text.count("\n") == 3
    assert "write one sentence in quotation marks" in unquoted.talk
    for several in (
        ("\u4f60\u597d", "\u518d\u89c1", "\u8c22\u8c22"),
        ("Hello.", "Thanks.", "Goodbye."),
    ):
        assert "quotation marks" not in tfm_here("translate", *several).talk
    (tfm_here.folder / "in.txt").write_text("Good morning.\n")
    (tfm_here.folder / "in.html").write_text("<p>The <b>dog</b> is big.</p>\n")
    piped, pipe = os.pipe()  # as standard input is read, by its descriptor
    os.write(pipe, b"Good morning.\n")
    os.close(pipe)
    for arguments, text in (
        (("--input", "in.txt"), "Bonjour.\n"),
        (("--input", f"/dev/fd/{piped}"), "Bonjour.\n"),
        (("--input", "-", "--format", "html"), "<p>Le <b>chien</b> est gros.</p>\n"),
        (("--input", "in.html"), "<p>Le <b>chien</b> est gros.</p>\n"),
    ):
        found = tfm_here("translate", *arguments, stdin=(tfm_here.folder / "in.html").read_bytes())
        assert (found.exit_code, found.text) == (0, text)
        assert "the small demonstration model that comes with tfm answers" in found.talk
    named = tfm_here("translate", "--run", "demonstration", "--input", "in.txt")
    assert named.text == "Bonjour.\n"
    assert "no run under" not in named.talk


@pytest.fixture
def of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with the eight words of `small_translators`."""
    loaded = SimpleNamespace(translator=translator(tokenizer_of_words()), overridden=frozenset(), members=())
    monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: loaded)


UNKNOWN = "unknown words: 2 of 5 are not in the vocabulary of the model, which read them as [UNK]"


@pytest.mark.usefixtures("of_words")
def test_the_unknown_words_of_all_lines_are_told_once(
    capfdbinary: pytest.CaptureFixture[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["uno stampante", "due", "tre toner"]
    translate_lines(lines, None, TranslateOptions(as_json=True))
    assert caplog.messages == [f"{UNKNOWN}; the first: stampante"]
    answers = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [answer["unknown_words"] for answer in answers] == [["stampante"], [], ["toner"]]
    caplog.clear()
    translate_lines(["uno due"], None, TranslateOptions())
    assert not caplog.messages


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_at_a_terminal_the_unknown_words_of_each_line_are_told_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(b"uno stampante\ndue\ntoner\n"))
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    translate_lines(None, None, TranslateOptions())
    told = [message for message in caplog.messages if message.startswith("unknown words")]
    assert [message.split("; ")[1] for message in told] == [
        "the first: stampante",
        "the first: toner",
    ]


def test_a_sentence_that_is_the_name_of_a_file_is_translated_with_a_warning(
    of_words: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("uno\n")
    Path("due").mkdir()
    translate_lines(["in.txt", "due", "x" * 5000], None, TranslateOptions())
    found = [message for message in caplog.messages if "is a file" in message]
    assert len(found) == 1
    assert found[0].endswith("did you mean --input in.txt?")


@pytest.mark.long
def test_a_model_of_both_directions_translates_into_the_language_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tokenizer = train_tokenizer([" ".join(WORDS)], TokenizerConfig(), tags=("<2it>", "<2en>"))
    both = translator(tokenizer, data=PhrasebookData(both_directions=True), beam_size=1)
    loaded = SimpleNamespace(translator=both, members=())
    monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: loaded)
    for to in ("it", "en"):
        translate_lines(WORDS, None, TranslateOptions(to=to))
        expected = [found.text for found in both.translate(WORDS, to=to)]
        assert capfd.readouterr().out.splitlines() == expected
    with pytest.raises(UsageError, match="say which"):
        translate_lines(WORDS, None, TranslateOptions())


@pytest.mark.usefixtures("of_words")
def test_line_ends_and_blank_lines_come_out_as_they_went_in(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b"uno\r\n\r\n  \n12\n\t- 7\r\n")
    translate_lines(path, None, TranslateOptions())
    first, *others = capfdbinary.readouterr().out.split(b"\n")
    assert first.endswith(b"\r")
    assert others == [b"\r", b"  ", b"12", b"\t- 7\r", b""]
    translate_lines(path, None, TranslateOptions(as_json=True))
    sources = [json.loads(line)["source"] for line in capfdbinary.readouterr().out.splitlines()]
    assert sources == ["uno", "", "  ", "12", "\t- 7"]


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_spans_are_protected_if_the_user_asks_for_it(capfd: pytest.CaptureFixture[str]) -> None:
    lines = ["uno https://x.it/a due", "tre 47."]
    translate_lines(lines, None, TranslateOptions(protects_spans=True))
    first, second = capfd.readouterr().out.splitlines()
    assert "https://x.it/a" in first
    assert "47" in second
    translate_lines(lines, None, TranslateOptions())
    assert "https" not in capfd.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_a_strict_translation_names_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("uno\n" * 2500 + "due " * 12)
    with pytest.raises(DataError, match="line 2501: a sentence of more than 12 tokens"):
        translate_lines(path, tmp_path / "out.txt", TranslateOptions(is_strict=True))
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_the_n_best_are_lines_of_rank_score_and_text_and_rank_1_begins_each_input_line(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    lines = ["uno due", "", "tre quattro cinque"]
    translate_lines(lines, None, TranslateOptions(num_best=6))
    rows = [line.split("\t") for line in capfdbinary.readouterr().out.decode().splitlines()]
    translate_lines(lines, None, TranslateOptions(num_best=6, as_json=True))
    answers = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    groups: list[list[list[str]]] = []
    for row in rows:
        if row[0] == "1":
            groups.append([])
        groups[-1].append(row)
    assert [[row[0] for row in group] for group in groups] == [
        [str(rank) for rank in range(1, count + 1)] for count in (6, 1, 6)
    ]
    assert groups[1] == [["1", "0.000000", ""]]
    for group, answer in zip(groups, answers, strict=True):
        expected = answer["alternatives"] or [{"text": "", "score": 0.0}]
        assert [row[2] for row in group] == [alternative["text"] for alternative in expected]
        scores = [alternative["score"] for alternative in expected]
        assert [float(row[1]) for row in group] == pytest.approx(scores, abs=1e-6)


@pytest.mark.long
def test_an_n_best_list_raises_the_beam_of_the_config_but_not_one_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    of_two, of_four = (translator(tokenizer_of_words(), beam_size=size) for size in (2, 4))
    loaded = SimpleNamespace(translator=of_two, overridden=frozenset(), members=())
    monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: loaded)
    options = TranslateOptions(num_best=4)
    translate_lines(["uno due"], None, options)
    texts = [line.split("\t")[2] for line in capfd.readouterr().out.splitlines()]
    assert len(texts) == 4
    assert texts[0] == next(of_four.translate(["uno due"])).text
    loaded.overridden = frozenset({"decoding.beam_size"})
    with pytest.raises(UsageError, match="--n-best 4 needs a beam of at least 4, but beam_size is 2"):
        translate_lines(["uno due"], None, options)
    loaded.translator = translator(tokenizer_of_words(), mbr={"candidates": 3})
    with pytest.raises(UsageError, match=r"at least 4 candidates, but mbr\.candidates is 3"):
        translate_lines(["uno due"], None, options)


def test_samples_need_no_beam_and_groups_are_never_made_larger(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tokenizer = tokenizer_of_words()
    sampling = translator(tokenizer, beam_size=2, sampling={"temperature": 20.0})
    loaded = SimpleNamespace(translator=sampling, members=(), overridden=frozenset({"decoding.beam_size"}))
    monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: loaded)
    options = TranslateOptions(num_best=5)
    translate_lines(["uno due"], None, options)
    assert 1 <= len(capfd.readouterr().out.splitlines()) <= 5
    loaded.translator = translator(tokenizer, beam_size=4, diversity={"groups": 2})
    loaded.overridden = frozenset()
    with pytest.raises(UsageError, match="--n-best 5 needs a beam of at least 5") as refused:
        translate_lines(["uno due"], None, options)
    assert "a multiple of 2 that is at least 5" in str(refused.value.hint)


def test_several_translations_without_a_way_to_show_them_are_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    several = translator(tokenizer_of_words(), beam_size=3, num_best=3)
    loaded = SimpleNamespace(translator=several, overridden=frozenset(), members=())
    monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: loaded)
    translate_lines(["uno due"], None, TranslateOptions(num_best=2))
    assert not caplog.messages
    translate_lines(["uno due"], None, TranslateOptions())
    assert caplog.messages[0].endswith("to see all 3 (decoding.num_best), add --n-best 3 or --json")


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_the_alignment_stands_behind_each_translation_after_a_tab(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines = ["uno due tre", "", "quattro"]
    translate_lines(lines, None, TranslateOptions(alignment=True))
    aligned = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    translate_lines(lines, None, TranslateOptions())
    assert [text for text, _ in aligned] == capfd.readouterr().out.splitlines()
    for line, (text, pairs) in zip(lines, aligned, strict=True):
        links = [tuple(map(int, pair.split("-"))) for pair in pairs.split()]
        assert sorted(target for _, target in links) == [*range(len(text.split()))]
        assert {source for source, _ in links} <= {*range(len(line.split()))}
        assert links == sorted(links)


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_the_json_has_tokens_and_attention_only_if_they_are_asked_for(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def answer(**options: bool) -> dict[str, Any]:
        translate_lines(["uno due tre"], None, TranslateOptions(as_json=True, **options))
        found: dict[str, Any] = json.loads(capfd.readouterr().out)
        return found

    plain, aligned, detailed, attended = (
        answer(),
        answer(alignment=True),
        answer(details=True),
        answer(attention=True),
    )
    assert {*plain} == {
        "source",
        "translation",
        "score",
        "alternatives",
        "unknown_words",
        "cut",
        "divided",
        "in_pieces",
        "untranslated",
        "partly_copied",
        "doubts",
        "repaired",
    }
    assert {*aligned} - {*plain} == {"alignment", "confidence"}
    assert {*detailed} - {*plain} == {*attended} - {*plain} == {"alignment", "confidence", "parts"}
    [part] = attended["parts"]
    weights = part.pop("attention")
    assert [part] == detailed["parts"]
    assert part["source_tokens"] == ["uno", "due", "tre", "[EOS]"]
    assert len(weights) == len(part["target_tokens"])
    for row, token in zip(weights, part["target_tokens"], strict=True):
        assert sum(row) == pytest.approx(1.0, abs=1e-4)
        assert token["source_token"] == max(range(3), key=row.__getitem__)
        assert {"token": token["token"], "probability": token["probability"]} in token["most_probable"]
        assert len(token["most_probable"]) == 5
        probabilities = [one["probability"] for one in token["most_probable"]]
        assert probabilities == sorted(probabilities, reverse=True)


@pytest.mark.usefixtures("of_words")
def test_the_confidence_in_the_json_is_the_geometric_mean_of_the_printed_probabilities(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines = ["uno due tre", "", "due. tre quattro. cinque"]
    translate_lines(lines, None, TranslateOptions(details=True, as_json=True))
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [len(each["parts"]) for each in found] == [1, 0, 3]
    assert found[1]["confidence"] is None
    for each in (found[0], found[2]):
        of_line = []
        for part in each["parts"]:
            of_part = [token["probability"] for token in part["target_tokens"]]
            assert part["confidence"] == pytest.approx(statistics.geometric_mean(of_part), rel=1e-4)
            of_line += of_part
        assert each["confidence"] == pytest.approx(statistics.geometric_mean(of_line), rel=1e-4)
        assert 0 < each["confidence"] < 1


def test_wishes_that_do_not_fit_together_are_refused() -> None:
    for options, problem in (
        (TranslateOptions(details=True), "--details works only with --json"),
        (TranslateOptions(attention=True), "--attention works only with --json"),
        (
            TranslateOptions(alignment=True, num_best=2),
            "--alignment shows only the best translation",
        ),
    ):
        with pytest.raises(UsageError, match=problem):
            translate_lines(["uno"], None, options)


@pytest.mark.long
def test_prefixes_come_from_an_option_or_line_by_line_from_a_file(
    of_words: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["uno due", "tre", "", "quattro"]
    translate_lines(lines, None, TranslateOptions())
    free = capfd.readouterr().out.splitlines()
    translate_lines(lines, None, TranslateOptions(prefix="sei"))
    of_all = capfd.readouterr().out.splitlines()
    assert [line[:3] for line in of_all] == ["sei", "sei", "", "sei"]
    Path("prefixes.txt").write_text("\nsei\ndue\nsette\n")
    options = TranslateOptions(prefixes=Path("prefixes.txt"))
    translate_lines(lines, None, options)
    of_each = capfd.readouterr().out.splitlines()
    assert of_each[0] == free[0]
    assert of_each[1] == of_all[1]
    assert of_each[2] == ""
    assert of_each[3].startswith("sette")
    # As Windows writes them; a blank prefix is none, so a memory and terms count for its line.
    Path("prefixes.txt").write_bytes(b"\r\nsei\r\ndue\r\nsette\r\n")
    [windows] = input_lines([lines], options)
    assert [line.prefix for line in windows] == ["", "sei", "due", "sette"]
    translate_lines(lines, None, options)
    assert capfd.readouterr().out.splitlines() == of_each


@pytest.mark.usefixtures("of_words")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sei\n", r"prefixes\.txt: it ends after line 1, but the input has more lines"),
        ("sei\n" * 3, r"prefixes\.txt: 3 lines, but the input has 2"),
        ("\x00" * 100, r"prefixes\.txt: .*binary"),
    ],
)
def test_a_file_of_prefixes_that_does_not_fit_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prefixes.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        translate_lines(["uno", "due"], None, TranslateOptions(prefixes=path))


def test_standard_input_cannot_hold_both_lines_and_prefixes() -> None:
    options = TranslateOptions(prefixes=Path("-"))
    with pytest.raises(DataError, match="standard input holds the lines to translate"):
        translate_lines(None, None, options)


@pytest.mark.parametrize("told", ["alignment", "details", "attention"])
def test_protected_spans_and_details_of_whole_lines_are_not_given_together(told: str) -> None:
    options = replace(TranslateOptions(protects_spans=True, as_json=True), **{told: True})
    with pytest.raises(UsageError, match="--protect cannot be used with"):
        translate_lines(["uno"], None, options)


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_the_terms_of_a_glossary_are_in_the_translations_and_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("uno\totto sette\ndue\tsei\n")
    options = TranslateOptions(glossary=path, as_json=True)
    with caplog.at_level("INFO"):
        translate_lines(["tre uno", "quattro", "due. Due"], None, options)
    first, second, third = map(json.loads, capfd.readouterr().out.splitlines())
    assert first["terms"] == [{"source": "uno", "target": "otto sette", "applied": True}]
    assert "otto sette" in first["translation"]
    assert second["terms"] == []
    assert [term["source"] for term in third["terms"]] == ["due", "Due"]
    assert third["translation"] == "sei. sei", "a line of terms alone needs no model"
    assert "glossary: terms found: 3, in 2 of 3 lines; all of them are in the translations" in caplog.messages


def test_a_file_of_lines_in_a_legacy_encoding_is_refused_before_a_model_is_sought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no run is here
    path = tmp_path / "in.txt"
    path.write_bytes("Good morning.\nThe café is closed.\n".encode("windows-1252"))
    with pytest.raises(DataError, match="not UTF-8; it can be read as windows-1252: café") as refusal:
        translate_lines(path, None, TranslateOptions(run="none"))
    assert "--encoding windows-1252" in str(refusal.value.hint)
