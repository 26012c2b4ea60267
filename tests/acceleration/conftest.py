"""The compiled kernels of each level of instructions."""

from pathlib import Path

import pytest

from transformer_cli.acceleration import native_kernels
from transformer_cli.acceleration.native_kernels import Kernels, find_kernels

LIBRARY = Path(native_kernels.__file__).parent / "kernels" / "kernels.bin"


@pytest.fixture(params=["avx2", "avx512"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Those of each level, which all of the package uses during the test; a processor that has AVX-512 has AVX2 too."""
    best = find_kernels()
    if best is None:
        pytest.skip("no compiled kernels for this processor")
    if request.param == "avx512" and best.level == "avx2":
        pytest.skip("this processor has no AVX-512 with VNNI")
    chosen = native_kernels._loaded(LIBRARY, request.param)
    assert isinstance(chosen, Kernels)
    monkeypatch.setattr(native_kernels, "_loaded", lambda path: chosen)
    return chosen
