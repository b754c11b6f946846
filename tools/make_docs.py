"""Write the references anew.

docs/cli.md is made from the commands, docs/api.md from docstrings, docs/losses.md from the losses, and
docs/solver-options.md from what solvers need and can be told.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
# What one's own parts are derived from, by where it is imported from.
_BASES = {
    "beeline.losses": ("ScalarLoss", "VectorLoss", "GroupLoss"),
    "beeline.regularizers": ("Regularizer",),
    "beeline.solvers": ("Solver", "State"),
}
NOTE = "<!-- Written by `make docs`; a test fails when it is out of date. -->"


def main(target: Path = DOCS) -> None:
    """Write the references into a folder."""
    (target / "cli.md").write_text(cli_reference(), encoding="utf-8")
    (target / "api.md").write_text(api_reference(), encoding="utf-8")
    (target / "losses.md").write_text(loss_reference(), encoding="utf-8")
    (target / "solver-options.md").write_text(solver_reference(), encoding="utf-8")


def cli_reference() -> str:
    """Every command with its usage and options, as Markdown."""
    from beeline.cli.app import app
    from beeline.cli.output.exit_codes import EXIT_CODES

    group: Any = app
    parts = ["# The command line", NOTE, group.help, _options(group, "beeline")]
    parts += [
        "Errors of the data or the machine are one line on standard error; a command that was given wrongly shows its "
        "usage too. `--debug` adds a traceback. Warnings are lines there too. A progress bar is drawn on standard "
        "error when that is a terminal.",
        "## Exit codes",
        "| code | |\n|---|---|\n" + "\n".join(f"| {int(code)} | {meaning} |" for code, meaning in EXIT_CODES.items()),
    ]
    parts += [described_command(name, command) for name, command in group.commands.items()]
    return "\n\n".join(parts) + "\n"


def described_command(name: str, command: Any, level: int = 2) -> str:
    """One command with its usage and options, under a heading of a level."""
    heading = f"{'#' * level} beeline {name}"
    return "\n\n".join([heading, f"```text\n{_usage(command, name)}\n```", command.help, _options(command, name)])


def _usage(command: Any, name: str) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    return " ".join(["beeline", name, "[OPTIONS]", *(p.metavar for p in arguments)])


def _options(command: Any, name: str) -> str:
    """One table for each group of options."""
    panels: dict[str, list[str]] = {}
    for param in command.params:
        if param.param_type_name == "argument":
            continue
        spelled = ", ".join(f"`{opt}`" for opt in [*param.opts, *param.secondary_opts])
        value = "" if param.is_flag else f" {param.metavar}"
        if not param.help:
            sys.exit(f"beeline {name}: {param.opts[0]} has no help text")
        shown = param.show_default and not (param.required or param.is_flag) and param.default is not None
        default = f" Default: `{param.default}`." if shown else ""
        panel = getattr(param, "panel", "Options")
        panels.setdefault(panel, []).append(f"| {spelled}{value} | {param.help}{default} |")
    tables = [f"| {panel} | |\n|---|---|\n" + "\n".join(rows) for panel, rows in panels.items()]
    return "\n\n".join(tables)


def api_reference() -> str:
    """Every public name with its docstring, as Markdown."""
    parts = ["# The Python interface", NOTE, "```python\nimport beeline\n```"]
    parts += [described(title, thing) for title, thing in public_names()]
    return "\n\n".join([*parts, exception_tree()]) + "\n"


def public_names() -> Iterator[tuple[str, Any]]:
    """Functions, classes, and what one's own parts are derived from, each with the name that it is documented by."""
    import beeline

    names = [name for name in beeline.__all__ if name != "__version__"]
    functions = [name for name in names if not inspect.isclass(getattr(beeline, name))]
    classes = [name for name in names if name not in functions]
    yield from ((f"beeline.{name}", getattr(beeline, name)) for name in (*functions, *classes))
    for home, kinds in _BASES.items():
        yield from ((f"{home}.{kind}", getattr(import_module(home), kind)) for kind in kinds)


def exception_tree(level: int = 2) -> str:
    """The exceptions, as their module draws them."""
    import beeline.exceptions

    tree = inspect.cleandoc(beeline.exceptions.__doc__ or "").replace("::\n\n", ":\n\n")
    return f"{'#' * level} beeline.exceptions\n\n{tree}"


def described(title: str, thing: Any, level: int = 2) -> str:
    """A public name with its signature, its docstring and its members, under a heading of a level."""
    return "\n\n".join(_parts_of(title, thing, level))


