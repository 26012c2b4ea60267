"""The weights with which a run starts: random ones, or those of another run (`training.init_from`); whether memory can hold their training.

Only the first start of a run reads the other run. Its checkpoints hold everything, also a record of the
origin of the weights, so the other run may be deleted after the first save.
"""

import difflib
import logging
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_cli.acceleration.recorded_passes import are_recorded
from transformer_cli.checkpoint.run_folder import CHECKPOINTS, MODEL_FILE, RUNS, Checkpoint, RunFolder, open_checkpoint
from transformer_cli.checkpoint.trained_files import TrainedModel, find_run, load_trained
from transformer_cli.config import Config, ModelConfig
from transformer_cli.data.preparation import PreparedData, open_prepared, prepare_data
from transformer_cli.model import Transformer
from transformer_cli.model.layers import TokenCutoff, WordDropout
from transformer_cli.process.device import derive_seed, require_memory, seed_generators
from transformer_cli.process.errors import ConfigError, MissingInputError
from transformer_cli.process.messages import for_shell
from transformer_cli.process.torchrun import Launch
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.normalization import CORPUS_TAG, SPECIALS
from transformer_cli.text.tokenizer import Tokenizers
from transformer_cli.training.config_changes import as_written
from transformer_cli.training.optimizers import Optimizer, start_table

logger = logging.getLogger(__name__)

# Settings of the model that change neither the shapes of its weights nor what they compute. A trained model may learn given
# word alignments afterwards.
_FREE = (
    "preset",
    "dropout",
    "attention_dropout",
    "ff_dropout",
    "embedding_dropout",
    "layer_dropout",
    "init",
    "alignment_head",
    "alignment_layer",
)
_TABLES = {"source_embedding.weight": 0, "target_embedding.weight": 1, "output.weight": 1, "output.bias": 1}
"""The parameters with one row for each entry of a vocabulary: that of the source (0) or of the target (1)."""
# The standard deviation of the noise in a new row, as a share of that of the old rows.
_NOISE = 0.1


INIT_FROM = "init_from"
"""The key of the origin of the weights in state.json and environment.json."""
_MOST_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class InitialModel:
    """A trained model from whose weights a run starts."""

    trained: TrainedModel
    origin: dict[str, Any]
    """Run, checkpoint, step, id of the run, and SHA-256 of the file of the weights."""
    is_shrunk: bool = False
    """Whether the model that starts may have fewer layers, and SSRUs in place of self-attention; see `shrunk_weights`."""

    def load_into(self, model: Transformer, tokenizers: Tokenizers, *, seed: int) -> None:
        """Copy the weights; each table gets a new row for each entry that only the new `tokenizers` have.

        Args:
            model: of the same architecture, or a smaller one as of `shrunk_weights`.
            tokenizers: of source and target; the ids of the old entries are unchanged.
            seed: of the random noise in new rows.
        """
        weights: dict[str, Tensor] = dict(self.trained.model.state_dict())
        generator = torch.Generator().manual_seed(derive_seed(seed, "added words"))
        for name, side in _TABLES.items():
            known, extended = self.trained.tokenizers[side], tokenizers[side]
            if name in weights and extended.vocab_size > known.vocab_size:
                rows = compositions(known, extended)
                weights[name] = with_new_rows(weights[name], rows, generator)
        if self.is_shrunk:
            weights, kept = shrunk_weights(weights, model.state_dict())
            logger.info("layers of the initial model: %s", kept)
        model.load_state_dict(weights)
        added = [new.vocab_size - old.vocab_size for new, old in zip(tokenizers, self.trained.tokenizers, strict=True)]
        where = f"{self.trained.folder}, step {self.trained.step}"
        logger.info("initial weights: %s; added entries: source %d, target %d", where, *added)


