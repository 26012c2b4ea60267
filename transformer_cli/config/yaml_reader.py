"""A safe part of YAML: no aliases, no tags, no duplicate keys, and few implicit types.

Only `true`, `false`, `null` (also `~` or nothing) and decimal numbers are special; all else is text. So
`no` is the language code of Norwegian, `1e-4` and `.01` are numbers, `12:30` and `0777` are text.
"""

import re
from typing import Any

import yaml

from transformer_cli.process.errors import ConfigError

MAX_DEPTH = 20


class Mapping(dict[str, Any]):
    """A mapping that knows the line of each key, or the override that set it; for messages."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int | str] = {}


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _refusal("aliases (*name) are not allowed", event)
        if getattr(event, "anchor", None) is not None:
            raise _refusal("anchors (&name) are not allowed", event)
        if getattr(event, "tag", None) is not None:
            raise _refusal("tags (!name) are not allowed", event)
        self._depth = getattr(self, "_depth", 0) + 1
        if self._depth > MAX_DEPTH:
            raise _refusal(f"nested deeper than {MAX_DEPTH} levels", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_checked_mapping(self, node: yaml.MappingNode) -> Mapping:
        mapping = Mapping()
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _refusal(f"a key must be text, found {key!r}", key_node)
            if key in mapping:
                raise _refusal(
                    f"{key} is given twice, first in line {mapping.lines[key]}", key_node
                )
            mapping[key] = self.construct_object(value_node, deep=True)
            mapping.lines[key] = key_node.start_mark.line + 1
        return mapping


_Loader.yaml_implicit_resolvers = {}
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_checked_mapping)
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    (
        "float",
        r"^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$",
        "-+.0123456789",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _refusal(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def parse_yaml(text: str, origin: str) -> Any:
    """Parse YAML.

    Raises:
        ConfigError: the text is not YAML, or uses a part of YAML that is refused.
    """
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        has_tab = "\\t" in (error.problem or "")
        hint = "YAML takes no tabs here: indent with spaces" if has_tab else None
        raise ConfigError(f"{origin}{line}: {error.problem or error.context}", hint=hint) from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise ConfigError(f"{origin}: not YAML: {error}") from error
