"""The config and the tokenizers for a checkpoint, without any path of this machine."""

from pathlib import PurePath, PureWindowsPath

from transformer_cli.checkpoint.run_folder import CONFIG_FILE
from transformer_cli.config import Config, FileCorpus, FilesData, HubCorpus, HubData, to_yaml
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer import tokenizer_files


def portable_files(
    config: Config, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
) -> dict[str, bytes]:
    """File names and contents, for `Snapshot.files`."""
    files = {
        CONFIG_FILE: to_yaml(portable_config(config)),
        **tokenizer_files((source_tokenizer, target_tokenizer)),
    }
    return {name: text.encode() for name, text in files.items()}


def portable_config(config: Config) -> Config:
    """The config with only the last part of each local path; the run's own config keeps the whole paths."""
    if config.training.init_from is not None:
        update = {"init_from": _last_part(config.training.init_from)}
        config = config.model_copy(update={"training": config.training.model_copy(update=update)})
    data = config.data
    corpora: tuple[FileCorpus | HubCorpus, ...]
    if isinstance(data, FilesData):
        corpora = tuple(map(_portable_file, data.corpora))
    elif isinstance(data, HubData):
        corpora = tuple(map(_portable_set, data.corpora))
    else:
        return config
    portable = data.model_copy(update={"root": ".", "corpora": corpora})
    return config.model_copy(update={"data": portable})


def _portable_file(corpus: FileCorpus) -> FileCorpus:
    fields = ("source_path", "target_path", "path")
    return corpus.model_copy(update={name: _last_part(getattr(corpus, name)) for name in fields})


def _portable_set(corpus: HubCorpus) -> HubCorpus:
    """Keep `owner/name` of the hub, but only the last part of a local folder."""
    name = corpus.dataset
    is_local = (
        name.startswith(("/", "~", ".")) or name.count("/") > 1 or "\\" in name or ":" in name
    )
    dataset = _last_part(name) if is_local else name
    update = {"dataset": dataset, "data_files": _last_part(corpus.data_files)}
    return corpus.model_copy(update=update)


def _last_part(path: str | None) -> str | None:
    """The name at the end of a path of this or another system; Windows separates names by a backslash."""
    return None if path is None else PureWindowsPath(PurePath(path).name).name or "."
