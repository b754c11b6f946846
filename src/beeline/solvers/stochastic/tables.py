"""Weights and averages as the kernels of averaged steps have them, and as rows know them."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.kernels import AveragedSteps, ClassSteps, RowArrays
from beeline.solvers.stochastic.rule import Problem, form_of

__all__ = ["ClassTable", "ScoreTable", "Steps", "Table"]

_LANES = 8  # classes that a register holds
_LINE = 64  # bytes
_LARGE = 4 << 20  # bytes, from which on large pages are asked for

Settings = tuple[float, float, float, float, float]
"""(λ₂, λ₁, η, κ, a): Ω in units of a row, and step sizes η/(1 + κt)^a."""


class Steps(Protocol):
    """A kernel of averaged steps."""

    def learn(self, rows: RowArrays, order: Ints, y: Floats, costs: Floats) -> tuple[float, float, float]: ...  # noqa: D102
    def copy_weights(self, out: Floats) -> None: ...  # noqa: D102
    def progress(self) -> tuple[float, ...]: ...  # noqa: D102
    def resume(self, progress: tuple[float, ...]) -> None: ...  # noqa: D102
    def begin_at(self, t: float) -> None: ...  # noqa: D102
    @property
    def steps(self) -> float: ...  # noqa: D102


class Table:
    """Numbers by feature, with the intercept as a last row where there is one.

    A *pair* has the shape (2, rows, outputs): weights, and the F that makes averages of them, for rows as they come.

    Parameters
    ----------
    pair
        What the table begins with; None: zeros.
    sizes, means
        p, the size of steps along each feature, and μ, around which they are centred in effect.
    decayed
        Up to which h = Σ η_t each feature's weights have decayed.
    """

    def __init__(self, pair: Floats | None, sizes: Floats, means: Floats, decayed: Floats, n_outputs: int = 1) -> None:
        self.sizes, self.means = sizes, means
        self._place(pair, decayed, n_outputs)

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> Table:
        """The table of a snapshot, to the same bits."""
        table = cls.__new__(cls)
        for name, array in snapshot.items():
            setattr(table, name, cls._room(np.array(array)))
        return table

    @staticmethod
    def _room(array: AnyArray) -> AnyArray:
        return array

    def snapshot(self) -> dict[str, Any]:
        """All arrays, by name."""
        return dict(vars(self))

    def _place(self, pair: Floats | None, decayed: Floats, n_outputs: int) -> None:
        raise NotImplementedError

    @property
    def pair(self) -> Floats:
        """The pair, for rows as they come."""
        raise NotImplementedError

    @property
    def decayed(self) -> Floats:
        """Up to which h each feature's weights have decayed."""
        raise NotImplementedError

    def kernel(self, problem: Problem, settings: Settings, skip: int, stride: int) -> Steps:
        """The kernel over these arrays."""
        raise NotImplementedError

    def averages(self, kernel: Steps, *, sparse: bool) -> Floats:
        """The averages for rows as they come, (rows, outputs); `sparse`: zero where the weights are zero."""
        raise NotImplementedError

    @property
    def _has_intercept(self) -> bool:
        return len(self.sizes) > len(self.means)

    def _centred(self, outside: Floats, sign: float) -> Floats:
        """With the intercept of centred rows (+1), or of rows as they are (−1)."""
        if self._has_intercept and self.means.any():
            outside[..., -1, :] += sign * np.einsum("j,...jk->...k", self.means, outside[..., :-1, :])
        return outside


