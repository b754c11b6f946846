"""How an index is built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

from beeline.exceptions import ParameterError

__all__ = ["IndexSettings"]

_LEAF_ROWS = {"boxes": 32, "chunks": 1000, "forest": 50}
_MOST = 2**63  # which all numbers of kernels and of files are below
_CHUNK_BYTES = {"boxes": 64 << 10, "chunks": 64 << 10, "forest": 16 << 10}


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """How an index is built.

    Attributes
    ----------
    leaf_rows
        Rows of a leaf; None: 32 for boxes, 1,000 for chunks, 50 for a forest, which is what it has at most.
    samples
        Rows of a leaf that are kept to rank it, for chunks.
    tree_size, width
        Rows of a tree, about, and the most pivots that a node of it has, for a forest. Trees are smaller where one of
        that size does not fit the memory.
    chunk_bytes
        Bytes of leaves that lie together and are read together; a larger leaf is read alone. None: 64 KB, and 16 KB for
        a forest, whose neighbours are less alike.
    seed
        Of what is random.
    """

    leaf_rows: int | None = None
    samples: int = 16
    tree_size: int = 10_000
    width: int = 10
    chunk_bytes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"leaf_rows": 1, "samples": 1, "tree_size": 1, "width": 2, "chunk_bytes": 1, "seed": 0}
        for name, bound in least.items():
            value, default = getattr(self, name), self.__dataclass_fields__[name].default
            if value is None and default is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise ParameterError(f"{name} must be a whole number, not {value!r}", parameter=name)
            if value < bound:
                raise ParameterError(f"{name} must be at least {bound}, not {value}", parameter=name)
            if int(value) >= _MOST:
                raise ParameterError(f"{name} must be less than 2**63, not {value}", parameter=name)

    def of(self, kind: str) -> IndexSettings:
        """With the defaults of that kind of index."""
        leaf_rows = _LEAF_ROWS[kind] if self.leaf_rows is None else self.leaf_rows
        chunk_bytes = _CHUNK_BYTES[kind] if self.chunk_bytes is None else self.chunk_bytes
        return replace(self, leaf_rows=leaf_rows, chunk_bytes=chunk_bytes)
