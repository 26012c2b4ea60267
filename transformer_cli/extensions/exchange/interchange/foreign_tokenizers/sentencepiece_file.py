"""A SentencePiece model, as its .spm or .model file holds it: pieces with scores, and a normalisation table."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transformer_cli.process.errors import DataError
from transformer_cli.process.extras import require_extra
from transformer_cli.text.sentencepiece_charsmap import charsmap_text
from transformer_cli.text.tokenizer_file import SPACE

_UNIGRAM = 1
_NORMAL, _USER_DEFINED, _BYTE = 1, 4, 6
_MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """A unigram model."""

    scores: dict[str, float]
    """The log-probability of each piece that a text can have."""
    charsmap: str
    """The normalisation table in base64; empty: text stays as it is."""
    entries: tuple[str, ...]
    """All pieces in the order of their ids in the file, control symbols included."""

    @property
    def lowest_score(self) -> float:
        """An unknown character costs 10 more than this."""
        return min(self.scores.values())


def read_sentencepiece(content: bytes, origin: str) -> SentencePieceModel:
    """The model in the content of a file.

    Args:
        origin: what messages call the file.

    Raises:
        UsageError: the package sentencepiece, or protobuf, is not installed.
        DataError: the file is no SentencePiece model, or of a kind whose segmentation we cannot repeat.
    """
    require_extra("import", ("sentencepiece", "google.protobuf"), purpose=f"reading {origin}")
    from google.protobuf.message import DecodeError
    from sentencepiece import sentencepiece_model_pb2

    proto: Any = sentencepiece_model_pb2
    model = proto.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise DataError(f"{origin}: not a SentencePiece model, or cut off") from error
    for problem in _problems(model):
        raise DataError(f"{origin}: a SentencePiece model {problem}", hint="only unigram models with the settings of OPUS-MT can be imported")  # fmt: skip
    scores = {one.piece: one.score for one in model.pieces if one.type == _NORMAL}
    table = charsmap_text(model.normalizer_spec.precompiled_charsmap)
    return SentencePieceModel(scores, table, tuple(one.piece for one in model.pieces))


def crossing_piece(pieces: Iterable[str]) -> str | None:
    """The first piece with a space that is not its first character; None if there is none."""
    return next((piece for piece in pieces if SPACE in piece[1:]), None)


def _problems(model: Any) -> list[str]:
    """What keeps us from splitting text as this model does."""
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    problems = []
    if trainer.model_type != _UNIGRAM:
        problems.append(f"of the type {_MODEL_TYPES.get(trainer.model_type, trainer.model_type)}")
    if trainer.treat_whitespace_as_suffix:
        problems.append("with treat_whitespace_as_suffix: spaces stand behind words")
    switches = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    problems += [f"without {name}" for name in switches if not getattr(normalizer, name)]
    if model.denormalizer_spec.precompiled_charsmap:
        problems.append("with a table that changes the output (denormalizer_spec)")
    return problems + _problems_of_pieces([(one.piece, one.type) for one in model.pieces])


def _problems_of_pieces(pieces: list[tuple[str, int]]) -> list[str]:
    problems = []
    for kind, name in ((_USER_DEFINED, "user-defined symbols"), (_BYTE, "byte fallback")):
        found = [piece for piece, of_kind in pieces if of_kind == kind]
        problems += [f"with {name}, such as {found[0]!r}"] if found else []
    normal = [piece for piece, kind in pieces if kind == _NORMAL]
    if SPACE not in normal:
        problems.append("without a piece for a space")
    if (crossing := crossing_piece(normal)) is not None:
        problems.append(f"with pieces that contain a space, such as {crossing!r}")
    if len(set(normal)) != len(normal):
        problems.append("with a piece that stands there twice")
    return problems
