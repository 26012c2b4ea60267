"""From the checkpoints of the tutorial by hkproj (tmodel_19.pt, tokenizer_en.json, tokenizer_it.json) to a model."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from transformer_cli.config import Config, DecodingConfig, TokenizerConfig
from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.tutorial_tokenizers import (
    tutorial_tokenizers,
    vocabulary_of,
)
from transformer_cli.extensions.exchange.interchange.tutorial.tutorial_models import (
    tutorial_config,
    tutorial_state,
)
from transformer_cli.extensions.exchange.porting.importing.imported_model import (
    FINE_TUNING,
    ImportedModel,
    Wishes,
)
from transformer_cli.extensions.exchange.porting.importing.languages_of_folder import (
    Languages,
    imported_data,
)
from transformer_cli.extensions.exchange.porting.importing.model_folder import ModelFolder
from transformer_cli.extensions.exchange.porting.importing.pickled_weights import read_pickled
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

_CHECKPOINT = re.compile(r"tmodel_(\d{1,6})\.pt")
_TOKENIZER = re.compile(r"tokenizer_([A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8})*)\.json")
_NUM_HEADS = 8
_USUAL_SOURCE = "en"
_STEP, _EPOCH = "global_step", "epoch"


def is_of_tutorial(folder: ModelFolder) -> bool:
    """Whether the folder has tokenizers and a checkpoint of the tutorial."""
    return bool(_checkpoints(folder)) and len(_tokenizers(folder)) >= 2


def import_tutorial(folder: ModelFolder, name: str, wishes: Wishes) -> ImportedModel:
    """The model of the last checkpoint in a folder, or in a folder inside it.

    Args:
        folder: with the two tokenizers.
        name: of the run.
        wishes: which of the two languages is the source.

    Raises:
        DataError: the files are not those of the tutorial, or do not belong together.
        UsageError: nothing says which language is the source.
    """
    for wish in (wishes.source_language, *wishes.target_languages):
        if wish is not None and wish not in (names := _tokenizers(folder)):
            raise UsageError(f"{wish}: the folder has tokenizers of {', '.join(names)}")
    checkpoint = max(_checkpoints(folder), key=_number)
    found = read_pickled(checkpoint)
    try:
        return _imported(folder, name, wishes, checkpoint, found.tensors, found.numbers)
    except DataError as error:
        raise DataError(f"{checkpoint}: {error.message}", hint=error.hint) from error


def _imported(
    folder: ModelFolder,
    name: str,
    wishes: Wishes,
    checkpoint: Path,
    tensors: "dict[str, Tensor]",
    numbers: dict[str, int],
) -> ImportedModel:
    model = tutorial_config(tensors, num_heads=_NUM_HEADS)
    sizes = len(tensors["src_embed.embedding.weight"]), len(tensors["projection_layer.proj.weight"])
    languages = _languages(folder, wishes, sizes)
    files = tuple(folder.json(_tokenizers(folder)[one]) for one in languages)
    tokenizers = tutorial_tokenizers((files[0], files[1]), languages[1])
    with torch.device("meta"):
        expected = Transformer(model, *sizes).state_dict()
    state = tutorial_state(model, tensors, expected)
    table = "source_embedding.weight"
    state[table] = state[table][torch.tensor(tokenizers.source_rows)]
    directions = Languages(languages[0], languages[1:], tagged=languages[1:])
    data = imported_data(directions, normalize_unicode=False)
    config = Config(
        name=name,
        data=data,
        tokenizer=TokenizerConfig(kind="wordlevel"),
        model=model,
        training=FINE_TUNING,
        decoding=DecodingConfig(beam_size=1),
    )
    return ImportedModel(
        origin=f"{checkpoint.name} of the tutorial, epoch {numbers.get(_EPOCH, '?')}",
        config=config,
        state=state,
        tokenizers=(tokenizers.source, tokenizers.target),
        compare=_not_compared,
        step=max(0, min(numbers.get(_STEP, 0), 10**10)),
        notes=(
            f"{_NUM_HEADS} heads, as in the tutorial: the file does not say it",
            f"the tutorial reads [SOS] before each source; here the tag {tokenizers.source.special_tokens[-1]} stands for it",
        ),
    )


def _not_compared(model: Transformer) -> list[str]:
    return ["not compared: the tutorial is no package that can be called; the weights were converted by their names"]  # fmt: skip


def _languages(folder: ModelFolder, wishes: Wishes, sizes: tuple[int, int]) -> tuple[str, str]:
    """Source and target: as the user says, or as the sizes of the vocabularies say."""
    names = _tokenizers(folder)
    num_entries = {one: len(vocabulary_of(folder.json(file))) for one, file in names.items()}
    fitting = [
        (source, target)
        for source in names
        for target in names
        if source != target
        and (num_entries[source], num_entries[target]) == sizes
        and wishes.source_language in (None, source)
        and (not wishes.target_languages or target in wishes.target_languages)
    ]
    if not fitting:
        found = ", ".join(f"{one}: {number:,}" for one, number in num_entries.items())
        raise DataError(f"the model has {sizes[0]:,} source and {sizes[1]:,} target words, but the tokenizers have other numbers ({found})")  # fmt: skip
    usual = [pair for pair in fitting if pair[0] == _USUAL_SOURCE]
    if len(fitting) > 1 and len(usual) != 1:
        raise UsageError(f"{folder}: several tokenizers fit the model", hint="add --from and --to")
    return (usual or fitting)[0] if len(fitting) > 1 else fitting[0]


def _checkpoints(folder: ModelFolder) -> list[Path]:
    """In the folder, or in a folder inside it, such as opus_books_weights."""
    found = [*folder.path.glob("tmodel_*.pt"), *folder.path.glob("*/tmodel_*.pt")]
    return [path for path in found if _CHECKPOINT.fullmatch(path.name)]


def _number(checkpoint: Path) -> int:
    return int(checkpoint.stem.removeprefix("tmodel_"))


def _tokenizers(folder: ModelFolder) -> dict[str, str]:
    """The name of the file by language."""
    found = (_TOKENIZER.fullmatch(path.name) for path in sorted(folder.path.iterdir()))
    return {match[1]: match[0] for match in found if match is not None}
