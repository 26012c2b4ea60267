"""The tokenizers of the tutorial by hkproj, which puts [SOS] before each source."""

from collections.abc import Mapping
from typing import Any

from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.marian_tokenizers import (
    ForeignTokenizers,
    ordered_entries,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer_file import (
    TokenizerParts,
    WhitespaceLayout,
    tokenizer_errors_explained,
)
from transformer_cli.text.words import SPECIALS, tag_of


def tutorial_tokenizers(
    files: tuple[Mapping[str, Any], Mapping[str, Any]], target_language: str
) -> ForeignTokenizers:
    """Tokenizers of source and target; the tag of the target language stands for [SOS] before each source.

    Args:
        files: the content of both tokenizer.json files.
        target_language: names the tag, such as <2it>.

    Raises:
        DataError: a file is not as the tutorial writes it.
    """
    vocabularies = [vocabulary_of(content) for content in files]
    tag = tag_of(target_language)
    source, target = map(ordered_entries, vocabularies)
    num_fixed, sos_id = len(SPECIALS), Tokenizer.sos_id
    tagged = [*source[:num_fixed], tag, *source[num_fixed:]]
    rows = [*range(num_fixed), sos_id, *range(num_fixed, len(source))]
    tokenizers = _tokenizer(tagged, (tag,)), _tokenizer(target, ())
    return ForeignTokenizers(*tokenizers, rows, [*range(len(target))], are_shared=False)


def vocabulary_of(content: Mapping[str, Any]) -> dict[str, int]:
    """The ids of the words in a tokenizer.json.

    Raises:
        DataError: the file is not as the tutorial writes it.
    """
    model, cut, normalizer = (content.get(name) for name in ("model", "pre_tokenizer", "normalizer"))  # fmt: skip
    if not isinstance(model, dict) or model.get("type") != "WordLevel":
        raise DataError("not a tokenizer of the tutorial: its model is not of the type WordLevel")
    if cut != {"type": "Whitespace"} or normalizer is not None:
        raise DataError("not a tokenizer of the tutorial: it does not cut at white space only")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict) or any(type(one) is not int for one in vocabulary.values()):
        raise DataError("not a tokenizer of the tutorial: it has no map from words to ids")
    if [vocabulary.get(name) for name in SPECIALS] != [*range(len(SPECIALS))]:
        raise DataError(f"not a tokenizer of the tutorial: its first entries are not {' '.join(SPECIALS)}")  # fmt: skip
    return dict(vocabulary)


def _tokenizer(entries: list[str], tags: tuple[str, ...]) -> Tokenizer:
    layout = WhitespaceLayout(tags=tags)
    if len({*entries}) != len(entries):
        raise DataError(f"the vocabulary has an entry {tags[0]}, the name of a tag of ours")
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    with tokenizer_errors_explained("the tokenizer cannot be built"):
        return Tokenizer(TokenizerParts(layout, layout.empty_model() | {"vocab": vocabulary}))
