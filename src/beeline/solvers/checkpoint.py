"""Where the run of one problem is, in a file, so that it can go on after the process was ended at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beeline.data.files.documents import Document, read_document, write_document
from beeline.exceptions import SourceError
from beeline.solvers.result import Result, Status

__all__ = ["RunCheckpoint"]

FORMAT, VERSION = "beeline-checkpoint", 1
_SHARE = 0.1  # of the time, that writing may take
_TO_GO_ON = (Status.INTERRUPTED, Status.CALLBACK)  # ends of a run that is not over


class RunCheckpoint:
    """The file of one run: where it is, or what it has found.

    It is written between two steps, not more often than the interval says, nor so often that writing takes more than a
    tenth of the time; under a temporary name, and on the disk before it is renamed, so that there is always a whole
    one.

    Parameters
    ----------
    path
        The file.
    interval
        Seconds between two times that it is written; 0: after every step.
    mark
        What tells its training from all others.
    """

    def __init__(self, path: Path, interval: float, mark: str) -> None:
        self.path, self.interval, self.mark = path, interval, mark
        self._due = time.monotonic() + interval

    def load(self) -> Document | None:
        """What was written last; None where there is no file."""
        if not self.path.exists():
            return None
        document = read_document(self.path, FORMAT, VERSION, "checkpoint")
        if document["mark"] != self.mark:
            raise SourceError(f"{self.path} belongs to another training than the rest of its folder; remove the folder")
        return document

    def offer(self, run: Callable[[], dict[str, Any]], steps: Callable[[], Any] | None) -> None:
        """Write where a run and its solver are, if it is time to, and the solver can say."""
        if steps is None or time.monotonic() < self._due:
            return
        began = time.monotonic()
        self._write({"run": run(), "steps": dict(steps())})
        now = time.monotonic()
        self._due = now + (max(self.interval, (now - began) / _SHARE) if self.interval else 0.0)

    def finish(self, result: Result) -> None:
        """Write what was found; where the run may still go on, its last checkpoint stays."""
        if result.status not in _TO_GO_ON:
            self._write({"result": result.to_document()})

    def _write(self, document: Document) -> None:
        write_document(self.path, FORMAT, VERSION, {"mark": self.mark, **document})
