"""Prints docs/configuration.md, from the fields of the config and their sentences.

python docs/make_configuration.py > docs/configuration.md
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from transformer_cli.config import (
    CleaningConfig,
    Config,
    DecodingConfig,
    DiversityConfig,
    FileCorpus,
    FilesData,
    HubCorpus,
    HubData,
    MbrConfig,
    ModelConfig,
    NoiseConfig,
    PhrasebookData,
    PublishedConfig,
    RescoringConfig,
    RescoringModel,
    RuntimeConfig,
    SamplingConfig,
    SequencesData,
    ShortlistConfig,
    SimCutConfig,
    TokenizerConfig,
    TrainingConfig,
    ValidationConfig,
    load_config,
)
from transformer_cli.config.loading import MAX_DEPTH, check_settings, parse_yaml
from transformer_cli.config.schema import PRESETS
from transformer_cli.config.section import meanings
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.config_changes import HARMLESS

EXAMPLE = """\
name: hotel                     # the run folder: runs/hotel
seed: 1

data:
  source: files
  source_language: en
  target_language: it
  root: corpora                 # relative paths start here
  corpora:
    - {split: train, source_path: train.en.gz, target_path: train.it.gz}
    - {split: train, path: phrases.csv, source_field: English, target_field: Italian, weight: 3}
    - {split: validation, source_path: dev.en, target_path: dev.it}
  cleaning:
    max_words: 100
    max_length_ratio: null      # this rule is off

tokenizer:
  kind: bpe
  vocab_size: 8000
  shared: true                  # one vocabulary for both languages

model:
  preset: small
  dropout: 0.2
  tie_embeddings: all           # one table, which needs tokenizer.shared

training:
  max_steps: 20000
  batch_tokens: 4096
  learning_rate: 1e-3
  warmup_steps: 1000
  best_metric: chrf             # one of validation.scores, or loss, or perplexity

validation:
  scores: [bleu, chrf]

decoding:
  beam_size: 5
"""

HEAD = f"""\
# Configuration

<!-- Made by `python docs/make_configuration.py > docs/configuration.md`; edit the fields, not this file. -->

A config is one YAML file, and describes one experiment. `name`, `data` and `training` must be there; what is
left out has its default. `tfm info --config FILE.yaml` prints a config with every default filled in, and
`tfm train` writes that to `runs/NAME/config.yaml`, from which the run can be repeated.

