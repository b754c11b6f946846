"""Dual coordinate descent over rows that do not fit the memory: one run of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace

import numpy as np

from beeline._thread_pool import DaemonThreadPool
from beeline._types import Floats, Ints
from beeline.data.core.block import Block, concatenate
from beeline.engines import Rows
from beeline.engines.verbs import products
from beeline.kernels import balance, blend, dot
from beeline.objective import Objective, Point, conjugate_bound
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.dual.blocks import DenseDual, DualBlocks, Geometry
from beeline.solvers.dual.dual_cd import LOSSES_WITH_DUAL
from beeline.solvers.dual.shuffled import Centred
from beeline.solvers.dual.warm import dual_of, warm_start
from beeline.solvers.needs import FEWER_THAN_2_32, Needs
from beeline.solvers.options import SolverOptions, option

__all__ = ["BlockCD", "BlockCDOptions"]

_MOST_UNCHECKED = 4  # passes without a look at the gap
_PIECES = 16  # runs of rows that a block is made of


@dataclass(frozen=True, kw_only=True)
class BlockCDOptions(SolverOptions):
    """Options of block minimisation."""

    sweeps: int = option(10, "How often the rows of a block are descended upon while they are in memory.", least=1)


class BlockCD(Solver):
    """Minimises J with L2 regularization through its dual, a block of rows at a time (Yu, Hsieh, Chang & Lin 2010).

    A block has as many rows as fit the memory. A pass reads all of them once, block by block, the next one while the
    last is worked on; on its rows dual coordinate descent makes a few sweeps, while the variables of all others stay as
    they are. Which rows make up a block changes from pass to pass: sixteen runs of rows from anywhere. In blocks that
    stay the same, as in the paper, rows never meet those of another block, and many more passes are needed.

    What it finds is what `DualCD` finds, with the same certificate: a look at all rows, which takes one pass more,
    gives J and the dual value. It is made when the dual's growth says that the tolerance may be reached.

    Memory: two blocks, and 64 bytes a row. The seed says in which order blocks and rows are taken. Options are those of
    `BlockCDOptions`.
    """

    name = "block_cd"
    needs = Needs(duals=LOSSES_WITH_DUAL, omega="l2", nonnegative=False, rows="blocks", most_rows=FEWER_THAN_2_32)
    row_arrays = ("dual",)
    kind_of_options = BlockCDOptions
    options: BlockCDOptions

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One pass over all blocks, then perhaps a look at all rows."""
        run = _Passes(self, objective, start)
        while True:
            run.visit_all()
            still = run.is_still
            if still or run.check_is_due:
                run.check()
            best = run.best
            assert best is not None  # the first pass is looked at
            yield Step(best.theta, best.value, run.bound, run.passes, final=still, arrays=run.arrays)


