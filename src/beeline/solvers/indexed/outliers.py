"""Which rows are OUT at a point, and J of the loss that is cut off there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.engines import Rows, RowVector
from beeline.engines.verbs import truncation
from beeline.losses import Truncated
from beeline.objective import Point
from beeline.solvers.indexed.active_set import ActiveSet
from beeline.solvers.indexed.querying import Tally
from beeline.solvers.indexed.running import IndexedRun
from beeline.solvers.truncated.sides import SideCounts, costs_inside

__all__ = ["Sides", "count_changed", "sides_by_tally", "sides_of_all", "sides_of_sample"]

_NONE = np.zeros(0, np.bool_)


class Sides(NamedTuple):
    """Which rows are IN at a point.

    Attributes
    ----------
    theta, value, point
        Where; J there, or an estimate; the point of all rows, where it is known.
    counts
        How many rows are OUT, or about how many.
    inside
        The costs of the rows that are IN, 0 for the others; None where only random rows are known.
    marks
        Which of the random rows are IN; empty where all rows are known.
    """

    theta: Floats
    value: float
    point: Point | None
    counts: SideCounts
    inside: RowVector | None
    marks: AnyArray


def sides_of_all(run: IndexedRun) -> Sides:
    """By a look at all rows."""
    assert run.truncated is not None
    point = run.evaluate_all(run.theta)
    inside, counts = costs_inside(point, run.truncated)
    return Sides(point.theta, point.value, point, counts, inside, _NONE)


def sides_of_sample(run: IndexedRun, sample: ActiveSet) -> Sides:
    """By random rows, each of which stands for many."""
    loss = run.truncated
    assert isinstance(loss, Truncated)
    outside = loss.outside(sample.scores(*run.place), sample.labels)
    rows, positive = np.where(sample.costs > 0, sample.guards, 0.0), sample.labels > 0
    out = (float(rows[outside & ~positive].sum()), float(rows[outside & positive].sum()))
    value = sample.problem(run.objective, loss, sample.guards).at(run.theta).value
    return Sides(run.theta, value, None, SideCounts(*out, *run.search.rows_of_labels), None, ~outside)


def sides_by_tally(run: IndexedRun, rest: Tally, sample: Sides) -> Sides:
    """As a sample knows them, with J and counts by S, and by what a query says of all other rows."""
    loss, active = run.truncated, run.active
    assert isinstance(loss, Truncated)
    outside, positive = loss.outside(active.scores(*run.place), active.labels) & (active.costs > 0), active.labels > 0
    negatives = float(np.count_nonzero(outside & ~positive)) + rest.out_negative
    positives = float(np.count_nonzero(outside & positive)) + rest.out_positive
    value = active.problem(run.objective, loss).at(run.theta).value + rest.cost
    return sample._replace(value=value, counts=SideCounts(negatives, positives, *run.search.rows_of_labels))


def count_changed(rows: Rows, before: Sides, now: Sides) -> int:
    """How many rows have changed sides, of those that both know."""
    if before.inside is not None and now.inside is not None:
        changed: int = rows.sum(truncation.changed_sides, now.inside, before.inside).value[0]
        return changed
    return int(np.count_nonzero(before.marks != now.marks))
