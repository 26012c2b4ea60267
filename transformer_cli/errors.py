"""What a user can get wrong, or the machine can refuse, as a tree.

    TfmError                    70  an error of ours
    ├── UsageError               2  a command line that makes no sense
    ├── DataError               65  text, corpora, tokenizers and model files that cannot be used
    ├── MissingInputError       66  no such config, corpus, file or run
    ├── TrainingStoppedError    69  training gave up: too many non-finite steps
    ├── CannotCreateError       73  the run folder or an output cannot be made
    ├── StorageError            74  reading or writing failed, or no checkpoint is valid
    ├── TryAgainError           75  disk full, lock held: the same command may work later
    ├── ConfigError             78  a setting that does not exist or cannot have that value
    └── InterruptedBySignal    128 + signal number, after the state was saved

Only `cli.main` catches these: it prints the message and the hint, and exits with the code.
"""


class TfmError(Exception):
    """One message that says what, where and what was found, and one hint that says what to do."""

    exit_code = 70
    usual_hint = "--debug shows where it happened"
    """Where an error has no hint of its own."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint or self.usual_hint}"


class UsageError(TfmError):
    exit_code = 2
    usual_hint = "tfm --help, and --help after a command, show what can be given"


class DataError(TfmError):
    exit_code = 65
    usual_hint = "mend or replace what is named here"


class MissingInputError(TfmError):
    exit_code = 66
    usual_hint = "check the path; a relative one starts in the current folder, or at data.root"


class TrainingStoppedError(TfmError):
    exit_code = 69
    usual_hint = "the last checkpoint is intact"


class CannotCreateError(TfmError):
    exit_code = 73
    usual_hint = "give a place in a folder that exists and in which you may write"


class StorageError(TfmError):
    exit_code = 74
    usual_hint = "look after the disk, then give the same command again"


class TryAgainError(TfmError):
    exit_code = 75
    usual_hint = "give the same command again later"


class ConfigError(TfmError):
    exit_code = 78
    usual_hint = "docs/configuration.md lists every setting"


class InterruptedBySignal(TfmError):
    """Training was asked to stop, finished its step and saved."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message, hint="the same command continues where it stopped")
        self.exit_code = 128 + signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory did not suffice: Python's own, a GPU's, and those that only their text tells."""
    marks = ("MemoryError", "OutOfMemory", "out of memory", "allocate memory", "bad_alloc", "new thread", "ThreadPool")  # fmt: skip
    text = f"{type(error).__name__}: {error}"
    return any(mark in text for mark in marks)
