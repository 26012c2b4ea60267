"""Compiles the kernels in C while the package is installed, and writes down what a wheel is made of.

Hatchling runs this hook for `pip install .`, `pip install -e .` and wheels: https://hatch.pypa.io/latest/plugins/build-hook/custom/

Without a C compiler the package works without the kernels. The environment variable TFM_KERNELS says otherwise: `none`
makes the wheel for every platform, and `required` ends the build if they cannot be compiled.
"""

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import uuid
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("transformer_cli/acceleration/kernels")
LIBRARY = FOLDER / "kernels.bin"  # not .so: it is no module of Python that could be imported
MODEL = Path("docs/demonstration")  # in a wheel: transformer_cli/demonstration
FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-Wno-psabi"]
LEVELS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni", "-mfma"],
}
# linear.c, search.c: a product and a sum are rounded one after the other, as PyTorch does it.
SOURCES = {
    "linear.c": ["-ffp-contract=off"],
    "search.c": ["-ffp-contract=off"],
    "attention.c": ["-ffp-contract=fast"],
    "rows.c": ["-ffp-contract=fast"],
    "losses.c": ["-ffp-contract=fast"],
    "top_k.c": [],
}


class BuildHook(BuildHookInterface):
    """Makes kernels.bin, and the list of the parts of the wheel (PEP 770)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of a wheel are collected."""
        self.add_kernels(build_data)
        self.add_bill_of_materials(build_data)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        self.temporary.cleanup()

    def add_kernels(self, build_data: dict[str, Any]) -> None:
        """Compile the kernels; a wheel with them is for one platform, a wheel without them for all.

        Raises:
            RuntimeError: TFM_KERNELS is `required`, and they cannot be compiled.
        """
        wanted = os.environ.get("TFM_KERNELS", "auto")
        if wanted not in ("auto", "none", "required"):
            raise RuntimeError(f"TFM_KERNELS is {wanted!r}; it can be auto, none or required")
        if wanted == "none":
            return
        obstacle = self._obstacle()
        if obstacle is not None:
            if wanted == "required":
                raise RuntimeError(f"no kernels in C: {obstacle}")
            self.app.display_warning(f"no kernels in C: {obstacle}")
            return
        # PyPI refuses this tag; `auditwheel repair` replaces it by one of manylinux, after a look at what the library needs.
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data |= {"pure_python": False, "tag": f"py3-none-{tag}"}
        build_data["artifacts"].append(LIBRARY.as_posix())

    def _obstacle(self) -> str | None:
        """Compile the kernels; why they could not be compiled, or None."""
        compiler = found_compiler()
        is_x86 = platform.machine().lower() in ("x86_64", "amd64")
        if compiler is None or not is_x86 or os.name == "nt":
            return "they need a C compiler on Linux or macOS on x86-64"
        try:
            compile_kernels(shlex.split(compiler), Path(self.root) / LIBRARY)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            return f"they cannot be compiled: {getattr(error, 'stderr', None) or error}"
        return None

    def add_bill_of_materials(self, build_data: dict[str, Any]) -> None:
        """Put a CycloneDX document into .dist-info/sboms/ of the wheel."""
        self.temporary = tempfile.TemporaryDirectory()
        file = Path(self.temporary.name) / f"{self.metadata.core.name}.cdx.json"
        has_kernels = LIBRARY.as_posix() in build_data["artifacts"]
        written = json.dumps(self.bill_of_materials(has_kernels=has_kernels), indent=2)
        file.write_text(f"{written}\n", encoding="utf-8")
        build_data["sbom_files"].append(os.fspath(file))

    def bill_of_materials(self, *, has_kernels: bool) -> dict[str, Any]:
        """What the wheel contains, and what it requires, in CycloneDX 1.6; the same for the same sources.

        The versions of required packages are chosen when the wheel is installed, so their ranges are given.
        """
        core, version = self.metadata.core, self.metadata.version
        own = f"pkg:pypi/{core.name}@{version}"
        licenses = [{"license": {"id": core.license_expression}}]
        parts = [self._part("machine-learning-model", "demonstration", MODEL, licenses)]
        if has_kernels:
            parts.append(self._part("library", LIBRARY.name, LIBRARY, licenses))
        required = [_package(one, "required") for one in core.dependencies]
        optional = [
            _package(one, "optional")
            for one in sorted(
                {one for extra in core.optional_dependencies.values() for one in extra} - {*core.dependencies}
            )
            if not one.startswith(core.name)
        ]
        packages = list({one["bom-ref"]: one for one in [*optional, *required]}.values())
        contents = json.dumps([own, parts, packages], sort_keys=True)
        return {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, contents)}",
            "version": 1,
            "metadata": {
                "lifecycles": [{"phase": "build"}],
                "component": {
                    "type": "application",
                    "bom-ref": own,
                    "name": core.name,
                    "version": version,
                    "description": core.description,
                    "licenses": licenses,
                    "purl": own,
                },
            },
            "components": [*parts, *packages],
            "dependencies": [
                {
                    "ref": own,
                    "dependsOn": sorted(one["bom-ref"] for one in [*parts, *required]),
                }
            ],
        }

    def _part(self, kind: str, name: str, file: Path, licenses: list[Any]) -> dict[str, Any]:
        place = Path(self.root) / file
        [content] = [place] if place.is_file() else place.rglob("*.safetensors")
        digest = hashlib.sha256(content.read_bytes()).hexdigest()
        return {
            "type": kind,
            "bom-ref": f"part:{name}",
            "name": name,
            "licenses": licenses,
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }


def _package(requirement: str, scope: str) -> dict[str, Any]:
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}",
        "name": name,
        "scope": scope,
        "purl": f"pkg:pypi/{name}",
        "properties": [{"name": "requirement", "value": requirement}],
    }


def found_compiler() -> str | None:
    """The command of a C compiler: $CC, or the first one on the path."""
    names = ("cc", "gcc", "clang")
    return os.environ.get("CC") or next(filter(None, map(shutil.which, names)), None)


def compile_kernels(compiler: list[str], library: Path) -> None:
    """Compile each source once for each level of instructions, and processor.c, which chooses one of them."""
    folder = library.parent
    with tempfile.TemporaryDirectory() as temporary:
        compiled = []

        def run(*arguments: object) -> None:
            command = [*compiler, *FLAGS, *map(str, arguments)]
            subprocess.run(command, check=True, capture_output=True, text=True)

        for level, instructions in LEVELS.items():
            for name, flags in SOURCES.items():
                compiled.append(Path(temporary) / f"{level}-{name}.o")
                run(
                    *instructions,
                    *flags,
                    f"-DLEVEL={level}",
                    "-c",
                    folder / name,
                    "-o",
                    compiled[-1],
                )
        # Programs that run may have opened the library: it is replaced as a whole.
        partial = library.with_suffix(".partial")
        run("-shared", folder / "processor.c", *compiled, "-lm", "-o", partial)
        os.replace(partial, library)
