"""All solvers by name, and what `solver=` may be: a name, a name with options, or a solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beeline.exceptions import ParameterError
from beeline.solvers.base import Solver
from beeline.solvers.bundle.bundle import Bundle
from beeline.solvers.dual.block_cd import BlockCD
from beeline.solvers.dual.class_dual_cd import ClassDualCD
from beeline.solvers.dual.dual_cd import DualCD
from beeline.solvers.indexed.indexed import Indexed
from beeline.solvers.interior.interior_point import InteriorPoint
from beeline.solvers.l1.l1_cd import L1CD
from beeline.solvers.lbfgs import LBFGS
from beeline.solvers.newton.newton import Newton, SmoothedNewton
from beeline.solvers.stochastic.sgd import SGD
from beeline.solvers.truncated.relaxation import Relaxation

__all__ = ["SOLVERS", "SolverLike", "solver_name", "solver_settings", "the_solver"]

# Where several take a problem, the first is the one to take, unless `auto` knows better.
SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind
    for kind in (
        Newton,
        SmoothedNewton,
        DualCD,
        ClassDualCD,
        L1CD,
        InteriorPoint,
        Relaxation,
        LBFGS,
        Bundle,
        BlockCD,
        Indexed,
        SGD,
    )
}

SolverLike = str | tuple[str, Mapping[str, Any]] | Solver
"""What `solver=` may be: "bundle", ("bundle", {"variant": "bmrm"}), or Bundle(variant="bmrm")."""


def the_solver(solver: SolverLike) -> Solver | None:
    """The solver that is meant, with its options; None: `auto`."""
    if isinstance(solver, Solver):
        return solver
    name, options = _name_and_options(solver)
    if not isinstance(name, str) or (name != "auto" and name not in SOLVERS):
        raise ParameterError(_unknown(solver, name), parameter="solver")
    if name == "auto":
        if options:
            raise ParameterError(
                f"auto has no options, such as {min(options)!r}; name the solver that they are for", parameter="solver"
            )
        return None
    return SOLVERS[name](**options)


def solver_name(solver: SolverLike) -> str:
    """The name of the solver that is meant."""
    if isinstance(solver, str):
        return solver
    return solver.name if isinstance(solver, Solver) else solver[0]


def solver_settings(solver: SolverLike) -> dict[str, Any]:
    """As plain JSON for a model's settings: the name, options, and what a solver was told of tolerance and limits."""
    if isinstance(solver, str):
        return {"solver": solver}
    meant = the_solver(solver)
    if meant is None:
        return {"solver": "auto"}
    options = meant.options.to_json()
    record = {"solver": meant.name, "solver_options": options} if options else {"solver": meant.name}
    return record | meant.given


def _name_and_options(solver: Any) -> tuple[Any, Mapping[str, Any]]:  # noqa: ANN401
    """(a name, its options); what is neither a name nor such a pair has no name. JSON has lists for pairs."""
    if isinstance(solver, tuple | list) and len(solver) == 2 and isinstance(solver[1], Mapping):
        return solver[0], {str(key): value for key, value in solver[1].items()}
    return (solver, {}) if isinstance(solver, str) else (None, {})


def _unknown(solver: Any, name: Any) -> str:  # noqa: ANN401
    if isinstance(solver, type) and issubclass(solver, Solver):
        return f"give a solver, {solver.__name__}(), and not its class"
    if isinstance(name, str):
        return f"there is no solver {name!r}; there are auto, {', '.join(SOLVERS)}"
    return f"solver must be a name, a pair of a name and its options, or a solver, not {solver!r}"
