"""What all tests share: real data where there are any, and how hard Hypothesis searches."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# As many processes as cores run the tests: the threads of BLAS would only wait for each other, ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"

# BEELINE_REQUIRE names what must be there: a test that needs it then fails instead of being skipped.
REQUIRED = set(filter(None, os.environ.get("BEELINE_REQUIRE", "").split(",")))

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("default", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=50, derandomize=True, **_COMMON)
settings.register_profile("thorough", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


def _missing(kind: str, reason: str) -> None:
    if kind in REQUIRED:
        pytest.fail(f"BEELINE_REQUIRE asks for {kind}, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared_data():
    """Give the folder of a real data set by name, or skip the test."""

    def find(name: str) -> Path:
        folder = SHARED_DATA / name
        if not folder.is_dir():
            _missing("data", f"the data set {name} is not in ../shared/data")
        return folder

    return find


@pytest.fixture(scope="session")
def tool():
    """Give the path of a program by name, or skip the test."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            _missing("tools", f"the program {name} is not installed")
        return path

    return find


@pytest.fixture(scope="session")
def package():
    """Ask for a package by name, or skip the test."""

    def find(name: str) -> None:
        if find_spec(name) is None:
            _missing("tools", f"the package {name} is not installed")

    return find


def find_browser() -> str:
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if not found:
        _missing("browser", "no Chromium is installed (Debian: apt-get install chromium)")
    return found[0]


@pytest.fixture(scope="session")
def browser() -> str:
    """The path of a Chromium, or skip the test."""
    return find_browser()


@pytest.fixture(scope="session")
def example_data() -> Path:
    """The folder with the real rows that are shipped."""
    return ROOT / "examples" / "data"


def _bits(result: object) -> object:
    return [_bits(part) for part in result] if isinstance(result, list | tuple) else np.asarray(result).tobytes()


@pytest.fixture
def same_bits():
    """Check that what a function returns has the same bits for any number of threads, and give it.

    Kernels cut their work by the shape of the data. Small data make one task, which no number of threads could change:
    so at least one job must have had several, unless it is not kernels that share the work out.
    """
    from beeline.kernels import _kernels, num_threads, set_num_threads

    def check(
        compute: Callable[[], object], threads: tuple[int, ...] = (1, 2, 3, 8), *, by_kernels: bool = True
    ) -> object:
        before, results = num_threads(), []
        try:
            for number in threads:
                set_num_threads(number)
                shared = _kernels.shared_jobs()
                results.append(compute())
                assert _kernels.shared_jobs() > shared or not by_kernels, (
                    "the data are too small for threads to share the work"
                )
                assert _bits(results[-1]) == _bits(results[0]), f"{number} threads give other bits than one"
        finally:
            set_num_threads(before)
        return results[0]

    return check
