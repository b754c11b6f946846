"""The tables of a search for C: every point of its path, and warm against cold starts."""

from __future__ import annotations

import math
from typing import NamedTuple

from beeline.report.rendering import Cell, Row, Table
from beeline.report.values import decimals, number, shown
from beeline.selection import PathPoint, Selection
from beeline.selection.plot import path_of

__all__ = ["Starts", "compared_starts", "curve_tables"]

_CAPTION = "The spread is the standard deviation over the folds."


class Starts(NamedTuple):
    """Warm against cold starts: what part of the time and of the passes warm ones took, None where it says nothing."""

    table: Table
    time: str | None
    work: str | None


def curve_tables(selection: Selection) -> tuple[Table, Table | None]:
    """Every C with its score, time, passes and stop ratio, the best one marked; the same for other ε than the best."""
    cold = {(point.C, point.epsilon): point for point in selection.cold.curve} if selection.cold is not None else {}
    chosen = selection.best.epsilon
    columns = ["C", "log₂ C", *([] if chosen is None else ["ε"])]
    columns += [f"{selection.metric} ± spread", "seconds", *(["seconds, cold"] if cold else []), "passes"]
    columns += ["stop ratio"] if selection.stop == "paper" else ["loss, held out", "loss, training"]
    row = _Rows(selection, cold)
    others = [row(point) for point in selection.curve if point.epsilon != chosen]
    path = [row(point) for point in path_of(selection.curve, chosen)]
    return Table(_CAPTION, columns, path), Table(_CAPTION, columns, others) if others else None


class _Rows:
    """Writes the rows of the curve, all in the same form."""

    def __init__(self, selection: Selection, cold: dict[tuple[float, float | None], PathPoint]) -> None:
        self.best, self.cold, self.stop = selection.best, cold, selection.stop
        points = [*selection.curve, *cold.values()]
        self.slowest = max(point.seconds for point in points)
        self.score = decimals([point.score for point in points], 5)
        self.spread = decimals([point.spread for point in points], 2)
        self.seconds = decimals([self.slowest], 4)
        self.passes = decimals([point.passes for point in points], 4)

    def __call__(self, point: PathPoint) -> Row:
        cells = [Cell(f"{math.log2(point.C):.5g}")]
        if point.epsilon is not None:
            cells.append(Cell(shown(point.epsilon)))
        folds = "folds: " + ", ".join(self.score(score) for score in point.fold_scores)
        cells += [Cell(self._measured(point), hint=folds), self._time(point)]
        if self.cold:
            cells.append(self._time(self.cold.get((point.C, point.epsilon))))
        cells.append(Cell(self.passes(point.passes)))
        last = ((point.stop_ratio, 3),) if self.stop == "paper" else ((point.loss, 4), (point.training_loss, 4))
        cells += [Cell(number(value, digits)) for value, digits in last]
        return Row(f"{point.C:.6g}", cells, best=point is self.best)

    def _measured(self, point: PathPoint) -> str:
        return self.score(point.score) + (f" ± {self.spread(point.spread)}" if len(point.fold_scores) > 1 else "")

    def _time(self, point: PathPoint | None) -> Cell:
        """The seconds over a bar of their share of the longest."""
        if point is None:
            return Cell("–")
        return Cell(self.seconds(point.seconds), share=point.seconds / self.slowest if self.slowest > 0 else 0)


def compared_starts(selection: Selection) -> Starts | None:
    """What the search took from warm starts, and from cold ones; None where there were none."""
    warm, cold = selection, selection.cold
    if cold is None:
        return None
    seconds, score = decimals([warm.seconds, cold.seconds], 4), decimals([warm.best_score, cold.best_score], 5)
    rows = []
    for name, found in (("warm", warm), ("cold", cold)):
        values = [number(len(found.curve)), seconds(found.seconds), number(_passes(found), 4)]
        values += [f"{found.best_C:.6g}", score(found.best_score)]
        rows.append(Row(name, list(map(Cell, values))))
    columns = ["start", "values tried", "seconds", "passes", "best C", warm.metric]
    table = Table("The same search from both starts.", columns, rows)
    if len(warm.curve) != len(cold.curve) or not (cold.seconds > 0 and _passes(cold) > 0):
        return Starts(table, None, None)
    return Starts(table, number(warm.seconds / cold.seconds, 2), number(_passes(warm) / _passes(cold), 2))


def _passes(selection: Selection) -> float:
    return sum(point.passes for point in selection.curve)
