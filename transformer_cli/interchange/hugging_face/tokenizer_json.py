"""The tokenizers of source and target as the one tokenizer of a model in transformers.

It encodes with the tokenizer of the source and decodes with that of the target. Where their ids differ, the source ids follow the
target ids (`TableForm.JOINED`); then the names of target entries begin with a character that keeps them out of every source text.
"""

import json
from typing import Any

from transformer_cli.config import CleaningConfig
from transformer_cli.interchange.hugging_face.embedding_tables import TableForm
from transformer_cli.text import Tokenizer
from transformer_cli.text.word_split import EOS, PAD, SOS, SPECIALS, UNK

OF_TARGET = "\ufdd1"
"""Begins the name of a target entry. Tokenizers cut a text before and after this character, so no piece of text has such a name."""
_CONTROL_CHARACTERS = r"[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\ufeff]"
"""Those that `text.normalization` removes."""

Json = dict[str, Any]


def source_special(name: str) -> str:
    """The name of a special token in a source whose ids follow those of the target."""
    return f"[SOURCE_{name.strip('[]')}]"


def tokenizer_json(
    source: Tokenizer, target: Tokenizer, form: TableForm, cleaning: CleaningConfig
) -> Json:
    """The content of a tokenizer.json that normalises a text, tokenises it, and appends [EOS].

    A tag such as <2it> directly before the text becomes the token of this tag; other special tokens in a text are plain text if
    transformers has the setting `split_special_tokens`, which `tokenizer_config` has.

    Args:
        source: encodes.
        target: decodes.
        form: of the embedding tables.
        cleaning: the rules that change a text before it is tokenised.
    """
    of_source, of_target = json.loads(source.to_json()), json.loads(target.to_json())
    if form is TableForm.JOINED:
        model = _joined_model(source, target, of_source["model"])
        offset, end = target.vocab_size, source_special(EOS)
    else:
        model, offset, end = of_source["model"], 0, EOS
    end_id = offset + source.eos_id
    specials = {PAD: target.pad_id, SOS: target.sos_id, EOS: target.eos_id, end: end_id}
    tags = {tag: offset + source.tag_id(tag) for tag in source.special_tokens[len(SPECIALS) :]}
    return {
        **of_source,
        "added_tokens": [
            *(_added(name, index, special=True) for name, index in specials.items()),
            *(_added(name, index, special=False) for name, index in tags.items()),
        ],
        "normalizer": _normalizer(of_source["normalizer"], cleaning),
        "post_processor": _appending(end, end_id),
        "decoder": _decoder(of_target["decoder"]),
        "model": model,
    }


def tokenizer_config(max_length: int) -> Json:
    """The content of a tokenizer_config.json for every tokenizer of `tokenizer_json`.

    Args:
        max_length: the largest number of tokens that the model reads.
    """
    return {
        # The name that transformers 4, 5 and transformers.js know; transformers 5 itself would write another one.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "pad_token": PAD,
        "bos_token": SOS,
        "eos_token": EOS,
        # [UNK] is not among them: transformers would leave it out of translations.
        "model_input_names": ["input_ids", "attention_mask"],
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }


def _joined_model(source: Tokenizer, target: Tokenizer, of_source: Json) -> Json:
    """The model of the source; its ids follow those of the target."""
    kept = (PAD, SOS, EOS)
    names = [entry if entry in kept else OF_TARGET + entry for entry in target.entries]
    renamed = [source_special(entry) if entry in kept else entry for entry in source.entries]
    if of_source["type"] == "Unigram":
        scores = [score for _, score in of_source["vocab"]]
        # The lowest score decides how improbable an unknown character is, so the names get none that is lower.
        vocabulary: Any = [[name, 0.0] for name in names]
        vocabulary += [[name, score] for name, score in zip(renamed, scores, strict=True)]
        return {**of_source, "vocab": vocabulary, "unk_id": target.vocab_size + source.unk_id}
    vocabulary = {name: index for index, name in enumerate([*names, *renamed])}
    return {**of_source, "vocab": vocabulary}


def _added(name: str, index: int, *, special: bool) -> Json:
    matching = {"single_word": False, "lstrip": False, "rstrip": not special, "normalized": False}
    return {"id": index, "content": name, **matching, "special": special}


def _normalizer(of_tokenizer: Json, cleaning: CleaningConfig) -> Json:
    normalizers = of_tokenizer["normalizers"]
    if cleaning.normalize_unicode and {"type": "NFC"} not in normalizers:
        normalizers = [{"type": "NFC"}, *normalizers]
    if cleaning.remove_control_characters:
        normalizers = [_replace({"Regex": _CONTROL_CHARACTERS}, ""), *normalizers]
    return {"type": "Sequence", "normalizers": normalizers}


def _appending(end: str, end_id: int) -> Json:
    of_end = {"SpecialToken": {"id": end, "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in ("A", "B"))
    return {
        "type": "TemplateProcessing",
        "single": [first, of_end],
        "pair": [first, second, of_end],
        "special_tokens": {end: {"id": end, "ids": [end_id], "tokens": [end]}},
    }


def _decoder(of_target: Json) -> Json:
    """Special tokens except [UNK] never reach a decoder; [UNK] is shown with a space before it, as `Tokenizer.decode` does."""
    decoders = [
        _replace({"String": OF_TARGET}, ""),
        _replace({"Regex": rf"^\[{UNK[1:-1]}\]$"}, f" {UNK}"),
        *of_target["decoders"],
    ]
    return {"type": "Sequence", "decoders": decoders}


def _replace(pattern: Json, content: str) -> Json:
    return {"type": "Replace", "pattern": pattern, "content": content}
