"""Drawing what is known about a data set, for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from beeline.cli.facts import Facts

__all__ = ["show", "show_converted"]

_MOST_CLASSES = 20
_MOST_COLUMNS = 30
_MOST_KNOWN = 1000  # beyond this many different labels a store keeps only their range
_BAR = 24


def show(facts: Facts) -> None:
    """Print all facts to standard output, one under the other."""
    console = _console()
    name = facts["path"] if isinstance(facts["path"], str) else f"{len(facts['path'])} paths"
    console.print(f"[bold]{_plain(name)}[/bold]  [dim]{_kind(facts)}[/dim]", highlight=False)
    table = _table()
    for key, text in _lines(facts):
        table.add_row(f"[bold cyan]{key}[/]", text)
    console.print(table)
    for part in (_classes(facts), _columns(facts), _features(facts)):
        if part is not None:
            console.print()
            console.print(part)


def show_converted(facts: Facts) -> None:
    """Print one line on a store that was just made."""
    labels = facts["labels"]
    distinct = labels["distinct"] if labels is not None else None
    parts = [f"{_count(facts['rows'], 'row')} × {_count(facts['features'], 'feature')} ({facts['layout']})"]
    parts += [_count(len(distinct["values"]), "different label")] if distinct is not None else []
    parts += [f"{_size(facts['bytes'])} on disk", f"in {facts['seconds']:.1f} s"]
    _console().print(f"[bold]{_plain(facts['path'])}[/]: {', '.join(parts)}", highlight=False)


def _size(n_bytes: int) -> str:
    """Bytes as people write them: 263.1 MB."""
    value, unit = float(n_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{n_bytes:,} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def _count(number: int, noun: str) -> str:
    """A number and its noun: 1 row, 2,000 rows."""
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def _console() -> Console:
    from rich.console import Console

    # Without a terminal there is no width to fit into, and lines are better long than broken.
    return Console() if sys.stdout.isatty() else Console(width=200)


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _kind(facts: Facts) -> str:
    if facts["format"] != "store":
        return {"libsvm": "LIBSVM text", "csv": "CSV"}.get(facts["format"], facts["format"].capitalize())
    order = facts["row_order"]
    return "beeline store" + (f", rows shuffled with seed {order['seed']}" if order["kind"] == "shuffled" else "")


def _lines(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "rows", f"{facts['rows']:,}"
    yield "features", f"{facts['features']:,}  [dim]({facts['layout']}, {facts['dtype']})[/dim]"
    yield "nonzeros", f"{facts['nonzeros']:,}  [dim]({_percent(facts['density'])} of all entries)[/dim]"
    if facts["values"] is not None:
        yield "values", _range(facts["values"])
    if facts["bytes"] is not None:
        yield "size", f"{_size(facts['bytes'])} on disk"
    yield "labels", _labels(facts["labels"])
    if facts["weights"] is not None:
        yield "weights", f"{_range(facts['weights'])}, mean {_number(facts['weights']['mean'])}"
    if facts["queries"] is not None:
        yield "queries", f"{facts['queries']:,}"
    if facts["recipe"] is not None:
        yield from _recipe_lines(facts["recipe"])
    if facts.get("bad_lines", {}).get("count"):
        yield "skipped", _count(facts["bad_lines"]["count"], "bad line")


def _recipe_lines(recipe: Facts) -> Iterator[tuple[str, str]]:
    named = [f"{what} {_plain(recipe[what])}" for what in ("label", "weight", "query") if recipe[what] is not None]
    if recipe["columns"] is None:
        yield "recipe", f"features numbered from {recipe['index_base']}"
    else:
        yield "recipe", ", ".join([_count(len(recipe["columns"]), "column"), *named])
    yield "scaling", recipe["scaling"]["kind"]


def _labels(labels: Facts | None) -> str:
    if labels is None:
        return "none"
    if not labels["count"]:
        return "every row has an empty set"
    spread = f"{_range(labels)}, mean {_number(labels['mean'])}"
    text = f"more than {_MOST_KNOWN:,} different, {spread}"
    if labels["distinct"] is not None:
        text = f"{len(labels['distinct']['values']):,} different, {_range(labels)}"
    if labels["kind"] == "sets":
        text += f"; {_range(labels['per_row'])} a row"
    return text


def _classes(facts: Facts) -> Table | None:
    labels, recipe = facts["labels"], facts["recipe"]
    if labels is None or not labels.get("distinct"):
        return None
    names = recipe["label_categories"] if recipe is not None else None
    values, counts = labels["distinct"]["values"], labels["distinct"]["counts"]
    if len(values) > _MOST_CLASSES and not names:
        return None
    table = _table()
    table.columns.clear()
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify)  # type: ignore[arg-type]
    largest = max(counts)
    for value, n in list(zip(values, counts, strict=True))[:_MOST_CLASSES]:
        label = _plain(names[int(value)]) if names else _number(value)
        bar = "█" * max(1, round(_BAR * n / largest))
        table.add_row(f"[bold cyan]label[/] {label}", f"{n:,}", _percent(n / facts["rows"]), f"[green]{bar}[/]")
    if len(values) > _MOST_CLASSES:
        table.add_row(f"[dim]… and {len(values) - _MOST_CLASSES:,} more[/]")
    return table


def _columns(facts: Facts) -> Table | None:
    recipe = facts["recipe"]
    if recipe is None or recipe["columns"] is None or "feature_ranges" in facts:
        return None
    table = _table()
    for column in recipe["columns"][:_MOST_COLUMNS]:
        table.add_row(f"[bold cyan]column[/] {_plain(column['name'])}", _column(column))
    if len(recipe["columns"]) > _MOST_COLUMNS:
        table.add_row(f"[dim]… and {len(recipe['columns']) - _MOST_COLUMNS:,} more (--json lists all)[/]")
    return table


def _column(column: Facts) -> str:
    if column["kind"] == "categories":
        shown = [_plain(category) for category in column["categories"][:6]]
        more = ", …" if len(column["categories"]) > len(shown) else ""
        return f"{len(column['categories']):,} categories [dim]({', '.join(shown)}{more})[/]"
    text = "number" if column["width"] == 1 else f"{column['width']:,} numbers"
    return text if column["fill"] is None else f"{text} [dim](missing: {_number(column['fill'])})[/]"


def _features(facts: Facts) -> Table | None:
    if "feature_ranges" not in facts:
        return None
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    table.add_column("feature")
    for name in ("min", "max", "mean"):
        table.add_column(name, justify="right")
    for feature in facts["feature_ranges"]:
        figures = [_number(feature[name]) for name in ("min", "max", "mean")]
        table.add_row(_plain(feature["feature"]), *figures)
    return table


def _range(figures: Facts) -> str:
    return f"{_number(figures['min'])} … {_number(figures['max'])}"


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.6g}"


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.1f} %" if percent >= 0.1 or percent == 0 else f"{percent:.2g} %"


def _plain(text: Any) -> str:  # noqa: ANN401
    """Text of the user's data, which must not be taken for markup."""
    from rich.markup import escape

    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text)))
