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

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class UsageError(TfmError):
    exit_code = 2


class DataError(TfmError):
    exit_code = 65


class MissingInputError(TfmError):
    exit_code = 66


class TrainingStoppedError(TfmError):
    exit_code = 69


class CannotCreateError(TfmError):
    exit_code = 73


class StorageError(TfmError):
    exit_code = 74


class TryAgainError(TfmError):
    exit_code = 75


class ConfigError(TfmError):
    exit_code = 78


class InterruptedBySignal(TfmError):
    """Training was asked to stop, finished its step and saved."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message, hint="the same command continues where it stopped")
        self.exit_code = 128 + signal_number
