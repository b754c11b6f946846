"""What a run says: each step, why it stopped, and the result in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from beeline._lazy import cached_property
from beeline._types import AnyArray, Floats
from beeline._words import count, percentage
from beeline.objective import Point
from beeline.solvers.state import State

__all__ = ["Callback", "Result", "Status", "Step", "TracePoint", "distance_in_words", "relative_gap", "rows_outside"]

_NO_STATE = State(np.zeros(0))
_PART = 0.5  # of a pass; less is told in per cent


class Status(Enum):
    """Why a solver stopped.

    `UNPROVEN` is the end of a run that has no certificate to give: of a loss that is not convex, or by a rule of the
    solver's own that proves nothing. Such a run never counts as `CONVERGED`.
    """

    CONVERGED = "stopped"
    UNPROVEN = "ended without a certificate"
    LIMIT = "reached its pass limit"
    TIME = "reached its time limit"
    STALLED = "can make no more progress in double precision"
    FAILED = "failed"
    INTERRUPTED = "was interrupted"
    CALLBACK = "was stopped by the callback"


@dataclass(frozen=True)
class Step:
    """Where a solver is after an iteration.

    Attributes
    ----------
    theta, objective
        The point (weights, what the loss owns, intercepts) and J there.
    bound
        A proven lower bound of the optimum, −∞ when there is none yet.
    passes
        Passes over the data so far; a shrunken pass counts as its fraction.
    seconds
        Time since the start.
    final
        The solver can do no better.
    ending
        Why the solver is done though nothing is proven, in words; empty: it is not.
    solver
        Who took the step, where several work together.
    scale
        Objectives below this are as good as zero.
    arrays
        Gives what else the solver would go on from, by name, such as its dual variables.
    facts
        What else the solver has to say, by name.
    iterations
        For how many iterations it stands: for one, but where a kernel took all of them together.
    point
        The point itself, where its scores were computed from θ: then J there need not be evaluated anew.
    snapshot
        Gives all that the solver goes on from after this step, to the same bits: numbers, texts and arrays, in lists
        and dictionaries. It is asked for at once, and holds views. None: the solver cannot say.
    forget
        Gives back what the solver keeps of every row, while J is evaluated anew; it is computed again when the solver
        goes on.
    evaluated
        Whether J is a sum over all rows. Where it is not, it is what the solver can say without the pass that this
        would take: proven where there is a bound, else an estimate. The last such point is the best one. Where the
        rows are in memory, it is evaluated if the run ends there.
    limited
        Whether it is final only since the limit of passes is used up.
    estimate
        That J is an estimate, and of what, in words; empty: it is none.
    remark
        What else there is to say of θ, in words, behind the ending.
    outputs
        Gives the weights and intercepts of all outputs, and what the loss owns, where one problem has them all; None:
        several problems are solved, each of which has a part.
    model
        Gives the model at this step, of an estimator or command whose one problem it is; None: there is none yet.
    """

    theta: Floats
    objective: float
    bound: float
    passes: float
    seconds: float = 0.0
    final: bool = False
    ending: str = ""
    solver: str | None = None
    scale: float = 0.0
    arrays: Callable[[], Mapping[str, Floats]] | None = None
    facts: dict[str, float] = field(default_factory=dict)
    iterations: int = 1
    point: Point | None = None
    evaluated: bool = True
    limited: bool = False
    estimate: str = ""
    remark: str = ""
    snapshot: Callable[[], Mapping[str, Any]] | None = None
    forget: Callable[[], None] | None = None
    outputs: Callable[[], tuple[Floats, Floats, Floats | None]] | None = None
    model: Callable[[], Any] | None = None

    @property
    def gap(self) -> float:
        """(J − J⁻)/|J|: at most this far, relatively, from the optimum."""
        return relative_gap(self.objective, self.bound, self.scale)

    def __str__(self) -> str:
        gap = percentage(self.gap) if math.isfinite(self.gap) else "unknown"
        return f"pass {self.passes:6.0f}   objective {self.objective:.6g}   gap {gap}   {self.seconds:.1f} s"


class TracePoint(NamedTuple):
    """How far a solver was after an iteration: a row of a trace.

    Attributes
    ----------
    passes, seconds
        Passes over the data and time since the start.
    objective, gap
        The least J so far, and the relative distance from the optimum that is certified; ∞ where no bound is known yet.
    facts
        What else the solver has to say, by name.
    """

    passes: float
    seconds: float
    objective: float
    gap: float
    facts: Mapping[str, float] = MappingProxyType({})


def relative_gap(objective: float, bound: float, scale: float) -> float:
    """(J − J⁻)/|J|, where a J below the scale is as good as zero; never negative, ∞ where J or a bound is not known."""
    if math.isnan(objective):
        return math.inf
    if objective <= bound:
        return 0.0
    size = max(abs(objective), scale)
    return (objective - bound) / size if size else math.inf


@dataclass(frozen=True)
class Result:
    """What a solver found.

    Attributes
    ----------
    theta, objective
        The best point, and J there, evaluated anew, unless `estimate` says that it was not; NaN where that cannot be
        done.
    bound
        A proven lower bound of the optimum; −∞ when there is none.
    status, iterations, passes, seconds
        Why it stopped and what it took.
    solver
        The solver's name.
    scale
        Objectives below this are as good as zero.
    null
        J of the best intercepts alone.
    trace
        A `TracePoint` (passes, seconds, objective, gap) after every iteration; `beeline.plot_convergence` draws it.
    state
        Where it got to: θ, with dual variables of a solver that has them. What another run begins from.
    facts
        What else the solver has to say after its last iteration, by name. What is said of rows that are cut off is
        true of θ.
    error
        What it failed by, where it did: θ is then the best intercept alone.
    ending
        Why a run without a certificate ended, in words; empty where there is one, or a limit ended it.
    estimate
        That J is an estimate, in words, where a pass over all rows was not taken for it; empty: it is none.
    doubt
        What is wrong with the loss, or Ω, where training got to, so that no bound holds, and what to do; None: nothing.
    """

    theta: Floats
    objective: float
    bound: float
    status: Status
    iterations: int
    passes: float
    seconds: float
    solver: str
    scale: float = 0.0
    null: float = math.inf
    trace: list[TracePoint] = field(repr=False, default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    state: State = field(repr=False, default=_NO_STATE)  # θ alone, where none is given
    ending: str = ""
    estimate: str = ""
    error: str | None = None
    doubt: str | None = None

    def __post_init__(self) -> None:
        if self.state is _NO_STATE:
            counters = {"iterations": self.iterations, "passes": self.passes}
            object.__setattr__(self, "state", State(self.theta, {}, counters, self.solver))

    @cached_property
    def gap(self) -> float:
        """The relative distance from the optimum that the point is certified to have at most."""
        return relative_gap(self.objective, self.bound, self.scale)

    @property
    def distance(self) -> tuple[float, float]:
        """What says which result is the worst: the gap; of those without one, that of the last convex problem."""
        return self.gap, self.facts.get("convex_gap", 0.0)

    def to_document(self) -> dict[str, Any]:
        """Itself as numbers, texts and arrays, in lists and dictionaries."""
        record = {its.name: getattr(self, its.name) for its in fields(self)}
        state = self.state
        more = {"theta": state.theta, "arrays": dict(state.arrays), "counters": dict(state.counters)}
        return record | {"status": self.status.name, "state": more | {"solver": state.solver}}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Result:
        """The result that `to_document` described."""
        state = document["state"]
        arrays = {name: np.array(array) for name, array in state["arrays"].items()}
        restored = State(np.array(state["theta"]), arrays, state["counters"], state["solver"])
        more = {"theta": np.array(document["theta"]), "status": Status[document["status"]], "state": restored}
        return cls(**{**document, **more, "trace": [TracePoint(*point) for point in document["trace"]]})

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        passes = count(round(self.passes), "pass")
        if self.passes < _PART:
            passes = f"{percentage(self.passes, 2)} of a pass"
        how = f": {self.ending}" if self.ending else f", {distance_in_words(self.gap)}"
        return f"{self.status.value} after {passes}{how}{self.estimate and f'; {self.estimate}'}"


def rows_outside(results: Sequence[Result]) -> AnyArray | None:
    """The numbers of the rows that a loss has cut off, in any problem; None where it cuts off none."""
    outside = [result.state.arrays["outside"] for result in results if "outside" in result.state.arrays]
    return np.flatnonzero(np.any(outside, axis=0)) if outside else None


def distance_in_words(gap: float | None) -> str:
    """What a gap proves: (J − J⁻)/J = g means that J is at most g/(1 − g) of J⁻ above it; rounded up, never down."""
    if gap is None or not gap < 1:
        return "an unknown distance above the optimum"
    percent = 100 * gap / (1 - gap)
    if percent > 0:
        unit = 10.0 ** min(0, math.floor(math.log10(max(percent, 1e-12))) - 1)
        percent = math.ceil(percent / unit) * unit
    return f"at most {percent:.{2 if percent < 99.5 else 6}g} % above the optimum"


Callback = Callable[[Step], bool | None]
"""Is called after every iteration; returning True stops the solver."""
