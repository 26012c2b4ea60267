"""`tfm import` as a function: a folder of another program, or an export of tfm, becomes a run.

A folder that `tfm export` has made keeps its config and tokenizers unchanged. The weights come from the files of the other
program. A folder for transformers may hold a model that was trained further; it comes back with what it has learned.
"""

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import CHECKPOINTS, CONFIG_FILE, MOST, RUNS
from transformer_cli.commands.command_line import require_run_name
from transformer_cli.config import Config, ModelConfig
from transformer_cli.extensions.exchange.argos import ArgosFormat, unpack_own_files
from transformer_cli.extensions.exchange.bergamot import BergamotFormat
from transformer_cli.extensions.exchange.browser import BrowserFormat
from transformer_cli.extensions.exchange.export import FORMATS
from transformer_cli.extensions.exchange.export_format import ExportFormat
from transformer_cli.extensions.exchange.hugging_face import (
    HuggingFaceFormat,
    compare_with_transformers,
)
from transformer_cli.extensions.exchange.hugging_face_import import import_hugging_face
from transformer_cli.extensions.exchange.hugging_face_models import (
    ForeignModel,
    TableForm,
    fitting_class,
    restored_model,
)
from transformer_cli.extensions.exchange.imported_model import (
    Comparison,
    ImportedModel,
    ImportedRun,
    require_new,
    write_run,
)
from transformer_cli.extensions.exchange.marian import MODEL_FILE, MarianFormat, our_rows
from transformer_cli.extensions.exchange.marian_format import read_npz
from transformer_cli.extensions.exchange.marian_import import (
    MarianTokenizers,
    compare_with_files,
    import_marian,
    model_file,
    state_of,
)
from transformer_cli.extensions.exchange.model_folder import (
    ModelFolder,
    NamedLanguages,
)
from transformer_cli.extensions.exchange.own_folder import (
    OWN_FOLDER,
    RECORD,
    own_config,
    own_tokenizers,
    read_exported_weights,
)
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import ForeignTokenizers
from transformer_cli.extensions.exchange.tokenizer_json import vocabulary_sizes
from transformer_cli.extensions.exchange.tutorial import import_tutorial, is_tutorial_folder
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError, MissingInputError, UsageError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage.filesystem import MANIFEST_NAME
from transformer_cli.text.tokenizer import Tokenizers


def import_folder(
    path: Path, name: str, named: NamedLanguages, *, runs_folder: Path = RUNS
) -> tuple[ImportedModel, ImportedRun]:
    """Make a run of the model in a folder.

    Args:
        path: the folder.
        name: of the run.
        named: the languages, as the user says; of another program's folder only.

    Raises:
        UsageError: the name cannot be that of a run, or nothing says which languages the model translates.
        CannotCreateError: there is a run of this name.
        MissingInputError: there is no such folder, or a file is missing.
        DataError: the model has no counterpart here.
    """
    require_run_name(name)
    require_new(name, runs_folder)
    if path.suffix.lower() in (".npz", ".bin") and not path.is_dir():
        if not path.is_file():
            raise MissingInputError(f"{path}: no such file")
        imported = import_marian(path, name, named)
        return imported, write_run(imported, runs_folder)
    with _opened(path) as folder:
        imported = _read(folder, name, named, path)
        return imported, write_run(imported, runs_folder)


@contextmanager
def _opened(path: Path) -> Iterator[ModelFolder]:
    """The folder; a package of Argos Translate is unpacked, without its weights."""
    if path.suffix.lower() != ArgosFormat.suffix or not path.is_file():
        yield ModelFolder(path)
        return
    with TemporaryDirectory(prefix="tfm-") as name:
        unpack_own_files(path, Path(name))
        yield ModelFolder(Path(name))


