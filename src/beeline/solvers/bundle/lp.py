"""The model of the bundle method for L1: a linear programme, live in HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np

from beeline._forks import import_late
from beeline._types import Floats, Ints
from beeline.objective import Penalty
from beeline.solvers.bundle.models import Minimum, PlanesModel
from beeline.solvers.bundle.planes import Plane, Planes

__all__ = ["LinearProgramModel", "UnsolvableError"]

_ROUNDS = 50
_AT_ONCE = 500  # weights that enter a programme together
_ENOUGH = 1e-3  # of the gap, that a solution of the model may miss


class UnsolvableError(ArithmeticError):
    """A programme has numbers that are too large, or too different, for its solver."""


class LinearProgramModel(PlanesModel):
    """min over w, ξ of ξ + λ‖w‖₁ with ξ ≥ 0 and ξ ≥ ⟨a, w⟩ + b for all planes (B4): the programme (11).

    One programme lives through all steps: a plane is a row that is added, one that is dropped a row that is deleted,
    and the dual simplex method goes on from its last basis. A solution has no more weights than planes, so only the
    columns of weights that may be in one are there: those whose reduced cost says that they would lower the minimum are
    added until there are none (column generation; the positive and the negative part of a weight are a column each).

    The bound does not rely on the tolerances of HiGHS: the multipliers α of the planes are put on the simplex and
    shrunk until |Aα| ≤ λ, which is feasible for the dual of (11) and gives the bound αᵀb.

    Parameters
    ----------
    penalty, planes
        h and the planes.
    scale
        What rows are divided by, so that ξ is about 1. Each weight is counted in units of its own too, in which the
        steepest plane has a slope of about 1 along it: HiGHS refuses numbers of more than 10¹⁵, and takes those below
        10⁻⁹ for zero.
    """

    def __init__(self, penalty: Penalty, planes: Planes, scale: float) -> None:
        self.penalty, self.planes, self.scale = penalty, planes, scale
        self.programme = _empty_programme(planes.intercept_slopes.shape[1])
        self.rows = np.zeros(0, dtype=np.int64)  # numbers of the planes that are in the programme
        self.units = np.zeros(0)  # of the columns, in slopes
        self.columns = np.zeros(0, dtype=np.int64)  # j + 1 for the positive part of weight j, −(j + 1) for the negative
        n, unbounded = planes.slopes.n_features, penalty.lower is None or penalty.upper is None
        self.most = np.full(n, np.inf) if unbounded else np.asarray(penalty.upper)
        self.least = np.full(n, -np.inf) if unbounded else np.asarray(penalty.lower)

    @property
    def nbytes(self) -> int:
        """The memory of the planes, and of their entries in the programme, 12 bytes each."""
        return self.planes.nbytes + 12 * len(self.rows) * len(self.columns)

    @property
    def steepest(self) -> float:
        """The largest ‖a‖² of any plane so far."""
        return self.planes.steepest

    def add(self, plane: Plane) -> None:
        """Another plane; it becomes a row when the model is minimised next."""
        self.planes.add(plane)

    def minimise(self, gap: float) -> Minimum:
        """By as many linear programmes as weights want to come in."""
        minimum, alpha = self._vertex(gap)
        self.planes.use(alpha)
        return minimum

    def _vertex(self, gap: float) -> tuple[Minimum, Floats]:
        """(the minimum, the multipliers of the planes)."""
        self._renew_rows()
        for _ in range(_ROUNDS):
            _done(self.programme.run())
            solution = self.programme.getSolution()
            alpha = self._multipliers(np.asarray(solution.row_dual))
            mean = self.planes.mean(alpha)
            v = mean.slope[: len(self.most)]
            reach = 10 * max(1.0, float(np.abs(self._primal(np.asarray(solution.col_value))[1]).max(initial=0.0)))
            bound, entering = self.planes.bound(alpha, self.penalty, reach), self._entering(v)
            if not len(entering) or self.scale * self.programme.getObjectiveValue() - bound <= _ENOUGH * gap:
                break
            self._add_columns(entering)
        w, intercepts = self._primal(np.asarray(solution.col_value))
        return Minimum(w, intercepts, bound), alpha

    def _renew_rows(self) -> None:
        """Delete the rows of planes that were dropped, add those of new ones."""
        numbers = self.planes.numbers[1:]
        gone = np.nonzero(~np.isin(self.rows, numbers))[0].astype(np.int32)
        if len(gone):
            _done(self.programme.deleteRows(len(gone), gone))
            self.rows = np.delete(self.rows, gone)
        feature, sign = np.abs(self.columns) - 1, np.sign(self.columns)
        for k in np.nonzero(~np.isin(numbers, self.rows))[0] + 1:
            slopes = sign * self.planes.slopes.values[k, feature] / self.units
            row = np.concatenate([[-1.0], self.planes.intercept_slopes[k] / self.scale, slopes])
            places = np.arange(len(row), dtype=np.int32)
            _done(self.programme.addRow(-np.inf, -self.planes.offsets[k] / self.scale, len(row), places, row))
            self.rows = np.append(self.rows, self.planes.numbers[k])

    def _multipliers(self, duals: Floats) -> Floats:
        """α, one for every plane, on the simplex: what rows leave over is the part of the plane R ≥ 0."""
        alpha = np.zeros(self.planes.count)
        place = {number: k for k, number in enumerate(self.planes.numbers.tolist())}
        alpha[[place[number] for number in self.rows.tolist()]] = np.maximum(-duals, 0)
        alpha[alpha < 1e-13] = 0
        alpha /= max(1.0, float(alpha.sum()))
        alpha[0] = max(0.0, 1.0 - float(alpha[1:].sum()))
        return alpha

    def _entering(self, v: Floats) -> Ints:
        """The columns that would lower the minimum most."""
        up, down = (-v > self.penalty.l1) & (self.most > 0), (v > self.penalty.l1) & (self.least < 0)
        wanted = np.concatenate([np.nonzero(up)[0] + 1, -np.nonzero(down)[0] - 1])
        wanted = wanted[~np.isin(wanted, self.columns)]
        worth = np.argsort(-np.abs(v[np.abs(wanted) - 1]), kind="stable")
        return wanted[worth[:_AT_ONCE]]

    def _add_columns(self, entering: Ints) -> None:
        place = {number: k for k, number in enumerate(self.planes.numbers.tolist())}
        rows = [place[number] for number in self.rows.tolist()]
        slopes = self.planes.slopes.values[rows]
        places = np.arange(len(rows), dtype=np.int32)
        units = np.abs(slopes[:, np.abs(entering) - 1]).max(axis=0)
        for column, unit in zip(entering.tolist(), units.tolist(), strict=True):
            j = abs(column) - 1
            entries = slopes[:, j] / (unit if column > 0 else -unit)
            most = (self.most[j] if column > 0 else -self.least[j]) * unit / self.scale
            _done(self.programme.addCol(self.penalty.l1 / unit, 0.0, float(most), len(rows), places, entries))
        self.columns, self.units = np.append(self.columns, entering), np.append(self.units, units)

    def _primal(self, values: Floats) -> tuple[Floats, Floats]:
        k = self.planes.intercept_slopes.shape[1]
        w = np.zeros(len(self.most))
        parts = values[1 + k :] * (self.scale / self.units)
        np.add.at(w, np.abs(self.columns) - 1, np.sign(self.columns) * parts)
        if self.penalty.bounded:
            w = np.clip(w, self.least, self.most)
        return w, values[1 : 1 + k]


def _done(status: Any) -> None:  # noqa: ANN401
    """Look at what HiGHS says: a row that it refused would be missing from all that follows."""
    import highspy

    if status == highspy.HighsStatus.kError:
        raise UnsolvableError


def _empty_programme(n_intercepts: int) -> Any:  # noqa: ANN401 — HiGHS's own type is loaded late
    """min ξ over ξ ≥ 0 and free intercepts."""
    highspy = import_late("highspy")
    programme = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}
    options |= {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for key, value in options.items():
        programme.setOptionValue(key, value)
    nothing, none = np.zeros(0, dtype=np.int32), np.zeros(0)
    programme.addCol(1.0, 0.0, np.inf, 0, nothing, none)
    for _ in range(n_intercepts):
        programme.addCol(0.0, -np.inf, np.inf, 0, nothing, none)
    return programme
