"""Every setting refuses what its schema does not allow, and says which setting it was and where (G1, G3).

The settings, their types and their bounds are read off the JSON schema of the whole config, so a new
setting is tested from the day it appears.
"""

import copy
import functools
import json
import math
import operator
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, get_args

import pytest
import yaml

from transformer_cli.config import Config, to_yaml
from transformer_cli.config.data import TOKENIZER_KINDS, KindName
from transformer_cli.config.loading import check_settings, parse_yaml
from transformer_cli.config.refusal import _OFF_WITH_NULL
from transformer_cli.process.errors import ConfigError

Path = tuple[str | int, ...]
SCHEMA = Config.model_json_schema()
DATA: dict[str, dict[str, Any]] = {
    "phrasebook": {"source": "phrasebook"},
    "sequences": {"source": "sequences"},
    "files": {"source": "files", "corpora": [{"path": "a.tsv"}]},
    "hub": {"source": "hub", "corpora": [{"dataset": "a/b"}]},
}
# Values in YAML; each is valid for some settings and invalid for the others.
VALUES = [
    "-1",
    "0",
    "1.5",
    "-0.5",
    ".nan",
    "nan",
    ".inf",
    "1e400",
    "-1e400",
    "1e300",
    str(10**30),
    str(-(10**30)),
    "nothing-of-the-kind",
    "''",
    '" "',
    "true",
    "null",
    "yes",
    "[]",
    "[1]",
    "[[]]",
    "{}",
    "{a: 1}",
    '"' + "x" * 5000 + '"',
]


class Setting(NamedTuple):
    """One setting of a config whose data come from `source`."""

    source: str
    path: Path
    schema: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.source}-{'.'.join(map(str, self.path))}"


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def settings_below(source: str, path: Path, schema: dict[str, Any]) -> Iterator[Setting]:
    """This setting and those inside it: of sections their fields, of lists their first item."""
    schema = resolved(schema)
    if "discriminator" in schema:
        schema = resolved({"$ref": schema["discriminator"]["mapping"][source]})
    if path:
        yield Setting(source, path, schema)
    for name, field in schema.get("properties", {}).items():
        yield from settings_below(source, (*path, name), field)
    if "properties" in resolved(schema.get("items", {})):
        yield from settings_below(source, (*path, 0), schema["items"])


def every_setting() -> Iterator[Setting]:
    for source in DATA:
        for setting in settings_below(source, (), SCHEMA):
            if setting.path[0] == "data" or source == "phrasebook":
                yield setting


SETTINGS = list(every_setting())


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """What the schema says of a value."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return any(accepts(one, value) for one in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    match schema["type"]:
        case "integer":
            return type(value) is int and _is_within(schema, value)
        case "number":
            return type(value) in (int, float) and math.isfinite(value) and _is_within(schema, value)
        case "string":
            return (
                isinstance(value, str)
                and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf)
                and re.search(schema.get("pattern", ""), value) is not None
            )
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
            if not isinstance(value, list) or not least <= len(value) <= most:
                return False
            items = schema.get("prefixItems") or [schema["items"]] * len(value)
            return all(map(accepts, items, value))
    assert schema["type"] == "object", schema
    known, required = schema["properties"], schema.get("required", [])
    return isinstance(value, dict) and set(required) <= set(value) <= set(known)


def _is_within(schema: dict[str, Any], value: float) -> bool:
    return (
        schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
        and schema.get("exclusiveMinimum", -math.inf) < value
        and value < schema.get("exclusiveMaximum", math.inf)
    )


MARK = "the-value-under-test"


def config_text(setting: Setting) -> tuple[str, int]:
    """A config in which this setting alone has a mark for a value, and the line of that setting."""
    settings: dict[str, Any] = {
        "name": "a",
        "training": {"max_steps": 10, "batch_sentences": 4},
        "data": copy.deepcopy(DATA[setting.source]),
    }
    section: Any = settings
    for part in setting.path[:-1]:
        section = section[part] if isinstance(part, int) else section.setdefault(part, {})
    section[setting.path[-1]] = MARK
    text = yaml.safe_dump(settings, sort_keys=False)
    [line] = (number for number, one in enumerate(text.split("\n"), start=1) if MARK in one)
    return text, line


@functools.cache
def value_in_line(value: str, line: int) -> Any:
    """What stands for a value in YAML, as if it stood in this line of a file."""
    return parse_yaml("\n" * (line - 1) + value, "a.yaml")


def refusals(setting: Setting, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each value that is put in the place of the setting, with the message that refuses the config; it is empty if none does.

    The config is parsed once and not for each value: that would take most of the time of these tests.
    """
    text, line = config_text(setting)
    settings: Any = parse_yaml(text, "a.yaml")
    *path, last = setting.path
    section = functools.reduce(operator.getitem, path, settings)
    for value in values:
        section[last] = value_in_line(value, line)
        yield value, refusal(settings)


