"""Folders of transformers become runs: Marian, Pegasus and mBART, with the ids, logits and search of transformers."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from sentencepiece import sentencepiece_model_pb2

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Snapshot, open_checkpoint
from transformer_cli.checkpoint.runs import overview
from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.config import RuntimeConfig, load_config
from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.exchange.hugging_face_import import folder_decoding, search_notes
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.imported_model import ImportedRun
from transformer_cli.extensions.exchange.model_folder import PICKLED, WEIGHTS, NamedLanguages
from transformer_cli.process.errors import (
    CannotCreateError,
    ConfigError,
    DataError,
    MissingInputError,
    UsageError,
)
from transformer_cli.training.run import train

from .marian_folders import CODES, SIZES, sentences, trained_spm, write_marian

pytestmark = pytest.mark.long

EXACT = RuntimeConfig(device="cpu", precision="float32")


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("models") / "opus-mt-en-it")


@pytest.fixture(scope="module")
def of_several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("models") / "en-ROMANCE", codes=CODES)


def imported(folder: Path, tmp_path: Path, named: NamedLanguages | None = None) -> ImportedRun:
    _, run = import_folder(folder, "mine", named or NamedLanguages(), runs_folder=tmp_path / "runs")
    return run


def copy_of(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def change(folder: Path, name: str, **changes: Any) -> None:
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | changes))


def change_weights(folder: Path, changes: dict[str, torch.Tensor]) -> None:
    from safetensors.torch import load_file, save_file

    save_file(load_file(folder / WEIGHTS) | changes, folder / WEIGHTS, metadata={"format": "pt"})


def in_transformers(folder: Path) -> tuple[Any, Any]:
    from transformers import MarianMTModel, MarianTokenizer

    return MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder).eval()


@pytest.mark.heavy
@pytest.mark.parametrize("separate_vocabs", [False, True])
def test_greedy_translations_are_those_of_transformers(separate_vocabs: bool, tmp_path: Path) -> None:
    folder = write_marian(tmp_path / "en-it", separate_vocabs=separate_vocabs, bias=separate_vocabs)
    run = imported(folder, tmp_path)
    assert "the same ids" in run.compared[0]
    largest = float(run.compared[0].split()[-1])
    assert largest <= 1e-5
    tokenizer, model = in_transformers(folder)
    translator = load_translator(run.path, runtime=EXACT)
    search = translator.decoding.model_copy(update={"beam_size": 1, "max_length": 20})
    for text in [*sentences()[0][:5], "«Lei» says: ☃!"]:
        batch = tokenizer([text], return_tensors="pt")
        [written] = model.generate(**batch, num_beams=1, max_new_tokens=20).tolist()
        expected = tokenizer.decode(written, skip_special_tokens=True, use_source_tokenizer=False)
        [hypotheses] = translator.engine.translate(translator.pipeline.prepare(text).requests, search)
        found = translator.pipeline.target_tokenizer.decode(hypotheses[0].ids)
        assert found.replace(" [UNK]", "").strip() == expected.removeprefix("<pad>").strip()


def test_the_run_is_complete_and_says_what_it_is(marian: Path, tmp_path: Path) -> None:
    run = imported(marian, tmp_path)
    assert overview(run.path).status == "imported"
    assert open_checkpoint(load_trained(run.path).folder).step == 0
    text = (run.path / "config.yaml").read_text()
    assert text.startswith("# This run was imported: MarianMTModel.")
    assert "training.init_from=mine" in text
    trained = load_trained(run.path)
    assert trained.config.tokenizer.kind == "sentencepiece"
    assert trained.config.tokenizer.shared
    assert trained.source_tokenizer is not trained.target_tokenizer
    assert list((tmp_path / "runs").iterdir()) == [run.path]


def test_tags_of_target_languages_are_directions(of_several: Path, tmp_path: Path) -> None:
    run = imported(of_several, tmp_path, NamedLanguages(source="en"))
    translator = load_translator(run.path, runtime=EXACT)
    directions = [str(one) for one in load_trained(run.path).config.data.directions]
    assert directions == ["en-fra", "en-ita", "en-pt_BR"]
    tokenizer, model = in_transformers(of_several)
    search = translator.decoding.model_copy(update={"beam_size": 1, "max_length": 8})
    for code in ("fra", "pt_BR"):
        batch = tokenizer([f">>{code}<< Good morning."], return_tensors="pt")
        [written] = model.generate(**batch, num_beams=1, max_new_tokens=8).tolist()
        pipeline = translator.towards(code).pipeline
        [hypotheses] = translator.engine.translate(pipeline.prepare("Good morning.").requests, search)
        rows = {entry: index for index, entry in enumerate(pipeline.target_tokenizer.entries)}
        theirs = [rows.get(tokenizer.convert_ids_to_tokens(index), 0) for index in written[1:]]
        ours = [index for index in hypotheses[0].ids if index != 3]
        assert ours == theirs[: len(ours)]


def test_one_of_several_languages_keeps_its_tag(of_several: Path, tmp_path: Path) -> None:
    run = imported(of_several, tmp_path, NamedLanguages("en", ("French",)))
    data = load_trained(run.path).config.data
    assert data.target_tag
    assert [str(one) for one in data.directions] == ["en-fra"]
    pipeline = load_translator(run.path, runtime=EXACT).towards(None).pipeline
    tag = pipeline.source_tokenizer.tag_id("<2fra>")
    assert pipeline.prepare("Good morning.").requests[0].ids[0] == tag


def test_an_unknown_target_language_is_refused(of_several: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--to German: this model translates into: fra, ita, pt_BR"):
        imported(of_several, tmp_path, NamedLanguages("en", ("German",)))


def test_languages_come_from_the_name_of_the_folder(marian: Path, tmp_path: Path) -> None:
    folder = tmp_path / "opus-mt-de-es"
    shutil.copytree(marian, folder)
    (folder / "tokenizer_config.json").unlink()
    run = imported(folder, tmp_path)
    assert [str(one) for one in load_trained(run.path).config.data.directions] == ["de-es"]
    for name in ("model", "mine-marian"):  # a hyphen alone makes no pair of languages
        folder = folder.rename(tmp_path / name)
        with pytest.raises(UsageError, match="no file in it says between which languages") as raised:
            import_folder(folder, "other", NamedLanguages(), runs_folder=tmp_path / "runs")
        assert "--from" in str(raised.value.hint)


def test_weights_of_torch_save_in_a_folder_as_old_as_those_of_opus_mt_give_the_same_run(
    marian: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    folder = copy_of(marian, tmp_path)
    weights = load_file(folder / WEIGHTS)
    table = weights["model.shared.weight"]
    names = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    positions = {
        f"model.{stack}.embed_positions.weight": sinusoids(64, table.size(1)) for stack in ("encoder", "decoder")
    }
    torch.save(weights | dict.fromkeys(names, table) | positions, folder / PICKLED)
    expected = load_trained(imported(folder, tmp_path).path).model.state_dict()
    (folder / WEIGHTS).unlink()
    (folder / "tokenizer_config.json").write_text('{"target_lang": "it", "source_lang": "en"}')
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    search = {"num_beams": 6, "max_length": 512, "bad_words_ids": [[pad]], "forced_eos_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(search))
    model, run = import_folder(folder, "old", NamedLanguages(), runs_folder=tmp_path / "runs")
    trained = load_trained(run.path)
    found = trained.model.state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert "not compared" in run.compared[0]
    assert trained.config.decoding.beam_size == 6
    assert model.notes == ()


def sinusoids(length: int, width: int) -> torch.Tensor:
    """All sines of a position, then all cosines."""
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def test_weights_of_torch_save_in_several_files_are_refused(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / WEIGHTS).unlink()
    (folder / f"{PICKLED}.index.json").write_text("{}")
    with pytest.raises(DataError, match=r"several files.*cannot be read") as raised:
        imported(folder, tmp_path)
    assert "save_pretrained" in str(raised.value.hint)


def test_weights_in_several_files_are_compared(marian: Path, tmp_path: Path) -> None:
    from transformers import MarianMTModel

    folder = copy_of(marian, tmp_path)
    (folder / WEIGHTS).unlink()
    MarianMTModel.from_pretrained(marian).save_pretrained(folder, max_shard_size="40KB")
    assert not (folder / WEIGHTS).exists()
    assert "logits differ by at most" in imported(folder, tmp_path).compared[0]


def test_a_byte_order_mark_before_json_is_no_damage(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    for name in ("config.json", "vocab.json", "tokenizer_config.json"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    assert imported(folder, tmp_path).path.is_dir()


def test_a_run_that_another_process_makes_meanwhile_is_not_replaced(
    marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "runs" / "mine" / "config.yaml"
    save = Checkpoints.save

    def saved_late(self: Checkpoints, snapshot: Snapshot) -> Any:
        other.parent.mkdir()
        other.write_text("name: mine")
        return save(self, snapshot)

    monkeypatch.setattr(Checkpoints, "save", saved_late)
    with pytest.raises(CannotCreateError, match="exists already"):
        imported(marian, tmp_path)
    assert other.read_text() == "name: mine"
    assert [*(tmp_path / "runs").iterdir()] == [other.parent]


def test_a_name_with_line_breaks_stays_in_the_comment(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    change(folder, "config.json", architectures=["Marian\nseed: 77\u2028\n"])
    run = imported(folder, tmp_path)
    assert load_config(run.path / "config.yaml").seed != 77


def test_a_model_of_another_kind_is_named_before_its_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "m2m_100"}')
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    with pytest.raises(DataError, match="model_type is 'm2m_100'; models of these types fit: marian"):
        imported(tmp_path, tmp_path)
    (tmp_path / "config.json").write_text('{"add_source_eos": false}')
    (tmp_path / "model.bin").touch()
    with pytest.raises(DataError, match="a model in the format of CTranslate2, which cannot be imported"):
        imported(tmp_path, tmp_path)


class _Evil:
    def __reduce__(self) -> Any:
        return print, ("a program in a file of weights",)


def test_a_program_in_a_file_of_weights_does_not_run(
    marian: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / WEIGHTS).unlink()
    torch.save({"model.shared.weight": _Evil()}, folder / PICKLED)
    with pytest.raises(DataError, match="not a file of weights that can be read"):
        imported(folder, tmp_path)
    assert "a program" not in capfd.readouterr().out
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        ("config.json", {"model_type": "t5"}, "model_type is 't5'"),
        ("config.json", {"activation_function": "tanh"}, "activation_function is 'tanh'"),
        ("config.json", {"forced_bos_token_id": 5}, "forced_bos_token_id is 5"),
        ("config.json", {"encoder_ffn_dim": 64}, "encoder_ffn_dim is 64"),
        ("config.json", {"eos_token_id": 10**6}, "eos_token_id is 1000000"),
        ("config.json", {"activation_function": ["relu"]}, "activation_function is ['relu']"),
        ("config.json", {"d_model": 33}, "model.shared.weight has the shape"),
        ("config.json", {"max_position_embeddings": "64"}, "max_position_embeddings is '64'"),
        ("config.json", {"dropout": 2}, "dropout: less than 1 is expected"),
        (
            "config.json",
            {"encoder_attention_heads": 3, "decoder_attention_heads": 3},
            "d_model (32) must be a multiple of num_heads (3)",
        ),
        ("config.json", {"encoder_layers": 1}, "belongs to no part of a model with these settings"),
        ("tokenizer_config.json", {"unk_token": "<nope>"}, "no entry <nope>"),
        ("vocab.json", {"extra": 10**6}, "without gaps"),
        ("vocab.json", {"extra": "x"}, "not a map from pieces to ids"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(
    name: str, changes: dict[str, Any], problem: str, marian: Path, tmp_path: Path
) -> None:
    folder = copy_of(marian, tmp_path)
    change(folder, name, **changes)
    if name == "config.json":
        (folder / "generation_config.json").unlink()
    with pytest.raises(DataError) as raised:
        imported(folder, tmp_path)
    assert problem in raised.value.message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["source.spm", "vocab.json", "config.json", WEIGHTS])
def test_a_missing_file_is_named(name: str, marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / name).unlink()
    with pytest.raises((DataError, MissingInputError), match=name):
        imported(folder, tmp_path)


def test_a_cut_off_file_of_weights_is_refused(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-100])
    with pytest.raises(DataError, match="bytes of data, but the header lists"):
        imported(folder, tmp_path)


_MATRIX, _NORM = (f"model.encoder.layers.0.{one}.weight" for one in ("fc1", "final_layer_norm"))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (_MATRIX, (48, 33)),
        (_MATRIX, (47, 32)),
        (_MATRIX, (48,)),
        (_NORM, (31,)),
        (_NORM, (40,)),
        ("final_logits_bias", (1, 10)),
        ("model.shared.weight", (700, 40)),
    ],
)
def test_a_tensor_of_another_shape_is_named_with_its_folder(
    name: str, shape: tuple[int, ...], marian: Path, tmp_path: Path
) -> None:
    folder = copy_of(marian, tmp_path)
    change_weights(folder, {name: torch.zeros(shape)})
    with pytest.raises(DataError) as raised:
        imported(folder, tmp_path)
    assert raised.value.message.startswith(f"{folder}: the weights: {name} has the shape")
    assert not (tmp_path / "runs").exists()


def test_a_tensor_with_nan_is_named_with_its_file(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    change_weights(folder, {_NORM: torch.full((32,), float("nan"))})
    with pytest.raises(DataError, match=f"{WEIGHTS}: {_NORM} has values that are NaN"):
        imported(folder, tmp_path)
    assert not (tmp_path / "runs").exists()


def test_a_layer_that_the_settings_do_not_have_is_named(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    change_weights(folder, {"model.encoder.layers.2.fc1.weight": torch.zeros(48, 32)})
    with pytest.raises(DataError, match=r"layers\.2\.fc1\.weight belongs to no part of a model"):
        imported(folder, tmp_path)


def test_an_existing_run_is_never_replaced(marian: Path, tmp_path: Path) -> None:
    (tmp_path / "runs/mine").mkdir(parents=True)
    with pytest.raises(CannotCreateError, match="mine: exists already"):
        imported(marian, tmp_path)
    with pytest.raises(UsageError, match="cannot be the name of a run"):
        import_folder(marian, "../other", NamedLanguages(), runs_folder=tmp_path / "runs")


def test_fine_tuning_lowers_the_loss(marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, run = import_folder(marian, "mine", NamedLanguages())
    english, italian = sentences()
    lines = [f"{source}\t{target}\n" for source, target in zip(english, italian, strict=True)]
    Path("corpus.tsv").write_text("".join(lines[:600]))
    config = load_config(
        run.path / "config.yaml",
        [
            "name=tuned",
            "training.init_from=mine",
            "training.max_steps=24",
            "training.warmup_steps=2",
            "training.learning_rate=0.003",
            "training.validate_every=8",
            "training.log_every=8",
            "training.save_every=24",
            "training.update_tokens=1000",
            "training.best_metric=loss",
            "validation.scores=[]",
            "validation.num_samples=0",
            "runtime.device=cpu",
        ],
    )
    train(config)
    losses = [
        json.loads(line)["loss"]
        for line in Path("runs/tuned/metrics.jsonl").read_text().splitlines()
        if "loss" in json.loads(line)
    ]
    assert losses[-1] < losses[0] - 0.5
    before, after = load_trained(run.path), load_trained(Path("runs/tuned"))
    assert after.source_tokenizer.to_json() == before.source_tokenizer.to_json()
    assert after.target_tokenizer.to_json() == before.target_tokenizer.to_json()
    with pytest.raises(ConfigError, match="this run was imported, so its training cannot go on"):
        train(load_config(run.path / "config.yaml"))


LANGUAGES = NamedLanguages("en", ("it",))


def write_folder(folder: Path, model_type: str = "pegasus") -> Path:
    """A random model with the tokenizer of Pegasus, as transformers saves both."""
    from transformers import (
        BartConfig,
        BartForConditionalGeneration,
        PegasusConfig,
        PegasusForConditionalGeneration,
        PegasusTokenizer,
    )

    proto: Any = sentencepiece_model_pb2
    spm = proto.ModelProto()
    spm.ParseFromString(trained_spm(0, 400))
    pieces = [(one.piece, one.score) for one in spm.pieces if one.type == 1]
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<mask_1>", 0.0), ("<unk>", 0.0), *pieces]
    tokenizer = PegasusTokenizer(
        vocab=vocabulary,
        mask_token="<mask_1>",
        mask_token_sent=None,
        offset=2,
        _spm_precompiled_charsmap=spm.normalizer_spec.precompiled_charsmap,
    )
    classes = {
        "pegasus": (PegasusConfig, PegasusForConditionalGeneration),
        "bart": (BartConfig, BartForConditionalGeneration),
    }
    of_config, of_model = classes[model_type]
    torch.manual_seed(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = of_config(
            **SIZES,
            vocab_size=len(tokenizer),
            max_position_embeddings=64,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
            decoder_start_token_id=0 if model_type == "pegasus" else 1,
            forced_eos_token_id=None,
        )
        model = of_model(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("model_type", ["pegasus", "bart"])
def test_ids_and_translations_are_those_of_transformers(model_type: str, tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, PreTrainedTokenizerFast

    folder = write_folder(tmp_path / model_type, model_type)
    _, run = import_folder(folder, "mine", LANGUAGES, runs_folder=tmp_path / "runs")
    assert "the same ids" in run.compared[0]
    assert float(run.compared[0].split()[-1]) <= 1e-5
    trained = load_trained(run.path)
    assert trained.source_tokenizer is trained.target_tokenizer
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    translator = load_translator(run.path, runtime=RuntimeConfig(device="cpu", precision="float32"))
    search = translator.decoding.model_copy(update={"beam_size": 1, "max_length": 10})
    for text in [*sentences()[0][:4], "ﬁrst ☃ (x)"]:
        batch = tokenizer([text], return_tensors="pt")
        ids, mask = batch["input_ids"], batch["attention_mask"]
        [written] = model.generate(
            input_ids=ids, attention_mask=mask, num_beams=1, do_sample=False, max_new_tokens=10, bad_words_ids=[[0]]
        ).tolist()
        [hypotheses] = translator.engine.translate(translator.pipeline.prepare(text).requests, search)
        entries = trained.target_tokenizer.entries
        theirs = [tokenizer.convert_ids_to_tokens(index) for index in written[1:]]
        ours = [entries[index] for index in hypotheses[0].ids]
        renamed = {"[EOS]": "</s>", "[UNK]": "<unk>"}
        assert [renamed.get(entry, entry) for entry in ours] == theirs


@pytest.mark.parametrize(
    ("part", "value", "problem"),
    [
        ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(a+)+b"}}, "pre_tokenizer"),
        ("pre_tokenizer", None, "pre_tokenizer"),
        ("normalizer", {"type": "Lowercase"}, "normalizer: {'type': 'Lowercase'}"),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"}, "precompiled"),
        ("post_processor", None, "post_processor"),
        ("added_tokens", [{"id": "x"}], "added_tokens"),
        ("model", {"type": "BPE", "vocab": {}, "merges": []}, "only Unigram can be taken over"),
        ("model", {"type": "Unigram", "vocab": [["a", None]]}, "not a list of pieces with scores"),
    ],
)
def test_another_tokenizer_is_refused_with_the_part_in_the_way(
    part: str, value: Any, problem: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "pegasus")
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {part: value}))
    with pytest.raises(DataError) as raised:
        import_folder(folder, "mine", LANGUAGES, runs_folder=tmp_path / "runs")
    assert problem in raised.value.message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "form"),
    [("MBart50Tokenizer", "en_XX TEXT </s>"), ("MBartTokenizer", "TEXT </s> en_XX")],
)
def test_a_language_code_beside_each_source_is_named(name: str, form: str, tmp_path: Path) -> None:
    import transformers

    folder = write_folder(tmp_path / "mbart", "bart")
    pieces = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"][4:]
    first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    tokenizer = getattr(transformers, name)(vocab=[*first, *map(tuple, pieces)], src_lang="en_XX", tgt_lang="it_IT")
    tokenizer.save_pretrained(folder)
    with pytest.raises(DataError, match=f"each source is read as {form}; here a source has only"):
        import_folder(folder, "mine", LANGUAGES, runs_folder=tmp_path / "runs")


def test_the_tokenizer_of_bart_is_named(tmp_path: Path) -> None:
    from tokenizers import ByteLevelBPETokenizer
    from transformers import BartTokenizer

    folder = write_folder(tmp_path / "bart", "bart")
    learned = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    learned.train_from_iterator(sentences()[0], vocab_size=400, special_tokens=specials)
    learned.save_model(str(tmp_path))
    files = str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")
    BartTokenizer(*files).save_pretrained(folder)
    with pytest.raises(DataError, match=r"BPE \(the one of BART and RoBERTa works on bytes\)"):
        import_folder(folder, "mine", LANGUAGES, runs_folder=tmp_path / "runs")


def test_beams_length_penalty_and_repetitions_are_taken_over() -> None:
    found = folder_decoding({"num_beams": 6, "length_penalty": 0.8, "no_repeat_ngram_size": 3})
    assert (found.beam_size, found.length_penalty, found.no_repeat_ngram_size) == (6, 0.8, 3)
    assert found.length_normalization == "average"


def test_an_opus_mt_folder_gives_no_notes() -> None:
    settings = {
        "num_beams": 4,
        "bad_words_ids": [[99]],
        "forced_eos_token_id": 0,
        "max_length": 512,
    }
    assert not list(search_notes(settings, {97, 98, 99}))


def test_what_the_search_does_not_do_is_said() -> None:
    bad_words = [[99], [7], [8, 9], [[99]]]
    settings = {"repetition_penalty": 1.2, "bad_words_ids": bad_words, "do_sample": False}
    assert list(search_notes(settings, {99})) == [
        "repetition_penalty 1.2 of the folder is not used in the search",
        "bad_words_ids of the folder bans 3 sequences of ids that the search can write",
    ]


def test_a_setting_of_the_search_that_is_not_possible_is_named() -> None:
    with pytest.raises(ConfigError, match="length_penalty is -3"):
        folder_decoding({"length_penalty": -3})
    with pytest.raises(ConfigError, match="no_repeat_ngram_size is 1000000"):
        folder_decoding({"no_repeat_ngram_size": 10**6})
    assert folder_decoding({"num_beams": True}) == folder_decoding({})
    assert folder_decoding({"num_beams": 100}).beam_size == 64
