"""A model from a run or a checkpoint folder, trusted or not (A9, A17, F10, F14, G4, H1, H2, H9)."""

import json
import os
import pickle
import random
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint.run_folder import open_checkpoint
from transformer_cli.checkpoint.trained_files import TrainedModel, load_trained
from transformer_cli.data.updates import Position
from transformer_cli.process.errors import (
    ConfigError,
    DataError,
    MissingInputError,
    StorageError,
    TfmError,
)
from transformer_cli.storage import MANIFEST_NAME, Content, open_sealed, write_folder
from transformer_cli.storage.filesystem import tensors_content
from transformer_cli.training.callbacks import Meter
from transformer_cli.training.loop import Progress

from ..faults import run_in_child
from .models import Parts, logits, parts, save


def forge(folder: Path, changes: dict[str, bytes | Content | None]) -> Path:
    """A copy with other files and a manifest that agrees with them, as an attacker could make it."""
    with open_sealed(folder) as sealed:
        manifest = sealed.manifest
        files: dict[str, Any] = {file.name: (folder / file.name).read_bytes() for file in manifest.files}
    files |= changes
    contents = {name: data for name, data in files.items() if data is not None}
    forged = folder.with_name("forged")
    if forged.exists():
        shutil.rmtree(forged)
    write_folder(
        forged,
        contents,
        manifest,
    )
    return forged


