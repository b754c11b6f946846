"""Claim: `beeline convert` of a file ten times the memory budget peaks at most 150 MB above the budget.

The conversion is a process of its own, watched from outside: its peak resident memory as the kernel reports it when
it ends, and, where control groups can be made (as root, mostly), a hard limit of budget + 150 MB on everything it
causes, page cache included. Under that limit a conversion that needs more is killed. The cache is counted but can be
given back; what cannot is shown apart.

    python benchmarks/convert_memory.py [--check] [--full] [--budget 64M] [--folder DIR]
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from support.watching import mb, parse_size, watch

ALLOWANCE = 150 << 20
TIMES = 10


def libsvm_lines(rng: random.Random) -> list[str]:
    """Rows like text: about 75 of 47,236 features each."""
    lines = []
    for _ in range(4000):
        features = sorted(rng.sample(range(1, 47_237), rng.randint(40, 110)))
        entries = " ".join(f"{j}:{rng.random():.6g}" for j in features)
        lines.append(f"{rng.choice((-1, 1))} {entries}\n")
    return lines


def csv_lines(rng: random.Random) -> list[str]:
    """Rows of a table with numbers and categories."""
    kinds = ("tcp", "udp", "icmp")
    return [
        ",".join([*(f"{rng.gauss(0, 1):.6g}" for _ in range(30)), rng.choice(kinds), str(rng.randint(0, 6))]) + "\n"
        for _ in range(8000)
    ]


def write_source(path: Path, size: int) -> None:
    """A file of about this size, made of a few thousand rows in ever new orders."""
    rng = random.Random(7)
    table = path.suffix == ".csv"
    lines = csv_lines(rng) if table else libsvm_lines(rng)
    with path.open("w") as file:
        if table:
            file.write(",".join([*(f"x{j}" for j in range(30)), "protocol", "y"]) + "\n")
        while file.tell() < size:
            rng.shuffle(lines)
            file.write("".join(lines))


def convert(source: Path, store: Path, budget: int, *extra: str) -> list[str]:
    command = [sys.executable, "-m", "beeline", "convert", str(source), str(store), "--memory", str(budget)]
    return [*command, *(["--label", "y"] if source.suffix == ".csv" else []), *extra]


def run(folder: Path, budget: int, formats: list[str]) -> bool:
    limit = budget + ALLOWANCE
    holds = True
    print(f"budget {mb(budget)}, limit {mb(limit)}, files of {mb(TIMES * budget)}")
    idle = watch([sys.executable, "-c", "import numpy, pyarrow, beeline.data.store"], limit)
    print(f"   for comparison, Python with its libraries alone: {mb(idle.resident)} resident")
    for name in formats:
        source = folder / f"rows.{name}"
        write_source(source, TIMES * budget)
        for extra in ([], ["--shuffle"]):
            store = folder / "store"
            seen = watch(convert(source, store, budget, *extra), limit)
            within = seen.code == 0 and seen.resident <= limit
            holds &= within
            counted = f", {mb(seen.counted)} with page cache" if seen.counted is not None else ""
            held = f", {mb(seen.held)} not backed by files" if seen.held else ""
            rate = source.stat().st_size / seen.seconds
            print(
                f"   {name + ' ' + ' '.join(extra):<17} peak {mb(seen.resident)} resident{held}{counted}; "
                f"{seen.seconds:.1f} s, {mb(rate)}/s: {'holds' if within else f'FAILS (exit code {seen.code})'}"
            )
            shutil.rmtree(store, ignore_errors=True)
        source.unlink()
    return holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with code 1 when the claim does not hold")
    parser.add_argument("--full", action="store_true", help="also a budget of 512 MB")
    parser.add_argument("--budget", default="64M")
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; a temporary folder otherwise")
    arguments = parser.parse_args()
    budget = parse_size(arguments.budget)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        budgets = [budget, 512 << 20] if arguments.full else [budget]
        holds = [run(Path(folder), each, ["svm", "csv"]) for each in budgets]
    return int(arguments.check and not all(holds))


if __name__ == "__main__":
    sys.exit(main())
