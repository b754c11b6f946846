"""A wheel is all that a machine without a compiler needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel that BEELINE_WHEEL names, or a new one."""
    if given := os.environ.get("BEELINE_WHEEL"):
        return Path(given).resolve()
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> dict[str, str]:
    """An environment of a process in which no program is found, no compiler above all."""
    folder = tmp_path_factory.mktemp("programs")
    assert not any(shutil.which(name, path=str(folder)) for name in ("c++", "g++", "clang++", "cmake", "ninja"))
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"PATH": str(folder)}


def test_it_has_the_kernels_and_no_sources_of_them(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert len([name for name in names if re.fullmatch(r"beeline/kernels/_kernels[\w.-]*\.so", name)]) == 1
    assert [name for name in names if name.endswith((".cpp", ".h"))] == []
    assert {"beeline/py.typed", "beeline/report/templates/page.css"} <= set(names)


def test_the_name_says_which_versions_it_is_for(wheel):
    """The one that builds it; where it is for all later ones too, its kernels are named so."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    if "BEELINE_WHEEL" not in os.environ:
        assert f"-{tag}-{tag}-" in wheel.name
    kernels = next(name for name in zipfile.ZipFile(wheel).namelist() if "/_kernels." in name and name.endswith(".so"))
    assert kernels.endswith(".abi3.so") == ("-abi3-" in wheel.name)


def test_it_trains_where_there_is_no_compiler(wheel, bare, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "new")], check=True)
    python = str(tmp_path / "new" / "bin" / "python")
    pip = [python, "-m", "pip", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--only-binary", ":all:", str(wheel)], env=bare, check=True)
    command = [python, "-W", "error", str(ROOT / "tools" / "try_wheel.py"), str(ROOT / "examples" / "data")]
    done = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    where, told = done.stdout.splitlines()
    assert str(tmp_path / "new") in where
    assert float(told.split()[1].strip(";")) > 0.68
    assert "above the optimum" in told
