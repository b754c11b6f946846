"""Objectives by their arrays: an engine has these in its hands, and lets nobody look into them."""

from __future__ import annotations

from dataclasses import replace

from beeline.data.core.dataset import ArrayDataset
from beeline.engines import Threads

__all__ = ["arrays_of", "over"]


def arrays_of(o):
    """X as a dense matrix, y and c."""
    return o.rows.local().to_dense(), o.rows.gather(o.labels), o.rows.gather(o.costs)


def over(o, data=None, *, labels=None, costs=None, engine=None):
    """The same objective over other rows, or with other labels or costs, all of them arrays; the rest stays."""
    rows = (engine or Threads()).open(ArrayDataset(o.rows.local()) if data is None else data)
    y = o.rows.gather(o.labels) if labels is None else labels
    c = o.rows.gather(o.costs) if costs is None else costs
    return replace(o, rows=rows, labels=rows.scatter(y), costs=rows.scatter(c))
