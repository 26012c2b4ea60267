"""Tokenizers of SentencePiece as ours, and back: those of Marian (OPUS-MT), and those in a tokenizer.json, such as that of Pegasus.

A Marian tokenizer is two SentencePiece models, and a vocabulary of both or one of each. The parts of a tokenizer.json are
compared with the few forms that split text as our layout does; no part of the file itself is run.
"""

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from transformer_cli.process.errors import DataError
from transformer_cli.process.imports import require_extra
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import SPECIALS, TAG, tag_of
from transformer_cli.text.sentencepiece_charsmap import charsmap_text, checked_charsmap
from transformer_cli.text.tokenizer_file import (
    MAX_ENTRIES,
    SPACE,
    UNLISTED,
    SentencePieceLayout,
    TokenizerParts,
    hidden,
    is_hidden,
    tokenizer_errors_explained,
)

_UNIGRAM = 1
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
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
        raise DataError(
            f"{origin}: a SentencePiece model {problem}",
            hint="only unigram models with the settings of OPUS-MT can be imported",
        )
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
        found = [piece for piece, piece_kind in pieces if piece_kind == kind]
        problems += [f"with {name}, such as {found[0]!r}"] if found else []
    normal = [piece for piece, kind in pieces if kind == _NORMAL]
    if SPACE not in normal:
        problems.append("without a piece for a space")
    if (crossing := crossing_piece(normal)) is not None:
        problems.append(f"with pieces that contain a space, such as {crossing!r}")
    if len(set(normal)) != len(normal):
        problems.append("with a piece that stands there twice")
    return problems


LANGUAGE_CODE = re.compile(r">>([A-Za-z][A-Za-z0-9_-]{0,98})<<")
"""What stands before the source in a model of several target languages; the tokenizer has an entry for it."""


class SpecialEntries(NamedTuple):
    """The ids of the special tokens in the other program."""

    unk: int
    pad: int
    start: int
    """What the decoder reads first."""
    end: int


class ForeignTokenizers(NamedTuple):
    """Both tokenizers as ours, and the ids that their entries had."""

    source: Tokenizer
    target: Tokenizer
    """The same object as `source` if both sides split text in the same way."""
    source_rows: list[int]
    """For each of our ids, the id in the other program."""
    target_rows: list[int]
    are_shared: bool
    """Whether both sides have one vocabulary, with the same ids."""


def marian_tokenizers(
    models: tuple[SentencePieceModel, SentencePieceModel],
    vocabularies: tuple[Mapping[str, int], Mapping[str, int]],
    specials: tuple[SpecialEntries, SpecialEntries],
    *,
    languages: Sequence[str] = (),
) -> ForeignTokenizers:
    """Tokenizers of source and target that give the ids of a Marian tokenizer, in our order.

    Args:
        models: of source and target.
        vocabularies: ids by piece, of source and target; the same object twice if both sides share it.
        specials: their ids on both sides.
        languages: the codes of target languages, such as fra for the entry >>fra<<, in the order of their tags.

    Raises:
        DataError: a vocabulary has gaps or lacks a language code, or is too large.
    """
    are_shared = vocabularies[0] is vocabularies[1]
    entries = [ordered_entries(vocabulary) for vocabulary in vocabularies]
    codes = [f">>{language}<<" for language in languages]
    missing = [code for code in codes if code not in vocabularies[0]]
    if missing:
        raise DataError(f"the vocabulary has no entry {missing[0]}")
    sides = []
    for side, (model, names) in enumerate(zip(models, entries, strict=True)):
        has_codes = side == 0 or are_shared
        tagged = {code: tag_of(code[2:-2]) for code in codes if has_codes}
        rows = _rows(len(names), specials[side], [vocabularies[side][code] for code in tagged])
        layout = SentencePieceLayout(tags=tuple(tagged.values()), charsmap=model.charsmap)
        sides.append((_tokenizer(layout, model, [names[row] for row in rows]), rows))
    (source, source_rows), (target, target_rows) = sides
    if are_shared and models[0] == models[1]:
        target = source
    return ForeignTokenizers(source, target, source_rows, target_rows, are_shared)


def language_codes(vocabulary: Mapping[str, int]) -> list[str]:
    """The languages for which a vocabulary has an entry such as >>fra<<, in the order of their ids."""
    found = (LANGUAGE_CODE.fullmatch(entry) for entry in sorted(vocabulary, key=vocabulary.__getitem__))
    codes = [match[1] for match in found if match is not None]
    return [code for code in codes if TAG.fullmatch(tag_of(code))]


