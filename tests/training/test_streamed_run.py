from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.data import streaming as streaming_module
from transformer_cli.process.errors import ConfigError
from transformer_cli.text.seen_words import SeenWords, write_seen_words
from transformer_cli.training.run import train


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streaming_module, "BUFFER_PAIRS", 10)
    for name, numbers in (("train", range(37)), ("held-out", range(50, 53))):
        lines = [f"{' '.join(str(n))}\t{' '.join(str(n)[::-1])} .\n" for n in numbers]
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    return tmp_path


def config_of(name: str, *, max_steps: int, **data: Any) -> Config:
    corpora = [{"split": "train", "path": "train.tsv"}]
    corpora += [{"split": "validation", "path": "held-out.tsv"}]
    small = {"d_model": 8, "num_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1}
    return Config.model_validate(
        {
            "name": name,
            "data": {"source": "files", "corpora": corpora, "streaming": True} | data,
            "model": small | {"dropout": 0.1},
            "training": {
                "batch_sentences": 3,
                "accumulate": data.get("stream_parts", 1),
                "max_steps": max_steps,
                "validate_every": 100,
                "save_every": 100,
                "best_metric": "loss",
            },
            "validation": {"scores": [], "num_samples": 0},
            "runtime": {"device": "cpu", "precision": "float32"},
        }
    )


def last_weights(run: Path) -> bytes:
    (newest,) = sorted((run / "checkpoints").glob("step-*"))[-1:]
    return (newest / "model.safetensors").read_bytes()


@pytest.mark.heavy
@pytest.mark.parametrize("num_parts", [1, 3])
def test_a_resumed_streamed_run_has_the_weights_of_the_uninterrupted_one(folder: Path, num_parts: int) -> None:
    train(config_of("whole", max_steps=19, stream_parts=num_parts))
    for max_steps in (5, 14, 19):  # at the end of a buffer, in the second epoch
        run = train(config_of("parts", max_steps=max_steps, stream_parts=num_parts))
    assert last_weights(run.folder) == last_weights(folder / "runs/whole")


@pytest.mark.long
def test_a_run_cannot_change_to_streaming(folder: Path) -> None:
    train(config_of("stored", max_steps=2, streaming=False))
    with pytest.raises(ConfigError, match=r"data\.streaming: was false, now true"):
        train(config_of("stored", max_steps=4))


@pytest.mark.long
def test_a_record_of_words_of_other_data_does_not_stay_beside_a_stream(folder: Path) -> None:
    """It may lie there from a start without a checkpoint, with other data; a stream that is not read to its end has no record."""
    record = folder / "runs/words/seen_words.json"
    record.parent.mkdir(parents=True)
    for max_steps in (2, 4):
        write_seen_words(record, SeenWords.of({"other": 1}))
        train(config_of("words", max_steps=max_steps, tokenizer_pairs=5))
        assert not record.exists()
    train(config_of("ended", max_steps=2))
    assert (folder / "runs/ended/seen_words.json").exists()
