"""Completions for the Tab key of a shell: names of runs, configs and settings.

A shell waits for each answer, so this module imports neither PyTorch nor the parts of the package that need it.
"""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin

if TYPE_CHECKING:
    from transformer_cli.config.loading import Command

Offer = tuple[str, str]
"""A completion, and a sentence about it that some shells show."""

# Copies of names in checkpoint/run_folder.py and storage/filesystem.py, whose import would make a shell wait.
RUNS, CHECKPOINTS, MANIFEST = "runs", "checkpoints", "MANIFEST.json"
_MAX_MANIFEST_BYTES = 1 << 20
_YAML = (".yaml", ".yml")
_UNIONS = (Union, UnionType)


class _Typed:
    """What a person typed before the word that is completed; `_typed` is the only object of this class."""

    before = ""
    """The name of a setting with its equals sign, if bash gives the value as a word of its own."""


_typed = _Typed()


def join_words_of_bash() -> None:
    """Read a setting and its value as one word: bash splits a word at `=`, so a value would look like an argument.

    Bash replaces the last part only, so the completions are values without the name of the setting.
    """
    words = os.environ.get("COMP_WORDS", "").split("\n")
    position = os.environ.get("COMP_CWORD", "")
    if not position.isdecimal():
        return
    words = [*words[: int(position) + 1], *[""] * (int(position) + 1 - len(words))]
    if words[-1] == "=":  # the cursor stands right behind it
        words.append("")
    if len(words) > 3 and words[-2] == "=" and not words[-3].startswith("-"):
        *before, name, _, value = words
        _typed.before = f"{name}="
        os.environ |= {"COMP_WORDS": "\n".join([*before, value]), "COMP_CWORD": str(len(before))}


def runs(incomplete: str) -> list[Offer]:
    """Runs whose names begin with the text, the latest save first; after runs/, also their checkpoints."""
    found = []
    for folder in Path(RUNS).glob(f"*/{CHECKPOINTS}"):
        newest = _newest(folder)
        if newest is not None:
            found.append((newest, folder))
    found.sort(key=lambda run: run[0]["saved_at"], reverse=True)
    offers = [(folder.parent.name, _facts(newest)) for newest, folder in found]
    if "/" in incomplete:
        for newest, folder in found:
            offers.append((str(folder.parent), _facts(newest)))
            offers += [(str(path), "") for path in sorted(folder.glob("[!.]*")) if path.is_dir()]
    return [offer for offer in offers if offer[0].startswith(incomplete)]


def configs(incomplete: str) -> list[Offer]:
    """YAML files whose paths begin with the text, also those in a matching folder; then the configs of tfm."""
    from transformer_cli.config.loading import shipped_configs

    found: dict[str, str] = {}
    for path in _entries(incomplete):
        files = _entries(f"{path}/") if path.is_dir() else [path]
        found |= {str(file): "a file" for file in files if file.suffix in _YAML}
    for name in sorted(shipped_configs()):
        if name.startswith(incomplete):
            found.setdefault(name, "comes with tfm")
    return list(found.items())


def pictures(incomplete: str) -> list[Offer]:
    """The names of the pictures of `tfm draw`."""
    found = resolve_name("transformer_cli.extensions.lessons.drawing.pictures:PICTURES")
    offers = [(name, picture.sentence) for name, picture in found.items()]
    return [offer for offer in [*offers, ("all", "")] if offer[0].startswith(incomplete)]


def ablations(incomplete: str) -> list[Offer]:
    """The names of ablations, each with its subject."""
    found = resolve_name("transformer_cli.extensions.lessons.ablations:ABLATIONS")
    return [(one.name, one.subject) for one in found if one.name.startswith(incomplete)]


def exercises(incomplete: str) -> list[Offer]:
    """The names of exercises, each with its functions."""
    found = resolve_name("transformer_cli.extensions.lessons.exercises.catalogue:EXERCISES")
    offers = [(one.name, ", ".join(one.functions)) for one in found]
    return [offer for offer in offers if offer[0].startswith(incomplete)]


def plotted_metrics(incomplete: str) -> list[Offer]:
    """What a run may have recorded, each with its title: the loss and the like, then the scores."""
    from transformer_cli.config.schema import ScoreName

    titles = resolve_name("transformer_cli.extensions.lessons.drawing.curves:TITLES")
    offers = [*titles.items(), *((name, "a score") for name in get_args(ScoreName))]
    return [offer for offer in offers if offer[0].startswith(incomplete)]


def scores(incomplete: str) -> list[Offer]:
    """The names of scores; after a comma, one more name."""
    from transformer_cli.config.schema import ScoreName

    before, comma, begun = incomplete.rpartition(",")
    names = [name for name in get_args(ScoreName) if name.startswith(begun)]
    return [(f"{before}{comma}{name}", "") for name in names]


def settings(incomplete: str) -> list[Offer]:
    """Settings, such as training.max_steps=; for a setting with few possible values, each value."""
    return _settings(incomplete)


def settings_of_translating(incomplete: str) -> list[Offer]:
    """The settings that change a translation."""
    return _settings(incomplete, "translate")


