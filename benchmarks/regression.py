"""Claim: HEAD is no slower than BASE: at most 1.02 of its time in the geometric mean, and 1.10 for each task.

Two builds side by side, each in an environment of its own under build/regression: training, searches for C, the bundle
method, L1, small data, whole commands and start-up. Both builds do a task in turn, many times over, and the ratio is
the median of the ratios of neighbours: the speed of a machine drifts, and both sides drift together.

    python benchmarks/regression.py [BASE [HEAD]] [--check] [--only bundle,l1] [--seconds 4] [--markdown FILE]

BASE and HEAD are commits; a `.` is the working tree. Without them, what was last committed is compared with the working
tree. Both are installed in the same way: an editable install, as in .venv, starts slower.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from support import sets
from support.regression_tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "regression"
MEAN, EACH = 1.02, 1.10
FEWEST, MOST = 5, 60
COMMANDS = {
    "startup import": ["python", "-c", "import beeline"],
    "startup --help": ["beeline", "--help"],
    "command train a9a": ["beeline", "train", "{a9a}", "-o", "{out}", "--loss", "logistic"],
    "command train w8a, hinge": ["beeline", "train", "{w8a}", "-o", "{out}", "--loss", "hinge"],
    "command select a9a": ["beeline", "select", "{a9a}", "--loss", "squared_hinge", "--folds", "3"],
}


@dataclass(eq=False)
class Build:
    """An installed build: the folder of its programs, and a process that does tasks for it."""

    programs: Path

    def __post_init__(self):
        script = ROOT / "benchmarks" / "support" / "regression_tasks.py"
        self.process = subprocess.Popen(
            [self.programs / "python", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, name):
        """How long it takes to do a task once."""
        if name in COMMANDS:
            return self._command_seconds(COMMANDS[name])
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def _command_seconds(self, command):
        files = {name: str(text_file(name)) for name in ("a9a", "w8a")}
        program, *arguments = (part.format(**files, out=FOLDER / "model") for part in command)
        begin = time.perf_counter()
        subprocess.run([self.programs / program, *arguments], check=True, capture_output=True)
        return time.perf_counter() - begin


def text_file(name):
    """A set as LIBSVM text."""
    path = FOLDER / f"{name}.svm"
    if not path.exists():
        from sklearn.datasets import dump_svmlight_file

        rows = sets.binary(name)
        dump_svmlight_file(rows.matrix(), rows.labels, str(path), zero_based=False)
    return path


def installed(commit):
    """The programs of a commit's build."""
    if commit == ".":
        return _install(ROOT, FOLDER / "tree")
    name = subprocess.run(["git", "rev-parse", "--short", commit], cwd=ROOT, check=True, capture_output=True, text=True)
    folder = FOLDER / name.stdout.strip()
    if (folder / "done").exists():
        return folder / "venv" / "bin"
    (folder / "source").mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder / "source"], input=archive, check=True)
    programs = _install(folder / "source", folder)
    (folder / "done").touch()
    return programs


def _install(source, folder):
    """The programs of a build of the source, in an environment of its own."""
    print(f"building {source} in {folder.relative_to(ROOT)} …", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([ROOT / "tools" / "make_venv.sh", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    command = [python, "-m", "pip", "-qq", "install", "--no-build-isolation", "--force-reinstall", "--no-deps", "."]
    subprocess.run([python, "-m", "pip", "-qq", "install", "--no-build-isolation", "."], cwd=source, check=True)
    subprocess.run(command, cwd=source, check=True)  # the version alone does not tell a working tree from itself
    return python.parent


def ratio(base, head, name, seconds):
    """(the median ratio of head's time to base's, the median of base's)."""
    base.seconds(name), head.seconds(name)  # loads, and warms up
    ratios, times, end = [], [], time.monotonic() + seconds
    while len(ratios) < FEWEST or (time.monotonic() < end and len(ratios) < MOST):
        first, second = (base, head) if len(ratios) % 2 else (head, base)
        taken = {first: first.seconds(name), second: second.seconds(name)}
        ratios.append(taken[head] / taken[base])
        times.append(taken[base])
    return statistics.median(ratios), statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default="HEAD")
    parser.add_argument("head", nargs="?", default=".")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--only", default="", help="beginnings of the names of tasks, with commas between them")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each task, for both builds together")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    base, head = Build(installed(args.base)), Build(installed(args.head))
    chosen = tuple(args.only.split(",")) if args.only else ("",)
    lines, ratios = [], {}
    for name in [*TASKS, *COMMANDS]:
        if not name.startswith(chosen):
            continue
        ratios[name], seconds = ratio(base, head, name, args.seconds)
        slow = " **slower**" if ratios[name] > EACH else ""
        lines.append(f"| {name} | {seconds:.4g} | {ratios[name]:.3f}{slow} |")
        print(lines[-1], flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    lines.append(f"| geometric mean of {len(ratios)} | | {mean:.3f} |")
    print(lines[-1])
    if args.markdown:
        args.markdown.write_text("\n".join(["| task | base, s | head / base |", "|---|---|---|", *lines]) + "\n")
    broken = mean > MEAN or max(ratios.values()) > EACH
    return int(args.check and broken)


if __name__ == "__main__":
    sys.exit(main())