def ordered_entries(vocabulary: Mapping[str, int]) -> list[str]:
    """The entries in the order of their ids.

    Raises:
        DataError: the ids are not 0, 1, 2, ... without gaps.
    """
    entries = sorted(vocabulary, key=vocabulary.__getitem__)
    if len(entries) > MAX_ENTRIES:
        raise DataError(f"a vocabulary of {len(entries):,} entries; at most {MAX_ENTRIES:,}")
    if [vocabulary[entry] for entry in entries] != list(range(len(entries))):
        raise DataError("the ids of the vocabulary are not 0, 1, 2, ... without gaps and duplicates")
    return entries


def _rows(vocab_size: int, specials: SpecialEntries, tags: Sequence[int]) -> list[int]:
    """For each of our ids, the old id: special tokens first, tags, then all others in their old order."""
    first = [specials.unk, specials.pad, specials.start, specials.end, *tags]
    used = {*first}
    return [*first, *(index for index in range(vocab_size) if index not in used)]


def _tokenizer(layout: SentencePieceLayout, model: SentencePieceModel, entries: Sequence[str]) -> Tokenizer:
    """A tokenizer with these entries in this order; an entry that the model lacks is hidden.

    The lowest score of a hidden entry keeps the cost of an unknown character, which is 10 below the lowest score.
    """
    num_fixed, lowest = len(layout.specials), model.lowest_score
    vocabulary: list[list[Any]] = [[hidden(special), lowest] for special in layout.specials]
    for entry in entries[num_fixed:]:
        score = model.scores.get(entry)
        vocabulary.append([hidden(entry), lowest] if score is None else [entry, score])
    listed = {*entries[num_fixed:]}
    unlisted = [[piece, score] for piece, score in model.scores.items() if piece not in listed]
    if collisions := listed & {*SPECIALS}:
        raise DataError(f"the vocabulary has an entry {min(collisions)}, the name of a special token of ours")
    content = layout.empty_model() | {"vocab": vocabulary, UNLISTED: unlisted}
    with tokenizer_errors_explained("the tokenizer cannot be built"):
        return Tokenizer(TokenizerParts(layout, content))


_HARMLESS = (
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE},
    {"type": "Replace", "pattern": {"Regex": "\n"}, "content": " "},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Strip", "strip_left": False, "strip_right": True},
)
"""Steps of a normaliser that do what our layout does in any case; a line of text has no line break."""

Json = Mapping[str, Any]


def unigram_vocabulary(content: Json) -> dict[str, int]:
    """The ids of all entries, added tokens included.

    Raises:
        DataError: the file holds another kind of model.
    """
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type") != "Unigram":
        kind = model.get("type") if isinstance(model, dict) else None
        bart_note = " (the one of BART and RoBERTa works on bytes)" if kind == "BPE" else ""
        raise _refusal(f"a model of the type {kind}{bart_note}; only Unigram can be taken over")
    pairs = model.get("vocab")
    if not isinstance(pairs, list) or not all(map(_is_scored, pairs)):
        raise _refusal("its vocabulary is not a list of pieces with scores")
    vocabulary = {piece: index for index, (piece, _) in enumerate(pairs)}
    for token in _added_tokens(content):
        vocabulary.setdefault(token["content"], token["id"])
    return vocabulary


def unigram_tokenizers(content: Json, specials: SpecialEntries, *, languages: Sequence[str] = ()) -> ForeignTokenizers:
    """One tokenizer for both sides, which gives the ids of the file, in our order.

    Args:
        content: of the tokenizer.json.
        specials: the ids of the special tokens.
        languages: as in `marian_tokenizers`.

    Raises:
        DataError: the file splits text in a way that our layout does not have; the message names the part.
    """
    vocabulary = unigram_vocabulary(content)
    _check_parts(content, specials)
    model = content["model"]
    if model.get("byte_fallback"):
        raise _refusal("model.byte_fallback is true")
    added = {token["content"] for token in _added_tokens(content)}
    fixed = {*specials, *(vocabulary[name] for name in added)}
    scores = {piece: float(score) for index, (piece, score) in enumerate(model["vocab"]) if index not in fixed}
    if SPACE not in scores:
        raise _refusal("it has no piece for a space")
    if (crossing := crossing_piece(scores)) is not None:
        raise _refusal(f"a piece contains a space: {crossing!r}")
    table = checked_charsmap(_charsmap(content))
    found = SentencePieceModel(scores, table, tuple(vocabulary))
    return marian_tokenizers((found, found), (vocabulary, vocabulary), (specials, specials), languages=languages)


