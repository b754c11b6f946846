"""An index for a store: which kind, and building it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from beeline._sentences import Argument
from beeline._types import Floats
from beeline._words import offer, percentage
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.data.options import parse_size
from beeline.data.reader import Progress
from beeline.data.store import Store, open_store
from beeline.exceptions import ParameterError, StoreError
from beeline.index import IndexSettings, StoreIndex
from beeline.index import build_index as build
from beeline.index.boxes import boxes_of
from beeline.kernels import order_rows
from beeline.losses import Hinge
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.bundle.bundle import Bundle

__all__ = ["build_index", "choose_kind", "settings_for"]

_SAMPLE, _FEWEST = 50_000, 1000  # rows, by which a kind is chosen: as many as a part of the memory holds
_PART = 4
_MOST_PROBLEMS = 3  # classes against the rest that are looked at
_CERTAIN, _ACTIVE = 0.5, 0.25  # of the rows: boxes from the one on, chunks up to the other
_TOL, _PASSES, _LEAF_ROWS = 0.1, 60.0, 32
_KINDS_OF = {"samples": "chunks", "tree_size": "forest", "width": "forest"}  # settings of one kind only


def build_index(
    store: Store | str | os.PathLike[str],
    kind: str = "auto",
    *,
    memory: int | str = "512M",
    progress: Progress | None = None,
    **settings: Any,  # noqa: ANN401
) -> StoreIndex:
    """Build an index of a store, by which robust and other support vector machines read only rows that matter.

    It lies in the store's folder and serves any labels, C, folds and classes. One of the same kind that is there is
    replaced; until the new one is whole and on the disk, nothing is changed.

    Parameters
    ----------
    store
        The store, or its folder.
    kind
        `boxes`: small leaves with bounds on scores, by which it is certain what does not matter; good where rows lie in
        clusters. `chunks`: large leaves, of which some rows are kept in memory; good where few rows matter and nothing
        is certain. `forest`: metric trees, one over each of many random parts of the rows, as published; only where it
        is named. `auto`: boxes or chunks, by a look at a sample of the rows, with the store's own labels.
    memory
        Bytes that may be held, or a text such as `400M`.
    progress
        Is told how far it is.
    **settings
        `leaf_rows`, `chunk_bytes` and `seed`, for chunks `samples`, for a forest `tree_size` and `width`, as in
        `beeline.index.IndexSettings`.

    Returns
    -------
    StoreIndex
        The index. Where `auto` finds that none would pay, `StoreError` says why.

    Examples
    --------
    >>> import beeline
    >>> index = beeline.build_index("train.store")                                 # doctest: +SKIP
    >>> beeline.LinearSVC(loss="ramp", memory="400M").fit(beeline.open_store("train.store"))  # doctest: +SKIP
    """
    if not isinstance(store, Store | str | os.PathLike):
        kind_of = type(store).__name__
        raise ParameterError(Argument("store"), f" must be a store or its folder, not {kind_of}; convert makes one")
    rows = store if isinstance(store, Store) else open_store(os.fspath(store))
    how = settings_for(kind, settings)
    if kind == "auto":
        found, why = choose_kind(rows, how.seed, memory=memory)
        if found is None:
            raise StoreError(f"no index of {rows.path} would pay: {why}; name a kind to build one nevertheless")
        kind = found
    return build(rows, kind, memory=memory, settings=how, progress=progress)


def settings_for(kind: str, settings: Mapping[str, Any]) -> IndexSettings:
    """Settings of an index of that kind, or of the one that `auto` chooses; those of another kind are refused."""
    known = [its.name for its in fields(IndexSettings)]
    for name in settings:
        if name not in known:
            raise ParameterError(f"an index has no setting {name!r}; {offer(name, known)}", parameter=name)
        if name in _KINDS_OF and kind not in (_KINDS_OF[name], "auto"):
            of = _KINDS_OF[name]
            raise ParameterError(
                Argument(name), f" is for the kind {of}, not {kind}; leave it out, or build {of}", parameter=name
            )
    return IndexSettings(**settings)


def choose_kind(store: Store, seed: int = 0, *, memory: int | str = "512M") -> tuple[str | None, str]:
    """(the kind of index that should pay, None where none does; why).

    The hinge is trained on a sample of the rows, which takes a quarter of the memory, for the most frequent classes
    against the rest, at a C that suits all rows. Then leaves of the sample are looked at: of how many rows boxes say
    that they do not matter, and how many do.
    """
    room, counts = parse_size(memory) // _PART, store.label_counts
    if counts is None or len(counts) < 2:
        return "boxes", "there are no classes by which to tell"
    size = min(_SAMPLE, max(_FEWEST, store.n_rows * room // max(1, store.nbytes)))
    random = np.random.default_rng(seed)
    picked = np.sort(random.permutation(store.n_rows)[:size])
    block = store.within(max(1, room)).gather(picked)
    labels = np.asarray(block.labels)
    bare = Block(block.values, block.n_features, block.indptr, block.indices)
    frequent = sorted(counts, key=lambda label: -counts[label])
    positives = frequent[:1] if len(counts) == 2 else frequent[:_MOST_PROBLEMS]
    shares = [_shares(bare, np.where(labels == label, 1.0, -1.0), store.n_rows, seed) for label in positives]
    certain, active = (float(np.mean(share)) for share in zip(*shares, strict=True))
    surely, matter = percentage(certain, 2), percentage(active, 2)
    about = f"of a sample of the rows {surely} surely do not matter by boxes, and {matter} matter"
    if certain >= _CERTAIN:
        return "boxes", about
    return ("chunks" if active <= _ACTIVE else None), about


def _shares(block: Block, y: Floats, n_rows: int, seed: int) -> tuple[float, float]:
    """(of how many rows boxes say that they do not matter, how many matter), at the optimum over the rows, roughly."""
    costs = np.full(len(y), n_rows / max(1, len(y)))
    problem = Objective.of(ArrayDataset(block), y, costs, Hinge(), L2())
    w, b = problem.split(Bundle(_TOL, _PASSES, seed).run(problem).theta)
    order = np.argsort(y, kind="stable").astype(np.int64)
    ends = np.asarray(order_rows(block.arrays, order, [int((y < 0).sum()), len(y)], _LEAF_ROWS, seed), np.int64)
    low, high = boxes_of(block.gather(order), ends).bounds(np.ascontiguousarray(w), float(b))
    starts = np.concatenate([[0], ends[:-1]])
    margins = np.where(y[order][starts] > 0, low, -high)
    certain = float((ends - starts)[margins >= 1].sum()) / max(1, len(y))
    return certain, float(np.mean(y * (block.scores(w) + float(b)) < 1))
