"""Command lines of people who know other programs: each mistake is answered with what is meant here."""

import itertools
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transformer_cli import cli
from transformer_cli.config import load_config
from transformer_cli.config.other_programs import SETTINGS
from transformer_cli.config.refusal import setting_called, setting_paths

RUN = str(Path(__file__).parents[2] / "docs" / "run")
TRAIN = ["train", "--config", "en-it.yaml"]
Answer = Callable[..., tuple[int, str]]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Answer:
    """Runs a command line in an empty folder; gives its exit code and what it says."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tfm", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().err

    return run


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([*TRAIN, "--epochs", "3"], "settings are given as --set training.max_epochs=3"),
        ([*TRAIN, "--epochs=3"], "settings are given as --set training.max_epochs=3"),
        ([*TRAIN, "--lr", "1e-3"], "settings are given as --set training.learning_rate=1e-3"),
        ([*TRAIN, "--name", "a"], "settings are given as --set name=a"),
        ([*TRAIN, "--seed", "2"], "settings are given as --set seed=2"),
        ([*TRAIN, "--device", "cpu"], "settings are given as --set runtime.device=cpu"),
        ([*TRAIN, "--gpu"], "settings are given as --set runtime.device=cuda"),
        ([*TRAIN, "--batch-size", "8"], "settings are given as --set training.batch_sentences=8"),
        ([*TRAIN, "--max-steps", "8"], "settings are given as --set training.max_steps=8"),
        ([*TRAIN, "--dropout"], "settings are given as --set model.dropout=VALUE"),
        ([*TRAIN, "--resume"], "the same command continues the run where it stopped: leave out --resume"),
        ([*TRAIN, "--confg", "x"], "did you mean --config?"),
        ([*TRAIN, "--xyzzy"], "tfm train --help lists the options"),
        (["translate", "--bogus"], "tfm translate --help lists the options"),
        (["serve", "--bogus"], "tfm serve --help lists the options"),
        (["plot", "--bogus"], "tfm plot --help lists the options"),
        (["translate", "--colums", "2"], "did you mean --columns?"),
        (["translate", "--beam", "3", "Hi"], "did you mean --beam-size?"),
        (["translate", "--device", "cpu", "Hi"], "settings are given as --set runtime.device=cpu"),
        (["translate", "--lr", "3", "Hi"], "training.learning_rate is a setting of a run, such as tfm train "),
        (["translate", "--model", "x", "Hi"], "did you mean --run?"),
        (["translate", "--config", "x", "Hi"], "did you mean --run?"),
        ([*TRAIN, "--run", "x"], "did you mean --config?"),
        (["validate", "--ref", "x"], "did you mean --reference?"),
        (["validate", "--input", "x"], "did you mean --source?"),
        (["calibrate", "--input", "x"], "did you mean --source?"),
        (["init", "x.csv", "--from", "en"], "did you mean --source-language?"),
        (["init", "x.csv", "--to", "it"], "did you mean --target-language?"),
        (["average", "--seed", "3"], "seed is a setting of a run, such as tfm train "),
        ([*TRAIN, "--arch", "transformer"], "settings are given as --set model.preset=base"),
        ([*TRAIN, "--gpus", "0"], "settings are given as --set runtime.device=cuda"),
        ([*TRAIN, "--share-all-embeddings"], "settings are given as --set model.tie_embeddings=all"),
        ([*TRAIN, "--encoder-ffn-embed-dim", "9"], "settings are given as --set model.d_ff=9"),
        ([*TRAIN, "--transformer_ff", "9"], "settings are given as --set model.d_ff=9"),
        ([*TRAIN, "--mini-batch-words", "9"], "settings are given as --set training.batch_tokens=9"),
        ([*TRAIN, "--save_checkpoint_steps", "9"], "settings are given as --set training.save_every=9"),
        (["translate", "hi", "--source_lang", "en"], "did you mean --from?"),
        (["translate", "hi", "--num_return_sequences", "3"], "did you mean --n-best?"),
        (["translate", "hi", "--n_best", "3"], "did you mean --n-best?"),
        (["translate", "--src", "x"], "did you mean --input?"),
        (["translate", "--document", "x.html"], "did you mean --input?"),
        (["translate", "--src", "en", "hi"], "did you mean --from?"),
        (["translate", "--tgt=it", "hi"], "did you mean --to?"),
        (["translate", "--tgt", "out.txt", "hi"], "given translations are not read here, and --output would replace"),
        (["translate", "--reference", "a/ref", "hi"], "given translations are not read here"),
        ([*TRAIN, "--source", "a.en", "--target", "a.it"], "the texts stand in a config: tfm init writes one"),
        ([*TRAIN, "--validation-source", "F"], "the texts stand in a config: tfm init writes one"),
        ([*TRAIN, "--src", "a.en"], "the texts stand in a config: tfm init writes one"),
        ([*TRAIN, "--src", "en"], "settings are given as --set data.source_language=en"),
        ([*TRAIN, "--vocab", "vocab.src"], "the vocabulary is learned from the corpus"),
        ([*TRAIN, "--vocab", "8000"], "settings are given as --set tokenizer.vocab_size=8000"),
        (["translate", "--models", "a"], "did you mean --run?"),
        (["translate", "--nbest-size", "3"], "did you mean --n-best?"),
        (["translate", "--report_align"], "did you mean --alignment?"),
        (
            ["translate", "--batch_size", "30"],
            "settings are given as --set decoding.batch_tokens=4096, which counts the tokens ",
        ),
        (
            ["translate", "--batch_size", "300", "--batch_type", "tokens"],
            "settings are given as --set decoding.batch_tokens=300\n",
        ),
        (
            [*TRAIN, "--batch-size", "4096", "--batch-type", "word"],
            "settings are given as --set training.batch_tokens=4096\n",
        ),
        (
            [*TRAIN, "--batch-size", "4096"],
            "settings are given as --set training.batch_sentences=4096 --set training.batch_tokens=null; if 4096 counts "
            "tokens: --set training.batch_tokens=4096\n",
        ),
        (
            [*TRAIN, "--train_from", "x y"],
            "to continue a run, the same command once more, without --train_from; to train the weights of another run "
            "further: --set training.init_from='x y'\n",
        ),
        (["translate", "--verbose"], "progress and warnings are told anyway"),
        (["--verbose", "train"], "progress and warnings are told anyway, on standard error: leave out --verbose\n"),
        ([*TRAIN, "--world_size", "4"], "torchrun starts several processes: torchrun --nproc-per-node 2 "),
        (["translate", "--checkpoints", "3"], "one checkpoint is read with --run RUN/checkpoints/step-"),
        ([*TRAIN, "--optimizer-betas", "0.9:0.98"], "settings are given as --set 'training.betas=[0.9,0.98]'"),
        ([*TRAIN, "--valid-metrics", "bleu"], "settings are given as --set 'validation.scores=[bleu]'"),
        ([*TRAIN, "--decay_method", "rsqrt"], "settings are given as --set training.schedule=inverse_sqrt"),
        (["translate", "--length_penalty", "avg"], "settings are given as --set decoding.length_normalization=average"),
        (["translate", "--source-language", "en", "hi"], "did you mean --from?"),
        (["init", "--src", "en", "a.en", "a.it"], "did you mean --source-language?"),
        (["init", "--tl", "pt-BR", "a.en", "a.it"], "did you mean --target-language?"),
        (["init", "--source", "a.en", "--target", "a.it"], "leave out --source: tfm init CORPUS"),
        (["data", "import", "--src", "en", "x.tmx"], "did you mean --source-language?"),
        (["data", "import", "--src", "x.tmx"], "leave out --src: tfm data import FILES"),
        (["data", "check", "--trg", "it", "a.en", "a.it"], "did you mean --target-language?"),
        (["calibrate", "--src", "en"], "did you mean --from?"),
        (["calibrate", "--src", "in.txt"], "did you mean --source?"),
        (["translate", "--input", "x", "--batch-size", "8"], "settings are given as --set decoding.batch_tokens=4096"),
        (["translate", "--text", "hi"], "leave out --text: tfm translate SENTENCES"),
        (["score", "--input", "x"], "leave out --input: tfm score HYPOTHESIS REFERENCES"),
        (["score", "--src", "x"], "did you mean --source?"),
        ([*TRAIN, "--device", "gpu"], "settings are given as --set runtime.device=cuda\n"),
        ([*TRAIN, "--precision=fp16"], "settings are given as --set runtime.precision=bfloat16\n"),
        (["train", "--seed", "2"], "settings are given as tfm train --config en-it.yaml --set seed=2"),
        (["data", "--vocab-size", "9"], "settings are given as --set tokenizer.vocab_size=9"),
        (["data", "clean", "a", "b", "--lr", "3"], "training.learning_rate is a setting of a run"),
    ],
)
def test_an_option_of_other_programs_is_answered_with_what_is_meant(
    answer: Answer, arguments: list[str], hint: str
) -> None:
    code, told = answer(*arguments)
    assert code == 2
    assert re.match(r"tfm: --\S+: there is no such option\n", told)
    assert f"  hint: {hint}" in told


@pytest.mark.long
@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("training.lr=3", "training.learning_rate"),
        ("lr=3", "training.learning_rate"),
        ("epochs=3", "training.max_epochs"),
        ("batch_size=3", "training.batch_sentences"),
        ("model.layers=3", "model.encoder_layers"),
        ("training.max_stepz=3", "training.max_steps"),
        ("model.layer_norm=pre", "model.norm_placement"),
        ("model.tied_softmax=true", "model.tie_embeddings"),
        ("training.batch_type=token", "training.batch_tokens"),
        ("training.validation_freq=3", "training.validate_every"),
        ("training.keep_best_ckpts=3", "training.keep_best"),
        ("training.dropout=0.2", "model.dropout"),
        ("model.batch_tokens=9", "training.batch_tokens"),
    ],
)
def test_a_setting_of_other_programs_is_answered_with_its_name_here(answer: Answer, override: str, meant: str) -> None:
    code, told = answer(*TRAIN, "--set", override)
    assert code == 78
    assert f"is not a setting; did you mean {meant}?" in told


def test_a_setting_that_is_like_no_other_in_its_section_is_not_guessed(answer: Answer) -> None:
    """The section is a part of both names, and made training.bogus like training.betas."""
    code, told = answer(*TRAIN, "--set", "training.bogus=1")
    assert code == 78
    assert "did you mean" not in told


def test_every_name_of_other_programs_means_a_setting() -> None:
    sources = ("phrasebook", "sequences", "files", "hub")
    known = {path for source in sources for path in setting_paths({"source": source})}
    assert {ours.partition("=")[0] for ours in SETTINGS} <= known
    names = [name for theirs in SETTINGS.values() for name in theirs.split()]
    assert len(names) == len({*names}), "each means one setting"
    assert [name for name in names if not re.fullmatch("[a-z0-9]+", name)] == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--batch-size", "8"),
        ("--weight-decay", "0.1"),
        ("--decrease-factor", "0.5"),
        ("--mini-batch-fit", ""),
        ("--adam-betas", "0.9,0.98"),
        ("--valid-metrics", "bleu"),
        ("--weight-tying-type", "src_trg_softmax"),
        ("--decay_method", "rsqrt"),
    ],
)
def test_the_settings_of_a_hint_fit_together(answer: Answer, option: str, value: str) -> None:
    _, told = answer(*TRAIN, option, *value.split())
    words = shlex.split(told.partition("given as ")[2])
    load_config("en-it.yaml", [setting for before, setting in itertools.pairwise(words) if before == "--set"])


@pytest.mark.parametrize(
    ("arguments", "option", "hint"),
    [
        (["translate", "-src", "test.en"], "-src", "did you mean --input?"),
        (["translate", "-model", "m.pt", "-src", "test.en"], "-model", "did you mean --run?"),
        (["translate", "-tgt", "test.eo"], "-tgt", "given translations are not read here"),
        (["translate", "-beam_size", "5"], "-beam_size", "did you mean --beam-size?"),
        (["translate", "-config", "mine.yaml"], "-config", "did you mean --run?"),
        (["train", "-config", "mine.yaml"], "-config", "did you mean --config?"),
        (["train", "-cfg=mine.yaml"], "-cfg", "did you mean --config?"),
        ([*TRAIN, "-batch_size", "8"], "-batch_size", "settings are given as --set training.batch_sentences=8"),
        (["data", "check", "-src", "en", "a.en", "a.it"], "-src", "did you mean --source-language?"),
        (["data", "-config", "mine.yaml"], "-config", "did you mean --config?"),
        (["-version"], "-version", "did you mean --version?"),
        (["translate", "-xyzzy"], "-xyzzy", "tfm translate --help lists the options"),
    ],
)
def test_a_long_name_with_one_dash_is_answered_as_with_two(
    answer: Answer, arguments: list[str], option: str, hint: str
) -> None:
    code, told = answer(*arguments)
    assert code == 2
    assert told.startswith(f"tfm: {option}: there is no such option\n  hint: {hint}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "-cmine"], "tfm: mine: no such config"),
        (["train", "-c", "-mine"], "tfm: -mine: no such config"),
        (["train", "-cmine.yaml"], "tfm: mine.yaml: no such config"),
        (["translate", "-b99", "Hi"], "tfm: --beam-size: "),
        (["data", "-cmine", "check"], "tfm: give either files or --config"),
    ],
)
def test_a_short_option_with_its_value_is_not_taken_for_a_long_name(
    answer: Answer, arguments: list[str], message: str
) -> None:
    assert answer(*arguments)[1].startswith(message)


def test_a_value_of_other_programs_is_answered_with_the_one_here(answer: Answer) -> None:
    _, told = answer(*TRAIN, "--set", "runtime.device=gpu")
    assert "  hint: did you mean runtime.device=cuda?" in told


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("runtime.device=cuda:0", "runtime.device=cuda"),
        ("model.positions=learnt", "model.positions=learned"),
        ("model.positions=rope", "model.positions=rotary"),
        ("model.positions=xyz", None),
        ("runtime.compile=aut", "runtime.compile=auto"),
    ],
)
def test_a_value_that_is_one_of_several_words_is_answered_with_a_near_one(
    answer: Answer, setting: str, meant: str | None
) -> None:
    _, told = answer(*TRAIN, "--set", setting)
    hint = f"did you mean {meant}?" if meant else "tfm info --config en-it.yaml shows settings with their values; "
    assert f"  hint: {hint}" in told


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["training.max_epochs", "=", "5"], "training.max_epochs=5"),
        (["training.max_epochs", "=5"], "training.max_epochs=5"),
        (["training.max_epochs=", "5"], "training.max_epochs=5"),
    ],
)
def test_spaces_around_the_sign_of_a_setting_are_named(answer: Answer, words: list[str], meant: str) -> None:
    code, told = answer(*TRAIN, "--set", *words)
    assert code == 2
    assert f"--set {' '.join(words)}: spaces around the =" in told
    assert f"hint: without spaces: --set {meant}\n" in told


@pytest.mark.parametrize("command", ["explain", "next"])
def test_a_sentence_without_quotation_marks_is_answered_with_them(answer: Answer, command: str) -> None:
    code, told = answer(command, "--run", RUN, "Where", "is", "the", "station")
    assert code == 2
    assert f"{command}: one sentence is expected, found 4 words without quotation marks" in told
    assert told.endswith(f"hint: tfm {command} 'Where is the station'\n")
    _, told = answer(command, "Where is the station?", "A dog.")
    assert "got unexpected extra argument(s) (A dog.)" in told


def test_a_name_of_its_own_means_itself() -> None:
    assert setting_called("max-epochs") == "training.max_epochs"
    assert setting_called("training.max_epochs") == "training.max_epochs"
    assert setting_called("seed") == "seed"
    assert setting_called("training") is None


def test_a_beam_size_that_is_given_in_both_ways_is_refused(answer: Answer) -> None:
    code, told = answer("translate", "Hi", "--beam-size", "2", "--set", "decoding.beam_size=3")
    assert code == 2
    assert "--beam-size and --set decoding.beam_size are the same setting" in told


@pytest.mark.parametrize("arguments", [["validate"], ["data", "--config", "en-it.yaml"], ["calibrate"]])
def test_a_split_that_does_not_exist_is_told_in_the_same_words_by_each_command(
    answer: Answer, arguments: list[str]
) -> None:
    code, told = answer(*arguments, "--split", "nope")
    assert code == 2
    assert "tfm: --split: 'nope' is not one of " in told
    assert "'validation', 'test'" in told


def test_a_corpus_in_the_place_of_a_config_is_named(answer: Answer) -> None:
    Path("phrases.csv").write_text("English,Italian\nHi,Ciao\n", encoding="utf-8")
    Path("memory.tmx").write_text("<tmx/>", encoding="utf-8")
    code, told = answer("train", "--config", "phrases.csv")
    assert code == 78
    assert "this is a corpus, where a config is expected" in told
    assert "tfm init phrases.csv writes a config for it" in told
    assert "tfm data import memory.tmx" in answer("train", "--config", "memory.tmx")[1]
    Path("phrases.xlsx").write_bytes(b"PK\x03\x04")
    assert "tfm init phrases.xlsx writes a config for it" in answer("train", "--config", "phrases.xlsx")[1]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["init", "my", "own", "pairs.csv"], "tfm init 'my own pairs.csv'"),
        (["data", "check", "my", "own", "pairs.csv"], "tfm data check 'my own pairs.csv'"),
        (["train", "--config", "my", "uk.yaml", "--set", "seed=2"], "tfm train --config 'my uk.yaml' --set seed=2"),
        (["score", "my", "uk.yaml", "my", "uk.yaml"], "tfm score 'my uk.yaml' 'my uk.yaml'"),
        (["translate", "--input", "my", "uk.yaml"], "tfm translate --input 'my uk.yaml'"),
    ],
)
def test_a_file_whose_name_lacks_quotation_marks_is_answered_with_them(
    answer: Answer, arguments: list[str], hint: str
) -> None:
    Path("my own pairs.csv").write_text("English,Italian\nYes.,Sì.\n", encoding="utf-8")
    Path("my uk.yaml").touch()
    code, talk = answer(*arguments)
    assert code == 2
    assert "a name with spaces needs quotation marks" in talk
    assert talk.endswith(f"hint: {hint}\n")


def test_words_that_are_the_name_of_a_file_together_are_warned_of(answer: Answer) -> None:
    Path("my text").write_text("Yes.\n", encoding="utf-8")
    code, talk = answer("translate", "my", "text", "Thank you.", "--run", RUN)
    assert code == 0
    assert "my text is a file, but its name is translated, not its lines; did you mean --input 'my text'?" in talk


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["train", "--config", "my pairs.csv"], "tfm init 'my pairs.csv' writes a config for it"),
        (["train", "--config", "my ul.yaml"], "did you mean 'my uk.yaml'?"),
        (["init", "my uk.yaml"], "take --config 'my uk.yaml'"),
        (["init", "my pairs.csv", "a.it"], "tfm init 'my pairs.csv'"),
        (["train", "my uk.yaml"], "--config 'my uk.yaml'?"),
        (["exercises", "my uk", "--check"], "tfm exercises 'my uk' makes a folder of exercises"),
        (["verify", "my run", "--run", "x"], "tfm verify 'my run'"),
        (["explain", "Yes.", "--html", "my page.pdf", "--run", RUN], "--html 'my page.html'"),
        (["translate", "-Don't go.", "--no"], """tfm translate -- '-Don'"'"'t go.'"""),
    ],
)
def test_a_name_in_a_hint_is_quoted_for_a_shell(answer: Answer, arguments: list[str], hint: str) -> None:
    for name in ("my pairs.csv", "my uk.yaml", "a.it"):
        Path(name).write_text("Yes.,Sì.\n", encoding="utf-8")
    code, talk = answer(*arguments)
    assert code != 0
    assert hint in talk


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["init", "~/no/x.csv"], "write /home/me/no/x.csv"),
        (["train", "--config=~/my uk.yaml"], "write '/home/me/my uk.yaml'"),
        (["translate", "--input", "~/x.txt", "--run", RUN], "write /home/me/x.txt"),
        (["translate", "Yes.", "--glossary", "~/x.tsv", "--run", RUN], "write /home/me/x.tsv"),
    ],
)
def test_a_tilde_in_quotation_marks_is_explained(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, arguments: list[str], meant: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    code, talk = answer(*arguments)
    assert code == 66
    assert talk.endswith(f"a shell replaces ~ by the home folder only outside of quotation marks: {meant}\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("sentences", "is_told"),
    [
        (["Good", "morning"], True),
        (["good", "morning."], True),
        (["The", "red", "car"], True),
        (["Yes.", "no."], False),
        (["Good", "Morning"], False),
        (["house", "a.it"], False),
        (["Good morning", "station"], False),
        (["morning"], False),
    ],
)
def test_words_of_one_sentence_are_told_to_need_quotation_marks(
    answer: Answer, sentences: list[str], is_told: bool
) -> None:
    Path("a.it").touch()
    code, talk = answer("translate", *sentences, "--run", RUN)
    assert code == 0
    assert ("write one sentence in quotation marks" in talk) == is_told


def test_a_tab_in_a_config_is_answered_with_spaces(answer: Answer) -> None:
    Path("mine.yaml").write_text("name: mine\n\tseed: 1\n", encoding="utf-8")
    code, told = answer("train", "--config", "mine.yaml")
    assert code == 78
    assert told.startswith("tfm: mine.yaml:2: ")
    assert "indent with spaces" in told


def test_a_device_in_the_place_of_a_config_is_not_called_missing(answer: Answer) -> None:
    code, told = answer("train", "--config", "/dev/null")
    assert code == 66
    assert "a pipe or device" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "Hi", "--output", "new/"],
        ["init", "pairs.csv", "--output", "new/"],
        ["data", "import", "pairs.csv", "--output", "new/"],
        ["validate", "--report", "new/"],
        ["explain", "Hi", "--html", "new/"],
    ],
)
def test_a_folder_in_the_place_of_a_new_file_is_refused(answer: Answer, arguments: list[str]) -> None:
    code, told = answer(*arguments)
    assert code == 2
    assert "new/: a name that ends in / is a folder, and a file is expected" in told


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["validate", "--report", "r.pdf"], "--report r.html"),
        (["explain", "Hi", "--html", "x.png"], "--html x.html"),
    ],
)
def test_a_page_under_the_name_of_something_else_is_refused(answer: Answer, arguments: list[str], hint: str) -> None:
    code, told = answer(*arguments)
    assert code == 2
    assert "the page is HTML" in told
    assert f"hint: {hint}\n" in told


@pytest.mark.parametrize("output", [".", "..", "-", "folder/.."])
def test_an_import_needs_the_beginning_of_a_name(answer: Answer, output: str) -> None:
    Path("pairs.csv").write_text("English,Italian\nHi,Ciao\n", encoding="utf-8")
    Path("folder").mkdir()
    code, told = answer("data", "import", "pairs.csv", "--output", output)
    assert code == 2
    assert "not the beginning of two file names" in told
    assert sorted(path.name for path in Path().iterdir()) == ["folder", "pairs.csv"]


@pytest.mark.long
def test_the_name_of_a_run_as_a_sentence_is_warned_of(answer: Answer) -> None:
    Path("runs").mkdir()
    Path("runs/phrases").symlink_to(RUN)
    code, told = answer("translate", "--run", "phrases", "phrases", "Hi")
    assert code == 0
    assert "phrases is a run, but its name is translated; did you mean --run phrases?" in told
    assert told.count("did you mean") == 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["tranlsate", "Hi"], "did you mean tfm translate?"),
        (["Train"], "did you mean tfm train?"),
        (["evaluate"], "did you mean tfm validate?"),
        (["help"], "did you mean tfm --help?"),
        (["qwertz"], "tfm --help lists the commands"),
        (["average_models"], "did you mean tfm average?"),
        (["onmt_average_models"], "did you mean tfm average?"),
        (["onmt_translate"], "did you mean tfm translate?"),
        (["fairseq-train"], "did you mean tfm train?"),
        (["marian-scorer"], "did you mean tfm likelihood?"),
        (["interactive"], "here: tfm translate without a text asks for sentences in a terminal"),
        (["data", "chek", "a.en", "a.it"], "did you mean tfm data check?"),
        (["runs", "copmare", "a", "b"], "did you mean tfm runs compare?"),
        (["runs", "qwertz"], "tfm runs --help lists the commands"),
        (["--versoin"], "did you mean --version?"),
        (
            ["--beam-size", "3", "translate"],
            "options stand behind the command: tfm translate --beam-size",
        ),
        (["--foo"], "tfm --help lists the options"),
    ],
)
def test_an_unknown_command_is_told_the_nearest_one(answer: Answer, arguments: list[str], hint: str) -> None:
    code, told = answer(*arguments)
    assert code == 2
    assert "there is no such" in told
    assert f"hint: {hint}\n" in told


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ("build_vocab onmt_build_vocab learn_bpe sockeye-vocab", "the vocabulary is learned when the training begins"),
        ("prepare-data sockeye-prepare-data preprocess fairseq-preprocess", "tfm init writes a config for a corpus"),
        ("generate fairseq-generate", "tfm validate --split test translates and scores"),
        ("sockeye-evaluate", "tfm score compares"),
        ("sockeye-score", "tfm likelihood prints"),
    ],
)
def test_a_command_of_another_program_is_answered_with_what_is_done_here(answer: Answer, names: str, hint: str) -> None:
    for name in names.split():
        code, told = answer(name, "--output", "x")
        assert code == 2
        assert told.startswith(f"tfm: {name}: there is no such command of tfm\n  hint: here: {hint}")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--beam-size", "-1"], "the least value is 1: --beam-size 1"),
        (["--beam-size=-1"], "the least value is 1: --beam-size 1"),
        (["--n-best", "-20"], "the least value is 1: --n-best 1"),
        (["--beam-size", "65"], "the greatest value is 64: --beam-size 64"),
        (
            ["--beam-size", "3", "-5 degrees"],
            "write -- before such sentences, behind all options: tfm translate -- '-5 degrees'",
        ),
    ],
)
def test_a_number_beyond_a_limit_is_told_the_limit(answer: Answer, arguments: list[str], hint: str) -> None:
    code, told = answer("translate", "--run", RUN, *arguments, "Hi")
    assert code == 2
    assert f"hint: {hint}\n" in told


@pytest.mark.long
def test_a_run_has_one_name_in_all_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def shown(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["tfm", *arguments])
        with pytest.raises(SystemExit):
            cli.main()
        return capsys.readouterr().out

    for folder in ("docs", "runs/other"):
        Path(folder).mkdir(parents=True)
    for place in ("docs/run", "runs/phrases"):
        Path(place).symlink_to(RUN)
    for each in Path(RUN).iterdir():
        Path("runs/other", each.name).symlink_to(each)
    few = ["--set", "validation.max_sentences=2", "--set", "validation.scores=[chrf]"]
    for name in ("docs/run", "phrases"):
        for command in (["info", "--run", name], ["validate", "--run", name, *few]):
            assert json.loads(shown(*command, "--json"))["run"] == name
        assert f"tfm translate --run {name} " in shown("card", "--run", name)
    compared = shown("runs", "compare", "docs/run", "other", "--json")
    assert json.loads(compared)["runs"] == ["docs/run", "other"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["score", "a.txt"], "score: missing argument 'references'", "such as tfm score out.txt "),
        (["train"], "train: missing option '--config' / '-c'", "such as tfm train --config "),
        (["train", "--config"], "train: option '--config' requires an argument", "such as tfm train "),
        (["data", "import"], "data import: missing argument 'files'", "such as tfm data import "),
        (["doctor", "x"], "doctor: got unexpected extra argument(s) (x)", "such as tfm doctor"),
        (["info", "--json=3"], "info: option '--json' does not take a value", "such as tfm info "),
        (["--version=3"], "tfm: option '--version' does not take a value", "tfm --help lists the options"),
    ],
)
def test_what_is_missing_or_too_much_is_answered_with_an_example(
    answer: Answer, arguments: list[str], message: str, hint: str
) -> None:
    code, told = answer(*arguments)
    assert code == 2
    assert told.startswith(f"tfm: {message}\n  hint: {hint}")


def test_a_promise_about_no_translation_at_all_is_refused(answer: Answer) -> None:
    code, told = answer("calibrate", "--run", RUN, "--below", "0")
    assert code == 2
    assert "hint: the least value is 1: --below 1\n" in told
