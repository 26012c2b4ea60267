"""Many cases as one test: all of them run, and the message names those that fail."""

import pytest

from .cases import each_case


def test_every_case_that_fails_is_named_and_the_others_run() -> None:
    seen = []

    @each_case(("number", "square"), [(1, 1), (2, 5), (3, 9), (4, 17)])
    def check(number: int, square: int) -> None:
        seen.append(number)
        assert number**2 == square

    with pytest.raises(AssertionError) as failed:
        check()
    assert seen == [1, 2, 3, 4]
    heading, *cases = failed.value.__notes__
    assert heading == "2 of 4 cases fail:"
    assert [case.partition(":")[0] for case in cases] == ["(2, 5)", "(4, 17)"]


def test_an_error_and_a_call_of_fail_are_failures_too() -> None:
    @each_case("text", ["1", "x", "fail"])
    def check(text: str) -> None:
        if text == "fail":
            pytest.fail("as asked")
        int(text)

    with pytest.raises(ValueError, match="'x'") as failed:
        check()
    assert failed.value.__notes__[-1] == "'fail': as asked"


def test_no_cases_are_no_test() -> None:
    with pytest.raises(ValueError, match="no cases"):
        each_case("text", [])
