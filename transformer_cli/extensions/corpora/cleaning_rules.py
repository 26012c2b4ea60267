"""The rules of `tfm data clean`: those that training applies too, and rules for faults that change whole corpora."""

import difflib
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from transformer_cli.config import CleaningConfig
from transformer_cli.config.loading import parse_yaml
from transformer_cli.config.refusal import plain_reason
from transformer_cli.config.section import Switch
from transformer_cli.process.errors import ConfigError


class CorpusRules(CleaningConfig):
    """Rules that drop, change or realign pairs; each can be switched off."""

    realign: Switch = True
    """Where the two sides have drifted apart, pair each line with its translation again, and drop lines without one."""
    mend_encoding: Switch = True
    """Mend UTF-8 that was read as another encoding, such as Ã© for é; by ftfy."""
    mend_entities: Switch = True
    """Replace entities of HTML, such as &quot;, by their characters."""
    drop_lost_characters: Switch = True
    """Drop pairs with U+FFFD, which stands for a character that was lost."""
    drop_wrong_language: Switch = True
    """Drop pairs of which a side is surely in another language."""
    drop_nearly_equal: Switch = True
    """Drop pairs that are not translated: most words of the target are those of the source."""
    drop_near_leakage: Switch = True
    """Drop training pairs that differ from a validation or test pair only in case, punctuation or spaces."""
    drop_leaked_source: Switch = False
    """Drop training pairs with the source of a validation or test pair."""
    drop_leaked_target: Switch = False
    """Drop training pairs with the target of a validation or test pair."""
    drop_near_duplicates: Switch = True
    """Drop pairs that differ from a pair above only in case, punctuation or spaces."""


def corpus_rules(base: CleaningConfig, overrides: Sequence[str]) -> CorpusRules:
    """The rules, with values from a config and from the command line.

    Args:
        base: the section data.cleaning of a config.
        overrides: texts of the form RULE=VALUE.

    Raises:
        ConfigError: there is no such rule, or its value is not allowed.
    """
    values: dict[str, Any] = base.model_dump()
    names = list(CorpusRules.model_fields)
    for override in overrides:
        name, equals, value = override.partition("=")
        name = name.strip().removeprefix("data.cleaning.")
        if name not in names or not equals:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the rules: {', '.join(names)}"
            raise ConfigError(f"--set {override}: no rule of tfm data clean", hint=hint)
        values[name] = parse_yaml(f"value: {value}", f"--set {override}")["value"]
        try:
            CorpusRules(**{name: values[name]})
        except ValidationError as error:
            raise ConfigError(f"--set {override}: {plain_reason(error.errors()[0])}") from error
    return CorpusRules(**values)