def shrunk_weights(
    weights: Mapping[str, Tensor], student_weights: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], str]:
    """The weights with which a smaller model starts, and in words which layers of the larger one they are.

    Layer i of S takes layer ceil((i + 1) T / S) - 1 of T: evenly spread ones, the last one included, because the norm and
    the output layer behind it are used to what it gives. What the larger model does not have, such as an SSRU, keeps its
    random weights.

    Args:
        weights: of the larger model, by name.
        student_weights: of the smaller model, as they are now.

    Source: Shleifer and Rush 2020, "Pre-trained Summarization Distillation", section 3 (shrink and fine-tune).
    """
    layers, kept = dict[str, str](), list[str]()
    for part in ("encoder", "decoder"):
        num_teacher_layers, num_layers = _num_layers(weights, part), _num_layers(student_weights, part)
        chosen = [-(-(index + 1) * num_teacher_layers // num_layers) - 1 for index in range(num_layers)]
        layers |= {f"{part}.layers.{index}.": f"{part}.layers.{one}." for index, one in enumerate(chosen)}
        kept.append(f"{part} {', '.join(map(str, chosen))} of {num_teacher_layers}")
    found = dict[str, Tensor]()
    for name, own in student_weights.items():
        layer = _LAYER.match(name)
        given = weights.get(name if layer is None else name.replace(layer[0], layers[layer[0]], 1))
        found[name] = own if given is None else given
    return found, "; ".join(kept)


_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")


def _num_layers(weights: Mapping[str, Tensor], part: str) -> int:
    found = filter(None, map(_LAYER.match, weights))
    return 1 + max(int(one[2]) for one in found if one[1] == part)


def new_model(config: Config, tokenizers: Tokenizers, initial: InitialModel | None = None) -> Transformer:
    """A model on the CPU, with random weights or those of `initial`; `training.frozen` parameters are frozen."""
    seed_generators(derive_seed(config.seed, "weights"))
    model = Transformer(config.model, *(tokenizer.vocab_size for tokenizer in tokenizers))
    if config.model.start_embedding == "zero":
        with torch.no_grad():
            start_table(model)[Tokenizer.sos_id] = 0.0
    share, simcut, kind = config.training.word_dropout, config.training.simcut, WordDropout
    if simcut is not None:
        share, kind = simcut.probability, TokenCutoff
    if share is not None:
        source, target = tokenizers
        model.source_word_dropout = kind(share, len(SPECIALS), source.tag_ids)
        model.target_word_dropout = kind(share, len(SPECIALS), target.tag_ids)
    if initial is not None:
        initial.load_into(model, tokenizers, seed=config.seed)
    if config.training.frozen:
        freeze(model, config.training.frozen)
    return model


def load_initial_model(config: Config, own_folder: Path) -> InitialModel | None:
    """The model that `training.init_from` names; None if a run starts from random weights.

    Args:
        own_folder: the folder of the run that starts.

    Raises:
        MissingInputError: there is no such run, or it has no checkpoint.
        ConfigError: it has another architecture, other tokenizers or another sequence format than the config; or
            `training.frozen` names no parameter.
    """
    name = config.training.init_from
    if name is None:
        return None
    trained = load_trained(_found(name, own_folder))
    _require_equal_settings(name, trained.config, config)
    _require_equal_format(name, trained.config, config)
    _require_rows_that_learn(trained, config)
    if not {*config.data.directions} <= {*trained.config.data.directions}:
        was, is_now = _directions(trained.config), _directions(config)
        translates = "warning: training.init_from: %s translates %s, but this run translates %s"
        logger.warning(translates, name, was, is_now)
    return InitialModel(trained, _origin(trained), is_shrunk=config.training.shrink)


def data_of(config: Config, place: Path) -> PreparedData:
    """The prepared data of the run of this name if they fit the config; else data that are prepared now, at a place.

    Those have the tokenizers of `training.init_from`, if it is set.
    """
    run = RunFolder(RUNS / config.name)
    if (found := open_prepared(config, run.data_folder)) is not None:
        logger.info("%s: these prepared data are used", run.data_folder)
        return found
    initial = load_initial_model(config, run.path)
    tokenizers = None if initial is None else initial.trained.tokenizers
    logger.info("preparing the data in a temporary folder")
    return prepare_data(config, place, has_begun=False, tokenizers=tokenizers, runs=RUNS)


def checked_origin(checkpoint: Checkpoint) -> dict[str, Any]:
    """The origin of the initial weights of a checkpoint; empty if they were random.

    Raises:
        DataError: it is not what `InitialModel` records.
    """
    # The state of an average has no progress, which `training_state` asks for.
    if INIT_FROM not in checkpoint.state():
        return {}
    origin = checkpoint.training_state().part(INIT_FROM)
    names = {name: origin.text(name, most=_MOST_CHARACTERS) for name in ("run", "checkpoint", "run_id", "sha256")}
    return names | {"step": origin.count("step")}


def compositions(known: Tokenizer, extended: Tokenizer) -> list[list[int]]:
    """For each added entry, the ids of the old entries of which it consists; empty for an unknown word or a tag."""
    ids = {entry: index for index, entry in enumerate(known.entries)}
    added = extended.entries[known.vocab_size :]
    pieces = ([] if CORPUS_TAG.fullmatch(entry) else known.pieces(entry) for entry in added)
    return [[ids[one] for one in entry_pieces if ids[one] != known.unk_id] for entry_pieces in pieces]


def with_new_rows(table: Tensor, rows: Sequence[Sequence[int]], generator: torch.Generator) -> Tensor:
    """A table with further rows: the mean of the rows that make up the entry, or of all rows plus a little noise.

    With the mean of all rows, no new word is likelier than an average one, so the probabilities of the old words
    hardly change.

    Args:
        table: (V, D), or (V,) for a bias.
        rows: for each new row, the old rows of which the entry consists; empty: the mean of all rows plus noise.

    Source: mean of the pieces: Gee et al. 2022, "Fast Vocabulary Transfer for Language Model Compression";
        mean of all: Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models".
    """
    word_rows = table[len(SPECIALS) :]
    mean, deviation = word_rows.mean(0), word_rows.std(0)
    new = []
    for composition in rows:
        if composition:
            new.append(table[list(composition)].mean(0))
        else:
            noise = torch.randn(mean.shape, generator=generator, dtype=table.dtype)
            new.append(mean + _NOISE * deviation * noise)
    return torch.cat([table, torch.stack(new)])


def _found(name: str, own_folder: Path) -> Path:
    if name == own_folder.name and not (own_folder / CHECKPOINTS).exists():
        raise _is_itself(name)
    try:
        folder = find_run(name)
    except MissingInputError as error:
        raise MissingInputError(f"training.init_from: {error.message}", hint=error.hint) from error
    run = RunFolder.containing(folder) or RunFolder(folder)
    if os.path.realpath(run.path) == os.path.realpath(own_folder):
        raise _is_itself(name)
    return folder


def _is_itself(name: str) -> ConfigError:
    return ConfigError(
        f"training.init_from: {name} is this run itself", hint="give the new run another name: --set name=..."
    )


def _origin(trained: TrainedModel) -> dict[str, Any]:
    manifest = open_checkpoint(trained.folder).manifest
    run = RunFolder.containing(trained.folder)
    return {
        "run": trained.config.name if run is None else run.path.absolute().name,
        "checkpoint": trained.folder.absolute().name,
        "run_id": manifest.run_id,
        "sha256": next(file.sha256 for file in manifest.files if file.name == MODEL_FILE),
        "step": trained.step,
    }


def _require_equal_settings(name: str, was: Config, is_now: Config) -> None:
    """Compare the architecture and the kind of the tokenizers; a model that shrinks may have fewer layers, and SSRUs."""
    old, new = (
        {f"model.{key}": value for key, value in _architecture(one.model).items()}
        | {f"tokenizer.{key}": value for key, value in one.tokenizer.model_dump().items()}
        for one in (was, is_now)
    )
    if is_now.training.shrink:
        for key in (
            f"model.{part}_layers"
            for part in ("encoder", "decoder")
            if getattr(is_now.model, f"{part}_layers") <= getattr(was.model, f"{part}_layers")
        ):
            del old[key]
        if is_now.model.decoder_layer == "ssru":
            del old["model.decoder_layer"]
    lines = "".join(
        f"\n    {key}: {as_written(old[key])} in the run, {as_written(new[key])} in the config"
        for key in old
        if old[key] != new[key]
    )
    if lines:
        raise ConfigError(
            f"training.init_from: {name} has another model or another tokenizer than this config:{lines}",
            hint="take the sections model and tokenizer from the config.yaml of that run, or change a copy of that file; "
            f"tfm info --run {for_shell(name)} shows its settings",
        )


def _require_equal_format(name: str, was: Config, is_now: Config) -> None:
    old, new = (replace(SequenceFormat.of(one.data), corpus_tags=()) for one in (was, is_now))
    if replace(old, tags=()) != replace(new, tags=()):
        raise ConfigError(
            f"training.init_from: {name} was trained on sequences with other special tokens than those of this config",
            hint="set data.end_symbol and data.shift_target as in the run; tfm info --run shows its settings",
        )
    # Each tag is known by its name, so the directions may stand in another order, and some may be left out.
    if bool(old.tags) != bool(new.tags) or not {*new.tags} <= {*old.tags}:
        raise ConfigError(
            f"training.init_from: {name} translates {_directions(was)} and {_tags_read(old)}; "
            f"this config translates {_directions(is_now)} and {_tags_read(new)}",
            hint=_hint_for_directions(was, old),
        )


def _directions(config: Config) -> str:
    return ", ".join(map(str, config.data.directions))


def _tags_read(sequences: SequenceFormat) -> str:
    tags = " or ".join(dict.fromkeys(sequences.tags))
    return f"reads {tags} before each source" if tags else "reads no tag before a source"


def _hint_for_directions(was: Config, old: SequenceFormat) -> str:
    if not old.tags:
        return "translate into one language, as the run does, or train a new model without init_from"
    return (
        "translate into languages of the run: into one with data.target_tag: true, into several with data.both_directions: true or "
        f"with corpora that name their target_language; the run translates {_directions(was)}"
    )


def _require_rows_that_learn(trained: TrainedModel, config: Config) -> None:
    """Check the names of frozen parts, and that no table is frozen that gets further rows."""
    frozen = frozen_names(trained.model, config.training.frozen or ()) & _TABLES.keys()
    tags = {*filter(None, SequenceFormat.of(config.data).corpus_tags)}
    added = [f"the tag {tag}" for tag in sorted(tags - {*trained.source_tokenizer.entries})]
    if config.training.add_words is not None:
        added.append("training.add_words")
    if frozen and added:
        raise ConfigError(
            f"training.frozen keeps {', '.join(sorted(frozen))}, so the new rows of {', '.join(added)} could not be learned",
            hint="leave out add_words and new tags, or freeze only encoder or decoder",
        )


def _architecture(model: ModelConfig) -> Mapping[str, Any]:
    """The settings that decide which weights there are and what they compute; absent ones with their value."""
    settings = {key: value for key, value in model.model_dump().items() if key not in _FREE}
    if model.positions != "learned":
        del settings["max_length"]
    return settings | {"head_dim": model.head_width, "num_kv_heads": model.kv_heads, "final_norm": model.has_final_norm}


_PARTS = {
    "encoder": ("encoder",),
    "decoder": ("decoder",),
    "embeddings": ("source_embedding", "target_embedding", "source_positions", "target_positions"),
    "output": ("output",),
}


def freeze(model: Transformer, names: Sequence[str]) -> None:
    """Let the named parts keep their weights: they get no gradient and no state of the optimizer."""
    frozen = frozen_names(model, names)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in frozen)
    if frozen:
        num_frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
        logger.info("frozen: %s parameters (%s)", f"{num_frozen:,}", ", ".join(names))


def frozen_names(model: Transformer, names: Sequence[str]) -> set[str]:
    """The parameters that `training.frozen` names.

    Raises:
        ConfigError: a name matches no parameter, or the names match all parameters.
    """
    parameters = [name for name, _ in model.named_parameters()]
    frozen: set[str] = set()
    for name in names:
        prefixes = _PARTS.get(name, (name,))
        # A tied embedding has no parameter of its own; it uses that of the output.
        is_tied = model.source_embedding is None or model.target_embedding is None
        own = {"output.weight"} if name == "embeddings" and is_tied else set()
        found = own | {one for one in parameters if any(f"{one}.".startswith(f"{prefix}.") for prefix in prefixes)}
        if not found:
            raise ConfigError(
                f"training.frozen: no parameter's name begins with {name}", hint=_hint_on_parameters(name, parameters)
            )
        frozen |= found
    if frozen and len(frozen) == len(parameters):
        raise ConfigError(
            "training.frozen: all parameters are frozen, so nothing could be learned",
            hint=f"leave out one of {', '.join(names)}",
        )
    return frozen


def _hint_on_parameters(name: str, parameters: Sequence[str]) -> str:
    parts = (parameter.split(".") for parameter in parameters)
    known = dict.fromkeys([*_PARTS, *(".".join(one[:n]) for one in parts for n in range(1, 1 + len(one)))])
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    guess = f"did you mean {close[0]}? " if close else ""
    return f"{guess}the parts are {', '.join(_PARTS)}; tfm info --parameters lists all names"


# The refusal of a model whose training cannot fit into memory, before anything is allocated.


_LOWER = (
    "lower model.d_model, model.d_ff, the number of layers or tokenizer.vocab_size, or use a machine with more memory"
)
_SHARES = "if a GPU can hold the weights alone, share the training among several: start a process for each with torchrun, and --set runtime.sharding=full"
_MORE_SHARES = "if a GPU can hold the weights alone, start more processes with torchrun, each with a GPU of its own"


def require_memory_for_training(
    config: Config, vocab_sizes: tuple[int, int], device: torch.device, launch: Launch
) -> None:
    """Refuse a model whose training cannot fit into memory: parameters, gradients and the optimizer's state.

    Activations need further memory; how much depends on the batches, which can be cut. With
    `runtime.sharding: full`, each process holds a part of all these, and all weights during a validation. The
    processes of a machine share the memory of its CPU.

    Raises:
        TryAgainError: they do not fit; the message has the numbers, and nothing was allocated.
    """
    with torch.device("meta"):
        model = Transformer(config.model, *vocab_sizes)
    parameter_bytes = sum(parameter.nbytes for parameter in model.parameters())
    average = 0 if config.training.ema_decay is None else parameter_bytes
    with_average = " and the moving average" if average else ""
    moment_bytes = sum(tensor.nbytes for tensor in Optimizer(model, config.training).expected_state().values())
    needed = 2 * parameter_bytes + moment_bytes + average
    is_sharded = config.runtime.sharding == "full"
    is_sending = launch.size > 1 and not is_sharded
    needed += parameter_bytes * is_sending
    built, built_bytes = f"model: {parameter_bytes // 4:,} parameters", parameter_bytes
    trained = f"{built} with gradients and the state of {config.training.optimizer}{with_average}"
    trained += ", and the gradients that are sent" * is_sending
    # A recorded pass makes gradients of its own; while it is recorded, those of the update are kept aside.
    is_recorded = device.type != "cpu" and are_recorded(config, device)
    needed += 2 * parameter_bytes * is_recorded
    trained += ", and the gradients of a recorded pass" * is_recorded
    if is_sharded:
        # The average, too, is made on the CPU, and then cut.
        built, built_bytes = built + with_average, parameter_bytes + average
        trained += f", cut into {launch.size} parts, and all weights for a validation"
        needed = math.ceil(needed / launch.size) + parameter_bytes
    # The model is built on the CPU.
    places = (torch.device("cpu"), built_bytes, built), (device, needed, trained)
    for place, num_bytes, what in places:
        hint = _LOWER
        if place.type == "cuda":
            hint = f"{_MORE_SHARES if is_sharded else _SHARES}; or {_LOWER}"
        elif launch.local_size > 1:
            num_bytes *= launch.local_size
            what += f", for all {launch.local_size} processes on this machine"
            hint = f"start fewer processes on this machine; or {_LOWER}"
        require_memory(num_bytes, place, what, hint=hint)
