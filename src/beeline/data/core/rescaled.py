"""A data set seen through a scaling."""

from __future__ import annotations

from collections.abc import Iterator

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block, Labels
from beeline.data.core.dataset import Dataset
from beeline.data.recipe.scaling import Scaling

__all__ = ["RescaledDataset"]


class RescaledDataset(Dataset):
    """The rows of another data set, scaled whenever they are read.

    Parameters
    ----------
    data
        The rows as they lie.
    scaling
        What happens to them; made for as many features as they have.
    """

    def __init__(self, data: Dataset, scaling: Scaling) -> None:
        self.data, self.scaling = data, scaling
        self.recipe = data.recipe
        self.n_rows, self.n_features = data.n_rows, data.n_features
        self.nnz = data.n_rows * data.n_features if scaling.shifts else data.nnz
        self.memory = data.memory

    def __repr__(self) -> str:
        return f"RescaledDataset({self.data!r}, {self.scaling.kind})"

    def blocks(self, memory: int | None = None) -> Iterator[Block]:
        """All rows in order."""
        for block in self.data.blocks(memory):
            yield self.scaling.apply(block)

    def cuts(self, memory: int) -> list[int]:
        """As the data set below is cut."""
        return self.data.cuts(memory)

    def rows(self, start: int, stop: int) -> Block:
        """Rows start … stop−1."""
        return self.scaling.apply(self.data.rows(start, stop))

    def will_need(self, start: int, stop: int) -> None:
        """Say so of the rows as they lie."""
        self.data.will_need(start, stop)

    def gather(self, picked: AnyArray, *, threads: int = 0) -> Block:
        """The picked rows, in that order."""
        return self.scaling.apply(self.data.gather(picked, threads=threads), threads=threads)

    def within(self, memory: int) -> RescaledDataset:
        """As the data set below does it."""
        return RescaledDataset(self.data.within(memory), self.scaling)

    @property
    def labels(self) -> Labels | None:
        """One label (or label set) a row, or None."""
        return self.data.labels

    @property
    def weights(self) -> Floats | None:
        """One weight a row, or None."""
        return self.data.weights

    @property
    def queries(self) -> Ints | None:
        """One query id a row, or None."""
        return self.data.queries
