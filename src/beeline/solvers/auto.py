"""Which solver to take.

`choose_solver` goes by the loss, the regularizer, the shape of the data and how hard the rows pull at the weights, and
for a store by the memory that is free, or that was said. It knows neither the clock nor the number of threads, so that
the same problem in memory always goes the same way. docs/solvers.md says the same for users.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from beeline.engines.verbs import products
from beeline.exceptions import ParameterError
from beeline.objective import Objective
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.dual.block_cd import BlockCDOptions
from beeline.solvers.needs import refusal, unmet
from beeline.solvers.newton.newton import MOST_FEATURES, Newton
from beeline.solvers.registry import SOLVERS, SolverLike, the_solver

__all__ = ["SOLVERS", "Relay", "Started", "choose_solver"]

# Newton's method needs about so many steps, with kinks to round off more than without.
_SMOOTHED_STEPS = 25
# Dual coordinate descent is fast on smooth losses while the Hessian's usual eigenvalue is at most so many times λ.
_GENTLE = 1000.0
_SAMPLE = 1000
# Coordinate descent on classes is fast, or hopeless: from here on Newton's method with a smoothed loss goes on, sooner
# where its steps cost next to nothing.
_CLASS_PASSES, _MOST_CLASS_WEIGHTS = 500, 100_000
_FEW_CLASS_PASSES, _FEW_CLASSES, _FEW_CLASS_WEIGHTS = 200, 10, 2000
# Solvers that visit one row after the other: of several classes, of one score, and where rows do not fit the memory.
_BY_ROWS = ("class_dual_cd", "dual_cd", "block_cd")
# With so few weights Newton's method is faster than descent upon blocks; with more, its passes over a disk are dearer.
_FEW_WEIGHTS, _DEARER = 50, 4.0
# The interior-point method takes few steps whatever the problem, and many passes in each of them.
_FEW_ROWS, _FEW_FEATURES = 20_000, 2000
# The bundle method needs some hundred passes, or thousands where weights are large.
_BUNDLE_PASSES = 600
# Of entries times classes: from here on, a start by so many stochastic passes saves more than it takes.
_MUCH, _START_PASSES = 1 << 22, 2


def choose_solver(
    objective: Objective,
    solver: SolverLike = "auto",
    *,
    tol: float = 1e-4,
    max_passes: float = 1000,
    seed: int = 0,
    warm: bool = False,
    indexed: bool = True,
) -> Solver:
    """The solver that is meant, or for `auto` the one that should be fastest on the objective.

    It is a new one: a solver that was given is never changed. Tolerance, limit and seed count where it was not told.
    `warm` says that there is a start near the optimum, of which Newton's method makes the most;
    `indexed`, whether `auto` goes by an index that was opened.

    Raises `ParameterError` for a pair that cannot work, with the names of the solvers that would.
    """
    works = _Working(objective, tol, max_passes, seed)
    meant = None if isinstance(solver, str) and solver == "auto" else the_solver(solver)
    if meant is not None and meant.takes(objective):
        return meant.with_defaults(tol, max_passes, seed)
    if meant is None and (found := _fastest(objective, works, warm, indexed)) is not None:
        return found
    pair = f"{objective.loss!r} with {objective.regularizer!r}"
    if not (those := list(works)):
        reasons = "; ".join(f"{key} {refusal(kind.needs, objective)}" for key, kind in SOLVERS.items())
        raise ParameterError(f"no solver can take {pair}: {reasons}", parameter="loss")
    assert meant is not None
    offer = " or ".join(name for name in those if name != meant.name) or "no options"
    raise ParameterError(
        f"the solver {meant.name!r} {meant.refusal(objective)}; for {pair} take {offer}", parameter="solver"
    )


class _Working:
    """The solvers that take an objective, by what they need, each asked when it matters."""

    def __init__(self, objective: Objective, tol: float, max_passes: float, seed: int) -> None:
        self.objective, self.settings = objective, (tol, max_passes, seed)
        self.known: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        if name not in self.known:
            self.known[name] = unmet(SOLVERS[name].needs, self.objective) is None
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in SOLVERS if name in self)

    def __getitem__(self, name: str) -> Solver:
        return SOLVERS[name](*self.settings)


def _fastest(objective: Objective, works: _Working, warm: bool, indexed: bool) -> Solver | None:
    if indexed and objective.rows.index is not None and "indexed" in works:  # which was opened because it pays
        return works["indexed"]
    by_rows = next((name for name in _BY_ROWS if name in works), None)
    if by_rows is None:
        found = _without_dual(objective, works)
        pays = found is not None and found.name == "newton" and not warm and _suits_stochastic_start(objective, works)
        return Started(_stochastic_start(works), found) if found is not None and pays else found
    if objective.n_outputs > 1:
        return _for_class_hinges(objective, works, by_rows)
    if objective.has_curvature and "newton" in works:
        return works["dual_cd"] if _suits_dual(objective, works, warm) else _with_second("newton", works)
    if objective.size > MOST_FEATURES:
        return works[by_rows]
    return _by_rows_at_first(objective, works) if by_rows == "dual_cd" else _by_blocks_at_first(objective, works)


def _without_dual(objective: Objective, works: _Working) -> Solver | None:
    """Where the dual is not known."""
    if "interior_point" in works:
        return _for_pieces(objective, works)
    first = next(iter(works), None)
    return _with_second(first, works) if first is not None else None


def _suits_stochastic_start(objective: Objective, works: _Working) -> bool:
    """Whether two passes over single rows save more passes of Newton's method: over several classes they do."""
    rows = objective.rows
    return objective.n_outputs > 1 and rows.in_memory and rows.nnz * objective.n_outputs >= _MUCH and "sgd" in works