class ScoreTable(Table):
    """For one output: float64."""

    w: Floats
    f: Floats
    last: Floats

    def _place(self, pair: Floats | None, decayed: Floats, n_outputs: int) -> None:
        inside = np.zeros((2, len(self.sizes), 1)) if pair is None else self._centred(pair.copy(), 1.0)
        self.w, self.f, self.last = inside[0, :, 0].copy(), inside[1, :, 0].copy(), decayed

    @property
    def pair(self) -> Floats:
        """The pair, for rows as they come."""
        return self._centred(np.stack([self.w, self.f])[:, :, None], -1.0)

    @property
    def decayed(self) -> Floats:
        """Up to which h each feature's weights have decayed."""
        return self.last

    def kernel(self, problem: Problem, settings: Settings, skip: int, stride: int) -> Steps:
        """The kernel over these arrays; it scores all rows."""
        form, parameters = str(form_of(problem.loss)), problem.loss.parameters
        kinds = problem.layout.intercept, form, parameters
        return AveragedSteps(self.w, self.f, self.last, self.sizes, self.means, *kinds, settings, skip)

    def averages(self, kernel: Steps, *, sparse: bool) -> Floats:
        """The averages for rows as they come."""
        out = np.empty(len(self.w))
        kernel.copy_weights(out)
        if sparse:
            zero = np.flatnonzero(self.w[: len(self.means)] == 0)
            if self._has_intercept:
                out[-1] += self.means[zero] @ out[zero]
            out[zero] = 0.0
        return out[:, None]


class ClassTable(Table):
    """For several: float32 on columns that are scaled, all outputs of a feature side by side, in whole registers."""

    weights: AnyArray
    columns: Floats

    def _place(self, pair: Floats | None, decayed: Floats, n_outputs: int) -> None:
        roots = np.sqrt(self.sizes)
        self.columns, self.outputs = np.stack([roots, decayed], axis=1), np.array(n_outputs)
        self.weights = _aligned_zeros((len(roots), 2, -(-n_outputs // _LANES) * _LANES))
        if pair is not None:
            inside = self._centred(pair.copy(), 1.0)
            self.weights[:, :, :n_outputs] = np.swapaxes(inside / roots[:, None], 0, 1)

    @staticmethod
    def _room(array: AnyArray) -> AnyArray:
        """The same numbers, those of the kernel where a cache line begins."""
        if array.dtype != np.float32:
            return array
        aligned = _aligned_zeros(array.shape)
        aligned[:] = array
        return aligned

    @property
    def pair(self) -> Floats:
        """The pair, for rows as they come."""
        inside = np.swapaxes(self.weights[:, :, : int(self.outputs)], 0, 1) * self.columns[:, :1]
        return self._centred(np.ascontiguousarray(inside), -1.0)

    @property
    def decayed(self) -> Floats:
        """Up to which h each feature's weights have decayed."""
        return self.columns[:, 1].copy()

    def kernel(self, problem: Problem, settings: Settings, skip: int, stride: int) -> Steps:
        """The kernel over these arrays."""
        form, parameters = str(form_of(problem.loss)), problem.loss.parameters
        kinds = int(self.outputs), problem.layout.intercept, form, parameters
        return ClassSteps(self.weights, self.columns, self.means, *kinds, settings, stride, skip)

    def averages(self, kernel: Steps, *, sparse: bool) -> Floats:
        """The averages for rows as they come."""
        out = np.empty((len(self.columns), int(self.outputs)))
        kernel.copy_weights(out.reshape(-1))
        if sparse:
            d = len(self.means)
            zero = self.weights[:d, 0, : int(self.outputs)] == 0
            if self._has_intercept and self.means.any():
                out[-1] += np.einsum("j,jk->k", self.means, np.where(zero, out[:d], 0.0))
            out[:d][zero] = 0.0
        return out


def _aligned_zeros(shape: tuple[int, ...]) -> AnyArray:
    """Float32 zeros that begin where a cache line does."""
    size = math.prod(shape)
    room = _zeros(size + _LINE // 4)
    first = -(room.ctypes.data // 4) % (_LINE // 4)
    return room[first : first + size].reshape(shape)


def _zeros(size: int) -> AnyArray:
    """Float32 zeros, many of them in large pages where the system has some.

    A row's features lie all over a table, and in small pages the processor looks up where most of them are in memory.
    """
    if 4 * size < _LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(size, dtype=np.float32)
    pages = mmap.mmap(-1, 4 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of a kernel without them
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.float32)
