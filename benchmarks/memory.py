"""Claim: with data ten times the memory budget, every command peaks at most 150 MB above the budget.

`train` with every solver that streams, `select`, `predict` and `evaluate`, on LIBSVM text and on its store, each a
process of its own that is watched from outside: its peak resident memory as the kernel reports it when it ends, pages
of mapped files included, and, where control groups can be made (as root, mostly), a hard limit of budget + 150 MB on
everything it causes, page cache included. Under that limit a command that needs more is killed.

`--full` adds a table of many short rows, where what belongs to a row weighs most against the row itself.

    python benchmarks/memory.py [--check] [--budget 64M] [--quick] [--full] [--markdown FILE] [--folder DIR]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from support.watching import Outcome, mb, parse_size, watch

ALLOWANCE = 150 << 20
TIMES, QUICK_TIMES = 10, 40  # with a small budget, ten times as much would fit what is allowed beside it
FEATURES = 47_236
DOUBTFUL = 3  # the exit code of a model that the pass limit has ended
PASSES = "20"  # memory does not depend on how far a solver gets


@dataclass(frozen=True)
class Case:
    """A command: what it is called in the table, and its arguments; `{text}`, `{store}` and `{model}` are files."""

    name: str
    arguments: str


def training(loss: str, solver: str, source: str) -> Case:
    how = f"--loss {loss} --solver {solver} --C 0.001 --tol 0.001 --max-passes {PASSES}"
    return Case(f"train, {loss}, {solver}, {source}", f"train {{{source}}} -o {{model}} {how}")


CASES = (
    training("logistic", "auto", "text"),
    training("logistic", "newton", "store"),
    training("logistic", "lbfgs", "store"),
    training("logistic", "bundle", "store"),
    training("hinge", "auto", "text"),
    training("hinge", "smoothed_newton", "store"),
    training("hinge", "bundle", "store"),
    Case("select, logistic, store", "select {store} --loss logistic --folds 3 --C-min 0.0001 --C-max 0.0004"),
    Case("select, hinge, store", "select {store} --loss hinge --folds 2 --C-min 0.0001 --C-max 0.0001 --max-passes 10"),
    Case("predict, text", "predict {model} {text} -o {answers}"),
    Case("predict, store", "predict {model} {store} -o {answers}"),
    Case("evaluate, text", "evaluate {model} {text}"),
    Case("evaluate, store", "evaluate {model} {store}"),
)
SHORT_ROWS = (
    Case("train, short rows, logistic", "train {table} -o {model} --loss logistic"),
    Case("train, short rows, hinge, probability", "train {table} -o {model} --loss hinge --max-passes 5 --probability"),
    Case("select, short rows, logistic", "select {table} --loss logistic --folds 3 --C-min 0.001 --C-max 0.001"),
    Case("evaluate, short rows", "evaluate {model} {table}"),
)


def write_source(path: Path, size: int) -> None:
    """LIBSVM text of about this size: some thousand rows like text, whose labels can be learned, in ever new orders."""
    rng = random.Random(7)
    weights = [rng.gauss(0, 1) for _ in range(FEATURES)]
    lines = []
    for _ in range(min(8000, size // 2000)):
        features = sorted({int(FEATURES * rng.random() ** 3) for _ in range(rng.randint(50, 140))})
        values = [float(f"{rng.random():.6g}") for _ in features]
        score = sum(weights[j] * x for j, x in zip(features, values, strict=True)) + rng.gauss(0, 2)
        entries = " ".join(f"{j + 1}:{x:.6g}" for j, x in zip(features, values, strict=True))
        lines.append(f"{1 if score > 0 else -1} {entries}\n")
    with path.open("w") as file:
        while file.tell() < size:
            rng.shuffle(lines)
            file.write("".join(lines))


def write_table(path: Path, size: int) -> None:
    """A table of about this size: 28 numbers a row, some of which tell the label."""
    rng = random.Random(8)
    lines = []
    for _ in range(20_000):
        numbers = [rng.gauss(0, 1) for _ in range(28)]
        label = 1 if sum(numbers[:5]) + rng.gauss(0, 2) > 0 else 0
        lines.append(",".join([*(f"{x:.6g}" for x in numbers), str(label)]) + "\n")
    with path.open("w") as file:
        file.write(",".join([*(f"x{j}" for j in range(28)), "y"]) + "\n")
        while file.tell() < size:
            rng.shuffle(lines)
            file.write("".join(lines))


def convert(source: Path, store: Path, budget: int, *options: str) -> None:
    """A store of a source."""
    command = [sys.executable, "-m", "beeline", "convert", str(source), str(store), "--memory", str(budget), *options]
    if watch(command, budget + ALLOWANCE).code:
        raise SystemExit(f"{source} could not be converted within the limit")
    size = sum(file.stat().st_size for file in store.iterdir())
    print(f"   {source.name} of {mb(source.stat().st_size)}, {store.name} of {mb(size)}", flush=True)


def run(folder: Path, budget: int, times: int, *, full: bool) -> list[tuple[Case, Outcome, bool]]:
    """Every case, with what was seen and whether the claim holds."""
    limit = budget + ALLOWANCE
    files = {name: folder / f"rows.{name}" for name in ("text", "store", "model", "answers", "csv", "table")}
    print(f"budget {mb(budget)}, limit {mb(limit)}")
    write_source(files["text"], times * budget)
    convert(files["text"], files["store"], budget)
    if full:
        write_table(files["csv"], times * budget)
        convert(files["csv"], files["table"], budget, "--label", "y")
        files["csv"].unlink()
    python = [sys.executable, "-m", "beeline"]
    idle = watch([sys.executable, "-c", "import numpy, pyarrow, beeline.fitting, beeline.data.store"], limit)
    print(f"   for comparison, Python with its libraries alone: {mb(idle.resident)} resident", flush=True)
    seen = []
    for case in (*CASES, *SHORT_ROWS) if full else CASES:
        words = [word.format(**files) for word in case.arguments.split()]
        outcome = watch([*python, *words, "--memory", str(budget)], limit)
        within = outcome.code in (0, DOUBTFUL) and outcome.resident <= limit
        seen.append((case, outcome, within))
        counted = f", {mb(outcome.counted)} with page cache" if outcome.counted is not None else ""
        verdict = "holds" if within else f"FAILS (exit code {outcome.code})"
        print(f"   {case.name:<36} peak {mb(outcome.resident)} resident{counted}; {outcome.seconds:.1f} s: {verdict}")
        sys.stdout.flush()
    return seen


def markdown(seen: list[tuple[Case, Outcome, bool]], budget: int) -> str:
    """The table of docs/benchmarks.md."""
    lines = [f"| command, budget {mb(budget)} | peak resident | of the limit | seconds |", "|---|---|---|---|"]
    for case, outcome, _ in seen:
        share = f"{100 * outcome.resident / (budget + ALLOWANCE):.0f} %"
        lines.append(f"| `{case.name}` | {mb(outcome.resident)} | {share} | {outcome.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with code 1 when the claim does not hold")
    parser.add_argument("--budget", default="64M")
    parser.add_argument("--quick", action="store_true", help="a budget of 8 MB, and 40 times as much data")
    parser.add_argument("--full", action="store_true", help="also a table of short rows")
    parser.add_argument("--markdown", type=Path, default=None, help="write the table here")
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; a temporary folder otherwise")
    arguments = parser.parse_args()
    budget = 8 << 20 if arguments.quick else parse_size(arguments.budget)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        seen = run(Path(folder), budget, QUICK_TIMES if arguments.quick else TIMES, full=arguments.full)
    if arguments.markdown is not None:
        arguments.markdown.write_text(markdown(seen, budget), encoding="utf-8")
    return int(arguments.check and not all(within for _, _, within in seen))


if __name__ == "__main__":
    sys.exit(main())
