"""`beeline losses`: all losses, what each needs and who takes it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from beeline.cli.options.common import Debug, Json, print_json
from beeline.cli.output.errors import one_line_errors

__all__ = ["losses"]


def losses(*, json: Json = False, debug: Debug = False) -> None:
    """List all losses: the formula, the labels, what each needs, and the solvers that take it.

    z is a row's score and y its label. The loss is named by beeline train --loss, its settings by --loss-setting.

    Example: beeline losses --json
    """
    with one_line_errors(debug):
        from beeline.cli.output.loss_facts import all_losses

        facts = all_losses()
        if json:
            print_json({"losses": facts})
        else:
            _show(facts)


def _show(facts: list[dict[str, Any]]) -> None:
    from beeline.cli.output.drawing import escape_markup, plain_table, standard_console
    from beeline.cli.output.loss_facts import LABELS

    with standard_console() as out:
        for labels, group in groupby(facts, key=lambda loss: str(loss["labels"])):
            out.print(f"[bold]{LABELS[labels]}[/]", highlight=False)
            table = plain_table()
            for loss in group:
                table.add_row(f"  [bold cyan]{loss['name']}[/]", escape_markup(loss["formula"]))
                table.add_row("", f"[dim]{escape_markup(_about(loss))}[/]")
            out.print(table, highlight=False)
            out.print()


def _about(loss: dict[str, Any]) -> str:
    """The line below a formula."""
    parts = [loss["summary"]]
    if loss["domain"]:
        parts.append(f"labels {loss['domain']}")
    if loss["settings"]:
        parts.append("settings " + ", ".join(f"{name}={value}" for name, value in loss["settings"].items()))
    takers = (f"{', '.join(names)} with {omega}" for omega, names in loss["solvers"].items())
    return "; ".join([*parts, *takers])
