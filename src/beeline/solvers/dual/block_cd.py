"""Dual coordinate descent over rows that do not fit the memory: a block of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block, gather_from
from beeline.engines import Rows, RowVector
from beeline.engines.verbs import columns, products
from beeline.kernels import dot
from beeline.objective import Objective, Point, conjugate_bound
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.dual.blocks import DualBlocks, Geometry, RowsDual
from beeline.solvers.dual.class_blocks import ClassBlocks
from beeline.solvers.dual.class_dual_cd import HINGES
from beeline.solvers.dual.dual_cd import LOSSES_WITH_DUAL
from beeline.solvers.dual.shuffled import Centred
from beeline.solvers.dual.warm import dual_of, warm_start
from beeline.solvers.needs import FEWER_THAN_2_32, Needs
from beeline.solvers.options import SolverOptions, option
from beeline.solvers.state import snapshot_of
from beeline.solvers.streaming import Run, prefetched_blocks, read_some

__all__ = ["BlockCD", "BlockCDOptions"]

_MOST_UNCHECKED = 4  # passes without a look at the gap
_PIECES = 16  # runs of rows that a block is made of
_CACHE = 8  # part of the memory for rows that are kept from block to block
_ENTRY_BYTES, _ROW_BYTES = 8, 120  # of rows, and of what is held of each while its block is worked on
_NUMBERS = ("passes", "n_passes", "unchecked", "bound", "grown", "ratio", "n_averaged")  # of a run, beside its arrays


@dataclass(frozen=True, kw_only=True)
class BlockCDOptions(SolverOptions):
    """Options of block minimisation."""

    sweeps: int = option(10, "How often the rows of a block are descended upon while they are in memory.", least=1)
    cache: bool = option(True, "Whether rows that still move are kept from block to block (selective caching).")


class BlockCD(Solver):
    """Minimises J with L2 regularization through its dual, a block of rows at a time (Yu, Hsieh, Chang & Lin 2010).

    A block has as many rows as fit an eighth of the memory. A pass reads all of them once, block by block, the next one
    while the last is worked on; on its rows dual coordinate descent makes a few sweeps, while the variables of all
    others stay as they are. Which rows make up a block changes from pass to pass: sixteen runs of rows from anywhere.
    In blocks that stay the same, as in the paper, rows never meet those of another block, and many more passes are
    needed. Rows that have not been shrunk when their block is left are kept, as far as there is room, and belong to the
    following blocks too (selective block minimisation, Chang & Roth 2011).

    What it finds is what `DualCD` and `ClassDualCD` find, with the same certificate: a look at all rows, which takes
    one pass more, or two for several classes, gives J and the dual value. It is made when the dual's growth says that
    the tolerance may be reached.

    Memory: two blocks, and the rows that are kept; what belongs to single rows is on disk where rows are. The seed says
    in which order blocks and rows are taken. Options are those of `BlockCDOptions`.
    """

    name = "block_cd"
    needs = Needs(
        duals=LOSSES_WITH_DUAL,
        losses=HINGES,
        losses_named="multi-class hinges",
        omega="l2",
        nonnegative=False,
        rows="blocks",
        most_rows=FEWER_THAN_2_32,
    )
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
            arrays, snapshot = run.arrays, run.snapshot
            yield Step(best.theta, best.value, run.bound, run.passes, final=still, arrays=arrays, snapshot=snapshot)

    def resumes(self, objective: Objective) -> bool:
        """Always."""
        return True


class _Kept:
    """Rows that are kept from block to block.

    Attributes
    ----------
    numbers, block
        Which they are, and the rows; None before there are any.
    """

    def __init__(self, room: int, seed: int) -> None:
        self.room, self.seed = room, seed
        self.numbers: Ints = np.zeros(0, np.int64)
        self.block: Block | None = None

    def joined(self, numbers: Ints, block: Block) -> tuple[Ints, Block]:
        """A block, with the rows that are kept and are not in it."""
        if self.block is None:
            return numbers, block
        ordered = np.sort(numbers)
        at = np.minimum(np.searchsorted(ordered, self.numbers), len(ordered) - 1)
        others = np.flatnonzero(ordered[at] != self.numbers)
        if not len(others):
            return numbers, block
        all_rows = gather_from([(block, np.arange(block.n_rows)), (self.block, others)])
        return np.concatenate([numbers, self.numbers[others]]), all_rows

    def read_again(self, rows: Rows, numbers: Ints) -> None:
        """Keep rows of which the numbers alone are known."""
        longest = rows.n_rows // (rows.n_shards * _PIECES)
        self.numbers, self.block = numbers, read_some(rows, numbers, longest) if len(numbers) else None

    def take(self, numbers: Ints, block: Block, active: AnyArray) -> None:
        """Keep the rows that are active, at random as many as there is room for."""
        rows = np.flatnonzero(active)
        fitting = int(len(numbers) * self.room / max(1, block.nbytes + _ROW_BYTES * block.n_rows))
        if len(rows) > fitting:
            rows = np.sort(np.random.default_rng([self.seed, len(rows)]).permutation(rows)[:fitting])
        self.numbers, self.block = numbers[rows], block.gather(rows) if len(rows) else None


class _Passes:
    """The state of one run."""

    def __init__(self, solver: BlockCD, objective: Objective, start: State | None) -> None:
        self.solver, self.objective = solver, objective
        o, k = objective, objective.n_outputs
        self.several = k > 1
        self.passes, self.n_passes, self.unchecked = 0.0, 0, 0
        self.best: Point | None = None
        self.bound, self.grown, self.ratio = -math.inf, 0.0, math.inf
        self.dual = o.rows.map(columns.constant, value=np.zeros(k) if self.several else 0.0)
        w = np.zeros((o.rows.n_features, k)) if self.several else np.zeros(o.rows.n_features)
        self.blocks = self._blocks(w)
        if start is not None and start.snapshot is None:
            self._begin(start)
        room = _ALL if o.rows.memory is None else o.rows.memory // _CACHE
        self.kept = _Kept(room if solver.options.cache and o.rows.n_shards > 1 else 0, solver.seed)
        self.average, self.intercept, self.n_averaged = w.copy(), np.zeros(k) if self.several else 0.0, 0
        if (saved := snapshot_of(start)) is not None:
            self._restore(saved)

    def snapshot(self) -> dict[str, Any]:
        """All that the next pass goes on from; of rows that are kept their numbers, by which they are read again."""
        assert self.best is not None
        return {
            "best": self.best.snapshot(),
            "dual": self.objective.rows.pieces(self.dual),
            "blocks": self.blocks.snapshot(),
            "kept": self.kept.numbers,
            "average": self.average,
            "intercept": self.intercept,
            "numbers": {name: getattr(self, name) for name in _NUMBERS},
        }

    def _restore(self, saved: Mapping[str, Any]) -> None:
        rows = self.objective.rows
        self.best, self.dual = Point.restored(self.objective, saved["best"]), rows.from_pieces(saved["dual"])
        self.blocks.variables = RowsDual(rows, self.dual)
        self.blocks.restore(saved["blocks"])
        self.kept.read_again(rows, np.array(saved["kept"]))
        self.average[:] = saved["average"]
        self.intercept = np.array(saved["intercept"]) if self.several else saved["intercept"]
        vars(self).update(saved["numbers"])

    def _blocks(self, w: Floats) -> DualBlocks | ClassBlocks:
        o, seed, variables = self.objective, self.solver.seed, RowsDual(self.objective.rows, self.dual)
        if self.several:
            return ClassBlocks(o, self._geometry(), w, seed, variables)
        return DualBlocks(o.loss, self._geometry(), w, seed, variables)

    def _begin(self, start: State) -> None:
        """From dual variables of a start, or from what its weights say; of several classes from its weights alone."""
        o = self.objective
        if self.several or (o.rows.memory is not None and not o.rows.in_memory):
            self.best = o.at(start.theta)
            self.passes += 1
            return
        labels, costs = o.rows.gather_local(o.labels), o.rows.gather_local(o.costs)
        begin = warm_start(o, labels, costs, start, self.solver.tol, dual_of(start, o.rows))
        self.best, self.passes = begin.point, self.passes + begin.passes + 1
        self.blocks.variables.put(np.arange(o.rows.n_rows), begin.variables)
        g = self.blocks.geometry
        self.blocks.w[:] = o.split(o.weighted(self.dual))[0] / g.modulus
        assert isinstance(self.blocks, DualBlocks)
        means = dot(g.mean, g.modulus * self.blocks.w) if len(g.mean) else 0.0
        self.blocks.sums, self.blocks.centre = (float(begin.variables.sum()), means), begin.intercept

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
        for runs, block in prefetched_blocks(o.rows, self._pieces()):
            numbers, rows = self.kept.joined(runs, block)
            del block  # of which there is a copy now
            labels, costs = o.rows.pick(o.labels, numbers), o.rows.pick(o.costs, numbers)
            blocks.take(numbers, rows, labels, costs)
            for _ in range(self.solver.options.sweeps):
                growth = blocks.sweep()
                self.grown += growth
                self._average()
                if not growth:
                    break
            if self.kept.room:
                self.kept.take(numbers, rows, blocks.active())
            blocks.leave()
        if o.intercept == "free":
            blocks.recentre()
        self.passes += 1
        self.n_passes += 1
        self.unchecked += 1

    def _pieces(self) -> list[list[Run]]:
        """The runs of rows that make up each block of the next pass: all runs, in random order, some to a block."""
        rows = self.objective.rows
        n, n_blocks = rows.n_rows, rows.n_shards
        if rows.memory is not None and n_blocks > 1:  # what is held of short rows may be more than the rows
            n_blocks += -(-n_blocks * _ROW_BYTES * n // (_ENTRY_BYTES * max(1, rows.nnz)))
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
        self.average += part * (w - self.average)
        self.intercept = self.intercept + part * (b - self.intercept)

    @property
    def is_still(self) -> bool:
        """Whether nothing moves any more, and Σ a_i is next to nothing where an intercept is free."""
        o = self.objective
        off = float(np.abs(self.blocks.sums[0]).max())
        return self.grown <= 0 and (o.intercept != "free" or off <= 1e-12 * o.total_cost)

    @property
    def check_is_due(self) -> bool:
        """Whether the tolerance may be reached: the gap falls as the dual grows, in a ratio that the last look told."""
        if self.best is None or self.n_passes == 1 or self.unchecked >= _MOST_UNCHECKED:
            return True
        return self.ratio * self.grown <= self.solver.tol * abs(self.best.value)

    def check(self) -> None:
        """J at the average of the weights, and the dual value; one pass, or two for several classes."""
        o, tol = self.objective, self.solver.tol
        theta, slopes = o.join(self.average, self.intercept), self._slopes()
        if self.several:
            point, product = o.at(theta), o.weighted(slopes)
            self.passes += 1
        else:
            point, product = o.at_with_product(theta, slopes)
            point = point.with_best_intercept(0.05 * tol)
            if self.best is None and o.intercept == "free":
                self.blocks.centre = float(point.theta[-1])
        self.best = point if self.best is None else self.best.towards(point, 0.05 * tol)
        self.bound = max(self.bound, conjugate_bound(self.best, slopes, product))
        self.ratio = max(1.0, (self.best.value - self.bound) / max(self.grown, 1e-300))
        self.passes += 1
        self.unchecked = self.n_averaged = 0

    def _slopes(self) -> RowVector:
        """−a, feasible also for a free intercept of one score: the side that is too heavy is taken down."""
        rows, up, down = self.objective.rows, 1.0, 1.0
        if self.objective.intercept == "free" and not self.several:
            above, below = rows.sum(columns.signed_sums, self.dual).value
            up, down = min(1.0, -below / above) if above else 1.0, min(1.0, -above / below) if below else 1.0
        return rows.map(columns.scaled_by_sign, self.dual, up=-up, down=-down)

    def arrays(self) -> dict[str, Floats]:
        """What a run would go on from, beside θ; the variables of rows on disk stay there."""
        rows = self.objective.rows
        if self.several or (rows.memory is not None and not rows.in_memory):
            return {}
        return {"dual": -rows.gather(self._slopes())}


_ALL = 1 << 62  # bytes: no limit
