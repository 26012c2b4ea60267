"""A tokenizer as the text of a tokenizer.json, and a check for files from elsewhere.

Only the vocabulary, the merges, the scores and the normalisation table of a SentencePiece model may differ between
files. Every other part must be equal to what this package writes, so a regular expression from elsewhere never runs.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tokenizers import Tokenizer as HuggingFaceTokenizer

from transformer_cli.process.errors import DataError, TfmError, TryAgainError, is_out_of_memory
from transformer_cli.process.escaping import shortened
from transformer_cli.storage.manifest import without_duplicates
from transformer_cli.text.sentencepiece.sentencepiece_layout import UNLISTED, layout_in_file
from transformer_cli.text.tokenizer_layout import BYTE_TOKENS, KINDS, Layout, layouts_of
from transformer_cli.text.whitespace.whitespace_layout import WhitespaceLayout
from transformer_cli.text.word_split import SPECIALS, TAG

MAX_CHARACTERS = 150_000_000
MAX_ENTRIES = 1_000_000
MAX_PIECE_CHARACTERS = 1_000_000
LEARNED = frozenset({"vocab", "merges", UNLISTED})


class TokenizerParts(NamedTuple):
    """A tokenizer as a value: what is fixed, and what was learned."""

    layout: Layout
    model: dict[str, Any]
    """The `model` entry of a tokenizer.json."""


@contextmanager
def tokenizer_errors_explained(what: str) -> Iterator[None]:
    """Turn errors of the `tokenizers` library into `TfmError`; its Rust panics are no `Exception`."""
    try:
        yield
    except TfmError:
        raise
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        if is_out_of_memory(error):
            raise TryAgainError(f"{what}: out of memory", hint="close other programs") from error
        raise DataError(f"{what}: {error}") from error


def build(parts: TokenizerParts, *, keeps_marks_with_words: bool = False) -> HuggingFaceTokenizer:
    """A tokenizer of the `tokenizers` library; the model was checked by `read`, or is made here."""
    fixed = parts.layout.components(keeps_marks_with_words=keeps_marks_with_words)
    tokenizer = HuggingFaceTokenizer.from_str(
        json.dumps({**fixed, "model": parts.layout.engine_model(parts.model)})
    )
    tokenizer.encode_special_tokens = True  # `[EOS]` in a text is plain text; not stored in files
    return tokenizer


def write(parts: TokenizerParts) -> str:
    """The content of a tokenizer.json."""
    content = {**parts.layout.components(), "model": parts.model}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def read(text: str) -> TokenizerParts:
    """The checked parts of a tokenizer.json.

    Raises:
        DataError: the text is no tokenizer.json, or has a part that this package does not write.
    """
    if len(text) > MAX_CHARACTERS:
        raise _refusal(f"{len(text):,} characters are more than the {MAX_CHARACTERS:,} allowed")
    try:
        found = json.loads(text, object_pairs_hook=without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _refusal(f"not JSON, or cut off: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("model"), dict):
        raise _refusal("there is no model in it")
    model = found["model"]
    kind = model.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise _refusal(f"a model of type {_short(kind)}, only {', '.join(KINDS)} are known")
    layout = _layout_of(kind, found)
    expected = {
        name: model.get(name) if name in LEARNED else value
        for name, value in layout.empty_model().items()
    }
    _check_equal(expected, model, "model.")
    if kind == "Unigram":
        _check_scores(model["vocab"], layout, model.get(UNLISTED, []))
        pieces = [piece for piece, _ in model["vocab"]]
    else:
        _check_vocabulary(model["vocab"], layout)
        pieces = list(model["vocab"])
    if kind == "BPE":
        _check_merges(model["merges"], model["vocab"])
    if layout.has_byte_fallback and not set(BYTE_TOKENS) <= set(pieces):
        raise _refusal("model.vocab does not hold a token for each byte")
    return TokenizerParts(layout, model)


def _layout_of(kind: str, found: dict[str, Any]) -> Layout:
    """The layout that equals all fixed parts; if none does, the error is about the most similar one."""
    layouts = layouts_of(kind, _tags_in(found.get("added_tokens")))
    if kind == "Unigram" and UNLISTED in found["model"]:
        layouts = [layout_in_file(found)]
    if kind == "WordLevel":
        layouts.append(WhitespaceLayout(tags=layouts[0].tags))
    fixed = {name: value for name, value in found.items() if name != "model"}
    wanted = [layout.components() for layout in layouts]
    similar = [sum(fixed.get(name) == parts[name] for name in parts) for parts in wanted]
    best = similar.index(max(similar))
    _check_equal(wanted[best], fixed, "")
    return layouts[best]


def _tags_in(added_tokens: Any) -> tuple[str, ...]:
    """The tags of a file; none if anything else follows the special tokens."""
    added = added_tokens[len(SPECIALS) :] if isinstance(added_tokens, list) else []
    contents = [token.get("content") if isinstance(token, dict) else None for token in added]
    tags = tuple(text for text in contents if isinstance(text, str) and TAG.fullmatch(text))
    return tags if len(tags) == len(set(tags)) == len(added) else ()


def _check_equal(expected: dict[str, Any], found: dict[str, Any], where: str) -> None:
    for name in sorted({*expected, *found}):
        if name not in found:
            raise _refusal(f"{where}{name} is missing")
        if name not in expected or not _is_same_json(expected[name], found[name]):
            raise _refusal(f"{where}{_short(name)} is not what tfm writes: {_short(found[name])}")


def _is_same_json(left: Any, right: Any) -> bool:
    # Compared as text, because 1 == True in Python but not in JSON.
    return left is right or json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _check_vocabulary(vocabulary: Any, layout: Layout) -> None:
    if not isinstance(vocabulary, dict):
        raise _refusal("model.vocab is not a mapping of pieces to ids")
    if any(type(index) is not int for index in vocabulary.values()):
        raise _refusal("model.vocab holds an id that is not a whole number")
    ids = sorted(vocabulary.values())
    if ids != list(range(len(ids))):
        raise _refusal("the ids of model.vocab are not 0, 1, 2, ... without gaps and duplicates")
    _check_pieces(sorted(vocabulary, key=vocabulary.__getitem__), layout)


def _check_scores(vocabulary: Any, layout: Layout, unlisted: Any) -> None:
    if not isinstance(vocabulary, list) or not isinstance(unlisted, list):
        raise _refusal("model.vocab is not a list of pieces with scores")
    for entry in vocabulary + unlisted:
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)):
            raise _refusal(f"model.vocab holds {_short(entry)}, not a piece and its score")
        if type(entry[1]) not in (int, float) or not math.isfinite(entry[1]):
            raise _refusal(f"the score of {_short(entry[0])} is not a finite number")
    pieces = [piece for piece, _ in vocabulary + unlisted]
    if len(set(map(layout.entry_of, pieces))) != len(pieces):
        raise _refusal("model.vocab holds a piece twice")
    _check_pieces(pieces, layout)


def _check_pieces(pieces: list[str], layout: Layout) -> None:
    """Check the pieces, which are in the order of their ids."""
    specials = tuple(map(layout.name_of_special, layout.specials))
    if tuple(pieces[: len(specials)]) != specials:
        raise _refusal(f"the first entries are not {' '.join(layout.specials)}")
    if len(pieces) > MAX_ENTRIES:
        raise _refusal(f"{len(pieces):,} entries are more than the {MAX_ENTRIES:,} allowed")
    for piece in pieces:
        if not 0 < len(piece) <= MAX_PIECE_CHARACTERS or not _is_unicode(piece):
            raise _refusal(f"{_short(piece)} cannot be a piece of text")


def _check_merges(merges: Any, vocabulary: dict[str, int]) -> None:
    if not isinstance(merges, list) or len(merges) > len(vocabulary):
        raise _refusal("model.merges is not a list of at most one merge per entry")
    for merge in merges:
        is_pair = isinstance(merge, list) and len(merge) == 2
        if not is_pair or not all(isinstance(part, str) for part in merge):
            raise _refusal(f"model.merges holds {_short(merge)}, not two pieces")
        if not {merge[0], merge[1], merge[0] + merge[1]} <= vocabulary.keys():
            raise _refusal(
                f"model.merges joins {_short(merge)}, which the vocabulary does not hold"
            )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _short(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=True, default=str), 80)


def _refusal(problem: str) -> DataError:
    return DataError(
        f"tokenizer refused: {problem}",
        hint="only files that tfm wrote are accepted; copy the file from the run again",
    )
