"""The default engine: this process, with threads inside the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from beeline._types import AnyArray, Ints
from beeline.data.core.block import Block, concatenate
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.engines.base import Engine, Origin, Promise, Rows, RowVector, Verb
from beeline.engines.running import run
from beeline.engines.shards import Shard
from beeline.exceptions import ParameterError

__all__ = ["Threads"]


class Threads(Engine):
    """One shard after the other; each kernel uses all threads of the pool.

    Parameters
    ----------
    memory
        How many bytes of rows of a data set on disk are held at one time.
    n_shards
        Into how many runs of rows data are cut; None: rows in memory into one, those on disk as the memory asks for.
    """

    def __init__(self, memory: int = 256 << 20, n_shards: int | None = None) -> None:
        if n_shards is not None and n_shards < 1:
            raise ParameterError(f"there must be at least one shard, not {n_shards}", parameter="n_shards")
        self.memory, self.n_shards = memory, n_shards

    def open(self, data: Dataset, groups: Ints | None = None) -> LocalRows:
        """Runs of rows; of whole chunks, where they lie on disk and have no groups."""
        return LocalRows(data, shards_of(data, self.memory, self.n_shards, groups))


def shards_of(data: Dataset, memory: int, n_shards: int | None, groups: Ints | None = None) -> list[Shard]:
    """The shards of a data set: so many, or as many as the memory asks for; fewer where there are fewer groups."""
    even = [] if n_shards is None else [data.n_rows * k // n_shards for k in range(n_shards + 1)]
    cuts = even or data.cuts(memory)
    if groups is None:
        return [Shard(data, start, stop) for start, stop in pairwise(cuts)]
    places = np.unique(np.searchsorted(groups, cuts))  # of groups: a cut inside one moves to its end
    parts = [groups[first : last + 1] for first, last in pairwise(places.tolist())] or [groups]
    return [Shard(data, int(part[0]), int(part[-1]), part - part[0]) for part in parts]


class _LocalVector(RowVector):
    """What lies beside the rows of each shard, here."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Any], origin: Origin | None = None) -> None:
        self.parts, self.origin = parts, origin  # not by super(): hundreds are made in a millisecond


class _GivenUp(Sequence[Any]):
    """What is left of a vector whose memory another one has."""

    def __getitem__(self, k: Any) -> Any:  # noqa: ANN401
        raise RuntimeError("a row vector was used after its memory had been given to another one")

    def __len__(self) -> int:
        return 0


class LocalRows(Rows):
    """Rows in this process, or on its disk."""

    in_process = immediate = True

    def __init__(self, data: Dataset, shards: list[Shard]) -> None:
        self.data, self.shards = data, shards
        self.n_rows, self.n_features, self.nnz = data.n_rows, data.n_features, data.nnz
        self.n_shards, self.in_memory = len(shards), isinstance(data, ArrayDataset)

    def __repr__(self) -> str:
        return repr(self.data)

    def call(
        self,
        verb: Verb,
        vectors: Sequence[RowVector],
        small: dict[str, Any],
        outputs: int,
        reduce: str | None,
        reuse: Sequence[RowVector] = (),
    ) -> tuple[tuple[RowVector, ...], Promise]:
        """Run a verb on every shard, one after the other, at once."""
        beside = tuple(vectors)
        kept, reduced = run(self.shards, verb, _parts(beside), small, outputs, reduce, _parts(reuse))
        for vector in reuse:
            vector.parts = _GivenUp()  # type: ignore[attr-defined]
        made = tuple([_LocalVector(column, (verb, beside, small, k)) for k, column in enumerate(kept)])
        return made, Promise(reduced)

    # Most data lie in one shard, and small ones are trained in less than a millisecond: for these no loops.

    def map(self, verb: Verb, *vectors: RowVector, **small: Any) -> RowVector:  # noqa: ANN401
        """A row vector: what the verb makes of each shard."""
        if self.n_shards > 1:
            return super().map(verb, *vectors, **small)
        made = verb(self.shards[0], *[vector.parts[0] for vector in vectors], **small)  # type: ignore[attr-defined]
        return _LocalVector([made], (verb, vectors, small, None))

    def sum(self, verb: Verb, *vectors: RowVector, **small: Any) -> Promise:  # noqa: ANN401
        """The sums over all shards of each part that the verb returns, as a tuple."""
        if self.n_shards > 1:
            return super().sum(verb, *vectors, **small)
        parts = [vector.parts[0] for vector in vectors]  # type: ignore[attr-defined]
        return Promise(verb(self.shards[0], *parts, **small))

    def scatter(self, column: AnyArray) -> RowVector:
        """The array itself, in views."""
        if len(column) != self.n_rows:
            raise ParameterError(f"{len(column)} entries do not match {self.n_rows} rows", parameter="column")
        return _LocalVector([column[shard.start : shard.stop] for shard in self.shards])

    def gather(self, vector: RowVector) -> AnyArray:
        """The array of all rows; where there is one shard, itself."""
        parts: Sequence[Any] = vector.parts  # type: ignore[attr-defined]
        return parts[0] if self.n_shards == 1 else np.concatenate(parts)

    def local(self, features: AnyArray | None = None, *, constant: bool = False) -> Block:
        """All rows as one block; those on disk are read."""
        if features is not None and (len(features) < self.n_features or constant):
            return concatenate([shard.block.features(features, constant=constant) for shard in self.shards])
        if isinstance(self.data, ArrayDataset):
            return self.data.block
        return concatenate(list(self.data.blocks()))


def _parts(vectors: Sequence[RowVector]) -> list[Sequence[Any]]:
    return [vector.parts for vector in vectors]  # type: ignore[attr-defined]
