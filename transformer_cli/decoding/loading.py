"""From a trained model to a translator: text pipeline, engine and decoding settings put together."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cache, partial
from os import PathLike, fspath
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from transformer_cli.checkpoint.run_folder import AVERAGE, RUNS, RunFolder
from transformer_cli.checkpoint.trained_files import (
    TrainedFiles,
    Which,
    find_run,
    first_usable,
    load_weights,
    read_trained_files,
    seen_lengths_of,
)
from transformer_cli.config import (
    Config,
    DecodingConfig,
    RescoringConfig,
    RuntimeConfig,
    TrainingConfig,
    load_stored_config,
)
from transformer_cli.config.decoding import OTHER_SEARCHES
from transformer_cli.config.loading import (
    Command,
    commands_that_take,
    overridable_setting,
    override_settings,
)
from transformer_cli.decoding.checks.quality import Quality, read_quality
from transformer_cli.decoding.checks.reverse_reading import Reader
from transformer_cli.decoding.engine import Engine, ExplainingEngine
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translator import Translator
from transformer_cli.process import plain_form
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage.writing import is_locked_here, is_running
from transformer_cli.text import Tokenizer
from transformer_cli.text.seen_words import read_seen_words
from transformer_cli.text.sentences import UNKNOWN_LENGTHS, SeenLengths

if TYPE_CHECKING:  # a translation with another library does not wait for PyTorch or numpy
    from transformer_cli.decoding.numpy_engine import NumpyEngine, Weights
    from transformer_cli.decoding.rescoring import Rescorer
    from transformer_cli.model import Transformer
    from transformer_cli.process.device import Machine


logger = logging.getLogger(__name__)

Loaded = TypeVar("Loaded")

_THREADS_OF_NUMPY = "OPENBLAS_NUM_THREADS"
_LARGEST_OF_ONE_THREAD = 16_000_000
"""Bytes of a checkpoint that one thread multiplies in NumPy."""


class EnginePlaces(NamedTuple):
    """Where an engine of another library is: `module:function`, which is imported when it is used."""

    load: str
    """Takes files of a checkpoint, config, text pipeline, and what loads the PyTorch engine; returns an engine with `describe`."""
    build: str
    """The same of a model in memory: takes model, target tokenizer, config, and what loads the PyTorch engine."""


OTHER_ENGINES = {
    "ctranslate2": EnginePlaces(
        load="transformer_cli.extensions.exchange.ctranslate2_engine:load_ctranslate2_engine",
        build="transformer_cli.extensions.exchange.ctranslate2_engine:build_ctranslate2_engine",
    ),
}
"""By the name in `decoding.engine`."""

# A checkpoint with less than 1 / _MANY_STEPS of the planned steps has learned little.
_MANY_STEPS = 20


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A trained run, or an ensemble of several, and its translator."""

    trained: TrainedFiles
    """A `TrainedModel` if PyTorch translates."""
    config: Config
    """The run's config with the overrides of this command."""
    overridden: frozenset[str]
    """The names of the settings that this command overrides."""
    translator: Translator
    others: tuple[TrainedFiles, ...] = ()
    """Of an ensemble: its models after the first, which is `trained`."""

    @property
    def members(self) -> tuple[TrainedFiles, ...]:
        """The models that translate: one, or several of an ensemble."""
        return (self.trained, *self.others)


