"""Solvers of the objective.

>>> from beeline.solvers import Bundle
>>> Bundle(variant="bmrm")
Bundle(variant='bmrm')

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline._lazy import found_late

if TYPE_CHECKING:
    from beeline.solvers.base import Result as Result
    from beeline.solvers.base import Solver as Solver
    from beeline.solvers.base import State as State
    from beeline.solvers.base import Status as Status
    from beeline.solvers.base import Step as Step
    from beeline.solvers.bundle.bundle import Bundle as Bundle
    from beeline.solvers.dual.block_cd import BlockCD as BlockCD
    from beeline.solvers.dual.class_dual_cd import ClassDualCD as ClassDualCD
    from beeline.solvers.dual.dual_cd import DualCD as DualCD
    from beeline.solvers.interior.interior_point import InteriorPoint as InteriorPoint
    from beeline.solvers.l1.l1_cd import L1CD as L1CD
    from beeline.solvers.lbfgs import LBFGS as LBFGS
    from beeline.solvers.newton.newton import Newton as Newton
    from beeline.solvers.newton.newton import SmoothedNewton as SmoothedNewton
    from beeline.solvers.registry import SOLVERS as SOLVERS
    from beeline.solvers.stochastic.sgd import SGD as SGD
    from beeline.solvers.truncated.relaxation import Relaxation as Relaxation

_HOMES = {
    "LBFGS": ".lbfgs",
    "L1CD": ".l1.l1_cd",
    "SGD": ".stochastic.sgd",
    "SOLVERS": ".registry",
    "BlockCD": ".dual.block_cd",
    "Bundle": ".bundle.bundle",
    "ClassDualCD": ".dual.class_dual_cd",
    "DualCD": ".dual.dual_cd",
    "InteriorPoint": ".interior.interior_point",
    "Newton": ".newton.newton",
    "Relaxation": ".truncated.relaxation",
    "Result": ".base",
    "SmoothedNewton": ".newton.newton",
    "Solver": ".base",
    "State": ".base",
    "Status": ".base",
    "Step": ".base",
}

__all__ = [*_HOMES]  # noqa: PLE0604

__getattr__ = found_late(__name__, _HOMES)
