"""The outcome of checking one exercise, and the exception for a wrong answer."""

import json
from typing import Literal, NamedTuple

Status = Literal["passes", "not begun", "fails", "waits"]


class WrongAnswer(Exception):
    """A function of the learner gives a wrong result.

    Args:
        message: the misconception, or what was found and what was expected.
        hint: what to change; None: the first step of the exercise.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Outcome(NamedTuple):
    """What `tfm exercises --check` tells about one exercise."""

    name: str
    status: Status
    message: str = ""
    """What is wrong; empty for an exercise that passes."""
    hint: str = ""
    """What to change, for `--hint`."""
    lines: tuple[str, ...] = ()
    """Further lines: where the learner's code failed, or what the finale shows."""

    has_ended_child: bool = False
    """Whether the child process that ran the code ended with this outcome."""

    def to_bytes(self) -> bytes:
        """The outcome as JSON, for the pipe between two processes."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Outcome":
        """The outcome in the bytes of `to_bytes`."""
        values = json.loads(data)
        return cls(**{**values, "lines": tuple(values["lines"])})
