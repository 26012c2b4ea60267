"""A tokenizer that was taken over from SentencePiece, as a SentencePiece model again."""

import base64
from typing import Any

from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer_file import (
    UNLISTED,
    SentencePieceLayout,
    is_hidden,
)

_UNIGRAM = 1
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
_CONTROLS = (("<unk>", _UNKNOWN), ("<s>", _CONTROL), ("</s>", _CONTROL))


def is_of_sentencepiece(tokenizer: Tokenizer) -> bool:
    """Whether the SentencePiece library can split text as this tokenizer does."""
    return isinstance(tokenizer.parts.layout, SentencePieceLayout)


def sentencepiece_bytes(tokenizer: Tokenizer) -> bytes:
    """The content of a .spm file.

    The pieces that it finds are the entries of the vocabulary; the ids inside the file are others. It adds no special
    token. An unknown run of characters stays as it is, so a program that looks it up finds the entry of the other side.

    Args:
        tokenizer: one for which `is_of_sentencepiece` is true.
    """
    from sentencepiece import sentencepiece_model_pb2

    layout, learned = tokenizer.parts.layout, tokenizer.parts.model
    assert isinstance(layout, SentencePieceLayout)
    proto: Any = sentencepiece_model_pb2
    model = proto.ModelProto()
    for name, kind in _CONTROLS:
        model.pieces.add(piece=name, score=0.0, type=kind)
    for name, score in (*learned["vocab"], *learned[UNLISTED]):
        if not is_hidden(name):
            model.pieces.add(piece=name, score=score, type=_NORMAL)
    model.trainer_spec.model_type = _UNIGRAM
    model.trainer_spec.vocab_size = len(model.pieces)
    model.normalizer_spec.precompiled_charsmap = base64.b64decode(layout.charsmap)
    for switch in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
        setattr(model.normalizer_spec, switch, True)
    content: bytes = model.SerializeToString()
    return content
