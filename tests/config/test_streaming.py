import re
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.config.loading import check_settings
from transformer_cli.process.errors import ConfigError

TRAIN, HELD_OUT = {"split": "train", "path": "a.tsv"}, {"split": "validation", "path": "b.tsv"}


def settings(corpora: list[dict[str, Any]], training: dict[str, Any], **data: Any) -> Any:
    files = {"source": "files", "streaming": True, "corpora": corpora}
    return {"name": "a", "data": files | data, "training": {"batch_tokens": 9} | training}


def test_a_streamed_corpus_needs_splits_and_a_number_of_steps() -> None:
    Config.model_validate(settings([TRAIN, HELD_OUT], {"max_steps": 9}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (settings([{"path": "a.tsv"}], {"max_steps": 9}), "data.corpora.0 has no split"),
        (settings([TRAIN | {"weight": 2.0}], {"max_steps": 9}), "weight has no effect"),
        (settings([TRAIN], {"max_epochs": 9}), "set training.max_steps, and leave"),
        (
            settings([TRAIN], {"max_steps": 9}, streaming=False, tokenizer_pairs=5),
            "tokenizer_pairs has no effect",
        ),
        (
            settings(
                [{"split": "train", "dataset": "a/b", "streamed": True}],
                {"max_steps": 9},
                source="hub",
            ),
            "leave one of the two out",
        ),
        (
            settings([TRAIN | {"weight": [[0, 1.0], [1, 0.5]]}], {"max_steps": 9}),
            "weight has no effect",
        ),
        (settings([TRAIN, TRAIN], {"max_steps": 9}, temperature=5.0), "leave data.temperature out"),
        (
            settings([TRAIN], {"max_steps": 9, "bpe_dropout": 0.1}) | {"tokenizer": {"kind": "bpe"}},
            "leave out training.bpe_dropout",
        ),
        (
            settings([TRAIN], {"max_steps": 9, "unigram_alpha": 0.1}) | {"tokenizer": {"kind": "unigram"}},
            "leave out training.unigram_alpha",
        ),
        (
            settings([TRAIN], {"max_steps": 9, "noise": {"typos": 0.1}}) | {"tokenizer": {"kind": "bpe"}},
            "leave out training.noise",
        ),
        (
            settings([TRAIN], {"max_steps": 9, "batch_tokens": "auto", "update_tokens": 99}),
            "set training.batch_tokens to a number",
        ),
    ],
)
def test_what_does_not_go_with_streaming_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_settings(given, "a.yaml")
    assert re.search(message, f"{caught.value.message} {caught.value.hint}")
