"""What `info` and `convert` say about a data set, as one dictionary: printed as it is by --json, drawn otherwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beeline.data.core.statistics import FeatureStatistics
    from beeline.data.reader import Progress, Reader
    from beeline.data.recipe.recipe import Recipe
    from beeline.data.store import Store
    from beeline.index import StoreIndex

__all__ = ["Facts", "index_facts", "reader_facts", "source_facts", "store_facts"]

Facts = dict[str, Any]


def store_facts(store: Store, *, features: bool = False, progress: Progress | None = None) -> Facts:
    """What a store's manifest says; with `features`, also what a walk over its rows finds."""
    manifest = store.manifest
    facts: Facts = {
        "path": str(store.path),
        "format": "store",
        "bytes": store.nbytes,
        "rows": store.n_rows,
        "features": store.n_features,
        "layout": manifest.form.layout,
        "dtype": manifest.form.value_type,
        "row_order": manifest.row_order,
    }
    facts |= _from_statistics(manifest.statistics, store.n_rows, store.n_features)
    facts["recipe"] = store.recipe.to_json() if store.recipe is not None else None
    facts["indexes"] = _indexes(store)
    if features:
        facts["feature_ranges"] = _walk(store, progress)
    return facts


def _indexes(store: Store) -> list[Facts]:
    """What is known of the indexes of a store; of one that cannot be used, why."""
    from beeline.exceptions import StoreError
    from beeline.index import indexes_of, open_index

    found: list[Facts] = []
    for kind in indexes_of(store):
        try:
            found.append(index_facts(open_index(store, kind), store))
        except StoreError as error:
            found.append({"kind": kind, "problem": str(error)})
    return found


def index_facts(index: StoreIndex, store: Store) -> Facts:
    """What an index is."""
    return {
        "kind": index.info.kind,
        "bytes": index.nbytes,
        "of_rows": index.nbytes / max(1, store.nbytes),
        "leaves": index.n_leaves,
        "chunks": index.rows.n_chunks,
        "settings": index.info.settings,
        "seconds": index.info.seconds,
    }


def _walk(store: Store, progress: Progress | None) -> list[Facts]:
    from beeline.data.core.statistics import FeatureStatistics

    statistics = FeatureStatistics(store.n_features)
    if progress is not None:
        progress.start("looking", store.nbytes)
    for block in store.blocks():
        statistics.add(block)
        if progress is not None:
            progress.advance(block.nbytes, block.n_rows)
    return _ranges(statistics, store.n_rows, store.recipe)


def source_facts(reader: Reader, memory: int, *, features: bool = False) -> Facts:
    """What a walk over a source finds, in bounded memory."""
    from beeline.data.core.statistics import FeatureStatistics
    from beeline.data.reader import RestartReading
    from beeline.data.store.statistics import Statistics
    from beeline.exceptions import DataError

    reader.prepare(memory)
    while True:
        statistics, by_feature, rows, block = Statistics(), FeatureStatistics(), 0, None
        try:
            for block in reader.blocks(memory):
                statistics.add(block)
                rows += block.n_rows
                if features:
                    by_feature.add(block)
            break
        except RestartReading:
            continue
    if block is None:
        raise DataError("the source has no rows")
    facts: Facts = {"rows": rows, "features": block.n_features}
    facts |= {"layout": "sparse" if block.is_sparse else "dense", "dtype": block.values.dtype.name}
    facts |= _from_statistics(statistics.to_json(), rows, block.n_features)
    facts |= {"recipe": reader.recipe.to_json()} | reader_facts(reader)
    if features:
        facts["feature_ranges"] = _ranges(by_feature, rows, reader.recipe)
    return facts


def reader_facts(reader: Reader) -> Facts:
    """What a reader passed over, bad lines, rows without all values, categories nobody knows; and what is in doubt."""
    left_out = getattr(reader, "left_out", None)
    return {
        "bad_lines": {"count": reader.bad_lines.count, "examples": reader.bad_lines.examples},
        "unknown_categories": dict(getattr(reader, "unknown_categories", {})),
        "left_out": [] if left_out is None else left_out.sentences(),
        "doubts": list(getattr(reader, "doubts", [])),
    }


def _from_statistics(statistics: Facts, n_rows: int, n_features: int) -> Facts:
    nonzeros = statistics["nonzeros"]
    return {
        "nonzeros": nonzeros,
        "density": nonzeros / max(1, n_rows * n_features),
        "values": statistics["values"],
        "labels": statistics["labels"],
        "weights": statistics["weights"],
        "queries": statistics["query_runs"],
    }


def _ranges(statistics: FeatureStatistics, n_rows: int, recipe: Recipe | None) -> list[Facts]:
    """Range and mean of each feature; the zeros that sparse rows do not store count as well."""
    statistics.add_repeated(n_rows - statistics.count, 0.0)
    base = recipe.index_base if recipe is not None else 0
    names = recipe.feature_names if recipe is not None else None
    columns = (statistics.low.tolist(), statistics.high.tolist(), statistics.mean.tolist())
    return [
        {
            "feature": names[j] if names else str(j + base),
            "min": _finite(low),
            "max": _finite(high),
            "mean": _finite(mean),
        }
        for j, (low, high, mean) in enumerate(zip(*columns, strict=True))
    ]


def _finite(number: float) -> float | str:
    """A number as JSON can hold it, in the way of the store's manifest."""
    return number if math.isfinite(number) else str(number)