def _stochastic_start(works: _Working) -> Solver:
    tol, _, seed = works.settings
    return SOLVERS["sgd"](tol, _START_PASSES, seed, early_stopping=False)


def _with_second(first: str, works: _Working) -> Solver:
    """The solver; behind Newton's method one that needs no curvature, for where losses have become straight."""
    return Relay(works[first], works["lbfgs"]) if first == "newton" and "lbfgs" in works else works[first]


def _by_blocks_at_first(objective: Objective, works: _Working) -> Solver:
    """The same where rows do not fit the memory: passes are dear, and with few weights Newton's method needs few."""
    if "smoothed_newton" not in works:
        return works["block_cd"]
    if objective.size <= _FEW_WEIGHTS:
        return works["smoothed_newton"]
    passes = _DEARER * _passes_to_relay(objective) / _sweeps("block_cd")
    return Relay(works["block_cd"], works["smoothed_newton"], passes)


def _by_rows_at_first(objective: Objective, works: _Working) -> Solver:
    """For a hinge and its like: coordinate descent is fast, or hopeless."""
    first, passes = works["dual_cd"], _passes_to_relay(objective)
    if "interior_point" in works and _suits_interior_point(objective):
        return Relay(first, works["interior_point"], passes)
    if "smoothed_newton" not in works:
        return first
    relay = Relay(first, works["smoothed_newton"], passes)
    return Relay(relay, works["interior_point"]) if "interior_point" in works else relay


def _for_class_hinges(objective: Objective, works: _Working, by_rows: str) -> Solver:
    if "smoothed_newton" in works and objective.size <= _MOST_CLASS_WEIGHTS:
        few = objective.n_outputs <= _FEW_CLASSES and objective.size <= _FEW_CLASS_WEIGHTS
        passes = _FEW_CLASS_PASSES if few else _CLASS_PASSES
        return Relay(works[by_rows], works["smoothed_newton"], passes / _sweeps(by_rows))
    return works[by_rows]


def _sweeps(by_rows: str) -> int:
    """How often a pass descends upon a row."""
    return BlockCDOptions().sweeps if by_rows == "block_cd" else 1


def _for_pieces(objective: Objective, works: _Working) -> Solver:
    """For a piecewise linear loss without a dual solver: by the number of rows and features."""
    if _suits_interior_point(objective):
        return works["interior_point"]
    if "smoothed_newton" in works:
        return works["smoothed_newton"]
    if objective.size <= MOST_FEATURES:
        return Relay(works["bundle"], works["interior_point"], _BUNDLE_PASSES)
    return works["bundle"]


def _suits_interior_point(objective: Objective) -> bool:
    """Whether the interior-point method's many passes are cheap."""
    n = objective.rows.n_rows
    return n <= _FEW_ROWS and min(objective.size, n) <= _FEW_FEATURES


def _suits_dual(objective: Objective, works: _Working, warm: bool) -> bool:
    """Whether dual coordinate descent should beat Newton's method on a smooth loss; in blocks it hardly ever does."""
    cold = "dual_cd" in works and not warm and not Newton.takes_cholesky(objective)
    return cold and _stiffness(objective) <= _GENTLE


