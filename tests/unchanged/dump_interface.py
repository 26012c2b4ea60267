"""Everything that a user can see of `tfm`, one JSON object per line: to prove that a change of the inside changed none of it.

    python tests/unchanged/dump_interface.py                    # prints the lines, sorted
    python tests/unchanged/dump_interface.py --check            # prints what differs from interface.jsonl.gz
    python tests/unchanged/dump_interface.py --check --quick    # the same without the lines of commands that are run
    python tests/unchanged/dump_interface.py --write            # replaces interface.jsonl.gz: only if a change is wanted
    python tests/unchanged/dump_interface.py --python /path/to/another/tree/.venv/bin/python --check

A line has a name (`what`) and a value. There are lines for every command, option and argument with its help; every setting
with its type, bounds, default and sentence; every value of every shipped config; every error with its exit code and its usual
hint; the messages of some mistakes; the keys (not the values) of all JSON that commands print and that runs contain; the files
that commands leave; the public Python names with their signatures; the names, shapes and order of all tensors of
the run docs/run, of a run that is made here, and of a new model of each shipped config.

A wanted difference gets a line in allowed_differences.txt: the name of the line, in which * stands for any text, then two
spaces or more, `#` and the reason. `--check` leaves these out.

Nothing here knows where a module of the package lies: the commands come from the command line itself, the settings from the
class of what `load_config` returns, the errors from the subclasses of `TfmError`, all else from files and outputs.
It takes a minute or two of one core. Packages of other versions (typer, pydantic) change texts: compare with the same ones.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fnmatch
import gzip
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
REFERENCE = HERE / "interface.jsonl.gz"
ALLOWED = HERE / "allowed_differences.txt"
PACKAGE = "transformer_cli"
ENTRY = "__main__"

Entry = dict[str, Any]


def entry(what: str, value: Any) -> Entry:
    return {"what": what, "value": value}


# The shape of JSON.


def key_paths(value: Any, path: str = "") -> dict[str, set[str]]:
    """Map the path of each key in a JSON value to the kinds of its values; `[]` stands for every element of a list."""
    found: dict[str, set[str]] = {}
    if path:
        found[path] = {kind_of(value)}
    inner: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        inner = ((f"{path}.{key}" if path else str(key), one) for key, one in value.items())
    elif isinstance(value, list):
        inner = ((f"{path}[]", one) for one in value)
    for inner_path, one in inner:
        for name, kinds in key_paths(one, inner_path).items():
            found.setdefault(name, set()).update(kinds)
    return found


def kind_of(value: Any) -> str:
    """The kind of a JSON value, in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def shape_of(values: Iterable[Any]) -> dict[str, str]:
    """The key paths of several JSON values together; a path that not all of them have is marked."""
    found: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    values = list(values)
    for value in values:
        for path, kinds in key_paths(value).items():
            found.setdefault(path, set()).update(kinds)
            counts[path] = counts.get(path, 0) + 1
    return {
        path: "|".join(sorted(kinds)) + ("" if counts[path] == len(values) else " (not always)")
        for path, kinds in sorted(found.items())
    }


