"""Our tokenizers as a tokenizer.json for other programs.

For transformers, the tokenizers of source and target become one: it encodes with the tokenizer of the source and decodes
with that of the target. Where their ids differ, the source ids follow the target ids (`TableForm.JOINED`); then the names
of target entries begin with characters that keep them out of every source text.
"""

import json
from typing import Any

from transformer_cli.config import CleaningConfig, Config
from transformer_cli.extensions.exchange.export_format import Obstacle
from transformer_cli.extensions.exchange.hugging_face_models import TableForm, VocabularySizes
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import (
    EOS,
    OTHER_SPACES,
    PAD,
    REMOVALS,
    SOS,
    SPECIALS,
    UNK,
    reads_without_invisible,
)
from transformer_cli.text.tokenizer_file import UNLISTED

TARGET_MARK = " \ufdd1"
"""Begins the name of a target entry. No piece of text begins like this: a text is cut between a space and a mark, or at each space."""
_ADDED = (PAD, SOS, EOS)
"""The special tokens of transformers. [UNK] is not among them: it would be left out of translations."""
_CONTROL_CHARACTERS = r"[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\ufeff]"
"""Those that `text.normalization` removes."""

Json = dict[str, Any]


def tokenizer_obstacles(config: Config) -> list[Obstacle]:
    """The settings of a SentencePiece model that a tokenizer.json cannot repeat."""
    settings, reason = config.tokenizer, "a tokenizer.json would split some texts in another way"
    found = {
        "algorithm: bpe": settings.algorithm == "bpe",
        "byte_fallback: true": bool(settings.byte_fallback),
        "user_symbols": settings.user_symbols is not None,
    }
    return [Obstacle(f"tokenizer.{name}", reason) for name, is_set in found.items() if is_set]


def tokenizer_json(source: Tokenizer, target: Tokenizer, form: TableForm, cleaning: CleaningConfig) -> Json:
    """The content of a tokenizer.json that normalises a text, tokenises it, and appends [EOS].

    A tag such as <2it> directly before the text becomes the token of this tag; other special tokens in a text are plain text if
    transformers has the setting `split_special_tokens`, which `tokenizer_config` has. Unlike ours, it does not look for an unknown
    run of characters among the entries of the target (`text.sentencepiece.listed_ids`).

    Args:
        source: encodes.
        target: decodes.
        form: of the embedding tables.
        cleaning: the rules that change a text before it is tokenised.
    """
    source_json, target_json = json.loads(source.to_json()), json.loads(target.to_json())
    is_joined = form is TableForm.JOINED
    assert is_joined or source.entries == target.entries
    offset = target.vocab_size if is_joined else 0
    end, end_id = _source_special(source, EOS, is_joined), offset + source.eos_id
    specials = {special_name(source, name): target.id_of(name) for name in _ADDED} | {end: end_id}
    tags = {tag: offset + source.tag_id(tag) for tag in source.special_tokens[len(SPECIALS) :]}
    return {
        **source_json,
        "added_tokens": [
            *(_added(name, index, special=True) for name, index in specials.items()),
            *(_added(name, index, special=False) for name, index in tags.items()),
        ],
        "normalizer": _normalizer(
            source_json["normalizer"],
            cleaning,
            removes_invisible=reads_without_invisible(cleaning, is_sentencepiece=source.parts.layout.is_sentencepiece),
        ),
        "post_processor": _appending(end, end_id),
        "decoder": _decoder(target_json["decoder"], source),
        "model": _model(source, target, source_json["model"], is_joined=is_joined),
    }


def tokenizer_config(source: Tokenizer, max_length: int) -> Json:
    """The content of a tokenizer_config.json for `tokenizer_json`.

    Args:
        source: encodes.
        max_length: the largest number of tokens that the model reads.
    """
    return {
        # The name that transformers 4, 5 and transformers.js know; transformers 5 itself would write another one.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "pad_token": special_name(source, PAD),
        "bos_token": special_name(source, SOS),
        "eos_token": special_name(source, EOS),
        "model_input_names": ["input_ids", "attention_mask"],
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }


def special_name(source: Tokenizer, name: str) -> str:
    """The name of a special token in the files for transformers."""
    return source.parts.layout.mark + name


def vocabulary_sizes(source: Tokenizer, target: Tokenizer) -> VocabularySizes:
    """The sizes of both vocabularies."""
    return VocabularySizes(
        source.vocab_size,
        target.vocab_size,
        are_shared=source is target,
        num_unlisted=len(source.parts.model.get(UNLISTED, ())),
    )


