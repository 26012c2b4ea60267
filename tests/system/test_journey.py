"""From an empty folder to a translator, with the commands of a user; the model must learn its task."""

import json
import shutil
from itertools import islice
from pathlib import Path

import pytest

from transformer_cli.config import SequencesData
from transformer_cli.data.sources.corpus import generate_sequences

from ..launcher import Launcher, Tfm

COPY = """\
name: copying
seed: 1
data: {source: sequences, task: copy, num_pairs: 2000, num_symbols: 8, min_length: 3, max_length: 6}
model: {d_model: 32, num_heads: 4, d_ff: 64, encoder_layers: 1, decoder_layers: 1, dropout: 0.0}
training:
  max_steps: 400
  batch_sentences: 64
  learning_rate: 1e-2
  warmup_steps: 60
  label_smoothing: 0.0
  log_every: 100
  validate_every: 1000
  best_metric: loss
validation: {max_sentences: 20, scores: [bleu, cer], num_samples: 2}
runtime: {device: cpu, precision: float32, threads: 1}
"""
DATA = SequencesData(source="sequences", num_pairs=2000, num_symbols=8, min_length=3, max_length=6)
SENTENCES = ["4 3 8 1", "1 1 2", "7 6 5 4 3 2"]


@pytest.fixture(scope="module")
def trained(launcher: Launcher, memory_folder: Path) -> Tfm:
    """A folder in which a translator was trained by `tfm train`."""
    folder = memory_folder / "trained"
    folder.mkdir()
    (folder / "copying.yaml").write_text(COPY)
    tfm = Tfm(launcher, folder)
    finished = tfm("train", "--config", "copying.yaml")
    assert finished.exit_code == 0, finished.talk
    assert finished.out == b""
    assert "SOURCE     " in finished.talk
    assert finished.talk.endswith("or tfm validate --run copying\n")
    return tfm


def test_the_translator_has_learned_to_copy(trained: Tfm) -> None:
    sources = [pair.source for pair in islice(generate_sequences(DATA, "test", seed=1), 200)]
    finished = trained("translate", stdin="".join(f"{line}\n" for line in sources).encode())
    assert len(finished.lines) == len(sources)
    num_right = sum(map(str.__eq__, finished.lines, sources))
    assert num_right >= 0.9 * len(sources)


def test_each_way_of_input_and_output_gives_the_same_lines(trained: Tfm) -> None:
    expected = trained("translate", *SENTENCES).lines
    assert len(expected) == 3
    assert trained("translate", SENTENCES[0]).lines == expected[:1]
    (trained.folder / "in.txt").write_text("\n".join(SENTENCES))
    assert trained("translate", "--input", "in.txt").lines == expected
    assert trained("translate", stdin="\n".join(SENTENCES).encode()).lines == expected
    to_file = trained("translate", "--input", "in.txt", "--output", "out.txt")
    assert to_file.out == b""
    assert (trained.folder / "out.txt").read_text().splitlines() == expected
    in_json = [json.loads(line) for line in trained("translate", "--json", *SENTENCES).lines]
    assert [line["translation"] for line in in_json] == expected
    assert [line["source"] for line in in_json] == SENTENCES
    assert all(line["alternatives"][0]["text"] == line["translation"] for line in in_json)


def test_it_says_on_standard_error_which_checkpoint_translates(trained: Tfm) -> None:
    finished = trained("translate", "1 2 3")
    assert finished.talk == ("runs/copying/checkpoints/step-00000400, step 400 (PyTorch on CPU, 1 thread, float32)\n")


NASTY = {
    "nothing": b"",
    "one empty line": b"\n",
    "empty lines between": b"\n1 2 3\n\n\n4 5 6\n\n",
    "no last newline": b"1 2 3\n4 5 6",
    "windows": b"1 2 3\r\n4 5 6\r\n",
    "a lone carriage return": b"1 2\r3 4\n5 6\n",
    "other separators": "1\u2028 2\n3\u2029 4\n5\x85 6\n7\x0b 8\n1\x0c 2\n3\x1c4\n".encode(),
    "not UTF-8": b"1 \xff\xfe 2\n\xc3\n3 4\n",
    "a byte-order mark": b"\xef\xbb\xbf1 2 3\n4 5\n",
    "zero bytes": b"1 \x00 2\n\x00\n",
    "blanks": " \n\t\n\u3000\n\u00a0\n1 2 3\n".encode(),
    "control tokens": b"[EOS] 1 [PAD]\n</s> <unk> [UNK]\n",
    "unknown words": "the red cars\nè così\n🙂🙂\n".encode(),
    "the same line again": b"1 2 3\n" * 50,
    "a very long line": b"1 2 3 " * 2000 + b"\n4 5 6\n",
}


