"""Drawing what is known about a data set, for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from beeline._words import count
from beeline.cli.output.drawing import (
    byte_size,
    escape_markup,
    number_text,
    percent,
    plain_table,
    standard_console,
)
from beeline.cli.output.errors import print_line, printable
from beeline.cli.output.spelling import spelled

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from beeline.cli.output.facts import Facts

__all__ = ["show", "show_converted", "show_index", "show_skipped"]

_MOST_CLASSES = 20
_MOST_NUMBERS = 6
_MOST_CATEGORIES = 6
_MOST_KNOWN = 1000  # beyond this many different labels a store keeps only their range
_BAR = 24
_FORMATS = {"libsvm": "LIBSVM text", "csv": "CSV", "parquet": "Parquet", "arrow": "Arrow", "npz": "npz"}


def show(facts: Facts) -> None:
    """Print all facts to standard output, one under the other."""
    with standard_console() as console:
        _draw(facts, console)
    if "feature_ranges" in facts:
        sys.stdout.write("\n")
        sys.stdout.writelines(f"{line}\n" for line in _feature_lines(facts["feature_ranges"]))


def _draw(facts: Facts, console: Console) -> None:
    name = facts["path"] if isinstance(facts["path"], str) else f"{len(facts['path'])} paths"
    console.print(f"[bold]{escape_markup(name)}[/bold]  [dim]{_kind(facts)}[/dim]", highlight=False)
    table = plain_table()
    for key, text in _lines(facts):
        table.add_row(f"[bold cyan]{key}[/]", text)
    console.print(table)
    if (classes := _classes(facts)) is not None:
        console.print()
        console.print(classes)


def show_converted(facts: Facts) -> None:
    """Print one line on a store that was just made."""
    labels = facts["labels"]
    distinct = labels["distinct"] if labels is not None else None
    parts = [f"{count(facts['rows'], 'row')} × {count(facts['features'], 'feature')} ({facts['layout']})"]
    parts += [count(len(distinct["values"]), "different label")] if distinct is not None else []
    parts += [f"{byte_size(facts['bytes'])} on disk", f"in {facts['seconds']:.1f} s"]
    with standard_console() as console:
        console.print(f"[bold]{escape_markup(facts['path'])}[/]: {', '.join(parts)}", highlight=False)


def show_index(facts: Facts) -> None:
    """Print one line on an index that was just built, or on why none was."""
    with standard_console() as console:
        name = escape_markup(facts["path"])
        if facts["kind"] is None:
            told = f"no index would pay, since {facts['chosen_because']}; name a --kind to build one nevertheless"
        else:
            told = _index_line(facts)
            if facts["chosen_because"] is not None:
                told += f"; chosen because {facts['chosen_because']}"
        console.print(f"[bold]{name}[/]: {told}", highlight=False)


def show_skipped(facts: Facts) -> None:
    """Say on standard error what was passed over on the way, and what is in doubt."""
    bad = facts.get("bad_lines")
    if bad and bad["count"]:
        print_line("warning", f"{count(bad['count'], 'bad line')} skipped; the first:", color="33")
        sys.stderr.writelines(f"  {printable(example)}\n" for example in bad["examples"])
    for sentence in facts.get("left_out", ()):
        print_line("warning", sentence, color="33")
    for column, n in facts.get("unknown_categories", {}).items():
        print_line("warning", f"column {column!r} has {count(n, 'value')} that the recipe does not know", color="33")
    for sentence in facts.get("doubts", ()):
        print_line("warning", spelled(sentence), color="33")


def _kind(facts: Facts) -> str:
    if facts["format"] != "store":
        return _FORMATS[facts["format"]]
    order = facts["row_order"]
    return "beeline store" + (f", rows shuffled with seed {order['seed']}" if order["kind"] == "shuffled" else "")


def _lines(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "rows", f"{facts['rows']:,}"
    yield "features", f"{facts['features']:,}  [dim]({facts['layout']}, {facts['dtype']})[/dim]"
    yield "nonzeros", f"{facts['nonzeros']:,}  [dim]({percent(facts['density'])} of all entries)[/dim]"
    if facts["values"] is not None:
        zeros = "  [dim](and zeros)[/dim]" if facts["layout"] == "sparse" and facts["density"] < 1 else ""
        yield "values", _range(facts["values"]) + zeros
    if facts["bytes"] is not None:
        yield "size", f"{byte_size(facts['bytes'])} on disk"
    yield "labels", _labels(facts["labels"])
    if facts["weights"] is not None:
        yield "weights", f"{_range(facts['weights'])}, mean {number_text(facts['weights']['mean'])}"
    if facts["queries"] is not None:
        yield "queries", f"{facts['queries']:,}"
    if facts["recipe"] is not None:
        yield from _recipe_lines(facts["recipe"])
    for found in facts.get("indexes", []):
        yield "index", escape_markup(found["problem"]) if "problem" in found else _index_line(found)


def _index_line(index: Facts) -> str:
    size = f"{byte_size(index['bytes'])} ({index['of_rows']:.2f} of the rows)"
    return f"{index['kind']}: {count(index['leaves'], 'leaf', 'leaves')}, {size}, built in {index['seconds']:.1f} s"


def _recipe_lines(recipe: Facts) -> Iterator[tuple[str, str]]:
    named = [
        f"{what} {escape_markup(recipe[what])}" for what in ("label", "weight", "query") if recipe[what] is not None
    ]
    if recipe["columns"] is None:
        yield "recipe", f"features numbered from {recipe['index_base']}"
    else:
        yield "recipe", ", ".join([count(len(recipe["columns"]), "column"), *named])
        yield from _column_lines(recipe["columns"])
    from beeline.data.recipe.scaling import Scaling

    yield "scaling", Scaling.from_json(recipe["scaling"]).in_words


def _labels(labels: Facts | None) -> str:
    if labels is None:
        return "none"
    if not labels["count"]:
        return "every row has an empty set"
    spread = f"{_range(labels)}, mean {number_text(labels['mean'])}"
    text = f"more than {_MOST_KNOWN:,} different, {spread}"
    if labels["distinct"] is not None:
        text = f"{len(labels['distinct']['values']):,} different, {_range(labels)}"
    if labels["kind"] == "sets":
        text += f"; {_range(labels['per_row'])} a row"
    return text


def _classes(facts: Facts) -> Table | None:
    """How many rows each label has; of many labels, the most frequent ones."""
    labels, recipe = facts["labels"], facts["recipe"]
    if labels is None or not labels.get("distinct"):
        return None
    names = recipe["label_categories"] if recipe is not None else None
    counts = list(zip(labels["distinct"]["values"], labels["distinct"]["counts"], strict=True))
    if len(counts) > _MOST_CLASSES:
        if any(value != int(value) for value, _ in counts if not isinstance(value, str)):
            return None  # numbers to predict rather than classes
        counts.sort(key=lambda pair: -pair[1])
    table = plain_table()
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    largest = max(n for _, n in counts)
    for value, n in counts[:_MOST_CLASSES]:
        label = escape_markup(names[int(value)]) if names else number_text(value)
        bar = "█" * max(1, round(_BAR * n / largest))
        table.add_row(f"[bold cyan]label[/] {label}", f"{n:,}", percent(n / facts["rows"]), f"[green]{bar}[/]")
    if len(counts) > _MOST_CLASSES:
        table.add_row(f"[dim]… and {len(counts) - _MOST_CLASSES:,} less frequent[/]")
    return table


def _column_lines(columns: list[Facts]) -> Iterator[tuple[str, str]]:
    numbers = [column for column in columns if column["kind"] == "numeric"]
    if numbers:
        yield "numbers", _some([_number_column(column) for column in numbers], _MOST_NUMBERS)
    others = [column for column in columns if column["kind"] != "numeric"]
    for column in others[:_MOST_CLASSES]:
        categories = _some([escape_markup(category) for category in column["categories"]], _MOST_CATEGORIES)
        yield "categories", f"{escape_markup(column['name'])}: {categories}"
    if len(others) > _MOST_CLASSES:
        yield "", f"[dim]… and {count(len(others) - _MOST_CLASSES, 'more column')} of categories[/]"


def _number_column(column: Facts) -> str:
    name = escape_markup(column["name"])
    if column["width"] > 1:
        name += f"[dim] × {column['width']:,}[/]"
    return name if column["fill"] is None else f"{name}[dim] (missing values become {number_text(column['fill'])})[/]"


def _some(names: list[str], most: int) -> str:
    """The first few names, and how many more there are."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} [dim]… and {len(names) - most:,} more[/]"


def _feature_lines(ranges: list[Facts]) -> Iterator[str]:
    # There may be millions of features: too many to lay out as a table before the first one is shown.
    width = max(7, *(len(feature["feature"]) for feature in ranges[:1000]))
    yield f"{'feature':{width}}  {'min':>12}  {'max':>12}  {'mean':>12}"
    for feature in ranges:
        figures = "  ".join(f"{number_text(feature[name]):>12}" for name in ("min", "max", "mean"))
        yield f"{printable(feature['feature']):{width}}  {figures}"


def _range(figures: Facts) -> str:
    return f"{number_text(figures['min'])} … {number_text(figures['max'])}"
