"""What `tfm doctor` says of an installation."""

import getpass
import json
from importlib import metadata
from pathlib import Path

import pytest
import torch

from transformer_cli import __version__
from transformer_cli.commands.doctor import doctor_command, fact_lines, found_facts
from transformer_cli.process import device


def test_one_screen_names_versions_device_and_extras_and_nobody(
    capsys: pytest.CaptureFixture[str],
) -> None:
    doctor_command()
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 24
    for package in ("torch", "datasets", "tokenizers"):
        assert f"{package} {metadata.version(package)}" in shown
    for heading in ("processor", "kernels in C", "device", "free memory", "free disk", "extras"):
        assert f"\n{heading}" in shown
    for private in (str(Path.home()), str(Path.cwd()), f" {getpass.getuser()} "):
        assert private not in shown
    doctor_command(as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["packages"]["torch"] == torch.__version__
    assert facts["processor"]["threads"] == torch.get_num_threads()


def test_it_says_why_the_kernels_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFM_NATIVE", "0")
    shown = "\n".join(fact_lines(found_facts()))
    assert "none: the environment variable TFM_NATIVE turns them off" in shown
    assert "without them, one Zen 4 core took 4 to 26 times as long in int8" in shown
    monkeypatch.delenv("TFM_NATIVE")
    if (facts := found_facts())["processor"]["kernels"]:
        assert "without them" not in "\n".join(fact_lines(facts))


def test_a_processor_without_wide_instructions_is_told_in_words() -> None:
    facts = found_facts()
    facts["processor"]["instructions"] = "DEFAULT"
    assert any(line.endswith(", no wide instructions found") for line in fact_lines(facts))


def test_it_says_why_a_gpu_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("this machine has a GPU that is used")
    assert "no GPU        PyTorch sees none" in "\n".join(fact_lines(found_facts()))
    monkeypatch.setattr(device, "unused_gpu", lambda: "the driver is too old")
    assert "no GPU        the driver is too old" in "\n".join(fact_lines(found_facts()))


def test_a_checkout_on_pythonpath_needs_no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setattr(metadata, "requires", missing)
    shown = fact_lines(found_facts())
    assert f"tfm           {__version__}" in shown
    assert "extras        none" in shown


def test_an_extra_names_the_packages_that_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(package: str) -> str:
        if package == "polib":
            raise metadata.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(metadata, "version", version)
    facts = found_facts()
    assert facts["extras"]["documents"] == ["polib"]
    assert "[documents] lacks polib" in "\n".join(fact_lines(facts))


@pytest.mark.parametrize(("number", "shown"), [(1, "1 thread,"), (2, "2 threads,")])
def test_one_thread_is_no_plural(number: int, shown: str) -> None:
    facts = found_facts()
    facts["processor"]["threads"] = number
    assert f" usable, {shown}" in "\n".join(fact_lines(facts))


def test_it_says_what_torch_compile_lacks_on_a_gpu() -> None:
    facts = found_facts()
    assert facts["why_no_compilation"] is None or torch.cuda.is_available()
    shown = "\n".join(fact_lines(facts | {"why_no_compilation": "there is no C compiler such as gcc"}))
    assert "compilation   none: there is no C compiler such as gcc" in shown