@pytest.mark.parametrize("name", NASTY)
def test_as_many_lines_come_out_as_went_in(trained: Tfm, name: str) -> None:
    data = NASTY[name]
    num_lines = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    options = ["--beam-size", "1", "--set", "decoding.max_length=8"]
    finished = trained("translate", *options, stdin=data)
    assert finished.exit_code == 0
    assert finished.out.count(b"\n") == num_lines
    assert len(finished.text.splitlines()) == num_lines, "no other line separator either"
    for source, translation in zip(data.split(b"\n"), finished.lines, strict=False):
        if not source.decode("utf-8", "replace").strip("\r\ufeff\0 \t\u3000\u00a0"):
            assert not translation.strip()
    if name == "not UTF-8":
        assert (
            "standard input: the bad bytes of lines that are not UTF-8 were replaced; number of lines: 2"
            in finished.talk
        )
    if name == "a byte-order mark":
        assert finished.lines == trained("translate", *options, "1 2 3", "4 5").lines


def test_an_argument_is_one_line_whatever_it_holds(trained: Tfm) -> None:
    finished = trained("translate", "1 2\n3 4\r\n5 6", "", "7")
    assert len(finished.lines) == 3
    assert finished.lines[1] == ""


def test_more_translations_are_asked_for_by_setting(trained: Tfm) -> None:
    options = ["--beam-size", "4", "--set", "decoding.num_best=3", "--json"]
    found = json.loads(trained("translate", *options, "1 2 3 4").text)
    scores = [alternative["score"] for alternative in found["alternatives"]]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert found["score"] == scores[0]
    plain = trained("translate", *options[:-1], "1 2 3 4")
    assert plain.lines == [found["translation"]]
    assert "to see all 3 (decoding.num_best), add --n-best 3 or --json" in plain.talk


def test_validate_gives_a_table_to_people(trained: Tfm) -> None:
    finished = trained("validate", "--beam-size", "1")
    assert finished.text.startswith("run copying  step 400  split validation  beam_size 1")
    for name in ("sentences", "loss", "perplexity", "BLEU", "chrF", "TER", "CER", "WER"):
        assert f"\n{name} " in finished.text
    assert "\nSOURCE     " in finished.text
    assert "\nPREDICTED  " in finished.text


def test_validate_gives_json_to_programs(trained: Tfm) -> None:
    for split in ("validation", "test"):
        finished = trained("validate", "--json", "--split", split, "--beam-size", "1")
        assert len(finished.lines) == 1
        found = json.loads(finished.text)
        figures = ["num_sentences", "loss", "perplexity", "scores", "unknown_words_of_sources"]
        assert list(found) == ["run", "split", *figures, "exact_match"]
        assert [row["length"] for row in found["exact_match"]] == [3, 4, 5, 6]
        assert (found["run"], found["split"], found["num_sentences"]) == ("copying", split, 1000)
        names = [score["name"] for score in found["scores"]]
        assert names[:6] == ["BLEU", "chrF", "chrF++", "TER", "CER", "WER"]
        assert all({"name", "value", "signature"} <= {*score} for score in found["scores"])
        values = {score["name"]: score["value"] for score in found["scores"]}
        assert values["BLEU"] > 90
        assert values["CER"] < 10


def test_validate_scores_two_files(trained: Tfm) -> None:
    (trained.folder / "source.txt").write_text("\n".join(SENTENCES) + "\n")
    (trained.folder / "reference.txt").write_text("\n".join(reversed(SENTENCES)) + "\n")
    same, other = (
        json.loads(trained("validate", "--source", "source.txt", "--reference", f, "--json").text)
        for f in ("source.txt", "reference.txt")
    )
    assert same["num_sentences"] == other["num_sentences"] == 3
    assert same["split"] == "source.txt / source.txt"
    assert same["scores"][0]["value"] > other["scores"][0]["value"]