@pytest.mark.long
def test_what_the_schema_does_not_allow_is_refused_with_key_and_line() -> None:
    wrong = []
    for setting in SETTINGS:
        _, line = config_text(setting)
        bad = [one for one in VALUES if not accepts(setting.schema, value_in_line(one, line))]
        if len(bad) < 8:
            wrong.append(f"{setting}: only {bad} are not allowed")
        key = re.escape(".".join(map(str, setting.path)))
        # In what is a list or a section, the key may go on to the part that is wrong.
        # An item of a list has no key of its own: its line may be that of the list.
        lines = f"({line}|{line - 1})" if isinstance(setting.path[-1], int) else str(line)
        place = re.compile(rf"^a\.yaml:{lines}: {key}(\.[\w.]+)?( is |: )", re.MULTILINE)
        for value, message in refusals(setting, bad):
            if not place.search(message) or len(message) >= 1000:
                wrong.append(f"{setting} = {value:.20}: {message:.1000}")
    assert wrong == []


def test_all_kinds_of_data_and_the_entries_of_corpora_are_among_the_settings() -> None:
    """The test above checks only the settings that are on its list."""
    names = set(map(str, SETTINGS))
    assert {
        "phrasebook-seed",
        "phrasebook-training.betas",
        "phrasebook-data.num_pairs",
        "sequences-data.num_symbols",
        "files-data.corpora.0.source_field",
        "files-data.cleaning.max_words",
        "hub-data.corpora.0.max_pairs",
        "hub-data.validation_share",
        "phrasebook-runtime.threads",
    } <= names
    assert len(names) > 120


def numbers_and_texts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    schema = resolved(schema)
    for one in (*schema.get("anyOf", ()), *schema.get("prefixItems", ())):
        yield from numbers_and_texts(one)
    if schema.get("type") == "array" and "items" in schema:
        yield from numbers_and_texts(schema["items"])
    elif schema.get("type") in ("integer", "number", "string", "array"):
        yield schema


def test_every_number_text_and_list_has_an_upper_bound() -> None:
    known = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "pattern", "enum", "const"}
    unbounded = []
    for setting in SETTINGS:
        found = list(numbers_and_texts(setting.schema))
        numbers = [schema for schema in found if schema["type"] in ("integer", "number")]
        is_bounded = all(known & set(schema) for schema in found) and all(
            schema.get("maximum", schema.get("exclusiveMaximum", math.inf)) <= 10**10
            and ("minimum" in schema or "exclusiveMinimum" in schema)
            for schema in numbers
        )
        is_list = setting.schema.get("type") == "array"
        if not is_bounded or (is_list and "maxItems" not in setting.schema):
            unbounded.append(str(setting))
    assert unbounded == []


@pytest.mark.long
def test_what_the_schema_allows_at_its_bounds_is_not_refused_as_such() -> None:
    """The negative control: a schema that refuses everything would pass the tests above."""
    wrong = []
    for setting in SETTINGS:
        _, line = config_text(setting)
        bounds = [
            json.dumps(schema[bound])
            for schema in (setting.schema, *setting.schema.get("anyOf", ()))
            if schema.get("type") in ("integer", "number")
            for bound in ("minimum", "maximum")
            if bound in schema
        ]
        place = re.escape(f"a.yaml:{line}: {'.'.join(map(str, setting.path))}: ")
        refused = re.compile(f"{place}(at least|at most|more than|less than) ")
        wrong += [
            f"{setting} = {value}: {message}" for value, message in refusals(setting, bounds) if refused.search(message)
        ]
    assert wrong == []


def refusal(settings: Any) -> str:
    """The message that refuses a config, for any reason; empty if the config is valid."""
    try:
        check_settings(settings, "a.yaml")
    except ConfigError as error:
        return error.message if error.exit_code == 78 else f"exit code {error.exit_code}"
    return ""


@pytest.mark.parametrize("word", ["no", "on", "off", "yes", "0777", "12:30", "1_000", "0x10", "1e"])
@pytest.mark.parametrize("setting", ["training.max_steps", "training.learning_rate", "runtime.compile"])
def test_words_that_other_readers_take_for_numbers_or_truth_are_refused_where_those_belong(
    setting: str, word: str
) -> None:
    """G1: of a number or a switch, the message has key, line and what was found."""
    text, line = config_text(Setting("phrasebook", tuple(setting.split(".")), {}))
    with pytest.raises(ConfigError) as caught:
        check_settings(parse_yaml(text.replace(MARK, word), "a.yaml"), "a.yaml")
    assert re.match(rf"a\.yaml:{line}: {setting}: .*, found '{word}'", caught.value.message)


