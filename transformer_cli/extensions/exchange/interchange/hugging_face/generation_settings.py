"""The settings with which transformers searches for a translation: the content of a generation_config.json."""

from typing import Any

from transformer_cli.config import DecodingConfig, ModelConfig
from transformer_cli.extensions.exchange.interchange.hugging_face.to_hugging_face import (
    num_positions,
)
from transformer_cli.text import Tokenizer


def generation_config(
    model: ModelConfig, decoding: DecodingConfig, target: Tokenizer
) -> dict[str, Any]:
    """The counterparts of our settings of decoding.

    transformers divides by length^alpha (`decoding.length_normalization: average`) and has one limit for all lengths of a source.
    """
    never_written = [target.unk_id, target.pad_id, target.sos_id, *target.tag_ids]
    # transformers counts [SOS], too.
    longest = 1 + (decoding.max_length or model.max_length)
    of_beam = {
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "early_stopping": True,
    }
    return {
        "max_length": min(longest, num_positions(model)),
        "do_sample": False,
        **(of_beam if decoding.beam_size > 1 else {"num_beams": 1}),
        "no_repeat_ngram_size": decoding.no_repeat_ngram_size or 0,
        "bad_words_ids": [[index] for index in never_written],
        "pad_token_id": target.pad_id,
        "bos_token_id": target.sos_id,
        "eos_token_id": target.eos_id,
        "decoder_start_token_id": target.sos_id,
        "forced_eos_token_id": None,
        "forced_bos_token_id": None,
    }
