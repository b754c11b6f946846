"""What a solver is: a generator of steps with a tolerance, limits, options and needs.

`tol` means the same for every solver: the relative distance from the optimum, (J − J⁻)/|J| with a proven bound J⁻. The
loop that goes through the steps is in `loop.py`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

from beeline._sentences import Argument, Sentence
from beeline._types import Floats
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.objective import Objective
from beeline.solvers.checkpoint import RunCheckpoint
from beeline.solvers.loop import SolverRun, never_negative
from beeline.solvers.needs import Needs, refusal, unmet
from beeline.solvers.options import SolverOptions
from beeline.solvers.result import (
    Callback,
    Result,
    Status,
    Step,
    TracePoint,
    distance_in_words,
    relative_gap,
)
from beeline.solvers.state import State, as_state

__all__ = [
    "ROUNDING_GAP",
    "Callback",
    "Result",
    "Solver",
    "State",
    "Status",
    "Step",
    "TracePoint",
    "distance_in_words",
    "never_negative",
    "relative_gap",
]
# Below these, a kernel that takes all iterations at once may have nothing to show for them.
_FEW_PASSES, _FEW_SECONDS = 20.0, 1.0
# A gap that rounding alone may leave; who asks for less, and gets this, has got all there is.
ROUNDING_GAP = 1e-8
# What a solver goes by where neither it nor anybody else was told.
_TOL, _MAX_PASSES, _SEED = 1e-4, 1000.0, 0


class Solver(ABC):
    """Minimises an objective.

    A solver that is handed to an estimator, a search or `train` keeps what was said to it. What was not said (None) is
    as the estimator has it; where a solver is used by itself, it is 1e-4, 1000 and 0.

    Parameters
    ----------
    tol
        Stop when the certified relative distance from the optimum is at most this.
    max_passes
        Stop after so many passes over the data.
    seed
        The seed of what is random, of a solver that takes rows in random order.
    **options
        Those of the solver, as its `kind_of_options` lists them.

    Attributes
    ----------
    time_limit
        Stop after the iteration in which so many seconds are over, as `with_time_limit` says; None: no limit.
    options
        All options, with the defaults of those that were not given.
    needs
        What it needs of loss, regularizer and rows.
    row_arrays
        The arrays of a `State` that it goes on from, each with an entry a row.
    certifies
        Whether it looks for a bound, and so for the tolerance; one that does not ends by a rule of its own.
    """

    name: str
    needs: Needs = Needs()
    kind_of_options: ClassVar[type[SolverOptions]] = SolverOptions
    row_arrays: tuple[str, ...] = ()
    certifies: ClassVar[bool] = True
    default_options: ClassVar[SolverOptions] = SolverOptions()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.default_options = cls.kind_of_options()

    def __init__(
        self,
        tol: float | None = None,
        max_passes: float | None = None,
        seed: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        self._given = tol, max_passes, seed
        self.tol = _TOL if tol is None else tol
        self.max_passes = _MAX_PASSES if max_passes is None else max_passes
        self.seed = _SEED if seed is None else seed
        self.time_limit: float | None = None
        if not self.tol > 0:
            raise ParameterError(Argument("tol"), f" must be positive, not {tol}")
        if not self.max_passes > 0:
            raise ParameterError(Argument("max_passes"), f" must be positive, not {max_passes}")
        if self.seed < 0:
            raise ParameterError(Argument("seed"), f" must not be negative, not {seed}")
        self.options = self.default_options
        if options:
            self.options = self.kind_of_options.of(self.name, options)
            self.needs = self.options.refine(self.needs)

    @property
    def given(self) -> dict[str, float]:
        """What was said to it of tolerance, limit and seed, by name."""
        named = zip(("tol", "max_passes", "seed"), self._given, strict=True)
        return {name: value for name, value in named if value is not None}

    def __repr__(self) -> str:
        said = self.given | self.options.given
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles are what was said, and nothing that a run has kept, such as the rows."""
        return {"settings": self.given, "options": self.options.given, "seconds": self.time_limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(vars(_again(type(self), **state)))

    def with_defaults(self, tol: float, max_passes: float, seed: int) -> Self:
        """A new solver with the same options; what was not said to this one is as given here."""
        settings = {"tol": tol, "max_passes": max_passes, "seed": seed} | self.given
        again: Self = _again(type(self), settings, self.options.given, self.time_limit)
        return again

    def with_time_limit(self, seconds: float | None) -> Self:
        """The same solver, with so much time, or less where it has less already; None: no other limit."""
        if seconds is None or (self.time_limit is not None and self.time_limit <= seconds):
            return self
        limited = object.__new__(type(self))
        vars(limited).update(vars(self))  # with what it keeps of the rows, which several problems share
        limited.time_limit = seconds
        return limited

    def takes(self, objective: Objective) -> bool:
        """Whether it can take the objective."""
        return unmet(self.needs, objective) is None

    def refusal(self, objective: Objective) -> str | None:
        """Why it cannot take the objective, as the rest of a sentence; None where it can."""
        return refusal(self.needs, objective)

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """All iterations in one step, for a problem so small that a kernel takes them before Python takes one; or None.

        It may take about so many passes, and is not asked for where there is a start, a limit that may come in the
        middle of it, or a callback, which wants to see how training goes.
        """
        return None

    @abstractmethod
    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """Iterate from a state (None: zero), yielding after every iteration."""

    def solve(
        self, objective: Objective, start: Floats | State | None = None, callback: Callback | None = None
    ) -> Result:
        """Minimise; warns with a sentence when it ends before the tolerance, returns the best so far on Ctrl-C."""
        result = self.run(objective, start, callback)
        if concern := self.concern(result):
            warnings.warn(concern, ConvergenceWarning, stacklevel=2)
        return result

    def concern(self, result: Result) -> str | None:
        """What to know, and to change, where a result missed the tolerance; None where it did not."""
        if result.gap <= max(self.tol, ROUNDING_GAP):
            return None
        if result.doubt:
            return f"{result.solver} {result.sentence}, since {result.doubt}"
        if result.status in (Status.LIMIT, Status.TIME):
            name = "max_passes" if result.status is Status.LIMIT else "time_limit"
            return Sentence(
                f"{result.solver} {result.sentence}; raise ",
                Argument(name),
                f" (now {getattr(self, name):g}) or ",
                Argument("tol"),
                f" (now {self.tol:g}), or scale the features",
            )
        if result.status is Status.STALLED:
            return f"{result.solver} {result.sentence}; scale the features, or take another solver, loss or C"
        return None

    def run(
        self,
        objective: Objective,
        start: Floats | State | None = None,
        callback: Callback | None = None,
        *,
        watched: bool | None = None,
    ) -> Result:
        """Minimise, without a warning; `watched` says whether the callback wants to see every iteration (None: yes)."""
        if not self.takes(objective):
            raise ParameterError(f"the solver {self.name!r} {self.refusal(objective)}", parameter="solver")
        return self.minimise(objective, start, callback, watched=watched)

    def minimise(
        self,
        objective: Objective,
        start: Floats | State | None = None,
        callback: Callback | None = None,
        *,
        watched: bool | None = None,
        checkpoint: RunCheckpoint | None = None,
    ) -> Result:
        """As `run`, for an objective that the solver is known to take; a run that has a checkpoint goes on from it."""
        begin = as_state(start)
        if begin is not None:
            begin.check(objective, self.row_arrays)
        watched = callback is not None if watched is None else watched
        saved = None if checkpoint is None else checkpoint.load()
        if saved is not None and "result" in saved:
            return Result.from_document(saved["result"])
        run = SolverRun(self, objective, callback, begin, checkpoint)
        if saved is not None:
            begin = run.restore(saved["run"], saved["steps"])
        result = run.through(self._all_steps(objective, begin, watched, run))
        if checkpoint is not None:
            checkpoint.finish(result)
        return result

    @property
    def learns_classes_together(self) -> bool:
        """Whether it learns each class against the rest on one walk over the rows, as one problem of all of them."""
        return False

    def keeps_point(self, objective: Objective) -> bool:
        """Whether what it finds is kept where no weights at all have a lower J."""
        return False

    def resumes(self, objective: Objective) -> bool:
        """Whether its steps give snapshots, from which `steps` goes on to the same bits."""
        return False

    def _all_steps(self, objective: Objective, start: State | None, watched: bool, run: SolverRun) -> Iterator[Step]:
        """What a kernel solves at once, and from there on the steps."""
        passes = run.passes_before
        limited = self.max_passes < _FEW_PASSES or (self.time_limit is not None and self.time_limit < _FEW_SECONDS)
        free = start is None and not watched and not limited
        if free and (first := self.solve_in_kernel(objective, self.max_passes)) is not None:
            yield first
            start, passes = State(first.theta, first.arrays() if first.arrays else {}), first.passes
            run.passes_before = passes
        for step in self.steps(objective, start):
            yield replace(step, passes=passes + step.passes) if passes else step


def _again(kind: type[Any], settings: dict[str, Any], options: dict[str, Any], seconds: float | None) -> Any:  # noqa: ANN401
    """A solver of that kind, made anew."""
    return kind(**settings, **options).with_time_limit(seconds)
