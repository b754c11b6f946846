"""Commands as processes of their own: what they took, from their start to their end."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
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


def run(command: list[str], codes: tuple[int, ...] = (0,)) -> Run:
    """A process from its start to its end; its memory as the system has it when it ends. `codes` are no failures."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_ENVIRONMENT)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)}: {errors.decode()}")
    return Run(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


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
