"""All solvers by name, and what `solver=` may be: a name, a name with options, or a solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from beeline._forks import import_late
from beeline._words import offer, quoted
from beeline.exceptions import ParameterError
from beeline.solvers.base import Solver

__all__ = ["SOLVERS", "SolverLike", "solver_name", "solver_settings", "the_solver"]


class _Registry(Mapping[str, type[Solver]]):
    """Solvers by name, in order; each is loaded when it is first asked for: a training needs one or two of them."""

    def __init__(self, homes: Mapping[str, tuple[str, str]]) -> None:
        self._homes, self._loaded = homes, dict[str, type[Solver]]()

    def __getitem__(self, name: str) -> type[Solver]:
        if name not in self._loaded:
            module, kind = self._homes[name]
            self._loaded[name] = getattr(import_late(f"beeline.solvers.{module}"), kind)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


# Where several take a problem, the first is the one to take, unless `auto` knows better.
SOLVERS = _Registry(
    {
        "newton": ("newton.newton", "Newton"),
        "smoothed_newton": ("newton.newton", "SmoothedNewton"),
        "dual_cd": ("dual.dual_cd", "DualCD"),
        "class_dual_cd": ("dual.class_dual_cd", "ClassDualCD"),
        "l1_cd": ("l1.l1_cd", "L1CD"),
        "interior_point": ("interior.interior_point", "InteriorPoint"),
        "relaxation": ("truncated.relaxation", "Relaxation"),
        "lbfgs": ("lbfgs", "LBFGS"),
        "bundle": ("bundle.bundle", "Bundle"),
        "block_cd": ("dual.block_cd", "BlockCD"),
        "indexed": ("indexed.indexed", "Indexed"),
        "sgd": ("stochastic.sgd", "SGD"),
    }
)

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
        return f"there is no solver {quoted(name)}; {offer(name, ['auto', *SOLVERS])}"
    return f"solver must be a name, a pair of a name and its options, or a solver, not {solver!r}"
