"""From a folder that `tfm export --to hf` wrote, perhaps trained further by transformers, back to a run."""

import functools

from transformer_cli.checkpoint.run_folder import CONFIG_FILE
from transformer_cli.config import Config
from transformer_cli.config.loading import MAX_CONFIG_BYTES, check_settings
from transformer_cli.config.yaml_reader import parse_yaml
from transformer_cli.errors import DataError, UsageError
from transformer_cli.interchange.foreign_tokenizers.marian_tokenizers import ForeignTokenizers
from transformer_cli.porting.exporting.export_run import RECORD
from transformer_cli.porting.exporting.hugging_face_format import OWN_FOLDER
from transformer_cli.porting.importing.imported_model import ImportedModel, Wishes
from transformer_cli.porting.importing.model_folder import MAX_TOKENIZER_BYTES, ModelFolder
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer_pair import load_tokenizers

_MOST_STEPS = 10**10


def import_exported(folder: ModelFolder, name: str, wishes: Wishes) -> ImportedModel:
    """The run from which a folder was made, with the weights that the folder has now.

    Raises:
        DataError: the weights, the tokenizers and the config do not belong to one model.
        UsageError: the user names languages, which the folder knows better.
    """
    if wishes != Wishes():
        raise UsageError("--from and --to are not for an exported run: it knows its languages")
    from transformer_cli.interchange.hugging_face.embedding_tables import TableForm, Vocabularies
    from transformer_cli.interchange.hugging_face.from_hugging_face import restored_state
    from transformer_cli.interchange.hugging_face.model_classes import fitting_class
    from transformer_cli.interchange.hugging_face.tokenizer_json import num_unlisted
    from transformer_cli.porting.importing.comparison_with_transformers import compare

    own = ModelFolder(folder.path / OWN_FOLDER)
    exported = _read_config(own)
    config = _as_new_run(exported, name)
    source, target = load_tokenizers(own.has, functools.partial(_tokenizer, own))
    sizes = source.vocab_size, target.vocab_size
    vocabularies = Vocabularies(*sizes, are_shared=source is target, num_unlisted=num_unlisted(source))  # fmt: skip
    settings = folder.json("config.json")
    try:
        state = restored_state(config.model, vocabularies, settings, folder.tensors())
    except DataError as error:
        raise DataError(f"{folder}: {error.message}", hint=error.hint) from error
    form = TableForm.of(config.model, vocabularies, fitting_class(config.model))
    first = form.source_offset(vocabularies)
    rows = [*range(first, first + sizes[0])], [*range(sizes[1])]
    tokenizers = ForeignTokenizers(source, target, *rows, are_shared=source is target)
    return ImportedModel(
        origin=f"{settings['architectures'][0]}, exported from the run {exported.name}",
        config=config,
        state=state,
        tokenizers=(source, target),
        compare=functools.partial(compare, folder.path, tokenizers),
        step=_step(folder),
    )


def _as_new_run(exported: Config, name: str) -> Config:
    """The config of the exported run; the run from which it was fine-tuned is not here."""
    without_start = {"init_from": None, "frozen": None, "add_words": None}
    training = exported.training.model_copy(update=without_start)
    return exported.model_copy(update={"name": name, "training": training})


def _read_config(own: ModelFolder) -> Config:
    origin = str(own.path / CONFIG_FILE)
    settings = parse_yaml(own.text(CONFIG_FILE, max_bytes=MAX_CONFIG_BYTES), origin)
    if not isinstance(settings, dict):
        raise DataError(f"{origin}: not a mapping of sections")
    return check_settings(settings, origin)


def _tokenizer(own: ModelFolder, name: str) -> Tokenizer:
    text = own.text(name, max_bytes=MAX_TOKENIZER_BYTES)
    try:
        return Tokenizer.from_json(text)
    except DataError as error:
        raise DataError(f"{own.path / name}: {error.message}", hint=error.hint) from error


def _step(folder: ModelFolder) -> int:
    """The step of the exported checkpoint; 0 if the folder does not say it."""
    step = folder.json_or_empty(RECORD).get("step")
    return step if type(step) is int and 0 <= step <= _MOST_STEPS else 0
