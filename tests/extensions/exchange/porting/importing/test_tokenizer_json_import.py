"""Folders with one tokenizer.json (Pegasus, BART) become runs if the tokenizer can be expressed here."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from sentencepiece import sentencepiece_model_pb2

from transformer_cli.checkpoint import load_trained
from transformer_cli.config import RuntimeConfig
from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.exchange.porting.importing.import_folder import import_folder
from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes
from transformer_cli.process.errors import DataError

from .marian_folders import SIZES, sentences, trained_spm

LANGUAGES = Wishes("en", ("it",))


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
        ).tolist()  # fmt: skip
        [hypotheses] = translator.engine.translate(translator.pipeline.prepare(text).parts, search)
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
    tokenizer = getattr(transformers, name)(
        vocab=[*first, *map(tuple, pieces)], src_lang="en_XX", tgt_lang="it_IT"
    )
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