@pytest.mark.long
@pytest.mark.parametrize("tie", ["none", "target-output", "all"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_loaded_model_computes_what_the_saved_one_did(tmp_path: Path, tie: str, positions: str) -> None:
    made_of = parts(is_shared=tie == "all", tie=tie, positions=positions)
    save(tmp_path / "run", made_of, 10)
    trained = load_trained(tmp_path / "run")
    assert torch.equal(logits(trained.model), logits(made_of.model))
    assert trained.config.model == made_of.config.model
    assert not trained.model.training
    assert trained.source_tokenizer.to_json() == made_of.source_tokenizer.to_json()
    assert trained.target_tokenizer.to_json() == made_of.target_tokenizer.to_json()
    assert (trained.source_tokenizer is trained.target_tokenizer) == (tie == "all")
    assert all(parameter.requires_grad for parameter in trained.model.parameters())


def test_the_best_is_taken_unless_the_last_is_asked_for(tmp_path: Path) -> None:
    save(tmp_path, parts(), 10, 20, 30)
    assert load_trained(tmp_path).step == 10
    trained = load_trained(tmp_path, which="last")
    assert (trained.step, trained.folder) == (30, tmp_path / "checkpoints" / "step-00000030")


@pytest.mark.long
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.target.json"])
def test_a_damaged_best_gives_way_to_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    folders = save(tmp_path, parts(), 10, 20, 30)
    path = folders[0] / name
    path.write_bytes(bytes(path.stat().st_size))
    assert load_trained(tmp_path).step == 20
    assert f"step-00000010/{name}: its content has changed since it was saved" in caplog.text
    (folders[1] / "config.yaml").unlink()
    assert load_trained(tmp_path).step == 30
    os.truncate(folders[2] / "tokenizer.source.json", 5)
    with pytest.raises(StorageError, match="no checkpoint is valid"):
        load_trained(tmp_path)


def test_a_checkpoint_copied_elsewhere_loads(tmp_path: Path) -> None:
    (folder,) = save(tmp_path / "run", parts(), 10)
    shutil.copytree(folder, tmp_path / "elsewhere" / "my model")
    shutil.rmtree(tmp_path / "run")
    trained = load_trained(tmp_path / "elsewhere" / "my model")
    assert torch.equal(logits(trained.model), logits(parts().model))


def test_a_link_to_a_checkpoint_loads(tmp_path: Path) -> None:
    save(tmp_path, parts(), 10, 20)
    assert load_trained(tmp_path / "checkpoints" / "last").step == 20


def test_the_optimizer_is_not_needed_to_translate(tmp_path: Path) -> None:
    (folder,) = save(tmp_path, parts(), 10)
    forged = forge(folder, {"optimizer.safetensors": None, "state.json": None})
    assert torch.equal(logits(load_trained(forged).model), logits(parts().model))


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    save(tmp_path, parts(), 10)
    before = torch.get_rng_state()
    load_trained(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_another_checkpoint_than_the_best_or_the_last_is_refused(tmp_path: Path) -> None:
    save(tmp_path, parts(), 10)
    with pytest.raises(ValueError, match="which: 'nonsense'; it is one of 'best', 'last'"):
        load_trained(tmp_path, which="nonsense")  # type: ignore[arg-type]


def test_where_there_is_nothing_to_load_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="missing: no such folder"):
        load_trained(tmp_path / "missing")
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with pytest.raises(MissingInputError, match="no checkpoint yet"):
        load_trained(tmp_path / "run")
    with pytest.raises(DataError, match=r"MANIFEST\.json: missing"):
        load_trained(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    (folder,) = save(tmp_path, parts(), 10)
    weights = {name: tensor.clone() for name, tensor in parts().model.state_dict().items()}
    weights["output.bias"][2] = value
    forged = forge(folder, {"model.safetensors": tensors_content(weights)})
    with pytest.raises(
        DataError, match=r"model\.safetensors: output\.bias has values that are NaN or infinite"
    ) as caught:
        load_trained(forged)
    assert "use another checkpoint" in str(caught.value.hint)


def other_tokenizer(made_of: Parts) -> bytes:
    fields = json.loads(made_of.target_tokenizer.to_json())
    fields["model"]["vocab"]["extra"] = len(fields["model"]["vocab"])
    return json.dumps(fields).encode()


def test_a_tokenizer_of_another_size_is_refused(tmp_path: Path) -> None:
    (folder,) = save(tmp_path, parts(), 10)
    forged = forge(folder, {"tokenizer.target.json": other_tokenizer(parts())})
    size = parts().target_tokenizer.vocab_size
    expected = rf"output\.(weight|bias) is \[{size}(, 8)?\] float32 instead of \[{size + 1}(, 8)?\] float32"
    with pytest.raises(DataError, match=expected) as caught:
        load_trained(forged)
    assert f"{size + 1} target tokens" in str(caught.value.hint)


def test_swapped_tokenizers_are_refused(tmp_path: Path) -> None:
    (folder,) = save(tmp_path, parts(), 10)
    source, target = folder / "tokenizer.source.json", folder / "tokenizer.target.json"
    content = source.read_bytes()
    source.write_bytes(target.read_bytes())
    target.write_bytes(content)
    with pytest.raises(DataError):
        load_trained(folder)


class Canary:
    """Leaves a file behind if anybody unpickles it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.mark.long
@pytest.mark.parametrize("name", ["model.safetensors", "config.yaml", "tokenizer.source.json", MANIFEST_NAME])
def test_code_in_place_of_a_file_is_refused_and_does_not_run(tmp_path: Path, name: str) -> None:
    (folder,) = save(tmp_path, parts(), 10)
    canary = tmp_path / "canary"
    torch.save({"output.bias": Canary(canary)}, tmp_path / "evil.pt")
    for evil in (pickle.dumps(Canary(canary)), (tmp_path / "evil.pt").read_bytes()):
        if name == MANIFEST_NAME:
            (folder / name).write_bytes(evil)
            forged = folder
        else:
            forged = forge(folder, {name: evil})
        with pytest.raises(TfmError, match="hint: "):
            load_trained(forged)
    assert not canary.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("d_model: 8", "d_model: 16", DataError),
        ("encoder_layers: 1", "encoder_layers: 2", DataError),
        ("decoder_layers: 1", "decoder_layers: 256", DataError),
        ("d_ff: 16", "d_ff: 65536", DataError),
        ("norm: layernorm", "norm: rmsnorm", DataError),
        ("d_model: 8", "d_model: 99999999", ConfigError),
        ("name: tiny", "name: ${HOME}", ConfigError),
        ("name: tiny", "name: tiny\n_target_: os.system", ConfigError),
        ("name: tiny", "name: !!python/object/apply:os.system [id]", ConfigError),
        ("name: tiny", "name: tiny\nauto_map: {AutoModel: evil.Model}", ConfigError),
    ],
)
def test_a_config_of_another_model_is_refused_before_memory_is_needed(
    tmp_path: Path, old: str, new: str, error: type[TfmError]
) -> None:
    (folder,) = save(tmp_path, parts(), 10)
    text = (folder / "config.yaml").read_text()
    assert old in text
    started_at = time.process_time()
    with pytest.raises(error, match="forged"):
        load_trained(forge(folder, {"config.yaml": text.replace(old, new, 1).encode()}))
    assert time.process_time() - started_at < 20


@pytest.mark.parametrize("name", ["config.yaml", "tokenizer.source.json", "model.safetensors"])
def test_a_missing_part_is_named(tmp_path: Path, name: str) -> None:
    (folder,) = save(tmp_path, parts(), 10)
    with pytest.raises(DataError, match=f"has no {name}"):
        load_trained(forge(folder, {name: None}))


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, inserted, removed or repeated."""
    result = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        begin = draw.randrange(len(result) + 1)
        size = draw.choice([1, 1, 2, 8, 100])
        match draw.randrange(4):
            case 0:
                result[begin : begin + size] = draw.randbytes(len(result[begin : begin + size]))
            case 1:
                result[begin:begin] = draw.randbytes(size)
            case 2:
                del result[begin : begin + size]
            case _:
                result[begin:begin] = result[begin : begin + size]
    return bytes(result)


def load_all(folder: Path) -> TrainedModel:
    """Read the files that translation reads and the files that a resumed run reads."""
    trained = load_trained(folder)
    checkpoint = open_checkpoint(folder)
    state = checkpoint.state()
    Progress.from_json(state.get("progress", {}))
    Meter(torch.device("cpu")).restore(state.get("meter", {}))
    moments = {f"{name}.exp_avg": value for name, value in trained.model.named_parameters()}
    checkpoint.optimizer(moments)
    return trained


def fuzz(folder: Path, number: int) -> tuple[int, int]:
    """The number of mutations that were refused, and that changed nothing; half get a correct manifest."""
    draw = random.Random(1)
    expected = logits(parts().model)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    names = sorted(contents)
    refused = unchanged = 0
    for attempt in range(number):
        name = draw.choice(names)
        data = mutated(contents[name], draw)
        is_sealed_again = attempt % 2 == 0 and name != MANIFEST_NAME
        started_at = time.process_time()
        try:
            if is_sealed_again:
                trained = load_all(forge(folder, {name: data}))
            else:
                (folder / name).write_bytes(data)
                trained = load_all(folder)
        except TfmError as error:
            refused += "\n  hint: " in str(error)
        else:
            # With a correct manifest, other weights and words are valid; without one, nothing may differ.
            unchanged += 1
            result = logits(trained.model)
            assert is_sealed_again or torch.equal(result, expected)
        finally:
            (folder / name).write_bytes(contents[name])
        assert time.process_time() - started_at < 2
    return refused, unchanged


def state_of_a_run() -> dict[str, Any]:
    progress = Progress(10, Position(2, 3), validated_at=8, best_goodness=(0.5,), best_losses=(1.0,))
    return {"progress": progress.to_json(), "meter": Meter(torch.device("cpu")).to_json()}


@pytest.mark.long
def test_a_fuzzed_checkpoint_gives_clean_refusals(tmp_path: Path) -> None:
    """H9: every file, with fewer mutations."""
    (folder,) = save(tmp_path, parts(), 10, state=state_of_a_run())
    assert logits(load_all(folder).model).equal(logits(parts().model)), "the control"
    refused, _ = fuzz(folder, 200)
    assert refused >= 100


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_checkpoint_fuzzed_two_thousand_times_gives_clean_refusals_in_bounded_memory(
    tmp_path: Path,
) -> None:
    """H9."""
    (folder,) = save(tmp_path, parts(), 10, state=state_of_a_run())

    def work() -> int:
        in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + (400 << 20), resource.RLIM_INFINITY))
        refused, unchanged = fuzz(folder, 2000)
        return 0 if refused + unchanged == 2000 and refused >= 1000 else 1

    assert run_in_child(work) == 0
