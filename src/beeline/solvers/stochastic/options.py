"""Options of stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from beeline.exceptions import ParameterError
from beeline.solvers.needs import Needs
from beeline.solvers.options import SolverOptions, option

__all__ = ["SGDOptions", "Variant"]

Variant = Literal["averaged", "pegasos"]


@dataclass(frozen=True, kw_only=True)
class SGDOptions(SolverOptions):
    """Options of stochastic gradient descent."""

    variant: Variant = option(  # noqa: RUF009 — a field
        "averaged",
        "`averaged` scales features by itself, truncates steps and averages weights; `pegasos` is as published.",
        choices=get_args(Variant),
    )
    batch_size: int = option(1, "How many rows a step of `pegasos` learns from.", least=1)
    projection: bool = option(True, "Whether `pegasos` keeps the weights in the ball that the optimum lies in.")
    early_stopping: bool = option(
        True, "Whether to end when a pass hardly lowers J, as progressive validation estimates it."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch_size", "projection"):
            if self.variant != "pegasos" and name in self.given:
                raise ParameterError(
                    f"the solver's {name} is for variant='pegasos'; leave it out, or take that variant",
                    parameter="solver",
                )

    def refine(self, needs: Needs) -> Needs:
        """Pegasos has no free intercept: what L2 does not hold would move by 1/(λt) at every step."""
        if self.variant == "averaged":
            return needs
        return replace(needs, intercepts=("regularized", "none"), omega="l2", one_score=True)