def unknown_id(content: Json) -> int:
    """The id of unknown pieces."""
    index = content["model"].get("unk_id")
    if type(index) is not int:
        raise _refusal("model.unk_id is missing")
    return index


def _check_parts(content: Json, specials: SpecialEntries) -> None:
    """Check all parts except the model."""
    for step in _steps(content.get("normalizer"), "normalizers"):
        if step.get("type") != "Precompiled" and step not in _HARMLESS:
            raise _refusal(f"normalizer: {_shown(step)}")
    splitters = _steps(content.get("pre_tokenizer"), "pretokenizers")
    if splitters[:1] == [{"type": "WhitespaceSplit"}]:
        splitters = splitters[1:]
    if len(splitters) != 1 or not _is_metaspace(splitters[0]):
        raise _refusal(f"pre_tokenizer: {_shown(content.get('pre_tokenizer'))}")
    after = content.get("post_processor")
    template = after.get("single") if isinstance(after, dict) else None
    names = [name for part in (template if isinstance(template, list) else []) for name in part]
    if names != ["Sequence", "SpecialToken"] or specials.end not in _ids_after(after):
        raise _refusal(_unfit_template(template, after))


def _unfit_template(template: Any, after: Any) -> str:
    """What is wrong with the tokens that stand around each source."""
    parts = template if isinstance(template, list) else []
    tokens = [part.get("SpecialToken", {}).get("id") for part in parts if isinstance(part, dict)]
    wanted = "here a source has only the end symbol behind it, and nothing before it"
    if not any(tokens):
        return f"post_processor: {_shown(after)}; {wanted}"
    form = " ".join("TEXT" if token is None else str(token) for token in tokens)
    return f"post_processor: each source is read as {form}; {wanted}"


def _ids_after(after: Any) -> list[Any]:
    tokens = after.get("special_tokens") if isinstance(after, dict) else None
    found = tokens.values() if isinstance(tokens, dict) else []
    return [index for token in found if isinstance(token, dict) for index in token.get("ids", [])]


def _is_metaspace(step: Json) -> bool:
    prepends = step.get("prepend_scheme", "always") in ("always", "first")
    has_space = step.get("type") == "Metaspace" and step.get("replacement") == SPACE
    return has_space and prepends and step.get("add_prefix_space", True) is True


def _charsmap(content: Json) -> str:
    tables = [
        step.get("precompiled_charsmap", "")
        for step in _steps(content.get("normalizer"), "normalizers")
        if step.get("type") == "Precompiled"
    ]
    if len(tables) > 1:
        raise _refusal("normalizer: two tables")
    return tables[0] if tables else ""


def _steps(part: Any, key: str) -> list[dict[str, Any]]:
    """The steps of a part: none, one, or those of a sequence."""
    if part is None:
        return []
    if not isinstance(part, dict):
        raise _refusal(f"not a part of a tokenizer: {_shown(part)}")
    steps = part.get(key) if part.get("type") == "Sequence" else [part]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise _refusal(f"not a part of a tokenizer: {_shown(part)}")
    return steps


def _added_tokens(content: Json) -> list[dict[str, Any]]:
    added = content.get("added_tokens") or []
    is_list = isinstance(added, list) and all(
        isinstance(token, dict) and isinstance(token.get("content"), str) and type(token.get("id")) is int
        for token in added
    )
    if not is_list:
        raise _refusal("added_tokens is no list of tokens with ids")
    return list(added)


def _is_scored(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int | float)
        and math.isfinite(pair[1])
    )


def _shown(part: Any) -> str:
    text = str(part)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _refusal(problem: str) -> DataError:
    return DataError(
        f"tokenizer.json cannot be taken over: {problem}",
        hint="models with this tokenizer cannot be imported; docs/importing.md says which can",
    )


_CONTROLS = (("<unk>", _UNKNOWN), ("<s>", _CONTROL), ("</s>", _CONTROL))


def is_sentencepiece(tokenizer: Tokenizer) -> bool:
    """Whether the SentencePiece library can split text as this tokenizer does."""
    return isinstance(tokenizer.parts.layout, SentencePieceLayout)


def sentencepiece_bytes(tokenizer: Tokenizer) -> bytes:
    """The content of a .spm file.

    The pieces that it finds are the entries of the vocabulary; the ids inside the file are others. It adds no special
    token. An unknown run of characters stays as it is, so a program that looks it up finds the entry of the other side.

    Args:
        tokenizer: one for which `is_sentencepiece` is true.
    """
    from sentencepiece import sentencepiece_model_pb2

    layout, learned = tokenizer.parts.layout, tokenizer.parts.model
    if layout.is_of_library:
        return tokenizer.to_file()
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
