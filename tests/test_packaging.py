"""The wheel has what somebody needs who installs it, and files for people and services agree with the package."""

import importlib.util
import json
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import transformer_cli

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel for every platform, built from this checkout."""
    builders = pytest.importorskip("hatchling.builders.wheel", reason="a build dependency")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFM_KERNELS", "none")
        builder = builders.WheelBuilder(str(ROOT))
        [built] = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    assert Path(built).name == f"transformer_cli-{transformer_cli.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(built)


def content(wheel: zipfile.ZipFile, ending: str) -> str:
    """The text of the only file of the wheel whose path ends like this."""
    [name] = [one for one in wheel.namelist() if one.endswith(ending)]
    return wheel.read(name).decode()


@pytest.mark.long
def test_the_wheel_brings_a_small_model_configs_and_types(wheel: zipfile.ZipFile) -> None:
    model = [one for one in wheel.infolist() if one.filename.startswith("transformer_cli/demonstration/")]
    names = {one.filename.rsplit("/", 1)[-1] for one in model}
    assert {"config.yaml", "model.safetensors", "tokenizer.json", "MANIFEST.json"} <= names
    assert sum(one.file_size for one in model) < 6_000_000
    assert "transformer_cli/py.typed" in wheel.namelist()
    assert "transformer_cli/configs/en-it.yaml" in wheel.namelist()
    assert not any(one.endswith("kernels.bin") for one in wheel.namelist())


@pytest.mark.long
def test_the_wheel_lists_its_parts_and_what_it_requires(wheel: zipfile.ZipFile) -> None:
    listed = json.loads(content(wheel, ".dist-info/sboms/transformer-cli.cdx.json"))
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    assert listed["metadata"]["component"]["version"] == transformer_cli.__version__
    [model] = [one for one in listed["components"] if one["type"] == "machine-learning-model"]
    manifest = json.loads(content(wheel, "MANIFEST.json"))
    assert model["hashes"][0]["content"] in json.dumps(manifest), "the model of the wheel"
    [own] = listed["dependencies"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {re.split(r"[<>=]", one)[0] for one in project["dependencies"]}
    packages = {one.removeprefix("pkg:pypi/") for one in own["dependsOn"] if "pypi" in one}
    assert packages == required
    assert len({one["bom-ref"] for one in listed["components"]}) == len(listed["components"])


@pytest.mark.parametrize(("wanted", "raises"), [("required", "no kernels in C"), ("yes", "it can be auto")])
def test_a_build_that_must_have_kernels_ends_without_a_compiler(
    wanted: str, raises: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("hatchling", reason="a build dependency")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    monkeypatch.setenv("TFM_KERNELS", wanted)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    hook = hooks.BuildHook(str(ROOT), {}, None, None, str(tmp_path), "wheel")
    with pytest.raises(RuntimeError, match=raises):
        hook.add_kernels({"artifacts": []})


def test_the_citation_names_the_version_and_the_licence_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == transformer_cli.__version__
    assert citation["license"] == project["license"]
    assert [one["name"].lower() for one in citation["authors"]] == [one["name"] for one in project["authors"]]


def test_each_dependency_of_the_checks_but_pytorch_is_locked_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted, left = {Requirement(one).name for one in project["dependencies"]}, ["dev"]
    while left:
        listed = {Requirement(one) for one in project["optional-dependencies"][left.pop()]}
        left += [extra for one in listed if one.name == project["name"] for extra in one.extras]
        wanted |= {one.name for one in listed}
    names = {canonicalize_name(one) for one in wanted - {"torch", project["name"]}}
    entries = re.split(r"\n(?=[a-z])", (ROOT / ".ci" / "check.txt").read_text(encoding="utf-8"))[1:]
    hashes = {re.split(r"==|\[", one)[0]: one.count("--hash=sha256:") for one in entries}
    assert names - hashes.keys() == set(), "run .ci/lock"
    assert "torch" not in hashes
    assert min(hashes.values()) > 0


def test_the_workflow_of_a_release_expects_the_translation_that_the_readme_shows() -> None:
    """It still waited for the Italian of an earlier model, so no release would have passed."""
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    tried = re.search(r'tfm translate "(.+?)" .*\n +grep -Fx "(.+?)" translation.txt', workflow)
    assert tried is not None
    sentence, translation = map(re.escape, tried.groups())
    assert re.search(
        rf'tfm translate "{sentence}" +# {translation}  ', (ROOT / "README.md").read_text(encoding="utf-8")
    )


def test_the_workflow_calls_the_checks_on_each_system_and_publishes_without_a_password() -> None:
    folder = ROOT / ".github" / "workflows"
    check = yaml.safe_load((folder / "check.yml").read_text())["jobs"]["run"]
    assert check["steps"][-1]["run"] == ".ci/run --hashes"
    matrix = check["strategy"]["matrix"]
    assert {one.split("-")[0] for one in matrix["system"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert [one["python"] for one in matrix["include"]] == [
        "3.11.2"
    ]  # of Debian 12; "3.11" is the newest of that series
    publish = yaml.safe_load((folder / "release.yml").read_text())["jobs"]["publish"]
    assert publish["permissions"]["id-token"] == "write"
    assert "secrets." not in (folder / "release.yml").read_text()
