"""From a trained model to a translator: text pipeline, engine and decoding settings put together."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Literal

from transformer_cli.checkpoint import TrainedModel, find_run, load_trained
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import (
    Config,
    DecodingConfig,
    RuntimeConfig,
    SequencesData,
    load_config,
)
from transformer_cli.config.loading import override_settings
from transformer_cli.config.overridable import INSTEAD, OVERRIDABLE, Command, commands_that_take
from transformer_cli.config.overrides import overridden_setting
from transformer_cli.config.refusal import setting_paths, similar_setting
from transformer_cli.decoding import SpecialIds, TextPipeline, Translator
from transformer_cli.decoding.combined_translators import combine_translators
from transformer_cli.decoding.engines import PyTorchEngine
from transformer_cli.errors import ConfigError
from transformer_cli.model import Transformer
from transformer_cli.runtime import Machine, prepare_machine
from transformer_cli.text import SequenceFormat, Tokenizer

logger = logging.getLogger(__name__)

# A checkpoint with less than 1 / _MANY_STEPS of the planned steps has learned little.
_MANY_STEPS = 20


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A trained run, or an ensemble of several, and its translator."""

    trained: TrainedModel
    config: Config
    """The run's config with the overrides of this command."""
    overridden: frozenset[str]
    """The names of the settings that this command overrides."""
    translator: Translator
    others: tuple[TrainedModel, ...] = ()
    """Of an ensemble: its models after the first, which is `trained`."""

    @property
    def members(self) -> tuple[TrainedModel, ...]:
        """The models that translate: one, or several of an ensemble."""
        return (self.trained, *self.others)


def load_translator(
    run: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    which: Literal["best", "last"] = "best",
    decoding: DecodingConfig | None = None,
    runtime: RuntimeConfig | None = None,
) -> Translator:
    """The translator of a trained run, or of an ensemble of several.

    Args:
        run: the name of a run under `runs/`, the path of a run folder, or the path of a checkpoint folder,
            which may be a copy in another place. A list of these is an ensemble.
        which: the checkpoint with the best validation score, or the last checkpoint.
        decoding: the beam and the limits; None: those of the (first) run's config.
        runtime: device, precision and threads; None: those of the (first) run's config.

    Raises:
        MissingInputError: there is no such run or folder, or it has no checkpoint yet.
        StorageError: no checkpoint of the run is valid.
        UsageError: the models of the ensemble have different vocabularies, languages or formats.

    Example:
        translator = load_translator("en-it", decoding=DecodingConfig(beam_size=8))
        [translation] = translator.translate(["Good morning."])
        print(translation.text, translation.score)
    """
    runs = [run] if isinstance(run, str | PathLike) else run
    members = [load_trained(find_run(fspath(one)), which=which) for one in runs]
    config = members[0].config
    if decoding is not None:
        config = config.model_copy(update={"decoding": decoding})
    return _translator(members, config, prepare_machine(runtime or config.runtime))


def load_run(
    run: str | Sequence[str] | None, overrides: Sequence[str], *, command: Command = "translate"
) -> LoadedRun:
    """The run that a command works with, with its best checkpoint; logs which one it is.

    Args:
        run: the name of a run, or the path of a run or checkpoint folder; several are an ensemble; None: the run
            that saved last.
        overrides: settings as in `--set`, such as decoding.beam_size=8.
        command: the command that asks; each override must have an effect on it.

    Raises:
        MissingInputError: there is no such run.
        ConfigError: an override names a setting that a trained model cannot change, or that has no effect.
        UsageError: the models of the ensemble have different vocabularies, languages or formats.
    """
    overridden = [_checked_setting(override, command) for override in overrides]
    runs: Sequence[str | None] = [run] if isinstance(run, str) else run or [None]
    trained, *others = [load_trained(find_run(one)) for one in runs]
    config = override_settings(_with_own_paths(trained), overrides)
    machine = prepare_machine(config.runtime)
    for member in (trained, *others):
        _announce(member, machine)
    translator = _translator([trained, *others], config, machine)
    return LoadedRun(trained, config, frozenset(overridden), translator, tuple(others))