def load_translator(
    run: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    *,
    which: Literal["best", "last"] = "best",
    decoding: DecodingConfig | None = None,
    runtime: RuntimeConfig | None = None,
) -> Translator:
    """The translator of a trained run, or of an ensemble of several.

    Args:
        run: the name of a run under `runs/`, the path of a run folder, or the path of a checkpoint folder,
            which may be a copy in another place. A list of these is an ensemble. None: the run that saved last,
            or, if there is no run, the small demonstration model that comes with tfm, with a warning.
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
    runs = [run] if run is None or isinstance(run, str | PathLike) else run

    first_settings: dict[str, Any] = {"decoding": decoding, "runtime": runtime}

    def configured(files: TrainedFiles) -> Config:
        for name, given in first_settings.items():
            first_settings[name] = given or getattr(files.config, name)
        config = files.config.model_copy(update=first_settings)
        if len(runs) > 1:
            _refuse_int8(config)
        return config

    folders = [find_run(None if one is None else fspath(one), or_demonstration=True) for one in runs]
    members = [_loaded(folder, configured, which=which, alone=len(runs) == 1) for folder in folders]
    return members[0].translator if len(members) == 1 else _ensemble(members)


def load_run(
    run: str | Sequence[str] | None,
    overrides: Sequence[str],
    *,
    command: Command = "translate",
    or_demonstration: bool = False,
) -> LoadedRun:
    """The run that a command works with, with its best checkpoint; logs which one it is.

    Args:
        run: the name of a run, or the path of a run or checkpoint folder; several are an ensemble; None: the run
            that saved last.
        overrides: settings as in `--set`, such as decoding.beam_size=8.
        command: the command that asks; each override must have an effect on it.
        or_demonstration: whether the demonstration model answers if no run is named and there is none.

    Raises:
        MissingInputError: there is no such run.
        ConfigError: an override names a setting that a trained model cannot change, or that has no effect.
        UsageError: the models of the ensemble have different vocabularies, languages or formats.
    """
    overridden = frozenset(overridable_setting(override, command) for override in overrides)
    runs: Sequence[str | None] = [run] if isinstance(run, str) else run or [None]
    # Other commands, and ensembles, compute what only PyTorch can.
    is_search = command == "explain" or command in commands_that_take("decoding.engine")
    reads_corpus = command.startswith(("validate", "benchmark"))

    first_settings: dict[str, Any] = {}

    def configured(files: TrainedFiles) -> Config:
        config = _with_own_paths(files) if reads_corpus else files.config
        # Of an ensemble, the first model says how all translate, and on which device.
        first_settings.update(first_settings or {"decoding": config.decoding, "runtime": config.runtime})
        config = config.model_copy(update=first_settings)
        if overrides:
            config = override_settings(config, overrides)
        if command == "explain":  # plain beam search, observed, which needs PyTorch
            if others := [f"decoding.{name}" for name in OTHER_SEARCHES if getattr(config.decoding, name) is not None]:
                logger.warning("plain beam search is explained, without %s", " and ".join(others))
            decoding = config.decoding.model_copy(update={"engine": "torch", **dict.fromkeys(OTHER_SEARCHES)})
            config = config.model_copy(update={"decoding": decoding})
        if command not in commands_that_take("decoding.rescore"):
            decoding = config.decoding.model_copy(update={"rescore": None})
            config = config.model_copy(update={"decoding": decoding})
        if len(runs) > 1:
            _check_ensemble(config, overridden)
        elif command == "next":
            _refuse_int8(config)
        if "runtime.cuda_graphs" in overridden and config.runtime.cuda_graphs is True:
            _require_recorded_steps(config, is_alone=len(runs) == 1)
        return config

    alone = is_search and len(runs) == 1
    # Who asks for a machine or an engine gets it from the first sentence on.
    is_free = not any(name.startswith(("runtime.", "decoding.engine")) for name in overridden)
    starts = alone and is_free and command == "translate"
    folders = [find_run(one, or_demonstration=or_demonstration) for one in runs]
    members = [_loaded(folder, configured, alone=alone, starts=starts) for folder in folders]
    for member in members:
        _announce(member)
    trained, *others = [member.trained for member in members]
    translator = _ensemble(members) if others else members[0].translator
    return LoadedRun(trained, members[0].config, overridden, translator, tuple(others))


class _Loaded(NamedTuple):
    """A checkpoint that is ready to translate."""

    trained: TrainedFiles
    config: Config
    """Its config with the settings of decoding and of the machine."""
    translator: Translator
    described: str
    """The engine and the machine in words."""


class _DescribedEngine(Engine, Protocol):
    """An engine that says in a few words what it is."""

    def describe(self) -> str:
        """Library, device and precision."""


def _require_recorded_steps(config: Config, *, is_alone: bool) -> None:
    """Refuse a wish for recorded steps where there are none."""
    from transformer_cli.process.device import prepare_machine, require_cuda_graphs

    if not is_alone or config.decoding.engine != "torch":
        what = "an ensemble" if not is_alone else f"decoding.engine: {config.decoding.engine}"
        raise ConfigError(
            f"runtime.cuda_graphs: true records the steps of one model in PyTorch, not those of {what}",
            hint="--set runtime.cuda_graphs=false",
        )
    require_cuda_graphs(config.runtime, prepare_machine(config.runtime, records=True))


def _check_ensemble(config: Config, overridden: Container[str]) -> None:
    """Refuse what only one model can do, and another engine if the user asks for it."""
    _refuse_int8(config)
    decoding = config.decoding
    if decoding.engine != "torch" and "decoding.engine" in overridden:
        raise ConfigError(
            f"decoding.engine: {decoding.engine} translates with one model, not with an ensemble",
            hint="leave decoding.engine out, or name one run",
        )
    if decoding.shortlist is not None:
        raise ConfigError(
            "decoding.shortlist is for the translations of one model, not for an ensemble",
            hint="leave out decoding.shortlist (--set decoding.shortlist=null)",
        )


def _refuse_int8(config: Config) -> None:
    if config.runtime.precision == "int8":
        raise ConfigError(
            "runtime.precision: int8 is for the translations of one model",
            hint="set runtime.precision=float32",
        )


def _announce(loaded: _Loaded) -> None:
    """Log which checkpoint it is, and a warning if its run still trains, or if it has seen only the beginning of its training."""
    checkpoint, training = loaded.trained.checkpoint, loaded.trained.config.training
    step = checkpoint.manifest.step
    logger.info("%s, step %d (%s)", checkpoint.folder, step, loaded.described)
    run = loaded.trained.run
    if run is not None and run.lock_file.exists() and is_running(run.path) and not is_locked_here(run.path):
        logger.warning(
            "%s is still training: this is its best checkpoint so far, of step %d; the same command may give better translations later",
            run.path,
            step,
        )
    elif run is not None and not checkpoint.folder.name.startswith(AVERAGE):  # a run makes its average at its end
        _announce_interruption(run, training, loaded.trained.config.name)
    planned = training.max_steps if training.init_from is None else None
    if planned is not None and step * _MANY_STEPS < planned:
        logger.warning(
            "this is step %d of %d planned steps, so the translations may make no sense",
            step,
            planned,
        )


def _announce_interruption(run: RunFolder, training: TrainingConfig, name: str) -> None:
    """Log a warning if the training of a run has stopped before its end; with the command that continues it, where it is known."""
    from transformer_cli.checkpoint.runs import damaged_behind, interrupted_at

    reached = interrupted_at(run.path)
    if reached is None:
        return
    planned = "" if training.max_steps is None else f" of {training.max_steps:,}"
    is_here = run.path.absolute() == (RUNS / name).absolute()  # where tfm train looks for a run of this name
    command = f": tfm train --config {for_shell(run.config_file)}" if is_here else ""
    if (damaged := damaged_behind(run.path, reached)) is not None:
        how = f"{command} makes the later steps again" if command else ""
        logger.warning(
            "%s: its checkpoint %s is damaged, so its training goes on from step %s%s%s",
            run.path,
            damaged,
            f"{reached:,}",
            planned,
            how,
        )
        return
    how = f"{command} continues it" if command else ""
    logger.warning(
        "%s: its training stopped at step %s%s and is not finished%s", run.path, f"{reached:,}", planned, how
    )


def _ensemble(members: Sequence[_Loaded]) -> Translator:
    """The translator of several runs."""
    from transformer_cli.decoding.ensemble import combine_translators

    names = [str(member.trained.folder) for member in members]
    return combine_translators([member.translator for member in members], names)


def _loaded(
    folder: Path,
    configured: Callable[[TrainedFiles], Config],
    *,
    which: Which = "best",
    alone: bool = True,
    starts: bool = False,
) -> _Loaded:
    """A run that is ready to translate, with the first of its checkpoints that is whole.

    Args:
        folder, which: as of `first_usable`.
        configured, alone, starts: as of `_ready`.
    """
    return first_usable(folder, partial(_ready, configured=configured, alone=alone, starts=starts), which=which)


def _ready(folder: Path, *, configured: Callable[[TrainedFiles], Config], alone: bool, starts: bool) -> _Loaded:
    """A checkpoint that is ready to translate.

    Args:
        folder: of the checkpoint.
        configured: gives the config of a checkpoint with the settings of decoding and of the machine.
        alone: whether it translates alone, with the engine of `decoding.engine`; if not, with PyTorch.
        starts: whether the first sentences need not wait for the import of PyTorch.
    """
    files = read_trained_files(folder)
    config = configured(files)
    options, run = config.decoding, files.run
    pipeline = TextPipeline.of(
        files.source_tokenizer,
        files.target_tokenizer,
        config,
        options,
        seen_lengths_of(files.checkpoint, files.config),
        # A checkpoint outside of a run, and a run of an earlier version, have no record of the words that the training saw.
        seen_words=None if run is None else read_seen_words(run.seen_words_file),
        qualities={} if run is None else _qualities(run, files.checkpoint.manifest.step),
    )
    engine: _DescribedEngine | None = None
    pytorch = partial(load_pytorch_engine, files, config)
    if alone and options.engine in OTHER_ENGINES:
        engine = resolve_name(OTHER_ENGINES[options.engine].load)(files, config, pipeline, once(pytorch))
    elif starts and options.engine == "torch" and "torch" not in sys.modules and not plain_form.IS_PLAIN:
        engine = _numpy_engine(files, config, pytorch)
    if engine is None:
        from transformer_cli.decoding.pytorch_engine import open_pytorch_engine

        trained = load_weights(files)
        files, engine = trained, open_pytorch_engine(trained, config, alone=alone)
    translator = Translator(
        pipeline,
        engine,
        options,
        rescorers=() if options.rescore is None else _rescorers(options.rescore, files, config),
        load_reader=once(partial(load_reader, config=config)),
    )
    return _Loaded(files, config, translator, engine.describe())


def _numpy_engine(
    files: TrainedFiles, config: Config, pytorch: "Callable[[Weights], ExplainingEngine]"
) -> "NumpyEngine | None":
    """As `load_numpy_engine`; a small model is multiplied by one thread.

    OpenBLAS, with which NumPy multiplies, reads the number of its threads when NumPy is imported. Threads that wait for each
    other keep their cores busy: two of them took 50 ms for a sentence of the demonstration model, and one takes 8 ms.
    """
    is_small = sum(file.size for file in files.checkpoint.manifest.files) <= _LARGEST_OF_ONE_THREAD
    is_chosen_here = is_small and _THREADS_OF_NUMPY not in os.environ
    if is_chosen_here:
        os.environ[_THREADS_OF_NUMPY] = "1"
    try:
        from transformer_cli.decoding.numpy_engine import load_numpy_engine
    finally:
        if is_chosen_here:
            del os.environ[_THREADS_OF_NUMPY]
    return load_numpy_engine(files, config, pytorch)


def once(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """A function that loads something, as one that loads it once for each value of its arguments, also if threads call together.

    `functools.cache` alone lets each thread load for itself that calls before the first one is ready.
    """
    loaded, lock = cache(load), threading.Lock()

    def load_once(*arguments: str) -> Loaded:
        with lock:
            return loaded(*arguments)

    return load_once


def _rescorers(rescoring: RescoringConfig, files: TrainedFiles, config: Config) -> "tuple[Rescorer, ...]":
    """The further models of `decoding.rescore`, on the machine of the first one."""
    from transformer_cli.decoding.rescoring import loaded_rescorers

    load = partial(load_reader, config=config)
    return loaded_rescorers(rescoring, files.config.data.directions, load)


def load_reader(run: str, *, config: Config) -> Reader:
    """Another run, which only reads given pairs.

    Args:
        run: its name or path.
        config: says on which machine.

    Raises:
        MissingInputError: there is no such run.
    """

    def configured(other: TrainedFiles) -> Config:
        decoding = other.config.decoding.best_of_beam(1)
        decoding = decoding.model_copy(update={"engine": "torch", "shortlist": None})
        changed = {"decoding": decoding, "runtime": config.runtime}
        return other.config.model_copy(update=changed)

    folder = find_run(run)
    loaded = _loaded(folder, configured)
    return Reader(loaded.translator, folder.name, loaded.trained.step)


def _qualities(run: RunFolder, step: int) -> dict[str, Quality]:
    """What `tfm calibrate` has written into a run for the checkpoint of this step; nothing if the file is damaged."""
    try:
        qualities = read_quality(run.path)
    except DataError as error:
        # Only --mark and --only-green need it, and they refuse to work without.
        logger.warning(
            "%s, so nothing is known about the quality of translations; %s",
            error.message,
            error.hint,
        )
        return {}
    qualities = {
        direction: quality for direction, quality in qualities.items() if quality.conditions.get("step") == step
    }
    if not run.seen_words_file.is_file() and any(
        quality.conditions.get("reads_seen_words") for quality in qualities.values()
    ):
        logger.warning(
            "%s is missing, which the calibration reads, so nothing is known about the quality of translations; put it back, or "
            "calibrate again: tfm calibrate",
            run.seen_words_file,
        )
        return {}
    return qualities


def load_pytorch_engine(files: TrainedFiles, config: Config, weights: "Weights | None" = None) -> ExplainingEngine:
    """The PyTorch engine that serves beside another one; without weights it reads those of the checkpoint.

    Beside NumPy it has the machine of the config; beside another library, the one that has it too: the CPU in float32.
    """
    from transformer_cli.decoding.pytorch_engine import open_pytorch_engine

    if config.decoding.engine != "torch":
        runtime = config.runtime.model_copy(update={"device": "cpu", "precision": "float32"})
        decoding = config.decoding.model_copy(update={"engine": "torch"})
        config = config.model_copy(update={"runtime": runtime, "decoding": decoding})
    trained = load_weights(files, weights)
    return open_pytorch_engine(trained, config, alone=True)


def build_translator(
    model: "Transformer",
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    config: Config,
    machine: "Machine",
    *,
    decoding: DecodingConfig | None = None,
    seen: SeenLengths = UNKNOWN_LENGTHS,
) -> Translator:
    """The translator of a model in memory, with the PyTorch engine.

    Args:
        model: moved to the machine's device; it must be in eval mode whenever the translator is used.
        source_tokenizer, target_tokenizer: of the model.
        config: the one that the model was trained with.
        machine: device and precision.
        decoding: the beam and the limits; None: those of the config.
        seen: the lengths of the texts of its training.
    """
    from transformer_cli.acceleration import accelerate
    from transformer_cli.decoding.pytorch_engine import engine_of

    decoding = decoding or config.decoding
    pipeline = TextPipeline.of(source_tokenizer, target_tokenizer, config, decoding, seen)
    engine = engine_of(accelerate(model, machine.device), target_tokenizer, config, machine)
    return Translator(pipeline, engine, decoding)


def _with_own_paths(trained: TrainedFiles) -> Config:
    """The checkpoint's config; in a run folder, its data section is that of the run's config.

    A checkpoint holds no paths of the corpora, so that it can be copied anywhere.
    """
    run = trained.run
    if run is None or not run.config_file.is_file():
        return trained.config
    return trained.config.model_copy(update={"data": load_stored_config(run.config_file).data})
