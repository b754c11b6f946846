"""A file with the measures of each query, as CSV or as lines of JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beeline.evaluation import QueryTable

__all__ = ["checked_query_file", "write_query_file"]

_ENDINGS = (".csv", ".jsonl", ".ndjson")


def checked_query_file(name: str) -> Path:
    """The file, after a look at its name and whether it can be written."""
    from beeline.cli.input.targets import checked_file
    from beeline.exceptions import ParameterError

    if Path(name).suffix.lower() not in _ENDINGS:
        raise ParameterError(
            f"{name} must end in .csv, or in .jsonl for lines of JSON, to say what to write", parameter="per_query"
        )
    return checked_file(name, "per_query")


def write_query_file(path: Path, table: QueryTable) -> None:
    """Write a line for each query; the file appears under its name only when it is complete."""
    from beeline.data.files.atomic import replacing

    columns: dict[str, list[Any]] = {"query": table.query.tolist(), "rows": table.rows.tolist()}
    columns |= {"relevant": table.relevant.astype(int).tolist(), "weight": table.weight.tolist()}
    columns |= {name: values.tolist() for name, values in table.measures.items()}
    lines = zip(*columns.values(), strict=True)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix.lower() == ".csv":
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(lines)
            return
        for line in lines:
            file.write(json.dumps(dict(zip(columns, line, strict=True)), ensure_ascii=False) + "\n")
