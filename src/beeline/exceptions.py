"""Every error that beeline raises on purpose.

The tree::

    BeelineError
    ├── DataError (ValueError)          the data cannot be used as they are
    │   ├── FormatError                 a file breaks its format: file, line, column
    │   └── LabelError                  labels missing, or not what the task needs
    ├── ParameterError (ValueError)     an argument is out of range or contradicts another
    ├── SourceError (OSError)           a file or folder cannot be found, opened or read
    ├── StoreError                      an on-disk data set cannot be used
    │   ├── CorruptStoreError           truncated or altered since it was written
    │   └── StoreVersionError           written by a newer beeline
    ├── ModelError                      a model, or the file of one, cannot be used
    │   ├── CorruptModelError           truncated or altered since it was written
    │   └── ModelVersionError           written by a newer beeline
    └── MissingDependencyError (ImportError)   an optional package is needed

    DataWarning (UserWarning)           some of what was read had to be passed over
    ConvergenceWarning (UserWarning)    a solver stopped before its tolerance
    ModelWarning (UserWarning)          a model, or a search for one, is worth nothing

Each message is one sentence that names what was wrong and where, and says what to do. The command line prints
it as one line, with its options where the sentence names arguments (`beeline._sentences`), and exits with code 1, or
with 2 for `ParameterError`. A warning does not keep it from its work; it is a line too, and the exit code is 3.
"""

from __future__ import annotations

from beeline._sentences import Argument, Sentence

__all__ = [
    "BeelineError",
    "ConvergenceWarning",
    "CorruptModelError",
    "CorruptStoreError",
    "DataError",
    "DataWarning",
    "FormatError",
    "LabelError",
    "MissingDependencyError",
    "ModelError",
    "ModelVersionError",
    "ModelWarning",
    "ParameterError",
    "SourceError",
    "StoreError",
    "StoreVersionError",
]


class BeelineError(Exception):
    """Base of every error that beeline raises on purpose."""


class DataError(BeelineError, ValueError):
    """The data cannot be used as they are."""


class FormatError(DataError):
    """A file breaks the rules of its format.

    Parameters
    ----------
    reason
        What is wrong and what to do about it.
    file, line, column
        Where: the file's name, and the 1-based line and byte column where they are known.
    """

    def __init__(
        self, reason: str, file: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.reason, self.file, self.line, self.column = reason, file, line, column
        place = [file] if file else []
        place += [f"line {line}"] if line is not None else []
        place += [f"column {column}"] if column is not None else []
        super().__init__(Sentence(f"{', '.join(place)}: ", reason) if place else reason)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.file, self.line, self.column)


class LabelError(DataError):
    """Labels are missing, or are not what the task needs."""


class ParameterError(BeelineError, ValueError):
    """An argument is out of range or contradicts another.

    Parameters
    ----------
    parts
        The sentence. Arguments that it names are parts of their own, so that the command line can say its options
        instead.
    parameter
        The argument that is to be changed; the first that the sentence names, when not given.
    """

    def __init__(self, *parts: str | Argument, parameter: str | None = None) -> None:
        sentence = Sentence(*parts)
        super().__init__(sentence)
        self.parameter = sentence.argument if parameter is None else parameter


class SourceError(BeelineError, OSError):
    """A file or folder cannot be found, opened or read."""


class StoreError(BeelineError):
    """An on-disk data set cannot be used."""


class CorruptStoreError(StoreError):
    """A store's file was truncated or altered after it was written."""


class StoreVersionError(StoreError):
    """A store was written by a newer version of beeline."""


class ModelError(BeelineError):
    """A model, or the file of one, cannot be used."""


class CorruptModelError(ModelError):
    """A model's file was truncated or altered after it was written."""


class ModelVersionError(ModelError):
    """A model was written by a newer version of beeline."""


class MissingDependencyError(BeelineError, ImportError):
    """An optional package is needed and not installed."""

    @classmethod
    def of_extra(cls, what: str, extra: str) -> MissingDependencyError:
        """The error that says how to get an extra: `what` is a subject with its verb, such as "plots need"."""
        return cls(f'{what} another package; run: pip install "beeline-ml[{extra}]"')


class DataWarning(UserWarning):
    """Some of what was read was passed over: categories that nobody has seen, rows with missing values."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before its tolerance; the message says how far from the optimum, and what to change."""


class ModelWarning(UserWarning):
    """A model is no better than none, or a search for one found nothing; the message says what to do."""
