"""Sparse rows whose features come in any order, as vectorizers of text give them."""

from __future__ import annotations

import numpy as np
import scipy.sparse

__all__ = ["unsorted"]


def unsorted(csr, seed=0):
    """A copy of a CSR array with the entries of each row in random order, and no order of them that would increase."""
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    order = np.lexsort((np.random.default_rng(seed).random(csr.nnz), rows))
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        if stop - start > 1 and (np.diff(csr.indices[order[start:stop]]) > 0).all():
            order[start:stop] = order[start:stop][::-1]
    mixed = scipy.sparse.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=csr.shape)
    assert csr.shape[1] < 2 or np.diff(csr.indptr).max(initial=0) < 2 or not mixed.has_sorted_indices
    return mixed
