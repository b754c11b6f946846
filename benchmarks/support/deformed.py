"""MNIST's digits with random deformations, all ten classes, as a store and as arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from support import enlarged, sets

__all__ = ["rows", "store"]


def store(n_rows: int) -> Path:
    """A store of so many digits; made when it is not there."""
    import beeline

    path = sets.FOLDER / f"deformed-{n_rows}.store"
    if not path.exists():
        sets.FOLDER.mkdir(parents=True, exist_ok=True)
        beeline.convert(enlarged.batches("mnist", n_rows), path)
    return path


def rows(n_rows: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """The same digits in memory, as float32."""
    import beeline

    made = beeline.open_store(store(n_rows))
    parts, labels = [], []
    for block in made.blocks(256 << 20):
        first, last = block.indptr[0], block.indptr[-1]
        entries = block.values[first:last].astype(np.float32), block.indices[first:last].astype(np.int32)
        parts.append(sp.csr_matrix((*entries, block.indptr - first), (block.n_rows, made.n_features)))
        labels.append(np.asarray(block.labels))
    return sp.vstack(parts, format="csr"), np.concatenate(labels)
