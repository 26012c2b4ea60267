"""A tokenizer.json of another program that holds a SentencePiece model, such as that of Pegasus.

Its parts are compared with the few forms that split text as our layout does; no part of the file itself is run.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.marian_tokenizers import (
    ForeignTokenizers,
    SpecialEntries,
    marian_tokenizers,
)
from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.sentencepiece_file import (
    SentencePieceModel,
    crossing_piece,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.sentencepiece_charsmap import checked_charsmap
from transformer_cli.text.tokenizer_file import SPACE

_HARMLESS = (
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE},
    {"type": "Replace", "pattern": {"Regex": "\n"}, "content": " "},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Strip", "strip_left": False, "strip_right": True},
)
"""Steps of a normaliser that do what our layout does in any case; a line of text has no line break."""

Json = Mapping[str, Any]


def vocabulary_of_unigram(content: Json) -> dict[str, int]:
    """The ids of all entries, added tokens included.

    Raises:
        DataError: the file holds another kind of model.
    """
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type") != "Unigram":
        kind = model.get("type") if isinstance(model, dict) else None
        of_bart = " (the one of BART and RoBERTa works on bytes)" if kind == "BPE" else ""
        raise _refusal(f"a model of the type {kind}{of_bart}; only Unigram can be taken over")
    pairs = model.get("vocab")
    if not isinstance(pairs, list) or not all(map(_is_scored, pairs)):
        raise _refusal("its vocabulary is not a list of pieces with scores")
    vocabulary = {piece: index for index, (piece, _) in enumerate(pairs)}
    for token in _added_tokens(content):
        vocabulary.setdefault(token["content"], token["id"])
    return vocabulary


def unigram_tokenizers(
    content: Json, specials: SpecialEntries, *, languages: Sequence[str] = ()
) -> ForeignTokenizers:
    """One tokenizer for both sides, which gives the ids of the file, in our order.

    Args:
        content: of the tokenizer.json.
        specials: the ids of the special tokens.
        languages: as in `marian_tokenizers`.

    Raises:
        DataError: the file splits text in a way that our layout does not have; the message names the part.
    """
    vocabulary = vocabulary_of_unigram(content)
    _check_parts(content, specials)
    model = content["model"]
    if model.get("byte_fallback"):
        raise _refusal("model.byte_fallback is true")
    added = {token["content"] for token in _added_tokens(content)}
    fixed = {*specials, *(vocabulary[name] for name in added)}
    scores = {
        piece: float(score)
        for index, (piece, score) in enumerate(model["vocab"])
        if index not in fixed
    }
    if SPACE not in scores:
        raise _refusal("it has no piece for a space")
    if (crossing := crossing_piece(scores)) is not None:
        raise _refusal(f"a piece contains a space: {crossing!r}")
    table = checked_charsmap(_charsmap(content))
    found = SentencePieceModel(scores, table, tuple(vocabulary))
    both = (vocabulary, vocabulary), (specials, specials)
    return marian_tokenizers((found, found), *both, languages=languages)


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
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and type(token.get("id")) is int
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