def settings_of_serving(incomplete: str) -> list[Offer]:
    """The settings that change the translations of a server."""
    return _settings(incomplete, "serve")


def settings_of_validating(incomplete: str) -> list[Offer]:
    """The settings that change a validation by `tfm validate`."""
    return _settings(incomplete, "validate")


def settings_of_the_machine(incomplete: str) -> list[Offer]:
    """The settings of device, precision and threads."""
    return _settings(incomplete, "next")


def settings_of_explaining(incomplete: str) -> list[Offer]:
    """The settings that change an explanation."""
    return _settings(incomplete, "explain")


def settings_of_likelihoods(incomplete: str) -> list[Offer]:
    """The settings of the machine, and the size of a batch."""
    return _settings(incomplete, "likelihood")


def cleaning_rules(incomplete: str) -> list[Offer]:
    """The rules of tfm data clean, such as mend_encoding=."""
    from transformer_cli.config.section import meanings

    known = resolve_name("transformer_cli.extensions.corpora.cleaning_rules:CorpusRules")
    rules = meanings(known)
    return [(f"{name}=", rules[name]) for name in known.model_fields if name.startswith(incomplete)]


def _settings(incomplete: str, command: "Command | None" = None) -> list[Offer]:
    from transformer_cli.config.loading import commands_that_take

    if before := _typed.before:
        _typed.before = ""
        offers = _settings(before + incomplete, command)
        return [(value.removeprefix(before), meaning) for value, meaning in offers]
    name, equals, _ = incomplete.partition("=")
    found = {
        path: setting
        for path, setting in _all_settings().items()
        if command is None or command in commands_that_take(path)
        if (path == name if equals else path.startswith(name))
    }
    # Bash treats the text after = as a separate word, so it needs the values here.
    if len(found) == 1:
        [(path, setting)] = found.items()
        values = [(f"{path}={value}", setting.meaning) for value in _choices(setting.type)]
        if values or equals:
            return [offer for offer in values if offer[0].startswith(incomplete)]
    return [(f"{path}=", setting.meaning) for path, setting in found.items()]


class _Setting(NamedTuple):
    type: Any
    meaning: str


def _all_settings() -> dict[str, _Setting]:
    """The dotted names of all settings, but not of sections; for `data`, the settings of every source."""
    from transformer_cli.config import Config
    from transformer_cli.config.section import meanings

    found: dict[str, _Setting] = {}
    sentences = meanings(Config)
    for name, field in Config.model_fields.items():
        for path, setting in _below(name, field.annotation, sentences[name]):
            known = found.get(path)
            if known is not None:  # sources of data share names, but not always the type
                setting = _Setting(known.type | setting.type, known.meaning)
            found[path] = setting
    return found


def _below(path: str, annotation: Any, meaning: str) -> Iterator[tuple[str, _Setting]]:
    """A setting, or the settings of a section."""
    from pydantic import BaseModel

    from transformer_cli.config.section import meanings

    kinds = _alternatives(annotation)
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    for section in sections:
        sentences = meanings(section)
        for name, field in section.model_fields.items():
            yield from _below(f"{path}.{name}", field.annotation, sentences[name])
    if not sections:
        yield path, _Setting(annotation, meaning)


def _alternatives(annotation: Any) -> list[Any]:
    """The types of a union, or the single type; `Annotated` is unwrapped."""
    if hasattr(annotation, "__metadata__"):
        return _alternatives(annotation.__origin__)
    if get_origin(annotation) in _UNIONS:
        return [kind for part in get_args(annotation) for kind in _alternatives(part)]
    return [annotation]


def _choices(annotation: Any) -> list[str]:
    """The values of a setting that is a choice or a switch; none for numbers and text."""
    values: list[str] = []
    for kind in _alternatives(annotation):
        if get_origin(kind) is Literal:
            values += map(str, get_args(kind))
        elif kind is bool:
            values += ["true", "false"]
    return list(dict.fromkeys(values))


def _entries(incomplete: str) -> list[Path]:
    """The files and folders whose paths begin with the text; hidden ones only if the name begins with a dot."""
    folder, name = os.path.split(incomplete)
    try:
        names = sorted(os.listdir(os.path.expanduser(folder) or "."))
    except OSError:
        return []
    return [
        Path(folder, found)
        for found in names
        if found.startswith(name) and (name.startswith(".") or not found.startswith("."))
    ]


def _newest(checkpoints: Path) -> dict[str, Any] | None:
    """The manifest of the newest checkpoint; None if no manifest can be read."""
    manifests = []
    for path in checkpoints.glob(f"step-*/{MANIFEST}"):
        try:
            with path.open("rb") as file:
                fields = json.loads(file.read(_MAX_MANIFEST_BYTES))
            manifests.append({**fields, "saved_at": int(fields["saved_at"]), "step": int(fields["step"])})
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            continue
    return max(manifests, key=lambda fields: fields["saved_at"], default=None)


def _facts(manifest: dict[str, Any]) -> str:
    score, metric = manifest.get("score"), manifest.get("metric")
    facts = f"step {manifest['step']}"
    if isinstance(score, float) and math.isfinite(score) and isinstance(metric, str):
        facts += f", {metric} {score:.4g}"
    return facts