def test_info_shows_the_run(trained: Tfm) -> None:
    shown = trained("info").text
    assert "runs/copying" in shown
    assert "step-00000400" in shown
    facts = json.loads(trained("info", "--json").text)
    assert facts["run"] == "copying"
    assert facts["settings"]["model"]["d_model"] == 32
    assert (trained.folder / facts["checkpoint"]).is_dir()
    listed = json.loads(trained("info", "--json", "--parameters").text)["parameter_tree"]
    sizes = [int(shape[0]) * (int(shape[1]) if len(shape) > 1 else 1) for shape in listed.values()]
    assert sum(sizes) == facts["parameters"]
    assert f"{facts['parameters']:,}" in trained("info", "--parameters").text


def test_data_shows_the_corpus(trained: Tfm) -> None:
    shown = trained("data", "--config", "copying.yaml", "--split", "test")
    assert shown.text.startswith("test, the first 10 pairs:\n  SOURCE  ")
    assert "pairs kept      2,000" in shown.text
    assert "unknown" in shown.text
    found = json.loads(trained("data", "--config", "copying.yaml", "--json").text)
    assert found["split"] == "train"
    assert len(found["pairs"]) == 10
    assert {"source", "target"} == set(found["pairs"][0])


def test_a_finished_run_says_so_and_stays_as_it_is(trained: Tfm) -> None:
    metrics = (trained.folder / "runs/copying/metrics.jsonl").read_bytes()
    finished = trained("train", "--config", "copying.yaml")
    assert finished.exit_code == 0
    assert "runs/copying is finished: 400 steps, training.max_steps=400." in finished.talk
    assert "resuming" not in finished.talk
    assert "pairs read" not in finished.talk, "the data was not prepared again"
    assert (trained.folder / "runs/copying/metrics.jsonl").read_bytes() == metrics


def test_a_run_is_found_from_anywhere_and_by_any_name(trained: Tfm) -> None:
    expected = trained("translate", *SENTENCES).lines
    run = trained.folder / "runs/copying"
    elsewhere = trained.folder / "else where"
    elsewhere.mkdir()
    for place in (str(run), str(run / "checkpoints/step-00000400"), "../runs/copying"):
        found = trained("translate", "--run", place, *SENTENCES, folder=elsewhere)
        assert found.lines == expected, found.talk
    assert trained("translate", "--run", "copying", *SENTENCES).lines == expected
    shutil.copytree(run / "checkpoints/step-00000400", elsewhere / "a gift")
    (trained.folder / "config.yaml").write_text("somebody: else's")
    gift = trained("translate", "--run", "a gift", *SENTENCES, folder=elsewhere)
    assert gift.lines == expected, gift.talk
    assert trained("info", "--run", "a gift", folder=elsewhere).exit_code == 0
    (elsewhere / "in.txt").write_text("1\n")
    for given in (("1",), ("--input", "in.txt")):  # no run is here
        assert "demonstration model" in trained("translate", *given, folder=elsewhere).talk


def test_of_two_runs_the_newest_is_taken(trained: Tfm) -> None:
    options = ["--set", "name=second", "--set", "training.max_steps=1"]
    assert trained("train", "--config", "copying.yaml", *options).exit_code == 0
    assert trained("translate", "1").talk.startswith("runs/second/")
    assert trained("translate", "1", "--run", "copying").talk.startswith("runs/copying/")
    shutil.rmtree(trained.folder / "runs/second")
    assert trained("translate", "1").talk.startswith("runs/copying/")


def test_an_argument_that_is_no_text_loses_only_its_bad_bytes(trained: Tfm) -> None:
    for options in ([], ["--json"]):
        finished = trained("translate", *options, "1 2 \udcff 3", "4 5")
        assert finished.exit_code == 0, finished.talk
        assert len(finished.lines) == 2


def test_the_locale_changes_no_output(trained: Tfm) -> None:
    """E5."""
    commands = (("data", "--config", "accents.yaml"), ("translate", "--json", "è"), ("next", "1"))
    for name, text in (("ici", "où ça\tè così\n"), ("là", "là\tlì\n")):
        (trained.folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    corpora = "[{path: ici.tsv, split: train}, {path: là.tsv, split: validation}]"
    before, after = COPY.partition("data:")[0], COPY.partition("}\n")[2]
    config = f"{before}data: {{source: files, corpora: {corpora}}}\n{after}"
    (trained.folder / "accents.yaml").write_text(config, encoding="utf-8")
    for command in commands:
        outputs = [trained(*command, faults=faults) for faults in ((), [("ascii_streams",)])]
        assert outputs[1].exit_code == 0, outputs[1].talk
        assert outputs[0].out == outputs[1].out
        assert not outputs[0].out.isascii()