Contents: [how a config is written](#how-a-config-is-written) · [an example](#an-example) ·
[overrides](#overrides) · [presets](#presets) · [name and seed](#name-and-seed) · [data](#data) ·
[tokenizer](#tokenizer) · [model](#model) · [training](#training) · [validation](#validation) ·
[decoding](#decoding) · [runtime](#runtime) · [published](#published) · [what must fit together](#what-must-fit-together) ·
[changing a run that has begun](#changing-a-run-that-has-begun)

## How a config is written

- Only the words `true`, `false` and `null` are special; `null`, `~` and an empty value are the same.
  `yes`, `no`, `on`, `True` are text: `source_language: no` is Norwegian.
- Numbers are decimal: `20000`, `0.1`, `1e-4`. A whole number is written out: `1000`, not `1e3` or `1_000`.
  `0777` and `12:30` are text.
- *absent* below means that the setting has no value: leave it out, or write `null`.
- Keys are unique; anchors, aliases, tags and more than {MAX_DEPTH} levels of nesting are refused.
- A key that is not a setting is an error, with its line and the nearest setting that exists.
- `--config` takes a path, or else the name of a config that comes with `tfm`, with or without `.yaml`.

## An example

Two training corpora, of which the small one is seen three times per epoch; subwords; a small model:

```yaml
{EXAMPLE}```

Saved as `hotel.yaml`, it is looked at with `tfm data --config hotel.yaml` and trained with
`tfm train --config hotel.yaml`.

## Overrides

`--set FIELD=VALUE` replaces one setting after the file was read and before anything is checked. The field is
a path with dots, the value is YAML, and the option may be repeated (the last one for a setting counts):

```bash
tfm train --config en-it.yaml --set name=short --set training.max_epochs=2 --set model.dropout=0.2
tfm train --config en-it.yaml --set name=free --set training.clip_norm=null --set "validation.scores=[bleu, ter]"
```

An element of a list is named by its number, from 0, as in `data.corpora.0.weight` or `data.corpora[0].weight`. There is
no way to append one, but the whole list can be replaced:

```bash
tfm train --config multi30k-en-de.yaml --set data.root=PATH --set data.corpora.0.weight=2
```

`tfm train`, `tfm data`, and `tfm info` of a config, take any field. The commands of a trained model take only settings
that matter to the command, and refuse all others: `tfm translate` takes `decoding.*`, `runtime.device`,
`runtime.precision`, `runtime.threads` and `runtime.cuda_graphs`; `tfm next` takes the first three of `runtime`, and `tfm likelihood`
these and `decoding.batch_tokens`; `tfm validate` takes the same as
`tfm translate` without `decoding.num_best`, and also `data.root`, `validation.max_sentences`, `validation.scores`,
`validation.num_samples` and `validation.sequence_lengths`. By default it scores the whole split, with all scores.
`--beam-size N` is short for `--set decoding.beam_size=N`.
"""

SECTIONS: dict[str, type[BaseModel]] = {
    "tokenizer": TokenizerConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
    "validation": ValidationConfig,
    "decoding": DecodingConfig,
    "training.noise": NoiseConfig,
    "training.simcut": SimCutConfig,
    "decoding.sampling": SamplingConfig,
    "decoding.mbr": MbrConfig,
    "decoding.rescore": RescoringConfig,
    "decoding.rescore.models.N": RescoringModel,
    "decoding.shortlist": ShortlistConfig,
    "decoding.diversity": DiversityConfig,
    "runtime": RuntimeConfig,
    "published": PublishedConfig,
}
DATA_SECTIONS: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("data, source: phrasebook", PhrasebookData, "data."),
    ("data, source: sequences", SequencesData, "data."),
    ("data, source: files", FilesData, "data."),
    ("data.corpora of files", FileCorpus, "data.corpora.N."),
    ("data, source: hub", HubData, "data."),
    ("data.corpora of the hub", HubCorpus, "data.corpora.N."),
    ("data.cleaning", CleaningConfig, "data.cleaning."),
)

# Each breaks one rule; what is printed is the message that a user gets.
CONTRADICTIONS: tuple[tuple[str, ...], ...] = (
    ("model.num_heads=5",),
    ("model.num_kv_heads=3",),
    ("model.positions=rotary", "model.head_dim=3"),
    ("model.d_model=63", "model.head_dim=8"),
    ("model.norm=std_layernorm", "model.d_model=1", "model.num_heads=1", "model.positions=none"),
    ("model.tie_embeddings=all",),
    ("tokenizer.kind=unigram", "tokenizer.min_frequency=2"),
    ("training.max_steps=null",),
    ("training.batch_tokens=1000",),
    ("training.schedule=noam",),
    ("training.noam_factor=2",),
    ("training.schedule=noam", "training.learning_rate=null", "training.warmup_steps=0"),
    ("training.schedule=cosine", "training.max_steps=null", "training.max_epochs=2"),
    ("training.weight_decay=0.01",),
    ("training.best_metric=ter",),
    ("decoding.num_best=5",),
    ("decoding.sampling.top_k=5", "decoding.coverage_penalty=0.2"),
    ("decoding.mbr.candidates=5",),
    ("decoding.mbr={}", "decoding.beam_size=1"),
    ("decoding.mbr.candidates=2", "decoding.num_best=3"),
    ("decoding.sampling.top_k=5", "decoding.diversity.groups=2"),
    ("decoding.diversity.groups=3", "decoding.beam_size=4"),
    ("decoding.min_length=9", "decoding.max_length=8"),
    ("data.min_length=30",),
    ("data.task=drop-first", "data.min_length=1"),
    ("data.task=drop-first", "validation.sequence_lengths=[1, 2]"),
    ("data.shift_target=false",),
    ("training.smoothed_over=others",),
)


def main() -> None:
    """Print the page."""
    check_settings(parse_yaml(EXAMPLE, "the example"), "the example")
    sys.stdout.write("\n".join(lines()))


def lines() -> Iterator[str]:
    """The lines of the page, the last one empty."""
    yield HEAD
    yield from _presets()
    yield "## name and seed\n"
    yield from _table(Config, ("name", "seed"), "")
    yield "## data\n"
    yield "`data.source` decides which other fields there are; `data.cleaning` is the same for all.\n"
    for title, section, prefix in DATA_SECTIONS:
        yield f"### {title}\n"
        yield f"{section.__doc__}\n"
        yield from _table(section, section.model_fields, prefix)
    for name, section in SECTIONS.items():
        yield f"## {name}\n"
        yield f"{section.__doc__}\n"
        yield from _table(section, section.model_fields, f"{name}.")
    yield from _contradictions()
    yield from _resuming()


def _presets() -> Iterator[str]:
    names = list(dict.fromkeys(name for preset in PRESETS.values() for name in preset))
    yield "## Presets\n"
    yield "`model.preset` fills in what the config does not give, so that any number can still be overridden:\n"
    yield _row(["preset", *(f"`model.{name}`" for name in names)])
    yield _row(["---", *("--:" for _ in names)])
    for preset, values in PRESETS.items():
        yield _row([f"`{preset}`", *(f"{values.get(name, 'default')}" for name in names)])
    yield ""


def _table(section: type[BaseModel], names: Iterable[str], prefix: str) -> Iterator[str]:
    yield _row(["setting", "default", "values", "meaning"])
    yield _row(["---"] * 4)
    properties = section.model_json_schema()["properties"]
    sentences = meanings(section)
    for name in sorted(names, key=lambda name: name != "source"):  # which decides about the others
        field = section.model_fields[name]
        assert name in sentences, f"{prefix}{name} has no sentence"
        values = _values(properties[name])
        yield _row([f"`{prefix}{name}`", _default(field), values, sentences[name]])
    yield ""


def _contradictions() -> Iterator[str]:
    yield "## What must fit together\n"
    yield "A config whose settings contradict each other is refused. Here `copy.yaml` with an override or two, and"
    yield "what is then said:\n"
    yield _row(["`--set`", "message"])
    yield _row(["---", "---"])
    for overrides in CONTRADICTIONS:
        given = " ".join(f"`{override}`" for override in overrides)
        yield _row([given, _refusal(overrides)])
    yield ""


def _refusal(overrides: Sequence[str]) -> str:
    try:
        load_config("copy.yaml", overrides)
    except ConfigError as error:
        return re.sub(r"^copy\.yaml(:\d+)?: ", "", error.message)
    raise AssertionError(f"{overrides} is accepted")


def _resuming() -> Iterator[str]:
    yield "## Changing a run that has begun\n"
    yield "The same `tfm train` command goes on where the run stopped. A changed config is accepted if the steps"
    yield "that are done already would have been the same with it. These settings may change:"
    yield ", ".join(f"`{name}`" if "." in name or name == "name" else f"`{name}.*`" for name in HARMLESS)
    yield "(but not `training.max_steps` with `schedule: cosine` or `linear`, whose curve ends there; with"
    yield "`warmup_stable_decay`, `max_steps` and `decay_steps` may change until the decay begins). `name` may change if you"
    yield "rename the run folder, too. Any other change is"
    yield "refused, with the old and the new value: give the new experiment its own `name`, or put the old run aside"
    yield "with `--from-scratch`. A corpus whose content changed is accepted with `--accept-data-change`.\n"
    yield "`--from-scratch` deletes nothing: the files of the old run move into the folder `checkpoints-old-1` (then 2, 3, ...) of the run"
    yield "folder. If the new run does not start, because it is refused or interrupted, they move back, at the latest with"
    yield "the next `tfm train` of this run. `tfm translate --run runs/NAME/checkpoints-old-1/step-...` uses one of them.\n"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(default, CleaningConfig):
        others = {name: value for name, value in default if value != getattr(CleaningConfig(), name)}
        if not others:
            return "as below"
        return "as below, but " + ", ".join(f"`{name}: {_yaml(v)}`" for name, v in others.items())
    return "absent" if default is None else f"`{_yaml(default)}`"


def _values(schema: Mapping[str, Any]) -> str:
    """The allowed values in words, from their JSON schema."""
    if "anyOf" in schema:
        return " or ".join(_values(choice) for choice in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        choices = [schema["const"]] if "const" in schema else schema["enum"]
        return ", ".join(f"`{value}`" for value in choices)
    kind = schema.get("type", "section")
    if kind == "array":
        return _list(schema)
    if kind in ("integer", "number"):
        return f"{'whole number' if kind == 'integer' else 'number'} {_range(schema)}"
    if "pattern" in schema:
        return f"text, `{schema['pattern']}`"
    simple = {"null": "absent", "boolean": "`true`, `false`", "string": "text"}
    return simple.get(kind, "a mapping, as below")


def _list(schema: Mapping[str, Any]) -> str:
    if "prefixItems" in schema:
        items = [_values(item) for item in schema["prefixItems"]]
        if len(set(items)) == 1:
            return f"list of {len(items)}: each a {items[0]}"
        return f"list of {len(items)}: {', '.join(items)}"
    if "enum" in schema["items"]:
        return f"list of {_values(schema['items'])}"
    size = f"{schema.get('minItems', 0)} to {schema['maxItems']:,}"
    items = _values(schema["items"])
    is_section = items == "a mapping, as below"
    return f"list of {size} mappings, as below" if is_section else f"list of {size}: each a {items}"


def _range(schema: Mapping[str, Any]) -> str:
    low = f"from {_number(schema['minimum'])}" if "minimum" in schema else None
    low = low or f"above {_number(schema['exclusiveMinimum'])}"
    if "maximum" in schema:
        return f"{low} to {_number(schema['maximum'])}"
    return f"{low}, below {_number(schema['exclusiveMaximum'])}"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else _yaml(value)


def _yaml(value: Any) -> str:
    """A value as one writes it in a config."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return re.sub(r"e-0(\d)$", r"e-\1", str(value))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    main()
