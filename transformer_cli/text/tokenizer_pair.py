"""The tokenizers of source and target as files: one file where both sides have the same tokenizer, else two."""

from collections.abc import Callable

from transformer_cli.text.tokenizer import Tokenizer

SHARED = "tokenizer.json"
SOURCE, TARGET = "tokenizer.source.json", "tokenizer.target.json"

Tokenizers = tuple[Tokenizer, Tokenizer]
"""Of source and target; one object twice where the vocabulary is shared. Only an imported SentencePiece model
can have one vocabulary and two tokenizers, which split text differently."""


def tokenizer_files(tokenizers: Tokenizers) -> dict[str, str]:
    """File names and the content of each file."""
    source, target = tokenizers
    if source is target:
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
