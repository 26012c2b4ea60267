"""Small Marian folders, made by transformers itself: random weights, SentencePiece models of a few thousand sentences."""

import io
import json
import random
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from transformer_cli.config import PhrasebookData
from transformer_cli.data.sources.corpus import read_pairs

CODES = (">>fra<<", ">>ita<<", ">>pt_BR<<")
SIZES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
}


@cache
def sentences() -> tuple[list[str], list[str]]:
    """English and Italian."""
    pairs = list(read_pairs(PhrasebookData(num_pairs=3000), "train", seed=1))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


@cache
def trained_spm(side: int, size: int, **options: Any) -> bytes:
    """The content of an .spm file; side 0 is English, 1 Italian."""
    import sentencepiece

    output = io.BytesIO()
    settings: dict[str, Any] = {"model_type": "unigram", "minloglevel": 2} | options
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences()[side]),
        model_writer=output,
        vocab_size=size,
        **settings,
    )
    return output.getvalue()


def pieces(content: bytes) -> list[str]:
    """The ordinary pieces of an .spm file."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return [processor.id_to_piece(index) for index in range(3, processor.get_piece_size())]


def write_marian(
    folder: Path,
    *,
    codes: tuple[str, ...] = (),
    num_missing: int = 20,
    separate_vocabs: bool = False,
    bias: bool = True,
    **changes: Any,
) -> Path:
    """A folder as transformers saves it.

    Args:
        codes: entries such as >>fra<<.
        num_missing: how many pieces of the .spm files the vocabulary lacks.
        separate_vocabs: whether each side has its own vocabulary.
        bias: whether the output has biases.
        changes: settings of MarianConfig.
    """
    import torch
    from transformers import MarianConfig, MarianMTModel

    source, target = trained_spm(0, 400), trained_spm(1, 300)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    vocabularies = [_vocabulary({*pieces(source), *pieces(target)}, codes, num_missing)] * 2
    if separate_vocabs:
        vocabularies = [_vocabulary({*pieces(one)}, codes, num_missing) for one in (source, target)]
        (folder / "target_vocab.json").write_text(json.dumps(vocabularies[1]))
    (folder / "vocab.json").write_text(json.dumps(vocabularies[0]))
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": "en",
        "target_lang": "it",
        "separate_vocabs": separate_vocabs,
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    pad = vocabularies[1]["<pad>"]
    of_model: dict[str, Any] = {
        "vocab_size": len(vocabularies[0]),
        "decoder_vocab_size": len(vocabularies[1]),
        "share_encoder_decoder_embeddings": not separate_vocabs,
        "tie_word_embeddings": True,
        "max_position_embeddings": 64,
        "activation_function": "swish",
        "scale_embedding": True,
        "static_position_embeddings": True,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": vocabularies[1]["</s>"],
        "forced_eos_token_id": None,
        "bad_words_ids": [[pad]],
    }
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MarianMTModel(MarianConfig(**(SIZES | of_model | changes)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        if bias:
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    return folder


def _vocabulary(found: set[str], codes: tuple[str, ...], num_missing: int) -> dict[str, int]:
    kept = sorted(found)
    random.Random(0).shuffle(kept)
    entries = ["</s>", "<unk>", *kept[num_missing:], *codes, "<pad>"]
    return {entry: index for index, entry in enumerate(entries)}
