"""How much of the rows an index would read: a look at what it knows at the weights that random rows give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beeline._types import Floats
from beeline.objective import Objective
from beeline.solvers.indexed.indexed import Indexed
from beeline.solvers.indexed.learning import Learning

__all__ = ["Probe", "probe"]

_MOST = 0.9  # of the rows that matter, by an estimate


class Probe(NamedTuple):
    """What a look at an index has found.

    Attributes
    ----------
    theta
        The weights that random rows give.
    share
        Which part of all bytes has to be read, about, to find the rows that matter there.
    """

    theta: Floats
    share: float


def probe(objective: Objective, seed: int = 0) -> Probe:
    """Look at an index: boxes say which chunks may matter, others where nine tenths of the rows that do should be."""
    learning = Learning(Indexed(seed=seed), objective)
    learning.begin(None)
    search = learning.search
    counts = search.per_chunk(search.left(learning.place, None))
    needed = np.flatnonzero(counts > 0)
    if not search.exact:
        needed = needed[np.argsort(-counts[needed], kind="stable")]
        found = np.cumsum(counts[needed])
        needed = needed[: int(np.searchsorted(found, _MOST * found[-1])) + 1]
    return Probe(learning.theta, float(search.chunk_bytes[needed].sum()) / learning.total_bytes)