class _Passes:
    """The state of one run."""

    def __init__(self, solver: BlockCD, objective: Objective, start: State | None) -> None:
        self.solver, self.objective = solver, objective
        o = objective
        n, d = o.rows.n_rows, o.rows.n_features
        self.labels, self.costs = o.rows.gather_local(o.labels), o.rows.gather_local(o.costs)
        self.passes, self.n_passes, self.unchecked = 0.0, 0, 0
        self.best: Point | None = None
        self.bound, self.grown, self.ratio = -math.inf, 0.0, math.inf
        a, w, b = np.zeros(n), np.zeros(d), 0.0
        if start is not None:
            begin = warm_start(o, self.labels, self.costs, start, solver.tol, dual_of(start, o.rows))
            self.best, a, b = begin.point, begin.variables, begin.intercept
            w = o.split(o.weighted(o.rows.scatter_local(a)))[0] / (o.strength * o.regularizer.l2)
            self.passes += begin.passes + 1
        self.blocks = DualBlocks(o.loss, self._geometry(), w, solver.seed, DenseDual(a))
        g = self.blocks.geometry
        self.blocks.sums = float(a.sum()), dot(g.mean, g.modulus * w) if len(g.mean) else 0.0
        self.blocks.centre = b
        self.average, self.intercept, self.n_averaged = w.copy(), b, 0

    def _geometry(self) -> Geometry:
        """How the intercept enters; one pass where it is free."""
        o = self.objective
        if o.intercept != "free":
            return Geometry.of(o, None)
        squares, sums = o.rows.sum(products.feature_moments).value
        self.passes += 1
        n = max(1, o.rows.n_rows)
        mean = np.ascontiguousarray(sums / n)
        usual = max(float(squares.sum()) / n - dot(mean, mean), 0.0)
        none = np.zeros(0)  # of single rows, whose norms each block finds
        return Geometry.of(o, Centred(mean, none, none, usual))

    def visit_all(self) -> None:
        """Descend upon every block once, and keep by how much the dual has grown."""
        o, blocks = self.objective, self.blocks
        self.grown = 0.0
        for numbers, block in _read_ahead(o, self._pieces()):
            blocks.take(numbers, block, self.labels[numbers], self.costs[numbers])
            for _ in range(self.solver.options.sweeps):
                growth = blocks.sweep()
                self.grown += growth
                self._average()
                if not growth:
                    break
            blocks.leave()
        if o.intercept == "free":
            blocks.recentre()
        self.passes += 1
        self.n_passes += 1
        self.unchecked += 1

    def _pieces(self) -> list[list[tuple[int, int]]]:
        """The runs of rows that make up each block of the next pass: all runs, in random order, some to a block."""
        n, n_blocks = self.objective.rows.n_rows, self.objective.rows.n_shards
        if n_blocks == 1:
            return [[(0, n)]]
        size = max(1, -(-n // (n_blocks * _PIECES)))
        runs = [(start, min(start + size, n)) for start in range(0, n, size)]
        random = np.random.default_rng([self.solver.seed, self.n_passes])
        order = [runs[k] for k in random.permutation(len(runs))]
        return [order[k : k + _PIECES] for k in range(0, len(order), _PIECES)]

    def _average(self) -> None:
        """Later sweeps weigh more, as in `DualCD`."""
        w, b = self.blocks.point
        self.n_averaged += 1
        part = 4 / (self.n_averaged + 3)
        blend(self.average, w, part)
        self.intercept += part * (b - self.intercept)

    @property
    def is_still(self) -> bool:
        """Whether nothing moves any more, and Σ a_i is next to nothing where an intercept is free."""
        o = self.objective
        balanced = o.intercept != "free" or abs(self.blocks.sums[0]) <= 1e-12 * o.total_cost
        return self.grown <= 0 and balanced

    @property
    def check_is_due(self) -> bool:
        """Whether the tolerance may be reached: the gap falls as the dual grows, in a ratio that the last look told."""
        if self.best is None or self.n_passes == 1 or self.unchecked >= _MOST_UNCHECKED:
            return True
        return self.ratio * self.grown <= self.solver.tol * abs(self.best.value)

    def check(self) -> None:
        """J at the average of the weights, and the dual value; one pass."""
        o, tol = self.objective, self.solver.tol
        a = self.dual_variables()
        slopes = o.rows.scatter_local(-a)
        point, product = o.at_with_product(o.join(self.average, self.intercept), slopes)
        point = point.with_best_intercept(0.05 * tol)
        if self.best is None and o.intercept == "free":
            self.blocks.centre = float(point.theta[-1])
        self.best = point if self.best is None else self.best.towards(point, 0.05 * tol)
        self.bound = max(self.bound, conjugate_bound(self.best, slopes, product))
        self.ratio = max(1.0, (self.best.value - self.bound) / max(self.grown, 1e-300))
        self.passes += 1
        self.unchecked = self.n_averaged = 0

    def dual_variables(self) -> Floats:
        """A copy of a, feasible also for a free intercept."""
        a = self.blocks.variables.of(np.arange(self.objective.rows.n_rows))
        if self.objective.intercept == "free":
            balance(a)
        return a

    def arrays(self) -> dict[str, Floats]:
        """What a run would go on from, beside θ."""
        return {"dual": self.objective.rows.in_data_order(self.dual_variables())}


def _read_ahead(objective: Objective, blocks: list[list[tuple[int, int]]]) -> Iterator[tuple[Ints, Block]]:
    """(the numbers, the rows) of each block; the next is read while one is worked on."""
    rows = objective.rows
    if rows.in_memory or len(blocks) < 2:
        yield from (_read(rows, runs) for runs in blocks)
        return
    with DaemonThreadPool(1) as pool:
        following: Future[tuple[Ints, Block]] = pool.submit(_read, rows, blocks[0])
        for runs in (*blocks[1:], None):
            found = following.result()
            if runs is not None:
                following = pool.submit(_read, rows, runs)
            yield found


def _read(rows: Rows, runs: list[tuple[int, int]]) -> tuple[Ints, Block]:
    """(the numbers, the rows) of several runs of rows."""
    pieces = [replace(rows.read(*run), labels=None, weights=None, queries=None) for run in runs]
    return np.concatenate([np.arange(*run) for run in runs]), concatenate(pieces)
