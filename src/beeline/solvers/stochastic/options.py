"""Options of stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from beeline.exceptions import ParameterError
from beeline.solvers.needs import Needs
from beeline.solvers.options import SolverOptions, option

__all__ = ["Finish", "SGDOptions", "Variant"]

Variant = Literal["averaged", "pegasos", "mcid"]
Finish = Literal["none", "exact"]


@dataclass(frozen=True, kw_only=True)
class SGDOptions(SolverOptions):
    """Options of stochastic gradient descent."""

    variant: Variant = option(  # noqa: RUF009 — a field
        "averaged",
        "`averaged` scales features by itself, truncates steps and averages weights; `pegasos` and `mcid` are as "
        "published.",
        choices=get_args(Variant),
    )
    batch_size: int = option(1, "How many rows a step of `pegasos` or `mcid` learns from.", least=1)
    projection: bool = option(True, "Whether `pegasos` keeps the weights in the ball that the optimum lies in.")
    early_stopping: bool = option(
        True, "Whether to end when a pass hardly lowers J, as progressive validation estimates it."
    )
    finish: Finish = option(  # noqa: RUF009 — a field
        "none",
        "`exact` hands over, in the end, to the solver that `auto` would take, which certifies its optimum.",
        choices=get_args(Finish),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, variants in (("batch_size", ("pegasos", "mcid")), ("projection", ("pegasos",))):
            if self.variant not in variants and name in self.given:
                those = " or ".join(f"variant='{variant}'" for variant in variants)
                raise ParameterError(
                    f"the solver's {name} is for {those}; leave it out, or take that variant", parameter="solver"
                )

    def refine(self, needs: Needs) -> Needs:
        """What is published has L2 and no free intercept: that would move by 1/(λt) at every step."""
        if self.variant == "averaged":
            return needs
        return replace(needs, intercepts=("regularized", "none"), omega="l2")
