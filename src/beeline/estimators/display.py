"""A fitted estimator as notebooks show it: scikit-learn's diagram, and below it what was proven."""

from __future__ import annotations

import math
from html import escape

from beeline.model import Report
from beeline.selection import Selection
from beeline.selection.plot import path_of

__all__ = ["certificate_html"]

_WIDTH, _HEIGHT, _EDGE = 240, 60, 5  # of the curve, in pixels


def certificate_html(report: Report, selection: Selection | None) -> str:
    """The sentence of the report, what there is to doubt, and the curve of a search; nothing is loaded to show it."""
    lines = [f"<div>{escape(report.sentence)}</div>"]
    lines += [f"<div>⚠ {escape(str(concern))}</div>" for concern in report.concerns]
    if selection is not None:
        lines += [f"<div>{escape(selection.sentence)}</div>", _curve(selection)]
    style = "font-family: monospace; margin-top: 0.5em; max-width: 60em"
    return f'<div class="beeline-certificate" style="{style}">{"".join(lines)}</div>'


def _curve(selection: Selection) -> str:
    """Scores against log C, with the best C; empty where fewer than two values have a score."""
    path = sorted(path_of(selection.curve, selection.best.epsilon), key=lambda point: point.C)
    path = [point for point in path if math.isfinite(point.score)]
    if len(path) < 2:
        return ""
    xs, ys = [math.log2(point.C) for point in path], [point.score for point in path]
    places = list(zip(_spread(xs, _WIDTH), (_HEIGHT - y for y in _spread(ys, _HEIGHT)), strict=True))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    at = next((place for point, place in zip(path, places, strict=True) if selection.best_C == point.C), None)
    dot = "" if at is None else f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3.5" fill="#0b7a5e"/>'
    words = escape(f"{selection.metric} for C from {path[0].C:.3g} to {path[-1].C:.3g}")
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{words}"><title>{words}</title>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/>{dot}</svg>'
    )


def _spread(values: list[float], size: int) -> list[float]:
    """The values, stretched over so many pixels without the edges."""
    low, width = min(values), max(values) - min(values)
    return [_EDGE + (size - 2 * _EDGE) * ((value - low) / width if width else 0.5) for value in values]
