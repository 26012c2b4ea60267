"""The search that a folder of transformers asks for, as our settings of decoding."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from transformer_cli.config import DecodingConfig
from transformer_cli.process.errors import ConfigError

# Settings that change translations, have no counterpart, and do nothing at the value beside them.
_WITHOUT_EFFECT: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "min_length": 0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "force_words_ids": None,
}


def decoding_of_folder(settings: Mapping[str, Any]) -> DecodingConfig:
    """The search; a score is divided by length^length_penalty, as in transformers.

    `max_length` of the folder is one number for sources of all lengths; ours follows the length of the source.

    Args:
        settings: the content of config.json and generation_config.json.

    Raises:
        ConfigError: a value is not possible here.
    """
    found: dict[str, Any] = {"length_normalization": "average", "length_penalty": 1.0}
    if settings.get("length_penalty") is not None:
        found["length_penalty"] = settings["length_penalty"]
    beam_size, repeated = settings.get("num_beams"), settings.get("no_repeat_ngram_size")
    if isinstance(beam_size, int) and 1 <= beam_size <= 64:
        found["beam_size"] = beam_size
    if isinstance(repeated, int) and repeated > 0:
        found["no_repeat_ngram_size"] = repeated
    try:
        return DecodingConfig.model_validate(found)
    except ValueError as error:
        penalty = settings.get("length_penalty")
        raise ConfigError(f"config.json: length_penalty is {penalty!r}, which is not possible here") from error  # fmt: skip


def search_notes(settings: Mapping[str, Any], never_written: Collection[int]) -> Iterator[str]:
    """What the search of the folder does and ours does not, for people.

    Args:
        settings: as of `decoding_of_folder`.
        never_written: the ids of transformers that no translation of ours contains.
    """
    for name, value in _WITHOUT_EFFECT.items():
        found = settings.get(name)
        if found is not None and found != value:
            yield f"{name} {found!r} of the folder is not used in the search"
    bad_words = settings.get("bad_words_ids")
    if not isinstance(bad_words, list):
        return
    others = [ids for ids in bad_words if not (isinstance(ids, list) and len(ids) == 1 and ids[0] in never_written)]  # fmt: skip
    if others:
        yield f"bad_words_ids of the folder bans {len(others)} sequences of ids that the search can write"
