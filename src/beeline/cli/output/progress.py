"""A progress bar on standard error, when that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import Task, TaskID
    from rich.text import Text

    from beeline.data.reader import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A bar with rows per second, megabytes per second and the time left; None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    with _rich_progress() as shown:
        bar = _Bar(shown)
        yield bar
        bar.finish()


class _Bar:
    """What readers tell, shown as one line a walk over the source."""

    def __init__(self, shown: RichProgress) -> None:
        self._shown = shown
        self._task: TaskID | None = None

    def start(self, stage: str, total_bytes: int | None) -> None:
        self.finish()
        self._task = self._shown.add_task(stage, total=total_bytes, rows=0)

    def advance(self, n_bytes: int, n_rows: int = 0) -> None:
        if self._task is not None:
            rows = self._shown.tasks[self._task].fields["rows"] + n_rows
            self._shown.update(self._task, advance=n_bytes, rows=rows)

    def finish(self) -> None:
        """Show the walk as done; bytes that a reader could pass over do not count as left."""
        if self._task is not None:
            done = self._shown.tasks[self._task].completed
            self._shown.update(self._task, total=done, completed=done)


def _rich_progress() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Rates(ProgressColumn):
        """Share done, rows so far, rows per second and megabytes per second."""

        def render(self, task: Task) -> Text:
            share = "" if task.total is None else f"{task.percentage:.0f} %"
            seconds = task.finished_time if task.finished_time is not None else task.elapsed
            return Text(f"{share:>5}  {_rates(task.fields['rows'], task.completed, seconds or 0.0)}", style="cyan")

    return Progress(
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(bar_width=None),
        Rates(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True, table_column=Column(no_wrap=True)),
        console=Console(stderr=True),
        expand=True,
    )


def _rates(rows: int, n_bytes: float, seconds: float) -> str:
    seconds = max(seconds, 1e-9)
    speed = f"{n_bytes / seconds / 1e6:.0f} MB/s"
    # A walk that learns about columns makes no rows.
    return f"{_short(rows)} rows  {_short(rows / seconds)} rows/s  {speed}" if rows else speed


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"
