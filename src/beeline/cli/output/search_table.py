"""The curve of a search for C as a table: one that grows on a terminal, and the one that is left at the end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beeline.cli.output.drawing import escape_markup, number_text, plain_table

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from beeline.selection import PathPoint
    from beeline.selection.result import Rule
    from beeline.selection.scoring import Metric
    from beeline.selection.selecting import OnPoint

__all__ = ["path_table", "power_of_two", "score_text", "watched_search"]

_BAR = 16
_A_SECOND = 8  # times that the growing table is drawn anew
_AROUND = 5  # lines of a screen that are not rows of the table


@contextmanager
def watched_search(metric: Metric, rule: Rule) -> Iterator[OnPoint | None]:
    """What to call after every C, for a table on standard error that grows; None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    growing = _Growing(metric, rule, console)
    with Live(
        get_renderable=growing.draw,
        console=console,
        refresh_per_second=_A_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:

        def on_point(point: PathPoint) -> None:
            growing.points.append(point)
            live.refresh()

        yield on_point


class _Growing:
    """The rows so far that fit the screen, and how long it has taken."""

    def __init__(self, metric: Metric, rule: Rule, console: object) -> None:
        self.metric, self.rule, self.console = metric, rule, console
        self.points: list[PathPoint] = []
        self.began = time.perf_counter()

    def draw(self) -> Group:
        from rich.console import Group

        from beeline.selection.result import choose

        took = f"[dim]searching for C, {time.perf_counter() - self.began:.1f} s; Ctrl-C ends it and keeps the best[/]"
        points = tuple(self.points)
        if not points:
            return Group(took)
        best = choose(points, self.metric.greater_is_better, self.rule)
        most = max(3, self.console.height - _AROUND)  # type: ignore[attr-defined]
        shown, hidden = points[-most:], len(points) - most
        if best not in shown:
            shown = (best, *shown[1:])
        parts = [f"[dim]… {hidden} more[/]"] if hidden > 0 else []
        return Group(*parts, path_table(shown, best, self.metric.name), took)


def path_table(points: Sequence[PathPoint], best: PathPoint, metric: str) -> Table:
    """C, score, spread and a bar of the time, the best C marked; and ε where that was searched for."""
    epsilons = points[0].epsilon is not None
    shown = plain_table()
    for justify in ("left", "left", *(("right",) if epsilons else ()), "right", "left", "right", "left"):
        shown.add_column(justify=justify, min_width=4)
    heading = ["", "C", *(["ε"] if epsilons else []), escape_markup(metric), "", "time", ""]
    shown.add_row(*(f"[dim]{text}[/]" if text else "" for text in heading))
    longest = max(point.seconds for point in points)
    for point in points:
        spread = f"[dim]± {point.spread:.2g}[/]" if len(point.fold_scores) > 1 else ""
        shown.add_row(
            "[bold green]best[/]" if point is best else "",
            f"[bold cyan]{power_of_two(point.C)}[/]",
            *([number_text(point.epsilon)] if point.epsilon is not None else []),
            score_text(point.score),
            spread,
            f"{point.seconds:.2f} s",
            f"[green]{'█' * max(1, round(_BAR * point.seconds / longest)) if longest else ''}[/]",
        )
    return shown


def power_of_two(C: float) -> str:
    """A C as the path has it: 2^-3, or a number where it is no power of two."""
    exponent = math.log2(C)
    return f"2^{exponent:.0f}" if exponent == round(exponent) else f"{C:.6g}"


def score_text(score: float) -> str:
    """A score with as many digits as its neighbours."""
    return "none" if math.isnan(score) else f"{score:#.5g}"
