"""Regular expressions that are compiled at their first use."""

import re
from collections.abc import Callable
from typing import Any, cast


class _LazyPattern:
    """As a pattern of `re.compile`, but compiled when the first of its methods is asked for.

    For patterns that only some texts ask for: compiling all of them takes a tenth of the time of a start. Those that every sentence asks
    for are made by `re.compile`. `re.search` and the like do not take such a pattern; its own methods do the same.
    """

    def __init__(self, expression: str, flags: int | re.RegexFlag = 0) -> None:
        self._expression, self._flags = expression, flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self._expression, self._flags)
        value = getattr(self._compiled, name)
        setattr(self, name, value)  # the next use finds it without this method
        return value


lazy_pattern = cast(Callable[..., re.Pattern[str]], _LazyPattern)
