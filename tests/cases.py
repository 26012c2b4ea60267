"""Many small cases of one check as one test."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each_case(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Like `pytest.mark.parametrize`, but one test, which runs all cases and names each one that fails.

    For checks without fixtures that take a millisecond: as a test of its own, each case costs pytest 3 milliseconds.
    """
    listed = list(cases)
    if not listed:
        raise ValueError("no cases: the test would check nothing")

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        @functools.wraps(check)
        def test() -> None:
            failed: list[tuple[Any, BaseException]] = []
            for case in listed:
                try:
                    check(**({names: case} if isinstance(names, str) else dict(zip(names, case, strict=True))))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((case, error))
            if failed:
                first = failed[0][1]
                first.add_note(f"{len(failed)} of {len(listed)} cases fail:")
                for case, reason in failed:
                    first.add_note(f"{case!r}: {reason}")
                raise first

        test.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # no fixtures; pytest finds the place by `__wrapped__`
        return test

    return decorate
