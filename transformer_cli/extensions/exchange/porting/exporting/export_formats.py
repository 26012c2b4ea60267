"""All export formats, and which of them a config keeps open."""

from transformer_cli.config import Config
from transformer_cli.extensions.exchange.porting.exporting.argos_format import ArgosFormat
from transformer_cli.extensions.exchange.porting.exporting.ctranslate2_format import (
    CTranslate2Format,
)
from transformer_cli.extensions.exchange.porting.exporting.export_format import (
    ExportFormat,
    Obstacle,
    shared_obstacles,
)
from transformer_cli.extensions.exchange.porting.exporting.hugging_face_format import (
    HuggingFaceFormat,
)
from transformer_cli.extensions.exchange.porting.exporting.onnx_format import OnnxFormat
from transformer_cli.process.errors import ConfigError

FORMATS: tuple[ExportFormat, ...] = (
    CTranslate2Format(),
    HuggingFaceFormat(),
    OnnxFormat(),
    ArgosFormat(),
)


def all_obstacles(config: Config) -> dict[str, list[Obstacle]]:
    """For each format by its name, the settings in the way; none: the format is open."""
    shared = shared_obstacles(config)
    return {one.name: [*shared, *one.obstacles(config)] for one in FORMATS}


def require_open(config: Config, wanted: ExportFormat) -> None:
    """Check that a model of this config can be exported into a format.

    Raises:
        ConfigError: a setting is in the way.
    """
    obstacles = all_obstacles(config)
    if not obstacles[wanted.name]:
        return
    reasons = "; ".join(f"{one.setting} ({one.reason})" for one in obstacles[wanted.name])
    others = [name for name, of_format in obstacles.items() if not of_format]
    can = f"formats that can hold it: {', '.join(others)}" if others else "no format can hold it"
    way = "train with other settings"
    if any(one.setting.startswith("tokenizer.") for one in obstacles[wanted.name]):
        way = "fine-tune an imported run (tfm import), or let programs that know LibreTranslate ask tfm serve"
    raise ConfigError(
        f"--to {wanted.name}: the format cannot hold this model: {reasons}",
        hint=f"{can}; or {way}",
    )
