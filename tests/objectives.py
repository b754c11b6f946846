"""Objectives by their arrays: an engine has these in its hands, and lets nobody look into them."""

from __future__ import annotations

from dataclasses import replace

from beeline.data.core.dataset import ArrayDataset
from beeline.engines import Threads

__all__ = ["arrays_of", "over"]


def arrays_of(o):
    """The rows as one block, the labels and the costs."""
    return o.rows.local(), o.rows.gather(o.labels), o.rows.gather(o.costs)


def over(o, data=None, *, labels=None, costs=None, engine=None):
    """The same objective over other rows, or with other labels or costs, all of them arrays; the rest stays."""
    block, y, c = arrays_of(o)
    rows = (engine or Threads()).open(ArrayDataset(block) if data is None else data)
    y, c = y if labels is None else labels, c if costs is None else costs
    return replace(o, rows=rows, labels=rows.scatter(y), costs=rows.scatter(c))
