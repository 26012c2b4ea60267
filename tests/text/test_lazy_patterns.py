"""Patterns that are compiled at their first use do what those of `re.compile` do."""

import re

import pytest

from transformer_cli.text.lazy_patterns import lazy_pattern

TEXT = "The dog, the House; the dog."


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
@pytest.mark.parametrize("method", ["search", "match", "fullmatch", "findall", "split", "finditer"])
def test_a_lazy_pattern_answers_as_a_compiled_one(method: str, flags: re.RegexFlag) -> None:
    lazy, compiled = (make(r"(?P<article>the) (\w+)", flags) for make in (lazy_pattern, re.compile))
    for _ in range(2):  # the second use takes another way
        answers = [getattr(pattern, method)(TEXT) for pattern in (lazy, compiled)]
        if method == "finditer":
            answers = [[match.groupdict() for match in answer] for answer in answers]
        if isinstance(answers[1], re.Match):
            answers = [match.span() for match in answers]
        assert answers[0] == answers[1]
    assert lazy.sub("a", TEXT) == compiled.sub("a", TEXT)
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_a_wrong_expression_is_found_at_the_first_use() -> None:
    lazy = lazy_pattern("(")
    with pytest.raises(re.error, match="unterminated"):
        lazy.search(TEXT)
