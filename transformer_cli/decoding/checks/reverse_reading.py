"""The model of the reverse direction, which tells how probable each source is after its translation (`tfm calibrate --reverse`)."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.decoding.translation import Translation
from transformer_cli.process.errors import DataError, MissingInputError, UsageError

if TYPE_CHECKING:
    from transformer_cli.decoding.translator import Translator


class Reader(NamedTuple):
    """The model of another run, which reads given pairs and searches nothing."""

    translator: "Translator"
    name: str
    """Of the run."""
    step: int
    """Number of updates of the model."""


def reverse_reader(translator: "Translator") -> "Translator | None":
    """The model of the reverse direction that an estimate needs; None if it needs none.

    Raises:
        MissingInputError: its run is not there.
        DataError: it is another checkpoint than that of the calibration.
        UsageError: it has other languages.
    """
    quality = translator.pipeline.quality if translator.estimates else None
    name = translator.reverse if quality is None else quality.reverse
    if not translator.estimates or name is None or translator.load_reader is None:
        return None
    source, target = translator.pipeline.languages
    hint = "calibrate again: tfm calibrate, with --reverse RUN or without"
    try:
        found = translator.load_reader(name)
    except (MissingInputError, UsageError) as error:
        error.message = f"the reverse model of the calibration, {name}: {error.message}"
        error.hint = f"put the run back, or {hint}"
        raise
    try:
        reader = found.translator.towards(source, target)
    except UsageError as error:
        known = ", ".join(map(str, found.translator.pipeline.data.directions))
        raise UsageError(
            f"the reverse model {name} translates {known}; it is to translate {target}-{source}",
            hint=hint,
        ) from error
    measured = None if quality is None else quality.conditions.get("reverse_step")
    if measured not in (None, found.step):
        raise DataError(
            f"the reverse model of the calibration, {name}, was at step {measured}, and is at step {found.step} now",
            hint=hint,
        )
    return reader


def read_in_reverse(translator: "Translator", translations: list[Translation]) -> list[Translation]:
    """The translations with the mean log-probability of the tokens of their sources, if an estimate reads it."""
    reader = reverse_reader(translator)
    if reader is None:
        return translations
    from transformer_cli.decoding.given_pairs import pair_likelihoods

    places = [place for place, one in enumerate(translations) if one.details is not None and one.text.strip()]
    pairs = [(translations[place].text, translations[place].source) for place in places]
    for place, read in zip(places, pair_likelihoods(reader, pairs), strict=True):
        mean = read.log_probability / max(1, read.num_tokens)
        translations[place] = replace(translations[place], reverse_log_prob=mean)
    return translations
