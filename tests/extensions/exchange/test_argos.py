"""`--to argos`: the package translates as the run does, with the libraries of Argos Translate and with itself."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import TokenizerConfig
from transformer_cli.extensions.exchange.argos import ArgosFormat
from transformer_cli.extensions.exchange.export import export_run
from transformer_cli.extensions.exchange.model_folder import ModelLanguages, imported_data
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import sentencepiece_bytes
from transformer_cli.process.errors import ConfigError, UsageError

from .small_runs import ENGLISH, ITALIAN, random_run

pytest.importorskip("ctranslate2")
sentencepiece = pytest.importorskip("sentencepiece")

OF_SENTENCEPIECE = TokenizerConfig(kind="sentencepiece", shared=True)
TEXTS = [*ENGLISH, *ITALIAN, "Ωmega 漢字 «x»", "  two   spaces  ", "a\tb", "ﬁne", ""]


@pytest.fixture
def trained(tmp_path: Path) -> TrainedModel:
    return random_run(tmp_path / "run", tokenizer=OF_SENTENCEPIECE)


@pytest.mark.long
def test_the_package_translates_as_the_run_does(trained: TrainedModel, tmp_path: Path) -> None:
    path = tmp_path / "en-it.argosmodel"
    [agreement] = export_run(trained, ArgosFormat(), path, lines=ENGLISH).agreements
    assert agreement.num_texts >= len(ENGLISH)
    assert agreement.num_tokens > 50
    with zipfile.ZipFile(path) as package:
        folders = {name.split("/")[0] for name in package.namelist()}
        assert folders == {"translate-en_it-1_0"}
        names = {name.partition("/")[2] for name in package.namelist()}
        metadata = json.loads(package.read("translate-en_it-1_0/metadata.json"))
    assert names >= {"metadata.json", "sentencepiece.model", "model/model.bin", "README.md", RECORD}
    assert (metadata["from_code"], metadata["from_name"]) == ("en", "English")
    assert (metadata["to_code"], metadata["to_name"]) == ("it", "Italian")


@pytest.mark.long
def test_equal_runs_give_equal_packages(trained: TrainedModel, tmp_path: Path) -> None:
    paths = [tmp_path / "a.argosmodel", tmp_path / "b.argosmodel"]
    for path in paths:
        path.touch()
        ArgosFormat().write(trained, path, quantization=None)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_written_sentencepiece_model_gives_the_same_ids(trained: TrainedModel) -> None:
    for tokenizer in (trained.source_tokenizer, trained.target_tokenizer):
        processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_bytes(tokenizer))
        ids = {entry: index for index, entry in enumerate(tokenizer.entries)}
        for text in TEXTS:
            pieces = processor.encode(text, out_type=str)
            assert [ids.get(piece, 0) for piece in pieces] == tokenizer.encode(text), text


def test_tokenizers_of_our_own_are_refused_with_the_formats_that_can(tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"tokenizer\.kind: wordlevel") as refusal:
        export_run(trained, ArgosFormat(), tmp_path / "a.argosmodel")
    assert "formats that can hold it: ctranslate2, hf, onnx" in str(refusal.value.hint)
    assert "fine-tune an imported run (tfm import)" in str(refusal.value.hint)


def test_a_model_that_reads_a_tag_before_its_source_is_refused(tmp_path: Path) -> None:
    config = random_run(tmp_path / "run", tokenizer=OF_SENTENCEPIECE).config
    tagged = imported_data(ModelLanguages("en", ("fra",), tagged=("fra",)))
    assert tagged.target_tag
    [found] = ArgosFormat().obstacles(config.model_copy(update={"data": tagged}))
    assert found.setting == "data.target_tag: true"
    assert ArgosFormat().obstacles(config) == []


def test_the_name_of_the_output_must_fit(trained: TrainedModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in \.argosmodel"):
        export_run(trained, ArgosFormat(), tmp_path / "folder")


LOADER = """
import json, sys, types
for name in ("stanza", "spacy", "minisbd"):  # they only find sentences, and are large
    sys.modules[name] = types.ModuleType(name)
sys.modules["minisbd"].SBDetect = None
sys.modules["minisbd"].models = types.SimpleNamespace()
import argostranslate.package, argostranslate.translate
path, texts = sys.argv[1], json.loads(sys.argv[2])
argostranslate.package.install_from_path(path)
[package] = argostranslate.package.get_installed_packages()
class OneSentence:
    def split_sentences(self, text):
        return [text]
import ctranslate2
translator = ctranslate2.Translator(str(package.package_path / "model"))
apply = argostranslate.translate.apply_packaged_translation
print(json.dumps([apply(package, text, translator, OneSentence(), 1)[0].value for text in texts]))
"""


@pytest.fixture(scope="module")
def argos_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package argostranslate, without the packages that it needs to find sentences."""
    folder = tmp_path_factory.mktemp("library")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(folder),
    ]
    installed = subprocess.run([*command, "argostranslate>=1.11,<2"], capture_output=True, check=False)
    if installed.returncode:
        pytest.skip("pip cannot install argostranslate here")
    return folder


@pytest.mark.slow
def test_argos_translate_itself_prints_the_same(trained: TrainedModel, tmp_path: Path, argos_library: Path) -> None:
    """With a beam of 1 its search is greedy search; its length penalty then changes nothing."""
    path = tmp_path / "en-it.argosmodel"
    export_run(trained, ArgosFormat(), path, lines=ENGLISH)
    places = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    environment = {**os.environ, **places, "PYTHONPATH": str(argos_library), "ARGOS_BEAM_SIZE": "1"}
    command = [sys.executable, "-c", LOADER, str(path), json.dumps(ENGLISH)]
    finished = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    found = json.loads(finished.stdout)
    engine = ArgosFormat().open(path)
    limits = [256] * len(ENGLISH)  # of CTranslate2
    expected = [one.text.strip() for one in engine.decode(ENGLISH, limits)]
    # Argos Translate lets CTranslate2 write at least one token, so its translations are never empty.
    pairs = [pair for pair in zip(found, expected, strict=True) if pair[1]]
    assert len(pairs) >= 3
    assert all(theirs == ours for theirs, ours in pairs), pairs