def _parts_of(title: str, thing: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} {title}"
    if callable(thing) and not (inspect.isclass(thing) and inspect.isabstract(thing)):
        yield f"```text\n{title.removeprefix('beeline.')}{_signature(thing)}\n```"
    yield _markdown(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        yield from _members(thing)


def _signature(thing: Any) -> str:
    text = re.sub(r"""(: |-> )(['"])(.*?)\2""", r"\1\3", str(inspect.signature(thing)))  # annotations are kept as text
    return text.removesuffix(" -> None")


def _members(cls: type) -> Iterator[str]:
    lines = []
    for name, found in inspect.getmembers_static(cls):
        member = getattr(found, "fn", found)  # a method that scikit-learn shows only where it has a meaning
        kinds = (property, staticmethod, classmethod, FunctionType)
        if name.startswith("_") or not isinstance(member, kinds):
            continue
        function = getattr(member, "__func__", member)
        if getattr(function, "__module__", "beeline").startswith("sklearn"):
            continue
        call = (
            "" if isinstance(member, property) else _signature(function).replace("(self, ", "(").replace("(self)", "()")
        )
        first = (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")
        if not first:
            sys.exit(f"{cls.__name__}.{name} has no docstring")
        lines.append(f"- `{name}{call.split(' -> ')[0]}`: {first}")
    if lines:
        yield "**Members**\n\n" + "\n".join(lines)


def _markdown(docstring: str) -> str:
    """Turn the sections of a numpydoc docstring into lists; the rest is Markdown already."""
    out: list[str] = []
    blocks = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.MULTILINE)
    out.append(blocks[0].strip())
    for title, body in zip(blocks[1::2], blocks[2::2], strict=True):
        if title == "Examples":
            out.append(f"**{title}**\n\n```text\n{body.strip()}\n```")
            continue
        entries = re.findall(r"^(\S.*)\n((?:(?:[ ]{4}.*)?\n?)+)", body + "\n", flags=re.MULTILINE)
        lines = [f"- `{name.strip()}`: {' '.join(text.split())}" for name, text in entries]
        out.append(f"**{title}**\n\n" + "\n".join(lines))
    return "\n\n".join(part for part in out if part)


ABOUT_LOSSES = """\
z is a row's score, y its label, and training minimises Ω(w) + C·Σ weight·loss. All losses are convex and none is ever
negative. A loss is taken by its name, or as an object with settings of its own, and so are losses of yours
([how](guide-own-loss.md)):

```python
import numpy as np
from beeline import LinearModel
from beeline.losses import Huber

X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200.0)
robust = LinearModel(Huber(delta=2.0)).fit(X, y)
```

```sh
beeline train claims.csv --label amount --loss tweedie --loss-setting power=1.7 -o claims.model
```

- *Smooth* losses have a gradient everywhere; *curved* ones also give a curvature, as Newton's method needs; *kinked*
  ones are piecewise linear.
- The solvers are those for L2, then those for L1; `auto` [chooses](solvers.md) among them.
- In formulas the settings have Greek letters: τ is `tau`, δ `delta`, ε `epsilon`, ρ `rho`. Δ is `costs`, a matrix of
  what it costs to take the class of a row for the class of a column, classes sorted (None: 1 for every mistake); on
  the command line `--loss-setting 'costs=[[0,1],[5,0]]'`. M is `metric` (None: the identity).
- Losses over a tree have a score z_v for every node but the root, and Δ is the length of the way between two classes.
  `tree` is a `LabelTree` or what one is made of ([how](tutorial-label-trees.md)); on the command line `--tree FILE`.
- A loss for two classes is trained on more as one problem for each class against the rest. Its y is −1 and +1 inside;
  labels may be called anything.
- Sets of labels are a matrix y of 0 and 1, or what LIBSVM text has; vectors are a matrix y of numbers. Outputs that
  have nothing to do with each other are solved as problems of their own.
- With a *link* a regression predicts not the score but exp(z), or 1/(1 + exp(−z)) for `logistic`; of a classifier,
  probabilities are made by it."""


def loss_reference() -> str:
    """Every loss of the registry, in a table for each kind of labels."""
    from beeline.cli.output.loss_facts import LABELS, all_losses

    facts = all_losses()
    parts = ["# Losses", NOTE, f"There are {len(facts)}; `beeline losses` lists them too.", ABOUT_LOSSES]
    for labels, title in LABELS.items():
        head = "| name | loss of a row | what it is | kind | settings | solvers |\n|---|---|---|---|---|---|\n"
        parts += [f"## {title}", head + "\n".join(_loss_row(loss) for loss in facts if loss["labels"] == labels)]
    return "\n\n".join(parts) + "\n"


def _loss_row(loss: dict[str, Any]) -> str:
    extra = [f"labels must be {loss['domain']}"] if loss["domain"] else []
    extra += [f"link {loss['link']}"] if loss["link"] != "none" else []
    settings = ", ".join(f"`{name}={value}`" for name, value in loss["settings"].items())
    solvers = "; ".join(", ".join(f"`{name}`" for name in names) or "none" for names in loss["solvers"].values())
    summary = "; ".join([loss["summary"], *extra])
    cells = [f"`{loss['name']}`", f"`{loss['formula']}`", summary, loss["kind"], settings or "none", solvers]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


ABOUT_SOLVERS = """\
`solver=` is a name, a name with options, or a solver; everywhere: in estimators, `LinearModel`, `select_C` and
`Settings`. On the command line it is `--solver NAME`, and `--solver-setting NAME=VALUE` for each option.

```python
import numpy as np
from beeline import LinearSVC
from beeline.solvers import Bundle

X = np.random.default_rng(0).normal(size=(200, 3))
for solver in ("bundle", ("bundle", {"variant": "bmrm"}), Bundle(variant="bmrm")):
    model = LinearSVC(loss="hinge", solver=solver, tol=1e-3).fit(X, X[:, 0] > 0)
print(model.model_.settings["solver"], model.model_.settings["solver_options"])
```

```sh
beeline train rows.svm --loss hinge --solver bundle --solver-setting variant=bmrm -o rows.model
```

`tol`, `max_passes`, `time_limit` and the seed are for every solver, and said where they always are. A solver that was
told its own `tol`, `max_passes` or `seed`, such as `Bundle(tol=1e-6)`, keeps them; what it was not told is as the
estimator has it. Of two time limits, `Bundle().within(10)` and the estimator's, the shorter one counts. A solver that
is given is never changed, and keeps no rows: it can be shared, cloned and pickled."""

ABOUT_NEEDS = """\
What a solver needs of loss, regularizer and rows is declared with it. A pair that cannot work is refused by that,
before the first pass, and `auto` chooses among those that can.

- *Smooth* and *curved* are as in the [table of losses](losses.md).
- Rows *in passes* are read block by block, from wherever they are, and only vectors with an entry a row are kept, with
  the rows. *Here* is the memory of this process.
- A loss that says it is [not convex](guide-own-loss.md#a-loss-that-is-not-convex) has no certificate; most solvers
  need one to work at all."""


ABOUT_ENDS = """\
Every result has a status and a sentence, and so has the report of a model. Only `converged` means that the tolerance is
proven; `unproven` is the end of a run that [has no certificate to give](guide-training.md#what-tol-means)."""


def solver_reference() -> str:
    """Every solver of the registry: what it takes, and its options."""
    from beeline.solvers.base import Status
    from beeline.solvers.needs import in_words
    from beeline.solvers.options import options_of
    from beeline.solvers.registry import SOLVERS

    facts = {name: dict(in_words(kind.needs)) for name, kind in SOLVERS.items()}
    columns = next(iter(facts.values()))
    head = f"| solver | {' | '.join(columns)} |\n{'|---' * (len(columns) + 1)}|\n"
    table = head + "\n".join(f"| `{name}` | {' | '.join(cells.values())} |" for name, cells in facts.items())
    parts = [
        "# Which solver takes what, and its options",
        NOTE,
        ABOUT_SOLVERS,
        "## Needs",
        ABOUT_NEEDS,
        table,
        "## Options",
    ]
    none = [f"`{name}`" for name, kind in SOLVERS.items() if not options_of(kind.kind_of_options)]
    parts.append(f"{', '.join(none[:-1])} and {none[-1]} have none.")
    for name, kind in SOLVERS.items():
        rows = [
            f"| `{its.name}` | `{its.default!r}` | {its.metadata['text']} |"
            for its in options_of(kind.kind_of_options).values()
        ]
        if rows:
            parts += [f"### `{name}`", "| option | default | |\n|---|---|---|\n" + "\n".join(rows)]
    ends = "\n".join(f"| `{end.name.lower()}` | {end.value} after … passes |" for end in Status)
    parts += ["## How a run ends", ABOUT_ENDS, f"| status | the sentence begins |\n|---|---|\n{ends}"]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