def _announce(trained: TrainedModel, machine: Machine) -> None:
    """Log which checkpoint it is, and a warning if it has seen only the beginning of its training."""
    logger.info("%s, step %d (%s)", trained.folder, trained.step, machine.describe())
    training = trained.config.training
    planned = training.max_steps if training.init_from is None else None
    if planned is not None and trained.step * _MANY_STEPS < planned:
        logger.warning(
            "this is step %d of %d planned steps, so the translations may make no sense",
            trained.step,
            planned,
        )


def _translator(members: Sequence[TrainedModel], config: Config, machine: Machine) -> Translator:
    """The translator of a run, or of an ensemble.

    Args:
        members: the trained models.
        config: of the first of them, with the settings of decoding for all.
    """
    translators = [
        build_translator(
            member.model, member.source_tokenizer, member.target_tokenizer, of_member, machine
        )
        for member, of_member in zip(
            members, [config, *(other.config for other in members[1:])], strict=True
        )
    ]
    return combine_translators(translators, [str(member.folder) for member in members])


def _checked_setting(override: str, command: Command) -> str:
    """The name of the setting that an override changes; it must have an effect on the command."""
    setting = overridden_setting(override)
    commands = commands_that_take(setting)
    if command in commands:
        return setting
    sections = [name for name in OVERRIDABLE if "." not in name and command in OVERRIDABLE[name]]
    single = [
        name
        for name, takers in OVERRIDABLE.items()
        if command in takers and name.partition(".")[0] not in sections
    ]
    taken = ", ".join([*(f"{section}.*" for section in sections), *single])
    hint = f"tfm {command} takes {taken}"
    if setting in INSTEAD:
        problem = "this setting is for the validations during training"
        if command in commands_that_take(INSTEAD[setting]):
            hint = f"tfm {command} takes {INSTEAD[setting]} instead"
    elif commands:
        problem = f"this setting has no effect on tfm {command}"
        others = [name for name in commands if not ("validate" in commands and " " in name)]
        hint = f"it has one on tfm {' and tfm '.join(others)}; {hint}"
    else:
        problem = "this setting cannot be changed for a trained model"
        if setting not in {*setting_paths(), *setting_paths({"source": "files"})}:
            problem = "this is not a setting"
            known = [path for path in setting_paths() if command in commands_that_take(path)]
            meant = similar_setting(setting.split("."), known)
            hint = f"did you mean {meant}?" if meant else hint
    raise ConfigError(f"--set {override}: {problem}", hint=hint)


def build_translator(
    model: Transformer,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    config: Config,
    machine: Machine,
    *,
    decoding: DecodingConfig | None = None,
) -> Translator:
    """The translator of a model in memory, with the PyTorch engine.

    Args:
        model: moved to the machine's device; it must be in eval mode whenever the translator is used.
        source_tokenizer, target_tokenizer: of the model.
        config: the one that the model was trained with.
        machine: device and precision.
        decoding: the beam and the limits; None: those of the config.
    """
    decoding = decoding or config.decoding
    pipeline = TextPipeline(
        source_tokenizer,
        target_tokenizer,
        config.data,
        max_length=model.config.max_length,
        # The symbols of the synthetic tasks are no language.
        splits_sentences=decoding.split_sentences and not isinstance(config.data, SequencesData),
    )
    special_ids, sequence_format = SpecialIds.of(target_tokenizer), SequenceFormat.of(config.data)
    byte_pieces = target_tokenizer.byte_pieces
    model = model.to(machine.device)
    continuing_ids = target_tokenizer.continuing_ids
    engine = PyTorchEngine(
        model,
        special_ids,
        sequence_format,
        machine,
        byte_pieces,
        continuing_ids,
        word_edges=lambda: target_tokenizer.word_edges,
    )
    return Translator(pipeline, engine, decoding)


def _with_own_paths(trained: TrainedModel) -> Config:
    """The checkpoint's config; in a run folder, its data section is that of the run's config.

    A checkpoint holds no paths of the corpora, so that it can be copied anywhere.
    """
    run = RunFolder.of_checkpoint(trained.folder)
    if run is None or not run.config_file.is_file():
        return trained.config
    return trained.config.model_copy(update={"data": load_config(run.config_file).data})
