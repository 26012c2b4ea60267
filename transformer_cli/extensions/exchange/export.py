"""Exporting a run: all formats, and the files of one, written beside their final name, checked, and then renamed."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from transformer_cli import __version__
from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, RuntimeConfig
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.extensions.exchange.argos import ArgosFormat, package_member
from transformer_cli.extensions.exchange.bergamot import BergamotFormat
from transformer_cli.extensions.exchange.browser import (
    BrowserFormat,
    node,
    read_engine,
    translated_in_node,
)
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.export_format import (
    ExportFormat,
    Obstacle,
    Quantization,
    json_content,
    shared_obstacles,
)
from transformer_cli.extensions.exchange.exported_files import (
    CARD,
    UNLISTED,
    checksums,
)
from transformer_cli.extensions.exchange.hugging_face import HuggingFaceFormat
from transformer_cli.extensions.exchange.marian import MarianFormat
from transformer_cli.extensions.exchange.model_card import CardOptions, card_files
from transformer_cli.extensions.exchange.onnx import OnnxFormat
from transformer_cli.extensions.exchange.own_folder import RECORD, own_files
from transformer_cli.extensions.exchange.verification import Agreement, Reference, checked_texts
from transformer_cli.process.device import prepare_machine
from transformer_cli.process.errors import (
    CannotCreateError,
    ConfigError,
    DataError,
    MissingInputError,
    UsageError,
)
from transformer_cli.process.imports import require_extra
from transformer_cli.storage import (
    checksum,
    require_name_in_utf8,
    require_place,
    require_replaceable_folder,
    staged_file,
    staged_folder,
)

logger = logging.getLogger(__name__)

_OTHER_OUTPUT = "name another --output"

FORMATS: tuple[ExportFormat, ...] = (
    CTranslate2Format(),
    HuggingFaceFormat(),
    OnnxFormat(),
    ArgosFormat(),
    MarianFormat(),
    BergamotFormat(),
    BrowserFormat(),
)


def possible_formats(config: Config) -> dict[str, list[Obstacle]]:
    """For each format by its name, the settings in the way; none: the format is open."""
    shared = shared_obstacles(config)
    return {one.name: [*shared, *one.obstacles(config)] for one in FORMATS}


def require_open(config: Config, wanted: ExportFormat) -> None:
    """Check that a model of this config can be exported into a format.

    Raises:
        ConfigError: a setting is in the way.
    """
    obstacles = possible_formats(config)
    if not obstacles[wanted.name]:
        return
    reasons = "; ".join(f"{one.setting} ({one.reason})" for one in obstacles[wanted.name])
    others = [name for name, format_obstacles in obstacles.items() if not format_obstacles]
    can = f"formats that can hold it: {', '.join(others)}" if others else "no format can hold it"
    way = "train with other settings"
    if any(one.setting.startswith("tokenizer.") for one in obstacles[wanted.name]):
        way = "train with tokenizer.kind: sentencepiece, fine-tune an imported run (tfm import), or let programs that know LibreTranslate ask tfm serve"
    raise ConfigError(
        f"--to {wanted.name}: the format cannot hold this model: {reasons}",
        hint=f"{can}; or {way}",
    )


class Exported(NamedTuple):
    """The result of an export."""

    path: Path
    num_bytes: int
    agreements: tuple[Agreement, ...]
    """In float32; then that of the quantised model, if it was quantised."""


def export_run(
    trained: TrainedModel,
    wanted: ExportFormat,
    output: Path,
    *,
    quantization: Quantization | None = None,
    lines: Sequence[str] | None = None,
    card_options: CardOptions | None = None,
) -> Exported:
    """Write a run in a format, after the other program has translated as ours does.

    Args:
        trained: the run, on the CPU.
        wanted: the format.
        output: the folder or file that appears; an earlier export is replaced, if nobody has added files to it or changed its model card.
        quantization: of the weights. The float32 model is checked first.
        lines: texts for the check; None: those of the run.
        card_options: what the model card cannot know; None: nothing is said.

    Raises:
        ConfigError: the format cannot hold the model.
        UsageError: a package is missing, or the name of the output does not fit the format.
        CannotCreateError: the output cannot be written, or is something else than an earlier export.
        DataError: the exported model translates in another way; nothing is left behind.
    """
    require_open(trained.config, wanted)
    if isinstance(wanted, BergamotFormat):
        quantization = "int8"  # its programs have no other weights
    _check_quantization(quantization, wanted)
    require_extra("export", wanted.modules, purpose=f"tfm export --to {wanted.name}")
    _check_output(output, wanted)
    if isinstance(wanted, BrowserFormat):
        read_engine(wanted.engine)
    translator = float32_translator(trained, 1)
    checked = checked_texts(trained, translator.pipeline, lines)
    model = trained.config.model
    most = model.max_length if model.positions == "learned" else None
    logger.info("translating %d texts with PyTorch, to compare", len(checked.texts))
    reference = Reference.of(translator, checked, most=most)
    agreements = []
    is_replaced = (output if wanted.suffix else output / RECORD).exists()
    with (staged_file if wanted.suffix else staged_folder)(output) as path:
        if quantization is not None:
            with TemporaryDirectory(prefix="tfm-") as scratch:
                plain = Path(scratch, output.name)
                plain.touch() if wanted.suffix else plain.mkdir()
                wanted.write(trained, plain, quantization=None)
                agreements.append(reference.require_equal(wanted.open(plain)))
            logger.info("writing the model, and translating the same texts with its files")
        wanted.write(trained, path, quantization=quantization)
        if quantization is None:
            _add_way_back(trained, wanted, path)
        check = reference.require_equal if quantization is None else reference.require_similar
        agreements.append(check(wanted.open(path)))
        if isinstance(wanted, BrowserFormat):
            agreements += _agreement_of_the_engine(path, reference)
        logger.info("measuring the scores of the model card")
        usage = wanted.usage(trained, str(output))
        notes = [line for one in agreements for line in one.notes()]
        for note in wanted.unsaid_search(trained.config.decoding):
            logger.info("%s", note)
            notes.append(note)
        beam = 1 if wanted.is_greedy else trained.config.decoding.beam_size
        card = card_files(
            trained,
            float32_translator(trained, beam, wanted),
            usage,
            options=card_options or CardOptions(),
            library=wanted.library,
            notes=notes,
        )
        if wanted.suffix:
            record = _record(trained, wanted, quantization, agreements, None)
            wanted.add_files(path, {RECORD: record, **card})
        else:
            wanted.add_files(path, card)
            record = _record(trained, wanted, quantization, agreements, path)
            wanted.add_files(path, {RECORD: record})
        _check_output(output, wanted)  # what a person or another process has written in the meantime stays
    if is_replaced:
        logger.info("%s: replaced what was exported there before", output)
    return Exported(output, _num_bytes(output), tuple(agreements))


def _agreement_of_the_engine(path: Path, reference: Reference) -> list[Agreement]:
    """How well the engine in a folder for browsers agrees, in Node; nothing if Node is not here."""
    if node() is None:
        logger.info("node is not in PATH: the engine itself was not run, only its files were read")
        return []
    logger.info("translating the same texts with the engine of the page, in Node")
    texts = translated_in_node(path, [text.text for text in reference.checked.texts])
    return [reference.require_similar_texts("the engine of the page", texts)]


def _add_way_back(trained: TrainedModel, wanted: ExportFormat, path: Path) -> None:
    """What `tfm import` needs beside the files of a format."""
    stored = wanted.stored_tensors(path)
    if stored is not None:
        wanted.add_files(path, own_files(trained, stored))


def float32_translator(trained: TrainedModel, beam_size: int, wanted: ExportFormat | None = None) -> Translator:
    """The translator of a run with plain beam search, in float32 on the CPU, without messages about lines that the user has not given.

    With a format it writes what the programs of this format write with these weights: they repair nothing, read a line as
    it stands, and split it into sentences only if `ExportFormat.splits_sentences` says so.
    """
    runtime = RuntimeConfig(device="cpu", precision="float32", threads=trained.config.runtime.threads)
    decoding = trained.config.decoding.best_of_beam(beam_size)
    decoding = decoding.model_copy(update={"engine": "torch"})
    if wanted is not None:
        text_settings = dict.fromkeys(("keep_text", "repair", "keep_layout", "known_spellings"), False)
        splits = decoding.split_sentences and wanted.splits_sentences
        decoding = decoding.model_copy(update={**text_settings, "split_sentences": splits})
    config = trained.config.model_copy(update={"runtime": runtime, "decoding": decoding})
    translator = build_translator(trained.model, *trained.tokenizers, config, prepare_machine(runtime))
    return replace(translator, reports_lines=False)


def _check_quantization(quantization: Quantization | None, wanted: ExportFormat) -> None:
    if quantization is None or quantization in wanted.quantizations:
        return
    others = [f"--to {one.name}" for one in FORMATS if quantization in one.quantizations]
    raise UsageError(
        f"--quantize {quantization}: --to {wanted.name} stores weights in float32 only",
        hint=f"leave it out, or use a format that has it: {', '.join(others)}",
    )


def _check_output(output: Path, wanted: ExportFormat) -> None:
    """Refuse an output that cannot be written, or that would replace something else than an earlier export."""
    require_name_in_utf8(output)  # the other programs take it as text
    if wanted.suffix:
        require_place(output)
        if output.suffix != wanted.suffix:
            raise UsageError(f"--output {output}: --to {wanted.name} makes a file whose name ends in {wanted.suffix}")
        if output.is_dir():
            raise CannotCreateError(f"{output}: this is a folder; --to {wanted.name} makes a file")
        if output.exists() and not _is_earlier_package(output):
            raise CannotCreateError(f"{output}: this file is not an earlier export", hint=_OTHER_OUTPUT)
        return
    require_replaceable_folder(output, RECORD, "an earlier export", other=_OTHER_OUTPUT, unlisted=UNLISTED)
    card, record = output / CARD, output / RECORD
    if not record.is_file() or not card.is_file():
        return
    # An export of an earlier version has no checksum of its card.
    if json.loads(record.read_bytes()).get("model_card", checksum(card)) != checksum(card):
        raise CannotCreateError(
            f"{card}: was changed after it was exported, and would be lost",
            hint=f"move it away, or {_OTHER_OUTPUT}",
        )


def _is_earlier_package(output: Path) -> bool:
    """Whether `tfm export` has written this file."""
    try:
        return output.is_file() and bool(package_member(output, RECORD))
    except (DataError, MissingInputError):
        return False


def _record(
    trained: TrainedModel,
    wanted: ExportFormat,
    quantization: Quantization | None,
    agreements: Sequence[Agreement],
    folder: Path | None,
) -> bytes:
    facts: dict[str, Any] = {
        "format": wanted.name,
        "quantization": quantization,
        "run": trained.name,
        "step": trained.step,
        "languages": list(map(str, trained.config.data.directions)),
        "tfm": __version__,
        "checks": [one.as_json() for one in agreements],
    }
    if folder is not None:  # an export that is one file, a zip archive, has checksums of its own
        facts |= {"model_card": checksum(folder / CARD), "files": checksums(folder)}
    return json_content(facts)


def _num_bytes(output: Path) -> int:
    files = [output] if output.is_file() else [path for path in output.rglob("*") if path.is_file()]
    return sum(file.stat().st_size for file in files)
