"""The tables of a search for C: every point of its path, and warm against cold starts."""

from __future__ import annotations

import math

from beeline.report.markup import decimals, number, table, text
from beeline.selection import PathPoint, Selection
from beeline.selection.plot import path_of

__all__ = ["curve_table", "starts_table"]

_CAPTION = "The spread is the standard deviation over the folds."


def curve_table(selection: Selection) -> str:
    """Every C with its score, time, passes and stop ratio, the best one marked; other ε than the best behind a fold."""
    cold = {(point.C, point.epsilon): point for point in selection.cold.curve} if selection.cold is not None else {}
    chosen = selection.best.epsilon
    columns = ["C", "log₂ C", *([] if chosen is None else ["ε"])]
    columns += [f"{selection.metric} ± spread", "seconds", *(["seconds, cold"] if cold else []), "passes"]
    columns += ["stop ratio"] if selection.stop == "paper" else ["loss, held out", "loss, training"]
    row = _Rows(selection, cold)
    shown = table(_CAPTION, columns, [row(point) for point in path_of(selection.curve, chosen)])
    others = [row(point) for point in selection.curve if point.epsilon != chosen]
    if not others:
        return shown
    summary = f"The same for other values of ε ({number(len(others))} rows)"
    return f"{shown}\n<details>\n<summary>{summary}</summary>\n{table(_CAPTION, columns, others)}\n</details>"


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

    def __call__(self, point: PathPoint) -> str:
        opening, mark = "<tr>", ""
        if point is self.best:
            opening, mark = '<tr class="best">', ' <span class="mark">best</span>'
        cells = [f'<th scope="row">{point.C:.6g}{mark}</th>', _cell(f"{math.log2(point.C):.5g}")]
        if point.epsilon is not None:
            cells.append(_cell(text(point.epsilon)))
        folds = "folds: " + ", ".join(self.score(score) for score in point.fold_scores)
        cells.append(f'<td title="{text(folds)}">{self._measured(point)}</td>')
        cells.append(self._time(point))
        if self.cold:
            cells.append(self._time(self.cold.get((point.C, point.epsilon))))
        cells.append(_cell(self.passes(point.passes)))
        last = ((point.stop_ratio, 3),) if self.stop == "paper" else ((point.loss, 4), (point.training_loss, 4))
        cells += [_cell(number(value, digits)) for value, digits in last]
        return f"{opening}{''.join(cells)}</tr>"

    def _measured(self, point: PathPoint) -> str:
        return self.score(point.score) + (f" ± {self.spread(point.spread)}" if len(point.fold_scores) > 1 else "")

    def _time(self, point: PathPoint | None) -> str:
        """The seconds over a bar of their share of the longest."""
        if point is None:
            return _cell("–")
        share = point.seconds / self.slowest if self.slowest > 0 else 0
        return f'<td class="bar" style="--share: {share:.3f}">{self.seconds(point.seconds)}</td>'


def starts_table(selection: Selection) -> str:
    """What the search took from warm starts, and from cold ones."""
    warm, cold = selection, selection.cold
    if cold is None:
        return ""
    seconds, score = decimals([warm.seconds, cold.seconds], 4), decimals([warm.best_score, cold.best_score], 5)
    rows = []
    for name, found in (("warm", warm), ("cold", cold)):
        values = [number(len(found.curve)), seconds(found.seconds), number(_passes(found), 4)]
        values += [f"{found.best_C:.6g}", score(found.best_score)]
        cells = "".join(map(_cell, values))
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    columns = ["start", "values tried", "seconds", "passes", "best C", warm.metric]
    return f"{_compared(warm, cold)}\n{table('The same search from both starts.', columns, rows)}"


def _compared(warm: Selection, cold: Selection) -> str:
    if len(warm.curve) != len(cold.curve) or not (cold.seconds > 0 and _passes(cold) > 0):
        return ""
    time, work = warm.seconds / cold.seconds, _passes(warm) / _passes(cold)
    return (
        f"<p>Starting each C from the weights of the one before took <strong>{number(time, 2)}</strong> of the time "
        f"and <strong>{number(work, 2)}</strong> of the passes that starting from zero took.</p>"
    )


def _passes(selection: Selection) -> float:
    return sum(point.passes for point in selection.curve)


def _cell(content: str) -> str:
    return f"<td>{content}</td>"