def _stiffness(objective: Objective) -> float:
    """Σ c_i‖x_i‖²/(λd), from the first rows: a usual eigenvalue of the losses' Hessian against that of Ω."""
    n, d = objective.rows.n_rows, objective.rows.n_features
    total, count = objective.rows.sum(products.mean_squared_norm, objective.costs, most=_SAMPLE).value
    modulus = objective.strength * objective.regularizer.l2
    pull = total / count / modulus if count else 0.0
    return pull * n / max(1, d)


def _passes_to_relay(objective: Objective) -> float:
    """How many passes of dual coordinate descent cost as much as all of Newton's method with a smoothed loss.

    In nanoseconds: a pass with its looks, and a Newton step whose Hessian is made of a third of the rows.
    """
    n, d, nnz = objective.rows.n_rows, objective.size, objective.rows.nnz
    a_pass = 2.5 * nnz + 30 * n + 1
    a_step = (5 + nnz / max(1, n) / 6) * nnz + 30 * n + d**3 / 3
    return _SMOOTHED_STEPS * a_step / a_pass


class Relay(Solver):
    """Two solvers, the second from where the first got to: never much more than twice the time of the better one.

    Dual coordinate descent needs anything from ten passes to thousands, and nobody knows before; Newton's method with
    a smoothed loss needs much the same on all data with few features. So the first runs for as long as the second would
    take. Where the first can do no better, by rounding or because features are of too different sizes for it, the
    second goes on at once.

    Parameters
    ----------
    first, second
        The solvers; the first may be a relay itself.
    passes
        After how many passes the second takes over; ∞: not before the first can do no better.
    """

    def __init__(self, first: Solver, second: Solver, passes: float = math.inf) -> None:
        self.name, self.row_arrays, self.needs = first.name, first.row_arrays, first.needs
        super().__init__(first.tol, first.max_passes, first.seed)
        self.first, self.second, self.passes = first, second, passes

    def __reduce__(self) -> tuple[Any, ...]:
        return _relay, (self.first, self.second, self.passes, self.time_limit)

    def with_defaults(self, tol: float, max_passes: float, seed: int) -> Relay:
        """Both with what was not said to them as given here."""
        first, second = (solver.with_defaults(tol, max_passes, seed) for solver in (self.first, self.second))
        return _relay(first, second, self.passes, self.time_limit)

    def takes(self, objective: Objective) -> bool:
        """Whether both do."""
        return self.first.takes(objective) and self.second.takes(objective)

    def refusal(self, objective: Objective) -> str | None:
        """What either needs."""
        return self.first.refusal(objective) or self.second.refusal(objective)

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """That of the first."""
        step = self.first.solve_in_kernel(objective, min(max_passes, self.passes))
        return step if step is None or step.solver else replace(step, solver=self.first.name)

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """The steps of the first, then of the second."""
        for step in self.first.steps(objective, start):
            yield replace(step, solver=step.solver or self.first.name, final=False)
            start, passes = State(step.theta), step.passes
            if passes >= self.passes or step.final:
                break
        for step in self.second.steps(objective, start):
            yield replace(step, passes=passes + step.passes, solver=self.second.name)


def _relay(first: Solver, second: Solver, passes: float, time_limit: float | None) -> Relay:
    """A relay with a time limit, as pickles make it again."""
    return Relay(first, second, passes).with_time_limit(time_limit)


class Started(Relay):
    """A solver that begins where another one, which certifies nothing, got to; at once where there is a start.

    Parameters
    ----------
    first, second
        Who makes the start, by its own limit, and who goes on from there.
    """

    def __init__(self, first: Solver, second: Solver) -> None:
        super().__init__(first, second)
        self.name, self.row_arrays, self.needs = second.name, second.row_arrays, second.needs
        self.tol, self.max_passes, self.seed = second.tol, second.max_passes, second.seed

    def __reduce__(self) -> tuple[Any, ...]:
        return _started, (self.first, self.second, self.time_limit)

    def with_defaults(self, tol: float, max_passes: float, seed: int) -> Started:
        """Both with what was not said to them as given here."""
        first, second = (solver.with_defaults(tol, max_passes, seed) for solver in (self.first, self.second))
        return _started(first, second, self.time_limit)

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """None: there is much to do."""
        return None

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """The steps of the first, then of the second; snapshots are of neither."""
        if start is not None:
            yield from self.second.steps(objective, start)
            return
        for step in super().steps(objective, start):
            yield replace(step, snapshot=None)


def _started(first: Solver, second: Solver, time_limit: float | None) -> Started:
    """The same, with a time limit, as pickles make it again."""
    return Started(first, second).with_time_limit(time_limit)
