"""A model of transformers that was imported goes out again: as good as before, now with one tokenizer.json."""

from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint import load_trained
from transformer_cli.extensions.exchange.porting.exporting.export_run import export_run
from transformer_cli.extensions.exchange.porting.exporting.hugging_face_format import (
    HuggingFaceFormat,
)
from transformer_cli.extensions.exchange.porting.importing.import_folder import import_folder
from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes

from ..importing.marian_folders import write_marian

pytest.importorskip("sentencepiece")

SENTENCES = ["The cat sleeps.", "Where is the station?", "I see 2 red cars!", "She doesn't know."]
UNLISTED = "Zyx qwv; xylophones."
FOLDERS: dict[str, dict[str, Any]] = {
    "one vocabulary": {},
    "two vocabularies": {"separate_vocabs": True},
    "several target languages": {"codes": (">>fra<<", ">>ita<<")},
}


@pytest.mark.parametrize("changes", FOLDERS.values(), ids=FOLDERS)
def test_the_folder_gives_the_logits_of_the_original(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    original = write_marian(tmp_path / "opus-mt-en-it", **changes)
    wishes = Wishes("en", ("fra", "ita")) if "codes" in changes else Wishes("en", ("it",))
    _, run = import_folder(original, "marian", wishes, runs_folder=tmp_path / "runs")
    trained = load_trained(run.path)
    lines = [*SENTENCES, UNLISTED]
    folder = export_run(trained, HuggingFaceFormat(), tmp_path / "out", lines=lines).path
    source, target = trained.source_tokenizer, trained.target_tokenizer
    old_tokenizer, tokenizer = (AutoTokenizer.from_pretrained(one) for one in (original, folder))
    old_model, model = (
        AutoModelForSeq2SeqLM.from_pretrained(one).eval() for one in (original, folder)
    )
    tags = (">>ita<< ", "<2ita>") if "codes" in changes else ("", "")
    prefix = [target.sos_id, *range(20, 26)]
    old_entries = old_tokenizer.get_vocab()
    if changes.get("separate_vocabs"):
        old_entries = old_tokenizer.target_encoder
    # Special tokens have other names; these are ordinary ones.
    old_prefix = [
        old_model.config.pad_token_id,
        *(old_entries[target.entries[i]] for i in prefix[1:]),
    ]
    columns = range(20, 60)
    old_columns = [old_entries[target.entries[index]] for index in columns]
    for sentence in lines:
        old_ids = old_tokenizer(tags[0] + sentence, return_tensors="pt")["input_ids"]
        ids = tokenizer(tags[1] + sentence, return_tensors="pt")["input_ids"]
        assert ids.shape == old_ids.shape
        with torch.inference_mode():
            expected = old_model(input_ids=old_ids, decoder_input_ids=torch.tensor([old_prefix]))
            found = model(input_ids=ids, decoder_input_ids=torch.tensor([prefix]))
        difference = found.logits[..., columns] - expected.logits[..., old_columns]
        assert difference.abs().max() < 1e-4
    assert source.parts.layout.is_sentencepiece
