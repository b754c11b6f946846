"""What a run of indexed learning goes on from, to the same bits; rows are told by their places, and read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline.solvers.truncated.sides import SideCounts

if TYPE_CHECKING:
    from beeline.solvers.indexed.learning import Learning

__all__ = ["restore_learning", "snapshot_of_learning"]

_NUMBERS = (
    "target",
    "value",
    "bound",
    "gap",
    "cuts_off",
    "crowded",
    "ending",
    "steady",
    "finely",
    "n_verified",
    "search_seconds",
    "solve_seconds",
    "extra_passes",
)


def snapshot_of_learning(learning: Learning, *, left: bool) -> dict[str, Any]:
    """Where a run is, between two queries; `left` says whether rows may be left to be found."""
    return {
        "left": left,
        "place": learning.place,
        "counts": list(learning.counts),
        "numbers": {name: getattr(learning, name) for name in _NUMBERS},
        "active": learning.active.snapshot(),
        "search": learning.search.snapshot(),
    }


def restore_learning(learning: Learning, snapshot: Mapping[str, Any]) -> bool:
    """Let a run that has not begun go on from a snapshot; whether rows may be left to be found."""
    w, b = snapshot["place"]
    learning.place, learning.counts = (np.array(w), b), SideCounts(*snapshot["counts"])
    vars(learning).update(snapshot["numbers"])
    search = learning.search
    learning.active.restore(snapshot["active"], search.index.rows, search.targets_of)
    search.restore(snapshot["search"], learning.active)
    return bool(snapshot["left"])
