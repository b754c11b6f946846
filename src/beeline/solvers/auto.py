"""The registry of solvers, and which one to take."""

from __future__ import annotations

from beeline.exceptions import ParameterError
from beeline.objective import Objective
from beeline.solvers.base import Solver
from beeline.solvers.dual_cd import DualCD
from beeline.solvers.l1_cd import L1CD
from beeline.solvers.newton import Newton, RoundedNewton

__all__ = ["SOLVERS", "choose_solver"]

SOLVERS: dict[str, type[Solver]] = {kind.name: kind for kind in (Newton, RoundedNewton, DualCD, L1CD)}


def choose_solver(
    objective: Objective, name: str = "auto", *, tol: float = 1e-4, max_passes: float = 1000, seed: int = 0
) -> Solver:
    """The solver of that name, or for `auto` the one that should be fastest on the objective.

    Raises `ParameterError` for a pair that cannot work, with the names of the solvers that would.
    """
    if name != "auto" and name not in SOLVERS:
        raise ParameterError(f"there is no solver {name!r}; there are auto, {', '.join(SOLVERS)}")
    solvers = {key: kind.create(tol, max_passes, seed) for key, kind in SOLVERS.items()}
    works = [key for key, solver in solvers.items() if solver.refusal(objective) is None]
    if name == "auto" and works:
        return solvers[works[0]]
    if name in works:
        return solvers[name]
    pair = f"{objective.loss!r} with {objective.regularizer!r}"
    instead = f"take {' or '.join(works)}" if works else "no solver can take this pair"
    reason = f"the solver {name!r} {solvers[name].refusal(objective)}; " if name != "auto" else ""
    raise ParameterError(f"{reason}for {pair} {instead}")