def _source_special(source: Tokenizer, name: str, is_joined: bool) -> str:
    """The name of a special token in a source."""
    return special_name(source, f"[SOURCE_{name.strip('[]')}]" if is_joined else name)


def _model(source: Tokenizer, target: Tokenizer, source_model: Json, *, is_joined: bool) -> Json:
    """The model of the source, with further entries."""
    file_entries = source_model["vocab"]
    scores = [score for _, score in file_entries] if isinstance(file_entries, list) else None
    names = [name for name, _ in file_entries] if isinstance(file_entries, list) else [*source.entries]
    for tag in source.special_tokens[len(SPECIALS) :]:
        names[source.tag_id(tag)] = tag
    target_names: list[str] = []
    if is_joined:
        target_names = [TARGET_MARK + entry for entry in target.entries]
        for special in _ADDED:
            target_names[target.id_of(special)] = special_name(source, special)
            names[source.id_of(special)] = _source_special(source, special, is_joined)
    content = {name: value for name, value in source_model.items() if name != UNLISTED}
    if scores is None:
        return content | {"vocab": {name: index for index, name in enumerate([*target_names, *names])}}
    # The lowest score decides how improbable an unknown character is, so no further name gets a lower one.
    vocabulary = [[name, 0.0] for name in target_names]
    vocabulary += [[name, score] for name, score in zip(names, scores, strict=True)]
    vocabulary += source_model.get(UNLISTED, [])
    return content | {"vocab": vocabulary, "unk_id": len(target_names) + source.unk_id}


def _added(name: str, index: int, *, special: bool) -> Json:
    matching = {"single_word": False, "lstrip": False, "rstrip": not special, "normalized": False}
    return {"id": index, "content": name, **matching, "special": special}


def _normalizer(source_normalizer: Json, cleaning: CleaningConfig, *, removes_invisible: bool) -> Json:
    normalizers = source_normalizer["normalizers"]
    if cleaning.normalize_unicode and {"type": "NFC"} not in normalizers:
        normalizers = [{"type": "NFC"}, *normalizers]
    if removes_invisible:
        removals = [_replace({"Regex": pattern}, "") for pattern in REMOVALS]
        spaces = _replace({"Regex": f"[{OTHER_SPACES}]"}, " ")
        normalizers = [*removals, spaces, *normalizers]
    if cleaning.remove_control_characters:
        normalizers = [_replace({"Regex": _CONTROL_CHARACTERS}, ""), *normalizers]
    return {"type": "Sequence", "normalizers": normalizers}


def _appending(end: str, end_id: int) -> Json:
    end_piece = {"SpecialToken": {"id": end, "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in ("A", "B"))
    return {
        "type": "TemplateProcessing",
        "single": [first, end_piece],
        "pair": [first, second, end_piece],
        "special_tokens": {end: {"id": end, "ids": [end_id], "tokens": [end]}},
    }


def _decoder(target_decoder: Json, source: Tokenizer) -> Json:
    """Special tokens except [UNK] never reach a decoder; [UNK] is shown with a space before it, as `Tokenizer.decode` does."""
    # A name of an imported model may begin with a space that does not belong to its text.
    layout = source.parts.layout
    has_hidden = layout.is_sentencepiece or layout.is_of_library
    decoders = [
        _replace({"String": TARGET_MARK}, ""),
        *([_replace({"Regex": "^ "}, "")] if has_hidden else []),
        _replace({"Regex": rf"^\[{UNK[1:-1]}\]$"}, f" {UNK}"),
        *target_decoder["decoders"],
    ]
    return {"type": "Sequence", "decoders": decoders}


def _replace(pattern: Json, content: str) -> Json:
    return {"type": "Replace", "pattern": pattern, "content": content}


SOURCE_FILE, TARGET_FILE, SHARED_FILE = (
    "source.tokenizer.json",
    "target.tokenizer.json",
    "tokenizer.json",
)


def tokenizer_json_with_end(tokenizer: Tokenizer) -> str:
    """A tokenizer.json whose `encode` appends [EOS] to a text, as our models read it.

    Apart from that it gives the ids of `Tokenizer.encode`, with one exception: the library takes the names of special
    tokens, such as `[EOS]`, for these tokens if they stand in a text.
    """
    content = json.loads(tokenizer.to_json())
    end = tokenizer.entries[tokenizer.eos_id]
    end_piece = {"SpecialToken": {"id": end, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [text, end_piece],
        "pair": [text, end_piece, {"Sequence": {"id": "B", "type_id": 1}}, end_piece],
        "special_tokens": {end: {"id": end, "ids": [tokenizer.eos_id], "tokens": [end]}},
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
