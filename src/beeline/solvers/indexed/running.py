"""What all runs of indexed learning have: the active set, what is known of other rows, and what is said in the end."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._types import AnyArray, Floats
from beeline._words import percentage
from beeline.index import Place
from beeline.losses import ScalarLoss, Truncated
from beeline.objective import Objective, Point
from beeline.solvers.base import ROUNDING_GAP
from beeline.solvers.indexed.active_set import ActiveSet
from beeline.solvers.indexed.searching import Search
from beeline.solvers.result import Step, distance_in_words
from beeline.solvers.truncated.sides import SideCounts

if TYPE_CHECKING:
    from beeline.solvers.indexed.indexed import Indexed

__all__ = ["LITTLE", "MOST_RELAXATIONS", "UNCHANGED", "IndexedRun"]

LITTLE, MOST_RELAXATIONS = 0.1, 30  # of the tolerance, that a relaxation has to lower J by; how many there are at most
UNCHANGED = "no row changes sides"
_AT_LEAST, _ROOM = 4, 8  # parts of the memory: for rows in any case; of that, for chunks that were read


class IndexedRun:
    """The active set, what is known of all other rows, and the weights, which move from query to query.

    Attributes
    ----------
    truncated, loss
        The loss where it is cut off, or None; the convex loss.
    place
        The weights and the intercept.
    value, bound, gap
        Of the problem over the active set.
    memory
        Bytes for rows, and for what is kept beside them: what there is, without what is held for the leaves and the
        class of each row; None: any number.
    crowded, counts
        Whether cutting off would give up a class; how many rows are OUT.
    ending
        Why relaxations ended.
    """

    def __init__(self, solver: Indexed, objective: Objective) -> None:
        self.solver, self.objective, self.clock = solver, objective, time.perf_counter()
        o, index = objective, objective.rows.index
        assert index is not None
        self.truncated = o.loss if isinstance(o.loss, Truncated) else None
        loss = o.loss if self.truncated is None else self.truncated.loss
        assert isinstance(loss, ScalarLoss)
        self.loss, self.total_bytes = loss, max(1, index.rows.nbytes)
        cap = None if self.truncated is None else self.truncated.cap
        self.search = Search(o, loss, cap, self.total_bytes, solver.seed)
        self.memory: int | None = None
        if (memory := o.rows.memory) is not None:
            self.memory = max(memory // _AT_LEAST, memory - self.search.nbytes - o.rows.n_rows)
            self.search.reader.room = self.memory // _ROOM
        pilot = index.pilot()
        self.active = ActiveSet(pilot, *self.search.targets_of(pilot.positions))
        self.place: Place = (np.zeros(o.rows.n_features), 0.0)
        self.value, self.bound, self.gap = math.inf, -math.inf, math.inf
        self.crowded, self.counts, self.ending = False, SideCounts(0.0, 0.0, 0.0, 0.0), ""
        self.search_seconds = self.solve_seconds = self.extra_passes = 0.0

    @property
    def passes(self) -> float:
        """What was read, in passes over the rows."""
        return self.search.bytes_read / self.total_bytes + self.extra_passes

    @property
    def theta(self) -> Floats:
        """The weights and the intercept, as θ."""
        return self.objective.join(*self.place)

    def move(self, theta: Floats) -> None:
        """Go to θ."""
        w, b = self.objective.split(theta)
        self.place = np.array(w), float(b)

    @property
    def seconds_left(self) -> float | None:
        """Until the time limit; None: there is none."""
        limit = self.solver.time_limit
        return None if limit is None else max(limit - (time.perf_counter() - self.clock), 1e-3)

    def evaluate_all(self, theta: Floats) -> Point:
        """J at θ; one pass over all rows."""
        self.extra_passes += 1
        return self.objective.at(theta)

    # What is said.

    def last_step(self, value: float, point: Point | None, *, known: bool) -> Step:
        """The end, with J there: at a point of all rows, where there is one, and else known, or an estimate."""
        proven = self.truncated is None and (known or point is not None)
        return Step(
            self.theta if point is None else point.theta,
            value,
            self.bound if proven else -math.inf,
            self.passes,
            final=True,
            ending=self._ending(known=known or point is not None),
            facts=self.facts(0),
            point=point,
            evaluated=point is not None,
            estimate="" if known or point is not None else self.estimate_in_words,
            **self.of_outliers(),
        )

    def of_outliers(self) -> dict[str, Any]:
        """What a step says of the rows that are OUT where it is, of a loss that is cut off."""
        if self.truncated is None:
            return {}
        remark = self.counts.in_words(by_class=self.truncated.classifies)
        return {"arrays": partial(self._outside, self.truncated, self.place), "remark": remark}

    @property
    def estimate_in_words(self) -> str:
        """That J is an estimate, and why."""
        return f"J is an estimate, since {percentage(min(1.0, self.passes))} of the rows were read"

    def _ending(self, *, known: bool) -> str:
        """Why it ends without a certificate; empty where it has one, since J is known."""
        if self.truncated is None:
            return "" if known else "few rows that matter should be left to be found"
        local = ": a local optimum" if self.ending == UNCHANGED and self._is_solved else ""
        distance = "" if self.crowded else f", whose convex problem was solved to {distance_in_words(self.gap)}"
        return f"{self.ending}{local}{distance}"

    @property
    def _is_solved(self) -> bool:
        return self.gap <= max(self.solver.tol, ROUNDING_GAP)

    def say_crowded(self) -> None:
        """Cutting off ends here, since OUT would hold a class."""
        assert self.truncated is not None
        self.ending = f"cutting off would give up {'a class' if self.truncated.classifies else 'most rows'}"

    def say_little(self) -> None:
        """Relaxations end, since J hardly falls."""
        self.ending = f"a step lowers J by less than {LITTLE * self.solver.tol:g} of it"

    def _outside(self, loss: Truncated, place: Place) -> Mapping[str, AnyArray]:
        """1 for each row of the active set that is OUT at a place."""
        rows, active = self.objective.rows, self.active
        outside = np.zeros(rows.n_rows, np.uint8)
        outside[active.positions] = loss.outside(active.scores(*place), active.labels) & (active.costs > 0)
        return {"outside": rows.in_data_order(outside)}

    def facts(self, new: int) -> dict[str, float]:
        """What there is to say beside J, after a query that found so many rows."""
        facts = {
            "active": float(len(self.active)),
            "new": float(new),
            "looked": float(self.search.looked),
            "bytes_read": float(self.search.bytes_read),
            "cache_hits": float(self.search.hits),
            "search_seconds": self.search_seconds,
            "solve_seconds": self.solve_seconds,
        }
        if self.truncated is not None:
            facts |= self.counts.facts | {"crowded": float(self.crowded), "convex_gap": self.gap}
        return facts
