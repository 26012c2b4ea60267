"""The tokenizers of source and target as files: one file where both sides share a vocabulary, else two."""

from collections.abc import Callable

from transformer_cli.text.tokenizer import Tokenizer

SHARED = "tokenizer.json"
SOURCE, TARGET = "tokenizer.source.json", "tokenizer.target.json"

Tokenizers = tuple[Tokenizer, Tokenizer]
"""Of source and target; one object twice where the vocabulary is shared."""


def tokenizer_files(tokenizers: Tokenizers, *, are_shared: bool) -> dict[str, str]:
    """File names and the content of each file."""
    source, target = tokenizers
    if are_shared:
        return {SHARED: source.to_json()}
    return {SOURCE: source.to_json(), TARGET: target.to_json()}


def load_tokenizers(
    has_file: Callable[[str], bool], load: Callable[[str], Tokenizer]
) -> Tokenizers:
    """The tokenizers of a folder.

    Args:
        has_file: whether the folder has a file of this name.
        load: reads the tokenizer in the file of this name.
    """
    if has_file(SHARED):
        shared = load(SHARED)
        return shared, shared
    return load(SOURCE), load(TARGET)
