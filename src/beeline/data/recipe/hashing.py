"""Features by a hash of their numbers: as many as there is room for, however large the numbers are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from beeline._types import AnyArray
from beeline.data.core.block import Block

__all__ = ["MOST_BITS", "hashed", "mixed"]

MOST_BITS = 30  # features are numbered in 32 bits


def mixed(x: AnyArray) -> AnyArray:
    """Numbers of 64 bits, each of which depends on all bits of another (the finalizer of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: AnyArray = x ^ (x >> np.uint64(31))
    return mixed


def hashed(block: Block, bits: int) -> Block:
    """Sparse rows with 2^bits features; values of features that fall together are summed."""
    assert block.indices is not None
    places = mixed(block.indices.astype(np.uint64)) & np.uint64((1 << bits) - 1)
    return replace(block, n_features=1 << bits, indices=places.astype(np.int32)).canonical()