def parsed_json(text: str) -> list[Any]:
    """One JSON value, or one per line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


# Commands, options and arguments.


def root_command() -> Any:
    """The command `tfm`, as Typer builds it: the start of the command line is stopped where it would parse arguments."""
    import typer.core

    found: list[Any] = []

    class Stopped(BaseException):
        pass

    def stop(self: Any, *_: Any, **__: Any) -> None:
        found.append(self)
        raise Stopped

    bases = {
        base
        for base in typer.core.TyperGroup.__mro__
        if base.__name__ in ("TyperGroup", "Group", "Command", "BaseCommand")
    }
    classes = set(bases)
    for base in bases:
        classes |= set(_subclasses(base))
    saved = [(one, one.__dict__["main"]) for one in classes if "main" in one.__dict__]
    for one, _ in saved:
        one.main = stop
    arguments, sys.argv = sys.argv, ["tfm"]
    try:
        # The command line turns an exception that it does not know into a message and an exit code.
        with contextlib.suppress(Stopped, SystemExit), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_module(PACKAGE, run_name=ENTRY)
    finally:
        sys.argv = arguments
        for one, main in saved:
            one.main = main
    return found[0]


def _subclasses(base: type) -> Iterator[type]:
    for one in base.__subclasses__():
        yield one
        yield from _subclasses(one)


def commands(command: Any, name: str = "tfm", parent: Any = None) -> Iterator[Entry]:
    context = command.context_class(
        command, info_name=name.rpartition(" ")[2], parent=parent, **command.context_settings
    )
    yield entry(
        f"command: {name}",
        {
            "help": command.get_help(context).splitlines(),
            "hidden": bool(command.hidden),
            "deprecated": bool(command.deprecated),
        },
    )
    for number, parameter in enumerate(command.get_params(context)):
        yield from _parameter(name, number, parameter, context)
    if hasattr(command, "list_commands"):
        names = list(command.list_commands(context))
        yield entry(f"commands in order: {name}", names)
        for inner in names:
            yield from commands(command.get_command(context, inner), f"{name} {inner}", context)


def _parameter(command: str, number: int, parameter: Any, context: Any) -> Iterator[Entry]:
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.metavar or parameter.name]
    if {*names} == {"-h", "--help"}:  # click keeps these two in a set, so their order is random
        names = ["--help", "-h"]
    value = {
        "names": names,
        "shown": list(parameter.get_help_record(context) or ()),
        "bounds": [_plain(getattr(parameter, name, None)) for name in ("min", "max")],
        "default": _plain(parameter.default),
        "required": parameter.required,
        "nargs": parameter.nargs,
        "multiple": getattr(parameter, "multiple", False),
        "is_flag": getattr(parameter, "is_flag", False),
        "hidden": getattr(parameter, "hidden", False),
        "environment": parameter.envvar,
        "metavar": parameter.metavar,
        "help": getattr(parameter, "help", None),
    }
    if not is_option:
        value["position"] = number
    kind = "option" if is_option else "argument"
    yield entry(f"{kind}: {command} {names[0]}", value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if callable(value):
        return "computed"
    text = str(getattr(value, "value", value))
    return "absent" if "UNSET" in text.upper() else text


# Settings.


def settings() -> Iterator[Entry]:
    package = importlib.import_module(PACKAGE)
    config = type(package.load_config("copy.yaml"))
    schema = config.model_json_schema()
    classes = {one.__name__: one for one in _models_in(config, set())}
    yield from _settings_of(schema, schema.get("$defs", {}), classes, "", config)


def _settings_of(
    section: dict[str, Any], definitions: dict[str, Any], classes: dict[str, Any], prefix: str, owner: Any
) -> Iterator[Entry]:
    required = section.get("required", ())
    yield entry(f"settings in order: {prefix or 'all'}", list(section["properties"]))
    for name, node in section["properties"].items():
        path = f"{prefix}.{name}" if prefix else name
        facts = _without_titles(node)
        facts["required"] = name in required
        facts["sentence"] = _sentence(owner, name) or node.get("description")
        yield entry(f"setting: {path}", facts)
        for inner_path, definition in _sections_in(node, path):
            yield from _settings_of(definitions[definition], definitions, classes, inner_path, classes.get(definition))


def _sections_in(node: Any, path: str) -> Iterator[tuple[str, str]]:
    """Paths and names of definitions of the sections that a setting may hold."""
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        yield path, node["$ref"].rpartition("/")[2]
    chooser = node.get("discriminator", {})
    if chooser:
        for value, reference in sorted(chooser["mapping"].items()):
            yield f"{path}[{chooser['propertyName']}={value}]", reference.rpartition("/")[2]
    else:
        for choice in ("anyOf", "oneOf", "allOf"):
            for one in node.get(choice, ()):
                yield from _sections_in(one, path)
    if "items" in node:
        yield from _sections_in(node["items"], f"{path}[]")


def _without_titles(node: Any) -> Any:
    """A part of a schema without the names of classes, which users do not see."""
    if isinstance(node, list):
        return [_without_titles(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _without_titles(value) for key, value in node.items() if key not in ("title", "description")}
    if "$ref" in kept:
        kept["$ref"] = "a section"
    if "discriminator" in kept:
        kept["discriminator"] = {
            "propertyName": kept["discriminator"]["propertyName"],
            "values": sorted(kept["discriminator"]["mapping"]),
        }
    return kept


def _models_in(annotation: Any, seen: set[Any]) -> Iterator[Any]:
    """The classes of sections that an annotation names, and those inside of them."""
    from pydantic import BaseModel

    is_section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if is_section and annotation not in seen:
        seen.add(annotation)
        yield annotation
        for field in annotation.model_fields.values():
            yield from _models_in(field.annotation, seen)
    for inner in typing.get_args(annotation):
        yield from _models_in(inner, seen)


def _sentence(owner: Any, name: str) -> str | None:
    """The description of a field: what it was given, or the text below it in the source."""
    if owner is None:
        return None
    given = owner.model_fields[name].description
    if given:
        return str(given)
    for one in owner.__mro__:
        if name in inspect.get_annotations(one):
            return _sentences_below(one).get(name)
    return None


def _sentences_below(owner: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            found[field.target.id] = inspect.cleandoc(str(below.value.value))  # type: ignore[attr-defined]
    return found


def shipped_configs(tree: Path) -> list[str]:
    folder = tree / "configs"
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.yaml"))


def values_of_configs(tree: Path) -> Iterator[Entry]:
    package = importlib.import_module(PACKAGE)
    for name in shipped_configs(tree):
        yield entry(f"config: {name}", package.load_config(name).model_dump(mode="json"))


# Errors.


def errors() -> Iterator[Entry]:
    package = importlib.import_module(PACKAGE)
    base = package.TfmError
    for one in {base, *_subclasses(base)}:
        if one.__name__.startswith("_"):
            continue
        parents = [parent.__name__ for parent in one.__mro__[1:] if issubclass(parent, base)]
        yield entry(
            f"error: {one.__name__}",
            {
                "exit_code": one.exit_code,
                "hint": one.usual_hint,
                "parents": parents,
            },
        )


# Public Python names.


def public_names() -> Iterator[Entry]:
    package = importlib.import_module(PACKAGE)
    yield entry("public names", sorted(package.__all__))
    for name in package.__all__:
        value = getattr(package, name)
        yield entry(f"public name: {name}", _signature(value))
        if isinstance(value, type) and not hasattr(value, "model_fields"):
            for member, _ in inspect.getmembers(value):
                if not member.startswith("_") and _owner_of(value, member):
                    static = inspect.getattr_static(value, member)
                    yield entry(f"public name: {name}.{member}", _signature(static))


def _owner_of(value: type, member: str) -> bool:
    """Whether a class of this package, not of a library, has this member."""
    for one in value.__mro__:
        if member in one.__dict__:
            return one.__module__.partition(".")[0] == PACKAGE
    return False


def _signature(value: Any) -> Any:
    if isinstance(value, staticmethod | classmethod):
        return [type(value).__name__, _signature(value.__func__)]
    if isinstance(value, property):
        return "property"
    if not callable(value):
        return kind_of(value) if isinstance(value, str | int | float | bool | None) else "value"
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "callable"
    if hasattr(value, "model_fields"):  # a section: its settings are lines of their own
        return list(signature.parameters)
    return [
        *(
            f"{one.kind.description}: {one.name}: {_annotation(one.annotation)}"
            + ("" if one.default is one.empty else f" = {_default(one.default)}")
            for one in signature.parameters.values()
        ),
        f"returns {_annotation(signature.return_annotation)}",
    ]


def _annotation(annotation: Any) -> str:
    """An annotation without the modules in which its classes lie."""
    if annotation is inspect.Signature.empty:
        return "anything"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", text.replace("'", "").replace('"', ""))


def _default(value: Any) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return re.sub(r"(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", text) if not isinstance(value, float | str) else text


# Tensors.


def tensors_in(file: Path) -> list[list[Any]]:
    """Names, types and shapes of the tensors of a safetensors file, in their order in the file."""
    with file.open("rb") as opened:
        (size,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(size))
    header.pop("__metadata__", None)
    ordered = sorted(header.items(), key=lambda item: (item[1]["data_offsets"], item[0]))
    return [[name, one["dtype"], one["shape"]] for name, one in ordered]


def tensors_of_new_models(tree: Path) -> Iterator[Entry]:
    """Parameters and buffers of a new model of each config, with vocabularies of 11 and 13 entries, or 13 if it is shared."""
    import torch

    package = importlib.import_module(PACKAGE)
    for name in shipped_configs(tree):
        config = package.load_config(name).model
        sizes = (13, 13) if config.tie_embeddings == "all" else (11, 13)
        with torch.device("meta"):  # no memory is taken and no number is drawn
            model = package.Transformer(config, *sizes)
        state = [[key, str(value.dtype), list(value.shape)] for key, value in model.state_dict().items()]
        parameters = [[key, list(value.shape)] for key, value in model.named_parameters()]
        yield entry(f"model: {name}: state", state)
        yield entry(f"model: {name}: parameters", parameters)


# Commands that are run.


class Case(NamedTuple):
    """A command that is run; {run} is docs/run, and {tree} is the tree."""

    command: str
    reads_json: bool = True
    input: str = ""


TINY = """\
name: tiny
seed: 3
data: {source: phrasebook, num_pairs: 120}
tokenizer: {kind: wordlevel, min_frequency: 1}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}
training: {max_steps: 4, batch_sentences: 8, warmup_steps: 2, log_every: 1, validate_every: 2, save_every: 2, best_metric: chrf, average_last: 2}
validation: {max_sentences: 4, scores: [bleu, chrf], num_samples: 2}
decoding: {max_length: 8, beam_size: 2}
runtime: {device: cpu, precision: float32, threads: 1}
"""
MUON = TINY.replace("tiny", "muon").replace("max_steps", "optimizer: muon, ema_decay: 0.9, max_steps")
COPIED = """\
name: copied
seed: 3
data: {source: sequences, num_pairs: 70, num_symbols: 10, min_length: 3, max_length: 6}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1}
training: {max_steps: 4, batch_sentences: 8, warmup_steps: 2, log_every: 1, validate_every: 2, save_every: 2, best_metric: loss, average_last: 2}
validation: {max_sentences: 4, scores: [], num_samples: 2}
decoding: {max_length: 8, beam_size: 2}
runtime: {device: cpu, precision: float32, threads: 1}
"""
SOURCES = "Where is the station?\nThe red cars are here.\nGood morning.\n"
TARGETS = "Dov'è la stazione?\nLe macchine rosse sono qui.\nBuongiorno.\n"
FILES = {
    "tiny.yaml": TINY,
    "muon.yaml": MUON,
    "copied.yaml": COPIED,
    "in.en": SOURCES,
    "in.it": TARGETS,
    "theirs.it": TARGETS.replace("rosse ", ""),
    "terms.tsv": "station\tstazione\n",
    "page.html": "<p>Where is the <b>station</b>?</p>\n",
    "wrong.yaml": TINY.replace("max_steps", "max_step"),
    "card/.keep": "",
    "some.en": SOURCES + SOURCES.splitlines(keepends=True)[0],
    "some.it": TARGETS + TARGETS.splitlines(keepends=True)[0],
    "twins.en": SOURCES * 20,
    "twins.it": TARGETS * 20,
}
CASES = (
    Case("train --config tiny.yaml", reads_json=False),
    Case("train --config muon.yaml", reads_json=False),
    Case("train --config copied.yaml", reads_json=False),
    Case("train --config tiny.yaml --set training.max_steps=6", reads_json=False),
    Case('translate "Where is the station?" --run {run} --json'),
    Case("translate --run {run} --input in.en --json"),
    Case("translate --run {run} --input in.en --output out.it", reads_json=False),
    Case("translate --run {run} --input in.en --output out.jsonl --json --resume", reads_json=False),
    Case("translate --run {run} --json", input=SOURCES),
    Case('translate "Where is the station?" --run {run} --json --details'),
    Case('translate "Where is the station?" --run {run} --json --attention'),
    Case('translate "Where is the station?" --run {run} --json --alignment'),
    Case('translate "Where is the station?" --run {run} --json --n-best 2 --details'),
    Case('translate "Where is the station?" --run {run} --json --glossary terms.tsv'),
    Case('translate "Where is the station?" --run {run} --json --protect'),
    Case('translate "Where is the station?" --run {run} --json --prefix "Dov\'è"'),
    Case('translate "Where is the station?" --run {run} --run {run} --json --details'),
    Case('translate "Where is the zebra?" --run tiny --json --replace-unknown --details'),
    Case('translate "Where is the station?" --run {run} --json --set decoding.mbr={{}}'),
    Case('translate "Where is the station?" --run {run} --json --set decoding.sampling.temperature=1.0'),
    Case("translate --run {run} --input page.html --output page.it.html", reads_json=False),
    Case('next "Where is the station?" --run {run} --json'),
    Case('next "Where is the station?" --prefix "Dov\'è la" --top 2 --run {run} --json'),
    Case("align --source in.en --target in.it --run {run} --json"),
    Case("likelihood --source in.en --target in.it --run {run} --json"),
    Case("likelihood --source in.en --target in.it --run {run} --run {run} --json"),
    Case('explain "Where is the station?" --run {run} --json'),
    Case('explain "Where is the station?" --run {run} --html explained.html --png explained.png', reads_json=False),
    Case("explain --over-time --run {run} --json"),
    Case("validate --run tiny --json"),
    Case("validate --run tiny --split test --breakdown --calibration --report report.html --json"),
    Case("validate --run {run} --source in.en --reference in.it --json"),
    Case("validate --run {run} --source in.en --reference in.it --against theirs.it --json"),
    Case("validate --run copied --json"),
    Case("score in.it in.it --json"),
    Case("score theirs.it in.it in.it --breakdown --json"),
    Case("score theirs.it in.it --against in.it --json"),
    Case("info --run {run} --json"),
    Case("info --run tiny --json --parameters"),
    Case("info --config copy.yaml --json"),
    Case("info --config tiny.yaml --json --parameters"),
    Case("runs --json"),
    Case("runs compare tiny muon --json"),
    Case("runs prune tiny --keep-last 1 --dry-run --json"),
    Case("average --run tiny --last 2 --output averaged", reads_json=False),
    Case("data --config tiny.yaml --json"),
    Case("data --config copied.yaml --json"),
    Case("data check twins.en twins.it --json"),
    Case("data clean some.en some.it --output clean --json"),
    Case("data get --list tatoeba --source-language en --target-language it --json"),
    Case("ablate --json"),
    Case("plot tiny --json"),
    Case("plot tiny --output curves.svg", reads_json=False),
    Case("card --run tiny --json"),
    Case("card --run tiny --output card", reads_json=False),
    Case("export --run {run} --to ctranslate2 --output ct2 --input in.en --json"),
    Case("exercises lessons", reads_json=False),
    Case("exercises lessons --check --json"),
    Case("draw", reads_json=False),
    Case("init in.en in.it --output mine.yaml --name mine", reads_json=False),
    Case("benchmark --config copied.yaml --updates 3 --json"),
    Case("benchmark --decode --run tiny --json"),
)
MISTAKES = (
    "translate Hello --run nowhere",
    "translate Hello --run {run} --set decoding.beam_sise=3",
    "translate Hello --run {run} --set decoding.beam_size=0",
    "translate Hello --run {run} --set training.max_steps=3",
    "translate Hello --run {run} --n-best 4 --beam-size 2",
    "translate Hello --run {run} --details",
    "translate Hello --run {run} --to fr",
    "translate --run {run} --input nothing.txt",
    "translate Hello --run {run} --glossary nothing.tsv",
    "translate Hello --wrong",
    "translte",
    "train --config wrong.yaml",
    "train --config nothing.yaml",
    "train --config tiny.yaml --set training.learning_rate=0.5",
    "train --config tiny.yaml --set model.num_heads=3 --set name=other",
    "validate --run tiny --scores blue",
    "validate --run {run} --source in.en",
    "score in.it twins.it",
    "likelihood --source in.en --target twins.it --run {run}",
    "next",
    "runs compare tiny nowhere",
    "data check in.en nothing.it",
    "export --run {run} --to docx --output x",
    "plot tiny --output curves.doc",
    "ablate nothing",
    "draw nothing --output x.png",
)


@contextlib.contextmanager
def new_folder() -> Iterator[str]:
    """A temporary folder; not `TemporaryDirectory`, which a forked process would remove when it ends."""
    name = tempfile.mkdtemp(prefix="tfm-dump-")
    try:
        yield name
    finally:
        shutil.rmtree(name)


def ended_commands(tree: Path) -> Iterator[Entry]:
    """Run all cases one after the other in one folder, each in a forked process; what each printed and left there."""
    import torch

    importlib.import_module("torch._dynamo")
    for module in ("sacrebleu.metrics", "torch.utils.tensorboard", "matplotlib.figure"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    torch.set_num_threads(1)
    start = Path.cwd()
    with new_folder() as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        for file, text in FILES.items():
            Path(file).parent.mkdir(exist_ok=True)
            Path(file).write_text(text, encoding="utf-8")
        for case in CASES:
            before = _files_in(folder)
            code, out, talk = run(_words(case.command, tree), case.input)
            left = sorted(_known_name(file) for file in _files_in(folder) - before)
            value = {"exit_code": code, "files": left}
            if case.reads_json and out:
                value["keys"] = shape_of(parsed_json(out))
            if code:
                value["talk"] = talk.splitlines()
            yield entry(f"run: {case.command}", value)
        for command in MISTAKES:
            code, out, talk = run(_words(command, tree))
            places = ((str(folder), "{folder}"), (str(tree), "{tree}"))
            for place, shown in places:
                talk = talk.replace(place, shown)
            yield entry(f"mistake: {command}", {"exit_code": code, "talk": talk.splitlines(), "out": bool(out)})
        for run_name in ("tiny", "muon", "copied"):
            yield from _inside_of(folder / "runs" / run_name, run_name)
        os.chdir(start)
    yield from _inside_of(tree / "docs/run", "docs/run")


def _words(command: str, tree: Path) -> list[str]:
    import shlex

    return [word.replace("{run}", str(tree / "docs/run")).replace("{{}}", "{}") for word in shlex.split(command)]


def _files_in(folder: Path) -> set[str]:
    """Relative paths of all files, links and empty folders."""
    return {
        path.relative_to(folder).as_posix() + (" -> link" if path.is_symlink() else "")
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir())
    }


def _known_name(file: str) -> str:
    """The name of a file without what changes with the time and the machine."""
    return re.sub(r"events\.out\.tfevents\.\S+", "events.out.tfevents.*", file)


def _inside_of(run_folder: Path, name: str) -> Iterator[Entry]:
    """The keys of all text files of a run, and the tensors of its checkpoints."""
    files = sorted(file for file in run_folder.rglob("*") if file.is_file() and not file.is_symlink())
    for file in files:
        relative = file.relative_to(run_folder).as_posix()
        if any(part.is_symlink() for part in file.parents):
            continue
        what = f"inside {name}: {relative}"
        if file.suffix == ".safetensors":
            yield entry(f"{what}: tensors", tensors_in(file))
        elif file.name.startswith("tokenizer"):
            yield entry(f"{what}: top keys", sorted(json.loads(file.read_text(encoding="utf-8"))))
        elif file.suffix == ".json":
            yield entry(f"{what}: keys", shape_of([json.loads(file.read_text(encoding="utf-8"))]))
        elif file.suffix == ".jsonl":
            lines = parsed_json(file.read_text(encoding="utf-8"))
            kinds = sorted({_kind_of_line(line) for line in lines})
            for kind in kinds:
                chosen = [line for line in lines if _kind_of_line(line) == kind]
                yield entry(f"{what}: keys of lines of kind {kind}", shape_of(chosen))
        elif file.suffix == ".yaml":
            import yaml

            yield entry(f"{what}: settings", yaml.safe_load(file.read_text(encoding="utf-8")))


def _kind_of_line(line: Any) -> str:
    return str(line.get("kind")) if isinstance(line, dict) else kind_of(line)


def run(arguments: list[str], text: str = "") -> tuple[int, str, str]:
    """Run `tfm` in a forked process: its exit code, its output and its talk."""
    with new_folder() as name:
        paths = [Path(name) / stream for stream in ("in", "out", "talk")]
        paths[0].write_text(text, encoding="utf-8")
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become_tfm(arguments, paths)
        _, status = os.waitpid(pid, 0)
        out, talk = (path.read_text(encoding="utf-8", errors="replace") for path in paths[1:])
    return os.waitstatus_to_exitcode(status), out, talk


def _become_tfm(arguments: list[str], paths: list[Path]) -> typing.NoReturn:
    import atexit

    for number, path in enumerate(paths):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv = ["tfm", *arguments]
    code: Any = 0
    try:
        runpy.run_module(PACKAGE, run_name=ENTRY)
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        code = 99
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


# The dump as a whole.


def import_everything() -> None:
    """Import all modules, so that all subclasses of an error exist."""
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if not module.name.endswith(ENTRY):
            importlib.import_module(module.name)


OF_RUNS = ("run: ", "mistake: ", "inside ")


def all_entries(tree: Path, *, is_quick: bool) -> Iterator[Entry]:
    parts: tuple[Callable[[], Iterator[Entry]], ...] = (
        lambda: commands(root_command()),
        settings,
        lambda: values_of_configs(tree),
        lambda: (import_everything(), errors())[1],  # type: ignore[func-returns-value]
        public_names,
        lambda: tensors_of_new_models(tree),
        lambda: ended_commands(tree),
    )
    for part in parts[:-1] if is_quick else parts:
        yield from part()


def as_lines(entries: Iterable[Entry]) -> list[str]:
    ordered = sorted(entries, key=lambda one: one["what"])
    names = [one["what"] for one in ordered]
    assert len(set(names)) == len(names), {name for name in names if names.count(name) > 1}
    return [json.dumps({"what": one["what"], "value": one["value"]}, ensure_ascii=False) for one in ordered]


def dump(python: str, *, is_quick: bool) -> list[str]:
    """The lines of the tree whose Python this is; without those of commands that are run, if it must be quick."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "COLUMNS": "100",
        "PYTHONWARNINGS": "ignore",
        "LC_ALL": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [python, str(Path(__file__).resolve()), "--inside", *["--quick"] * is_quick]
    ended = subprocess.run(command, env=environment, text=True, capture_output=True, check=False, cwd="/")
    if ended.returncode:
        sys.exit(f"the dump ended with {ended.returncode}:\n{ended.stderr}")
    return ended.stdout.splitlines()


