"""Every error has its own exit code and a hint."""

import re

import pytest

from transformer_cli.process import errors
from transformer_cli.process.errors import (
    InterruptedBySignal,
    TfmError,
    UsageError,
    is_out_of_memory,
)

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TfmError)]
DRAWN = dict(re.findall(r"(\w+)  +(\d+)  ", errors.__doc__ or ""))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not InterruptedBySignal])
def test_the_tree_in_the_docstring_has_the_exit_codes(kind: type[TfmError]) -> None:
    assert int(DRAWN[kind.__name__]) == kind.exit_code


def test_exit_codes_are_all_different() -> None:
    codes = [kind.exit_code for kind in KINDS if kind is not InterruptedBySignal]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not InterruptedBySignal])
def test_an_error_without_a_hint_of_its_own_has_the_usual_one(kind: type[TfmError]) -> None:
    message, hint = str(kind("a.tsv: no")).split("\n  hint: ")
    assert message == "a.tsv: no"
    assert hint == kind.usual_hint
    assert str(kind("a.tsv: no", hint="yes")) == "a.tsv: no\n  hint: yes"


@pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143)])
def test_a_signal_gives_its_own_code(number: int, code: int) -> None:
    error = InterruptedBySignal(number, "stopped")
    assert error.exit_code == code
    assert UsageError.exit_code == 2
    assert "the same command continues" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 8 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("can't start new thread"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        type("PanicException", (BaseException,), {})("ThreadPoolBuildError { kind: IOError }"),
    ],
    ids=str,
)
def test_out_of_memory_is_recognised_by_type_or_message(error: BaseException) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        RuntimeError("a shape that does not fit"),
        ImportError("a.so: failed to map segment from shared object: Operation not permitted"),
    ],
)
def test_other_errors_are_not_taken_for_it(error: Exception) -> None:
    assert not is_out_of_memory(error)


def test_a_recording_that_ended_for_lack_of_memory_is_recognised() -> None:
    """PyTorch then raises another error at the end of the recording."""

    def failed(first: Exception) -> BaseException:
        try:
            try:
                raise first
            finally:
                raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
        except RuntimeError as error:
            return error

    assert is_out_of_memory(failed(RuntimeError("CUDA out of memory")))
    assert not is_out_of_memory(failed(RuntimeError("CUDA error: misaligned address")))
    assert not is_out_of_memory(RuntimeError("operation failed due to a previous error"))