@pytest.mark.parametrize("word", ["no", "on", "yes", "off"])
def test_the_same_words_are_text_where_text_belongs(word: str) -> None:
    """G1: `no` (Norwegian) is the name of a language, also after writing and reading the config."""
    text, _ = config_text(Setting("files", ("data", "source_language"), {}))
    config = check_settings(parse_yaml(text.replace(MARK, word), "a"), "a")
    assert config.data.source_language == word
    assert check_settings(parse_yaml(to_yaml(config), "a"), "a") == config


@pytest.mark.parametrize(
    ("written", "number"),
    [("1e-4", 1e-4), ("1E-4", 1e-4), ("+1e-4", 1e-4), ("1.e-4", 1e-4), ("2", 2.0), ("0.5", 0.5)],
)
def test_a_number_may_be_written_as_people_write_it(written: str, number: float) -> None:
    text, _ = config_text(Setting("phrasebook", ("training", "learning_rate"), {}))
    config = check_settings(parse_yaml(text.replace(MARK, written), "a"), "a")
    assert config.training.learning_rate == number


def test_a_decimal_comma_is_answered_with_a_point() -> None:
    text = "name: a\ndata: {source: phrasebook}\ntraining: {max_steps: 1, batch_tokens: 9, learning_rate: '0,01'}"
    with pytest.raises(ConfigError, match=r"training\.learning_rate: a number is expected, found '0,01'") as refused:
        check_settings(parse_yaml(text, "a.yaml"), "a.yaml")
    assert refused.value.hint == "a point stands before the decimals: training.learning_rate=0.01"


@pytest.mark.parametrize("zero", ["0", "0.0", "false"])
def test_where_other_programs_write_0_for_none_null_is_named(zero: str) -> None:
    """fairseq's `--clip-norm 0.0`."""
    text = f"name: a\ndata: {{source: phrasebook}}\ntraining: {{max_steps: 1, batch_tokens: 9, clip_norm: {zero}}}"
    with pytest.raises(ConfigError, match=r"training\.clip_norm: .* is expected, found") as refused:
        check_settings(parse_yaml(text, "a.yaml"), "a.yaml")
    assert refused.value.hint == "null turns it off: training.clip_norm=null"


def test_what_null_turns_off_is_a_setting_that_takes_null_and_not_0() -> None:
    ours = {".".join(map(str, setting.path)): setting.schema for setting in SETTINGS}
    for name in _OFF_WITH_NULL:
        assert accepts(ours[name], None)
        assert not accepts(ours[name], 0)


def test_where_a_number_or_a_word_is_expected_both_are_told() -> None:
    text = "name: a\ndata: {source: phrasebook}\ntraining: {max_steps: 1, update_tokens: 9, batch_tokens: automatic}"
    assert refusal(parse_yaml(text, "a.yaml")).startswith(
        "a.yaml:3: training.batch_tokens: a whole number is expected, in digits, such as 1000, or 'auto', found 'automatic'"
    )


@pytest.mark.parametrize(
    ("name", "program"), [("testing", "JoeyNMT"), ("src_vocab", "OpenNMT"), ("train-sets", "Marian")]
)
def test_a_config_of_another_program_is_recognised(name: str, program: str) -> None:
    settings = {"name": "a", "data": {"train": "a", "src": {"lang": "en"}}, name: {"beam_size": 5}}
    with pytest.raises(ConfigError) as refusal:
        check_settings(settings, "a.yaml")
    assert f"a config of {program}" in str(refusal.value.hint)
    assert "from_other_programs.md" in str(refusal.value.hint)


@pytest.mark.parametrize(
    ("kind", "meant"), [("token", "batch_tokens"), ("tokens", "batch_tokens"), ("sentence", "batch_sentences")]
)
@pytest.mark.parametrize("is_nested", [True, False])
def test_the_size_of_batches_of_another_program_is_counted_as_its_batch_type_says(
    kind: str, meant: str, is_nested: bool
) -> None:
    size = {"batch_size": 4096, "batch_type": kind}
    settings = {"name": "a", **({"training": size} if is_nested else size)}
    with pytest.raises(ConfigError) as refusal:
        check_settings(settings, "a.yaml")
    for name in size:
        assert f"{name} is not a setting; did you mean training.{meant}?" in str(refusal.value)


def test_the_table_of_tokenizers_has_each_kind_that_a_config_may_name() -> None:
    assert [*TOKENIZER_KINDS] == [*get_args(KindName)]
