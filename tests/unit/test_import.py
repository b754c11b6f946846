"""What `import beeline` costs and offers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import beeline

HEAVY = ["sklearn", "pyarrow", "dask", "matplotlib", "jinja2", "scipy", "pandas", "polars", "click", "rich"]


def modules_after(code: str) -> set[str]:
    """The top-level packages that a new process has loaded after running `code`."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_the_package_alone_is_light():
    assert not modules_after("import beeline") & {*HEAVY, "numpy"}


@pytest.mark.parametrize("name", ["Block", "Dataset", "ArrayDataset"])
def test_blocks_need_only_numpy(name):
    loaded = modules_after(f"import beeline; beeline.{name}")
    assert "numpy" in loaded
    assert not loaded & set(HEAVY)


def test_help_loads_neither_numpy_nor_pyarrow():
    code = """
import sys
from beeline.cli import main
sys.argv = ["beeline", "convert", "--help"]
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""
    loaded = modules_after(code)
    assert "click" in loaded
    assert not loaded & {"numpy", "pyarrow", "scipy", "sklearn", "rich"}


def test_training_on_text_loads_no_store_and_no_index(tmp_path):
    text, model = tmp_path / "rows.svm", tmp_path / "rows.model"
    text.write_text("1 1:1 2:0.5\n-1 1:-1\n" * 20)
    code = f"""
import sys
from beeline.cli import main
sys.argv = ["beeline", "train", {str(text)!r}, "-o", {str(model)!r}, "--loss", "hinge"]
try:
    main()
except SystemExit as end:
    assert not end.code
left_out = ("store.store", "index.index", "solvers.indexed", "solvers.stochastic", "solvers.bundle.bundle")
assert not [name for name in sys.modules if name.startswith("beeline.") and name.endswith(left_out)]
"""
    loaded = modules_after(code)
    assert "numpy" in loaded
    assert not loaded & {"pyarrow", "sklearn", "scipy"}


@pytest.mark.parametrize("name", beeline.__all__)
def test_every_public_name_resolves(name):
    assert getattr(beeline, name) is not None
    assert name in dir(beeline)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = beeline.nonsense


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert beeline.__version__ == version("beeline-ml")
