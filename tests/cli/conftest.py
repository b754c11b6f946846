"""Running the real command, in a pipe and on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

from beeline.cli.app import app

BEELINE = [sys.executable, "-m", "beeline"]


@pytest.fixture
def beeline(tmp_path):
    """Run `beeline ARGUMENTS` in an empty folder, its output in pipes."""

    def run(*arguments, env=None, **options):
        return subprocess.run(
            [*BEELINE, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | (env or {}),
            check=False,
            timeout=100,
            **options,
        )

    return run


@pytest.fixture
def quickly(tmp_path, monkeypatch):
    """Run `beeline ARGUMENTS` as `beeline` does, but within this process: for the many ways to be wrong."""

    def run(*arguments, folder=tmp_path):
        monkeypatch.chdir(folder)
        before = signal.getsignal(signal.SIGTERM)
        done = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="beeline")
        signal.signal(signal.SIGTERM, before)
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    return run


@dataclass
class OnTerminal:
    """What a command did on a terminal."""

    returncode: int
    screen: str


@pytest.fixture
def terminal(tmp_path):
    """Run `beeline ARGUMENTS` on a pseudo-terminal of 100 columns, its standard output there too unless redirected."""

    def run(*arguments, stdout=None):
        master, slave = pty.openpty()
        environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
        environment.pop("NO_COLOR", None)
        process = subprocess.Popen(
            [*BEELINE, *map(str, arguments)],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            cwd=tmp_path,
            env=environment,
        )
        os.close(slave)
        screen, until = b"", time.monotonic() + 100
        while time.monotonic() < until:
            ready, _, _ = select.select([master], [], [], 1)
            if not ready:
                continue
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            screen += piece
        os.close(master)
        return OnTerminal(process.wait(timeout=10), screen.decode())

    return run


@pytest.fixture
def svm(tmp_path):
    """A small LIBSVM file: 3 rows, 4 features, 5 nonzeros."""
    path = tmp_path / "small.svm"
    path.write_text("1 1:0.5 4:2\n-1 2:1\n1 1:-3 3:0.25\n")
    return path


@pytest.fixture
def people(tmp_path):
    """A small table with text, numbers, weights and text labels."""
    path = tmp_path / "people.csv"
    path.write_text("age,city,w,target\n31,Paris,1,yes\n45,Oslo,2,no\n28,Paris,1,no\n")
    return path


def write_svm(path, X, y):
    """Write rows as LIBSVM text, with every digit."""
    lines = (f"{a} " + " ".join(f"{j}:{float(v)!r}" for j, v in enumerate(x, 1)) for a, x in zip(y, X, strict=True))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def rows(tmp_path):
    """Two classes that overlap, in LIBSVM text."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    write_svm(tmp_path / "rows.svm", X, np.where(X[:, 0] + rng.standard_normal(120) > 0, 1, -1))
    return tmp_path / "rows.svm"


@pytest.fixture
def numbers(tmp_path):
    """Numbers to predict, in LIBSVM text."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 3))
    write_svm(tmp_path / "numbers.svm", X, X @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(80))
    return tmp_path / "numbers.svm"
