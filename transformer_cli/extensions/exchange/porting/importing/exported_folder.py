"""From a folder that `tfm export` has made back to a model: its config and tokenizers are those of the run, unchanged.

The weights come from the files of the other program. A folder for transformers may hold a model that was trained further; it
comes back with what it has learned.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_cli.checkpoint.run_folder import CONFIG_FILE
from transformer_cli.checkpoint.state_values import MOST
from transformer_cli.config import Config, ModelConfig
from transformer_cli.config.loading import MAX_CONFIG_BYTES, check_settings, stored_settings
from transformer_cli.config.yaml_reader import parse_yaml
from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.marian_tokenizers import (
    ForeignTokenizers,
)
from transformer_cli.extensions.exchange.porting.exporting.export_format import ExportFormat
from transformer_cli.extensions.exchange.porting.exporting.export_formats import FORMATS
from transformer_cli.extensions.exchange.porting.exporting.export_run import RECORD
from transformer_cli.extensions.exchange.porting.exporting.hugging_face_format import (
    HuggingFaceFormat,
)
from transformer_cli.extensions.exchange.porting.exporting.own_folder import OWN_FOLDER
from transformer_cli.extensions.exchange.porting.importing.exported_weights import (
    read_exported_weights,
)
from transformer_cli.extensions.exchange.porting.importing.imported_model import (
    Comparison,
    ImportedModel,
    Wishes,
)
from transformer_cli.extensions.exchange.porting.importing.model_folder import (
    MAX_TOKENIZER_BYTES,
    ModelFolder,
)
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer import Tokenizers, load_tokenizers

if TYPE_CHECKING:
    from torch import Tensor

    from transformer_cli.extensions.exchange.interchange.hugging_face.from_hugging_face import (
        ForeignModel,
    )
    from transformer_cli.model import Transformer


def is_exported(folder: ModelFolder) -> bool:
    """Whether the folder is an export of tfm that can be read back."""
    return folder.has(f"{OWN_FOLDER}/{CONFIG_FILE}")


def import_exported(
    folder: ModelFolder, name: str, wishes: Wishes, *, origin: Path | None = None
) -> ImportedModel:
    """The model in such a folder.

    Args:
        folder: of the model.
        name: of the new run.
        wishes: nothing, because the folder knows its languages.
        origin: the export itself, if it is a file that was unpacked into the folder.

    Raises:
        UsageError: the user names languages, or a package is missing.
        MissingInputError: a file is missing.
        DataError: the files do not belong to one model.
        ConfigError: the config is invalid.
    """
    if wishes != Wishes():
        raise UsageError("--from and --to are not for an exported run: it knows its languages")
    own = ModelFolder(folder.path / OWN_FOLDER)
    config = _config(own)
    tokenizers = _tokenizers(own)
    wanted = _format(folder)
    if wanted is None:
        model, comparison = _from_transformers(folder, config, tokenizers)
        state, config = model.state, config.model_copy(update={"model": model.config})
    else:
        path = origin or folder.path
        expected = _expected(config.model, tokenizers)
        state = read_exported_weights(own, lambda: wanted.stored_tensors(path), expected, path)
        comparison = _equal_to_the_run
    return ImportedModel(
        origin=f"the run {config.name}, exported to {wanted.name if wanted else 'transformers'}",
        config=_as_new_run(config, name),
        state=state,
        tokenizers=tokenizers,
        step=_step(folder),
        compare=comparison,
    )


def _format(folder: ModelFolder) -> ExportFormat | None:
    """The format of an export; None: a folder for transformers."""
    name = folder.json_or_empty(RECORD).get("format", HuggingFaceFormat().name)
    if name == HuggingFaceFormat().name:
        return None
    for one in FORMATS:
        if one.name == name:
            return one
    raise DataError(f"{folder}: an export in an unknown format, {str(name)[:50]!r}")


def _equal_to_the_run(model: "Transformer") -> list[str]:
    return ["the weights are those of the exported run (their SHA-256 is equal)"]


def _from_transformers(
    folder: ModelFolder, config: Config, tokenizers: Tokenizers
) -> "tuple[ForeignModel, Comparison]":
    """The model in a folder for transformers, which may have trained it further, and the comparison with it."""
    from transformer_cli.extensions.exchange.interchange.hugging_face.embedding_tables import (
        TableForm,
        Vocabularies,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.from_hugging_face import (
        restored_model,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.model_classes import (
        fitting_class,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.tokenizer_json import (
        num_unlisted,
    )
    from transformer_cli.extensions.exchange.porting.importing.comparison_with_transformers import (
        compare,
    )

    source, target = tokenizers
    sizes = source.vocab_size, target.vocab_size
    unlisted = num_unlisted(source)
    vocabularies = Vocabularies(*sizes, are_shared=source is target, num_unlisted=unlisted)
    settings, tensors = folder.json("config.json"), folder.tensors()
    try:
        model = restored_model(config.model, vocabularies, settings, tensors)
        _check_shapes(_expected(model.config, tokenizers), model.state)
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    form = TableForm.of(config.model, vocabularies, fitting_class(config.model))
    first = form.source_offset(vocabularies)
    their_rows = [first + index for index in range(sizes[0])], [*range(sizes[1])]
    foreign = ForeignTokenizers(source, target, *their_rows, are_shared=config.tokenizer.shared)
    return model, functools.partial(compare, folder.path, foreign)


def _expected(config: ModelConfig, tokenizers: Tokenizers) -> "dict[str, Tensor]":
    """Tensors without values that have the names and the shapes of the model."""
    import torch

    from transformer_cli.model import Transformer

    source, target = tokenizers
    with torch.device("meta"):
        return Transformer(config, source.vocab_size, target.vocab_size).state_dict()


def _check_shapes(expected: "Mapping[str, Tensor]", state: "Mapping[str, Tensor]") -> None:
    for name, tensor in expected.items():
        if state[name].shape != tensor.shape:
            found, wanted = list(state[name].shape), list(tensor.shape)
            raise DataError(
                f"the weights: {name} has the shape {found}, but {OWN_FOLDER}/{CONFIG_FILE} and the tokenizers ask for {wanted}",
                hint="copy the whole exported folder again",
            )


def _as_new_run(exported: Config, name: str) -> Config:
    """The config of the exported run; the run from which it was fine-tuned is not here."""
    without_start = {"init_from": None, "frozen": None, "add_words": None}
    training = exported.training.model_copy(update=without_start)
    return exported.model_copy(update={"name": name, "training": training})


def _step(folder: ModelFolder) -> int:
    """The step of the exported checkpoint; 0 if the folder does not say it."""
    step = folder.json_or_empty(RECORD).get("step")
    return step if type(step) is int and 0 <= step <= MOST else 0


def _config(own: ModelFolder) -> Config:
    origin = str(own.path / CONFIG_FILE)
    settings = parse_yaml(own.text(CONFIG_FILE, max_bytes=MAX_CONFIG_BYTES), origin)
    if not isinstance(settings, dict):
        raise DataError(f"{origin}: not a mapping of sections")
    return check_settings(stored_settings(settings), origin)


def _tokenizers(own: ModelFolder) -> Tokenizers:
    def load(name: str) -> Tokenizer:
        try:
            return Tokenizer.from_json(own.text(name, max_bytes=MAX_TOKENIZER_BYTES))
        except DataError as error:
            raise DataError(f"{own.path / name}: {error.message}", hint=error.hint) from error

    return load_tokenizers(lambda name: own.has(name), load)
