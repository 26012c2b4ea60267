"""The search of a folder of transformers: what becomes a setting of ours, and what is said about the rest."""

import pytest

from transformer_cli.extensions.exchange.porting.importing.search_of_folder import (
    decoding_of_folder,
    search_notes,
)
from transformer_cli.process.errors import ConfigError


def test_beams_length_penalty_and_repetitions_are_taken_over() -> None:
    found = decoding_of_folder({"num_beams": 6, "length_penalty": 0.8, "no_repeat_ngram_size": 3})
    assert (found.beam_size, found.length_penalty, found.no_repeat_ngram_size) == (6, 0.8, 3)
    assert found.length_normalization == "average"


def test_an_opus_mt_folder_gives_no_notes() -> None:
    settings = {
        "num_beams": 4,
        "bad_words_ids": [[99]],
        "forced_eos_token_id": 0,
        "max_length": 512,
    }
    assert not list(search_notes(settings, {97, 98, 99}))


def test_what_the_search_does_not_do_is_said() -> None:
    settings = {"repetition_penalty": 1.2, "bad_words_ids": [[99], [7], [8, 9]], "do_sample": False}
    assert list(search_notes(settings, {99})) == [
        "repetition_penalty 1.2 of the folder is not used in the search",
        "bad_words_ids of the folder bans 2 sequences of ids that the search can write",
    ]


def test_a_length_penalty_that_is_not_possible_is_named() -> None:
    with pytest.raises(ConfigError, match="length_penalty is -3"):
        decoding_of_folder({"length_penalty": -3})
