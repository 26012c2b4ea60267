"""Chooses one of the directions of a model by the languages that a user names."""

from collections.abc import Sequence

from transformer_cli.config import Direction
from transformer_cli.process.errors import UsageError
from transformer_cli.text.languages import meant_among


def chosen_direction(
    directions: Sequence[Direction], *, to: str | None = None, from_: str | None = None
) -> int:
    """The index of the one direction with these languages.

    Args:
        directions: all directions of the model.
        to: the target language: a code such as it, or a name such as Italian; None: any.
        from_: the source language; None: any.

    Raises:
        UsageError: no direction has these languages, or several have them.
    """
    source = _known(from_, "from", [one.source for one in directions])
    target = _known(to, "to", [one.target for one in directions])
    found = [
        number
        for number, one in enumerate(directions)
        if source in (None, one.source) and target in (None, one.target)
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"this model does not translate from {source} to {target}; it translates {_listed(directions)}"
        )
    left = [directions[number] for number in found]
    targets = list(dict.fromkeys(one.target for one in left))
    option, choices = "to", targets
    if len(targets) == 1:
        # The source language decides where a sentence ends.
        option, choices = "from", [one.source for one in left]
    raise UsageError(
        f"this model translates {_listed(left)}: say which",
        hint=f"add {' or '.join(f'--{option} {language}' for language in choices)}",
    )


def _known(given: str | None, option: str, languages: Sequence[str]) -> str | None:
    """The language of the model that is meant; None if none is given."""
    if given is None:
        return None
    if (meant := meant_among(given, languages)) is not None:
        return meant
    known = ", ".join(dict.fromkeys(languages))
    verb = "into" if option == "to" else "from"
    raise UsageError(
        f"--{option} {given}: this model translates {verb}: {known}",
        hint=f"leave out --{option}" if len({*languages}) == 1 else f"name one of {known}",
    )


def _listed(directions: Sequence[Direction]) -> str:
    return ", ".join(map(str, directions))