def _read(folder: ModelFolder, name: str, named: NamedLanguages, path: Path) -> ImportedModel:
    if is_exported(folder):
        return import_exported(folder, name, named, origin=path)
    record = folder.json_or_empty(RECORD)
    if folder.has(RECORD) and record.get("format") != BergamotFormat.name:
        kind = str(record.get("format"))[:50]
        if kind == BrowserFormat.name:
            raise DataError(
                f"{path}: a page of tfm export --to browser, which is not read back",
                hint="export the run with --to bergamot and import that folder, or copy the run itself: its folder under runs/ works anywhere",
            )
        is_rounded = record.get("quantization") is not None
        reason = "its weights are rounded to int8" if is_rounded else "an earlier version made it"
        raise DataError(
            f"{path}: an export of tfm in the format {kind} that cannot be read back: {reason}",
            hint="export the run again without --quantize and import that, or copy the run itself: its folder under runs/ works anywhere",
        )
    if folder.has("config.json"):
        return import_hugging_face(folder, name, named)
    if is_tutorial_folder(folder):
        return import_tutorial(folder, name, named)
    if folder.has(MANIFEST_NAME) or (folder.path / CHECKPOINTS).is_dir():
        raise DataError(
            f"{path}: this is a run of tfm, which needs no import",
            hint=f"use it as it is: tfm translate --run {for_shell(path)}",
        )
    if (found := model_file(folder.path)) is not None:
        return import_marian(found, name, named)
    raise DataError(
        f"{path}: not a model folder that can be imported: there is no config.json, no model.npz, no model*.bin with an .spm file, and no tmodel_XX.pt",
        hint="docs/importing.md lists what can be imported",
    )


def is_exported(folder: ModelFolder) -> bool:
    """Whether the folder is an export of tfm that can be read back."""
    return folder.has(f"{OWN_FOLDER}/{CONFIG_FILE}")


def import_exported(
    folder: ModelFolder, name: str, named: NamedLanguages, *, origin: Path | None = None
) -> ImportedModel:
    """The model in such a folder.

    Args:
        folder: of the model.
        name: of the new run.
        named: nothing, because the folder knows its languages.
        origin: the export itself, if it is a file that was unpacked into the folder.

    Raises:
        UsageError: the user names languages, or a package is missing.
        MissingInputError: a file is missing.
        DataError: the files do not belong to one model.
        ConfigError: the config is invalid.
    """
    if named != NamedLanguages():
        raise UsageError("--from and --to are not for an exported run: it knows its languages")
    own = ModelFolder(folder.path / OWN_FOLDER)
    config = own_config(own)
    tokenizers = own_tokenizers(own)
    wanted = _format(folder)
    if wanted is None:
        model, comparison = _from_transformers(folder, config, tokenizers)
        state, config = model.state, config.model_copy(update={"model": model.config})
    elif wanted.name == MarianFormat.name:
        state, comparison = _from_marian(folder, config, tokenizers)
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
    name = folder.json_or_empty(RECORD).get("format", HuggingFaceFormat.name)
    if name == HuggingFaceFormat.name:
        return None
    for one in FORMATS:
        if one.name == name:
            return one
    raise DataError(f"{folder}: an export in an unknown format, {str(name)[:50]!r}")


def _equal_to_the_run(model: Transformer) -> list[str]:
    return ["the weights are those of the exported run (their SHA-256 is equal)"]


def _from_transformers(folder: ModelFolder, config: Config, tokenizers: Tokenizers) -> tuple[ForeignModel, Comparison]:
    """The model in a folder for transformers, which may have trained it further, and the comparison with it."""
    source, target = tokenizers
    vocabularies = vocabulary_sizes(source, target)
    settings, tensors = folder.json("config.json"), folder.tensors()
    try:
        model = restored_model(config.model, vocabularies, settings, tensors)
        _check_shapes(_expected(model.config, tokenizers), model.state)
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    form = TableForm.of(config.model, vocabularies, fitting_class(config.model))
    first = form.source_offset(vocabularies)
    foreign = ForeignTokenizers(
        source,
        target,
        source_rows=[first + index for index in range(source.vocab_size)],
        target_rows=[*range(target.vocab_size)],
        are_shared=config.tokenizer.shared,
    )
    return model, functools.partial(compare_with_transformers, folder.path, foreign)


def _from_marian(folder: ModelFolder, config: Config, tokenizers: Tokenizers) -> tuple[dict[str, Tensor], Comparison]:
    """The weights in a folder for Marian, which may have trained them further, and the comparison with its files."""
    found = read_npz(folder.path / MODEL_FILE)
    source, target = (our_rows(tokenizer) for tokenizer in tokenizers)
    both = MarianTokenizers(*tokenizers, source, target, config.tokenizer)
    state = state_of(found, config.model, both, folder.path / MODEL_FILE)
    return state, functools.partial(compare_with_files, found, both)


def _expected(config: ModelConfig, tokenizers: Tokenizers) -> dict[str, Tensor]:
    """Tensors without values that have the names and the shapes of the model."""
    source, target = tokenizers
    with torch.device("meta"):
        return Transformer(config, source.vocab_size, target.vocab_size).state_dict()


def _check_shapes(expected: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
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
