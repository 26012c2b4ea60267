"""The exceptions for errors that a user or the machine can cause, with their exit codes.

    TfmError                    70  an internal error, in tfm itself
    ├── UsageError               2  the command line is wrong
    ├── DataError               65  text, a corpus, a tokenizer or a model file cannot be used
    ├── MissingInputError       66  a config, corpus, file or run does not exist
    ├── TrainingStoppedError    69  training diverged, or had too many updates with NaN or infinite gradients
    ├── CannotCreateError       73  the run folder or an output file cannot be created
    ├── StorageError            74  reading or writing failed, or no checkpoint is valid
    ├── TryAgainError           75  the disk is full, or another process holds the lock: try again later
    ├── ConfigError             78  a setting does not exist, or its value is not allowed
    └── InterruptedBySignal    128 + the number of the signal: 129, 130 or 143; the state was saved

`cli.main` catches them, prints the message and the hint, and exits with the code.
"""


class TfmError(Exception):
    """A message (the place, the problem, the value found) and a hint (what the user can do)."""

    exit_code = 70
    usual_hint = "--debug shows the place in the program"
    """For an error without a hint of its own."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint or self.usual_hint}"


class UsageError(TfmError):
    exit_code = 2
    usual_hint = "add --help to the same command: it explains the options and what they take"


class DataError(TfmError):
    exit_code = 65
    usual_hint = "repair or replace the file that is named here"


class MissingInputError(TfmError):
    exit_code = 66
    usual_hint = "check the path: a relative path starts in the current folder"


class TrainingStoppedError(TfmError):
    exit_code = 69
    usual_hint = "the last checkpoint is intact"


class CannotCreateError(TfmError):
    exit_code = 73
    usual_hint = "choose a folder that exists and in which you have permission to write"


class StorageError(TfmError):
    exit_code = 74
    usual_hint = "check the disk, then run the same command again"


class TryAgainError(TfmError):
    exit_code = 75
    usual_hint = "run the same command again later"


class ConfigError(TfmError):
    exit_code = 78
    usual_hint = (
        "tfm info --config en-it.yaml shows settings with their values; docs/configuration.md in the repository "
        "explains every one"
    )


class InterruptedBySignal(TfmError):
    """Training received a signal to stop (SIGINT, SIGTERM or SIGHUP), finished its step and saved."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message, hint="the same command continues where it stopped")
        self.exit_code = 128 + signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory (of Python, the CPU or a GPU) was not enough."""
    marks = (
        "MemoryError",
        "OutOfMemory",
        "out of memory",
        "ALLOC_FAILED",
        "allocate memory",
        "bad_alloc",
        "new thread",
        "ThreadPool",
    )
    text = f"{type(error).__name__}: {error}"
    if "due to a previous error" in text and error.__context__ is not None:
        # The recording of a CUDA graph ends with this error after another one.
        return is_out_of_memory(error.__context__)
    # A library that finds no room; on a disk mounted with noexec, glibc adds "Operation not permitted" to the same words.
    if "failed to map segment" in text:
        return "not permitted" not in text
    return any(mark in text for mark in marks)