# Comparing.


class Allowed(NamedTuple):
    pattern: str
    reason: str


def allowed_differences(text: str) -> list[Allowed]:
    """The lines of allowed_differences.txt, each a pattern and its reason."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, mark, reason = line.partition("  #")
        if not mark or not reason.strip():
            raise SystemExit(f"allowed_differences.txt, line {number}: no reason: {line!r}; write: NAME  # reason")
        found.append(Allowed(pattern.strip(), reason.strip()))
    return found


def is_allowed(what: str, allowed: Iterable[Allowed]) -> bool:
    """Whether a pattern matches the whole name; only * has a meaning in it, since names contain brackets."""
    return any(fnmatch.fnmatchcase(what, one.pattern.replace("[", "[[]").replace("?", "[?]")) for one in allowed)


def differences(before: Iterable[str], now: Iterable[str], allowed: Iterable[Allowed]) -> list[str]:
    """What differs, as text: one paragraph per line of the dump that is gone, new or changed."""
    old, new = ({one["what"]: one["value"] for one in map(json.loads, lines)} for lines in (before, now))
    allowed, found = list(allowed), []
    for what in sorted(old.keys() | new.keys()):
        if is_allowed(what, allowed):
            continue
        if what not in new:
            found.append(f"gone     {what}")
        elif what not in old:
            found.append(f"new      {what}")
        elif old[what] != new[what]:
            found.append("\n".join([f"changed  {what}", *_changes(old[what], new[what])]))
    return found


def _changes(old: Any, new: Any, path: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [
            line
            for key in keys
            for line in _changes(old.get(key, "(nothing)"), new.get(key, "(nothing)"), f"{path}.{key}")
            if old.get(key, "(nothing)") != new.get(key, "(nothing)")
        ]
    if isinstance(old, list) and isinstance(new, list):
        import difflib

        before, now = ([json.dumps(one, ensure_ascii=False) for one in values] for values in (old, new))
        changed = [line for line in difflib.ndiff(before, now) if line[0] in "+-"]
        return [f"    {path.lstrip('.')} {line}" for line in changed[:20]]
    return [f"    {path.lstrip('.')}: {json.dumps(old, ensure_ascii=False)} -> {json.dumps(new, ensure_ascii=False)}"]


def _say(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="of the tree that is dumped")
    parser.add_argument("--check", action="store_true", help="compare with the reference")
    parser.add_argument("--write", action="store_true", help="make this the reference")
    parser.add_argument("--quick", action="store_true", help="run no commands: seconds instead of minutes")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        package = importlib.import_module(PACKAGE)
        assert package.__file__ is not None
        tree = Path(package.__file__).resolve().parents[1]
        _say(as_lines(all_entries(tree, is_quick=options.quick)))
        return
    if options.write and options.quick:
        parser.error("the reference needs all lines: leave out --quick")
    lines = dump(options.python, is_quick=options.quick)
    if options.write:
        text = "".join(f"{line}\n" for line in lines).encode()
        REFERENCE.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
        _say([f"{REFERENCE}: {len(lines)} lines, {REFERENCE.stat().st_size:,} bytes"])
    elif options.check:
        before = gzip.decompress(REFERENCE.read_bytes()).decode().splitlines()
        if options.quick:
            before = [line for line in before if not json.loads(line)["what"].startswith(OF_RUNS)]
        found = differences(before, lines, allowed_differences(ALLOWED.read_text(encoding="utf-8")))
        _say([*found, f"{len(found)} differences in {len(before)} lines"])
        sys.exit(1 if found else 0)
    else:
        _say(lines)


if __name__ == "__main__":
    main()
