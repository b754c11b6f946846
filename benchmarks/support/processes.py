"""Commands as processes of their own: what they took, from their start to their end."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support import sets

__all__ = ["BEELINE", "VW", "Run", "interleaved", "python_alone", "run", "scratch"]

BEELINE = str(Path(sys.executable).parent / "beeline")
# Vowpal Wabbit's program is the one inside its Python package; what starting Python takes is to be taken off.
VW = "import sys, pylibvw; vw = pylibvw.vw(sys.argv[1:]); vw.run_parser(); vw.finish()"

# As for anybody who has installed the package: modules are compiled once, and not at every start.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Run:
    """What one process took: seconds on the wall and of all cores together, and memory."""

    seconds: float
    megabytes: float
    cores: float


# Starts a command from a small process: what a child is said to have taken at most begins with its parent's memory.
_STARTER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
seconds = time.perf_counter() - start
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime]))
"""


def run(command: list[str], codes: tuple[int, ...] = (0,)) -> Run:
    """A process from its start to its end; its memory as the system has it when it ends. `codes` are no failures."""
    starter = [sys.executable, "-S", "-c", _STARTER]
    done = subprocess.run([*starter, *command], capture_output=True, text=True, env=_ENVIRONMENT, check=True)
    code, seconds, megabytes, cores = json.loads(done.stdout)
    if code not in codes:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return Run(seconds, megabytes, cores)


def python_alone() -> Run:
    """Python that does nothing."""
    return run([sys.executable, "-c", "pass"])


def interleaved(runs: dict[str, Callable[[], Run]], repeats: int, patience: float) -> dict[str, float]:
    """Median seconds of each; what has used up the patience is not run again."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, one in runs.items():
            if sum(times[name]) <= patience:
                times[name].append(one().seconds)
    return {name: statistics.median(taken) for name, taken in times.items()}


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for what processes leave, which is gone afterwards."""
    sets.FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=sets.FOLDER) as folder:
        yield Path(folder)
