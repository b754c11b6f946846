"""pandas and polars frames and pyarrow tables as data sets; nothing is copied when the layout already fits."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from beeline._types import AnyArray
from beeline.data.core.dataset import ArrayDataset
from beeline.data.options import ReadOptions
from beeline.data.reader import Progress, warn_of_passed_over
from beeline.exceptions import DataError

__all__ = ["from_frame", "is_frame", "is_plain_numbers"]

_FRAMES = {
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyarrow": ("Table", "RecordBatch", "RecordBatchReader"),
}

# What pandas calls objects that are texts, dates or times.
_OBJECTS = ("string", "date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period")


def is_frame(obj: object) -> bool:
    """Whether it is a pandas or polars frame or a pyarrow table, without importing any of these packages."""
    return _package(obj) is not None


def is_plain_numbers(frame: Any) -> bool:  # noqa: ANN401
    """Whether a frame or table is as good as an array: no column holds text, categories, or dates and times."""
    if _package(frame) == "pandas":
        columns = zip(frame.items(), frame.dtypes, strict=True)
        return not any(_needs_reading(column, kind) for (_, column), kind in columns)
    import pyarrow as pa

    from beeline.data.tables.batches import is_text

    special = (is_text, pa.types.is_dictionary, pa.types.is_temporal)
    return not any(has(kind) for kind in _as_arrow(frame).schema.types for has in special)


def _needs_reading(column: Any, kind: Any) -> bool:  # noqa: ANN401
    from pandas.api.types import infer_dtype, is_string_dtype

    if kind.name == "object":
        return bool(infer_dtype(column, skipna=True) in _OBJECTS)
    # Periods and times of a zone are of the kinds O and M.
    return kind.name == "category" or kind.kind in "mM" or kind.name.startswith("period") or bool(is_string_dtype(kind))


def _package(obj: object) -> str | None:
    for package, names in _FRAMES.items():
        # Whoever passes a frame has imported its package.
        module = sys.modules.get(package)
        if module is not None and isinstance(obj, tuple(getattr(module, n) for n in names if hasattr(module, n))):
            return package
    return None


def from_frame(frame: Any, options: ReadOptions | None = None, progress: Progress | None = None) -> ArrayDataset:  # noqa: ANN401
    """A data set of the rows of a frame or table; columns become features as those of a file do.

    The frame's memory is used as it is, without a copy, when its feature columns already lie row by row in the wanted
    type: a pandas frame made of a C-contiguous array, or an Arrow table whose only feature column is a list of fixed
    length. The frame is never changed.

    Parameters
    ----------
    frame
        A pandas or polars `DataFrame`, or a pyarrow `Table`, `RecordBatch` or `RecordBatchReader`.
    options
        The roles of the columns and how they are treated.
    """
    from beeline.data.tables.columnar import MemorySource
    from beeline.data.tables.reader import TableReader

    options = _with_categories(frame, options or ReadOptions())
    options.refuse(("format", "delimiter", "header", "skip_bad_lines"), "a table in memory")
    rows = _pandas_rows(frame, options)
    table = _as_arrow(frame if rows is None else frame.iloc[:0])
    reader = TableReader(MemorySource(table.schema, table.to_batches()), options, progress)
    if rows is None:
        rows = _list_rows(table, reader.features, options)
    if rows is not None:
        try:
            return reader.read_over(rows)
        except DataError:
            # A value is missing or infinite: the other way names its row and column.
            if not len(table):
                return from_frame(_as_arrow(frame), options, progress)
    data = reader.read()
    warn_of_passed_over(reader)
    return data


def _with_categories(frame: Any, options: ReadOptions) -> ReadOptions:  # noqa: ANN401
    """The options, by which numbers that pandas was told to be categories are names; those of a label stay numbers.

    In Arrow a dictionary of numbers is but a way to store them, which says nothing about what they mean.
    """
    if _package(frame) != "pandas" or options.recipe is not None:
        return options
    named = {options.label, options.weight, options.query, *options.ignore, *options.text}
    numbers = [
        name
        for name, kind in zip(frame.columns, frame.dtypes, strict=True)
        if kind.name == "category" and kind.categories.dtype.kind in "biuf" and name not in named
    ]
    return replace(options, text=(*options.text, *map(str, numbers))) if numbers else options


def _is_plain(options: ReadOptions) -> bool:
    """Whether numbers are taken as they are."""
    return (
        options.recipe is None and options.scale == "none" and options.missing == "error" and options.layout != "sparse"
    )


def _pandas_rows(frame: Any, options: ReadOptions) -> AnyArray | None:  # noqa: ANN401
    """The rows of a pandas frame without a copy, None where that cannot be."""
    named = options.label or options.weight or options.query or options.ignore or options.text
    if _package(frame) != "pandas" or named or not _is_plain(options):
        return None
    dtype = np.dtype(options.value_type)
    if not len(frame.columns) or not len(frame) or any(kind != dtype for kind in frame.dtypes):
        return None
    # Columns that lie side by side in rows: then the whole frame is one array.
    step = dtype.itemsize * len(frame.columns)
    first, last = frame.iloc[:, 0].to_numpy(), frame.iloc[:, -1].to_numpy()
    gap = last.__array_interface__["data"][0] - first.__array_interface__["data"][0]
    if (len(frame) > 1 and first.strides != (step,)) or gap != step - dtype.itemsize:
        return None
    rows: AnyArray = frame.to_numpy()
    return rows if rows.flags.c_contiguous and np.shares_memory(rows, first) else None


def _list_rows(table: Any, features: tuple[str, ...], options: ReadOptions) -> AnyArray | None:  # noqa: ANN401
    """The rows of an Arrow table whose only feature column is a list of fixed length, without a copy, or None."""
    import pyarrow as pa

    if len(features) != 1 or not _is_plain(options) or options.text:
        return None
    column = table.column(features[0])
    if not pa.types.is_fixed_size_list(column.type) or column.num_chunks != 1 or column.null_count:
        return None
    numbers = column.chunk(0).flatten()
    if numbers.type != pa.from_numpy_dtype(options.value_type) or numbers.null_count:
        return None
    rows: AnyArray = numbers.to_numpy().reshape(-1, column.type.list_size)
    return rows


def _as_arrow(frame: Any) -> Any:  # noqa: ANN401
    """The frame as a pyarrow table."""
    import pyarrow as pa

    package = _package(frame)
    if package == "polars":
        if not hasattr(frame, "to_arrow"):
            raise DataError("a LazyFrame has no rows yet; collect() it first")
        return frame.to_arrow()
    if package == "pandas":
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
            reason = "; ".join(str(arg).splitlines()[0] for arg in reversed(error.args) if str(arg))
            raise DataError(f"a column of the frame has values that do not go together: {reason}") from error
        except ValueError as error:
            raise DataError(f"the frame cannot be read: {str(error).splitlines()[0]}") from error
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    return frame.read_all() if isinstance(frame, pa.RecordBatchReader) else frame
