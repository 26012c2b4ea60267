"""Compiles the kernels in C while the package is installed; without a C compiler the package works without them.

Hatchling runs this hook for `pip install .`, `pip install -e .` and wheels: https://hatch.pypa.io/latest/plugins/build-hook/custom/
"""

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("transformer_cli/acceleration/kernels")
LIBRARY = FOLDER / "kernels.bin"  # not .so: it is no module of Python that could be imported
FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-Wno-psabi"]
LEVELS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni", "-mfma"],
}
# linear.c: a product and a sum are rounded one after the other, as PyTorch does it.
SOURCES = {
    "linear.c": ["-ffp-contract=off"],
    "attention.c": ["-ffp-contract=fast"],
    "rows.c": ["-ffp-contract=fast"],
    "losses.c": ["-ffp-contract=fast"],
    "top_k.c": [],
}


class CompiledKernels(BuildHookInterface):
    """Makes kernels.bin; a wheel with it is for one platform, a wheel without it for all."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of a wheel are collected."""
        library = Path(self.root) / LIBRARY
        compiler = (
            os.environ.get("CC")
            or shutil.which("cc")
            or shutil.which("gcc")
            or shutil.which("clang")
        )
        if (
            compiler is None
            or platform.machine().lower() not in ("x86_64", "amd64")
            or os.name == "nt"
        ):
            self.app.display_warning(
                "no kernels in C: they need a C compiler on Linux or macOS on x86-64"
            )
            return
        try:
            compile_kernels(shlex.split(compiler), library)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or error
            self.app.display_warning(f"no kernels in C: they cannot be compiled: {said}")
            return
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data |= {"pure_python": False, "tag": f"py3-none-{tag}"}
        build_data["artifacts"].append(LIBRARY.as_posix())


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
