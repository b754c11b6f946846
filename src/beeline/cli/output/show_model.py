"""Drawing what is known about a model, for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from beeline._words import count, shortened
from beeline.cli.output.drawing import (
    byte_size,
    escape_markup,
    number_text,
    percent,
    plain_table,
    signed_text,
    standard_console,
)
from beeline.cli.output.errors import printable, styled

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["show_model", "show_trained"]

Facts = dict[str, Any]

_MOST_CLASSES = 20
_BAR = 16


def show_trained(facts: Facts, *, with_search: bool = True) -> None:
    """Print what a training gave, in two or three lines; with one about the search for C, where there was one."""
    report = facts["report"]
    parts = [_loss(facts), *([] if facts["classes"] is None else [_classes(facts)])]
    parts += [count(facts["features"], "feature"), count(report["n_rows"], "row"), byte_size(facts["bytes"])]
    # Without rich: three lines do not need what takes a tenth of a short run to load.
    lines = [
        f"{styled(printable(facts['path']), '1', sys.stdout)}: {', '.join(parts)}",
        f"{report['solver']}: {printable(report['sentence'])}, in {report['seconds']:.2f} s",
    ]
    if with_search and (found := facts["settings"].get("selection")):
        lines.append(f"C = {number_text(facts['settings']['C'])} was found by {printable(_found(found))}")
    if facts.get("loss_chosen_because"):
        lines.append(styled(f"the loss was chosen because {printable(facts['loss_chosen_because'])}", "2", sys.stdout))
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def show_model(facts: Facts) -> None:
    """Print all facts about a model, and its largest weights."""
    with standard_console() as out:
        out.print(
            f"[bold]{escape_markup(facts['path'])}[/]  [dim]{facts['format']} model, {byte_size(facts['bytes'])}[/]",
            highlight=False,
        )
        lines = plain_table()
        for key, text in _lines(facts):
            lines.add_row(f"[bold cyan]{key}[/]", text)
        out.print(lines)
        for output in facts["top"][:_MOST_CLASSES]:
            out.print()
            out.print(_weights(output, facts["kind"]))
        if len(facts["top"]) > _MOST_CLASSES:
            out.print(f"[dim]… and {count(len(facts['top']) - _MOST_CLASSES, 'more class')}; --json shows all[/]")


def _lines(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "predicts", escape_markup(_classes(facts)) if facts["classes"] is not None else _numbers(facts)
    yield "loss", _loss(facts)
    if facts["thresholds"] is not None:
        yield "thresholds", ", ".join(map(number_text, facts["thresholds"]))
    yield "features", f"{facts['features']:,}"
    share = facts["nonzeros"] / max(1, facts["features"] * facts["outputs"])
    yield "weights", f"{facts['nonzeros']:,} not zero  [dim]({percent(share)})[/]"
    yield "probabilities", facts["probabilities"] or "none"
    if facts["columns"] is not None:
        yield "columns", count(len(facts["columns"]), "column")
    if facts["scaling"] is not None:
        yield "scaling", facts["scaling"]
    if facts["settings"]:
        said = {name: value for name, value in facts["settings"].items() if name != "selection"}
        yield "settings", ", ".join(f"{name} {_said(value)}" for name, value in said.items())
    if found := facts["settings"].get("selection"):
        yield f"{'C' if 'C' in facts['settings'] else 'alpha'} found by", escape_markup(_found(found))
    if facts["report"] is not None:
        report = facts["report"]
        yield "training", f"{report['solver']}: {escape_markup(report['sentence'])}"
        yield (
            "",
            f"{count(report['n_rows'], 'row')}, objective {_known(report['objective'])}, {report['seconds']:.2f} s",
        )
        for sentence in report["concerns"]:
            yield "[yellow]warning[/]", escape_markup(sentence)
    if facts["format"] == "beeline":
        yield "made by", f"beeline {escape_markup(facts['beeline'])}"


def _said(value: Any) -> str:  # noqa: ANN401
    """A setting as people write it: 1000 where a file has 1000.0."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return escape_markup(str(int(value) if whole else value))


def _known(value: float | None) -> str:
    return "unknown" if value is None else number_text(value)


def _found(selection: Facts) -> str:
    """How C was found."""
    folds = selection["folds"]
    score = "without a score" if selection["score"] is None else f"{selection['score']:.5g}"
    where = f"on {folds} folds" if folds > 1 else "on rows held out once"
    tried = f"the best of {count(selection['candidates'], 'value')}"
    if selection["rule"] == "one_se":
        tried = f"the smallest within a standard error of {tried}"
    ended = ", where it was interrupted" if selection["end"] == "interrupted" else ""
    return f"{selection['metric']} {score} {where}, {tried}{ended}"


def _loss(facts: Facts) -> str:
    settings = ", ".join(f"{name} {_setting(value, name)}" for name, value in facts["loss_settings"].items())
    return f"{facts['loss']} ({settings})" if settings else str(facts["loss"])


def _setting(value: Any, name: str = "") -> str:  # noqa: ANN401
    if name == "tree" or isinstance(value, str):
        return f"of {count(len(value), 'edge')}" if name == "tree" else printable(value)
    if isinstance(value, list) and name == "levels":
        return shortened([printable(str(level)) for level in value])
    return f"{len(value)} × {len(value)}" if isinstance(value, list) else number_text(value)


def _numbers(facts: Facts) -> str:
    what = "a number" if facts["outputs"] == 1 else f"{count(facts['outputs'], 'number')}"
    return what + {"exp": ", exp of the score", "logistic": ", a share between 0 and 1"}.get(facts["link"], "")


def _classes(facts: Facts) -> str:
    names = facts["classes"]
    if facts["kind"] == "multilabel":
        return f"sets of {count(len(names), 'label')}"
    if len(names) == 2:
        return f"classes {printable(names[0])} and {printable(names[1])}"
    if facts["thresholds"] is not None:
        return f"{count(len(names), 'level')}, from {printable(names[0])} to {printable(names[-1])}"
    form = facts["settings"].get("multiclass")
    return f"{count(len(names), 'class')}" + (f" ({form})" if form else "")


def _weights(output: Facts, kind: str) -> Table:
    shown = plain_table()
    heading = "largest weights" if kind == "regression" else f"largest weights for {escape_markup(output['output'])}"
    beside = "" if output["intercept"] is None else f"[dim]intercept {number_text(output['intercept'])}[/]"
    shown.add_row(f"[bold]{heading}[/]", "", beside)
    largest = max((abs(feature["weight"]) for feature in output["features"]), default=1.0)
    for feature in output["features"]:
        weight = feature["weight"]
        bar = "█" * max(1, round(_BAR * abs(weight) / largest))
        shown.add_row(
            f"  {escape_markup(feature['feature'])}",
            signed_text(weight),
            f"[{'green' if weight > 0 else 'red'}]{bar}[/]",
        )
    if not output["features"]:
        shown.add_row("  [dim]every weight is zero[/]")
    return shown
