"""Dual coordinate descent over rows that do not fit the memory: a block of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block, gather_from
from beeline.engines import RowVector
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
from beeline.solvers.streaming import Picks, Reading, prefetched_blocks, read_some

__all__ = ["BlockCD", "BlockCDOptions"]

_MOST_UNCHECKED = 4  # passes without a look at the gap
_PIECES, _FEWEST_CHUNKS = 16, 8  # runs of rows that a block is made of; and how many do where they are whole chunks
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


class _Taken(NamedTuple):
    """Rows that are descended upon, or kept for that: their numbers, entries, labels and costs."""

    numbers: Ints
    block: Block
    labels: Floats
    costs: Floats


class _Kept:
    """Rows that are kept from block to block, with their labels and costs: on disk those would lie here and there.

    Attributes
    ----------
    rows
        The rows; None before there are any.
    """

    def __init__(self, room: int, seed: int) -> None:
        self.room, self.seed = room, seed
        self.rows: _Taken | None = None

    @property
    def numbers(self) -> Ints:
        """Which they are."""
        return np.zeros(0, np.int64) if self.rows is None else self.rows.numbers

    def joined(self, numbers: Ints, picks: Picks, labels: Floats, costs: Floats) -> _Taken:
        """A block, with the rows that are kept and are not in it."""
        if (kept := self.rows) is not None:
            ordered = np.sort(numbers)
            at = np.minimum(np.searchsorted(ordered, kept.numbers), len(ordered) - 1)
            if len(others := np.flatnonzero(ordered[at] != kept.numbers)):
                picks = [*picks, (kept.block, others)]
                numbers = np.concatenate([numbers, kept.numbers[others]])
                labels = np.concatenate([labels, kept.labels[others]])
                costs = np.concatenate([costs, kept.costs[others]])
        (block, places), *more = picks
        whole = not more and len(places) == block.n_rows
        return _Taken(numbers, block if whole else gather_from(picks), labels, costs)

    def read_again(self, o: Objective, numbers: Ints) -> None:
        """Keep rows of which the numbers alone are known."""
        if not len(numbers):
            self.rows = None
            return
        block = read_some(o.rows, numbers, o.rows.n_rows // (o.rows.n_shards * _PIECES))
        self.rows = _Taken(numbers, block, o.rows.pick(o.labels, numbers), o.rows.pick(o.costs, numbers))

    def take(self, taken: _Taken, active: AnyArray) -> None:
        """Keep the rows that are active, at random as many as there is room for."""
        numbers, block, labels, costs = taken
        rows = np.flatnonzero(active)
        fitting = int(len(numbers) * self.room / max(1, block.nbytes + _ROW_BYTES * block.n_rows))
        if len(rows) > fitting:
            rows = np.sort(np.random.default_rng([self.seed, len(rows)]).permutation(rows)[:fitting])
        self.rows = _Taken(numbers[rows], block.gather(rows), labels[rows], costs[rows]) if len(rows) else None


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
        self.kept.read_again(self.objective, np.array(saved["kept"]))
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
        for own, picks in prefetched_blocks(o.rows, self._readings()):
            taken = self.kept.joined(own, picks, o.rows.pick(o.labels, own), o.rows.pick(o.costs, own))
            del picks  # of which there is a copy now
            blocks.take(*taken)
            for _ in range(self.solver.options.sweeps):
                growth = blocks.sweep()
                self.grown += growth
                self._average()
                if not growth:
                    break
            if self.kept.room:
                self.kept.take(taken, blocks.active())
            blocks.leave()
        if o.intercept == "free":
            blocks.recentre()
        self.passes += 1
        self.n_passes += 1
        self.unchecked += 1

    def _readings(self) -> list[Reading]:
        """What is read in the next pass, and made into blocks: all rows, in runs in random order, some at a time.

        What is read is whole chunks, where enough of them fit the memory at one time for a block to have rows from
        everywhere: of parts of chunks all the rest would be read in vain.
        """
        rows = self.objective.rows
        n, n_blocks = rows.n_rows, rows.n_shards
        if rows.memory is not None and n_blocks > 1:  # what is held of short rows may be more than the rows
            n_blocks += -(-n_blocks * _ROW_BYTES * n // (_ENTRY_BYTES * max(1, rows.nnz)))
        if n_blocks == 1:
            return [Reading([(0, n)])]
        at_once = 1 if rows.in_memory else n_blocks // rows.n_shards  # blocks, whose rows alone fit the memory
        n_readings = -(-n_blocks // at_once)
        runs = [] if rows.in_memory else rows.runs(_ENTRY_BYTES * rows.nnz // (n_readings * _PIECES))
        each = -(-len(runs) // n_readings)
        if each < _FEWEST_CHUNKS:
            at_once, each, size = 1, _PIECES, max(1, -(-n // (n_blocks * _PIECES)))
            runs = [(start, min(start + size, n)) for start in range(0, n, size)]
        random = np.random.default_rng([self.solver.seed, self.n_passes])
        order = [runs[k] for k in random.permutation(len(runs))]
        return [Reading(order[k : k + each], at_once) for k in range(0, len(order), each)]

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
