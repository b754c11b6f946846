"""Imports point one way: every module may use its own layer's package and the layers below it, nothing above."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "beeline"

# From the ground up; parts of one layer do not know each other.
LAYERS = [
    {"kernels"},
    {"data", "losses", "regularizers", "metrics", "query_measures", "links", "plotting"},
    {"index"},
    {"engines"},
    {"objective"},
    {"solvers"},
    {"training"},
    {"selection"},
    {"model"},
    {"evaluation"},
    {"fitting"},
    {"estimators"},
    {"report"},
    {"cli"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
EVERYWHERE = {
    "exceptions",
    "_forks",
    "_lazy",
    "_numbers",
    "_sentences",
    "_thread_pool",
    "_types",
    "_warnings",
    "_words",
}
FORBIDDEN_IN = {
    "solvers": {"sklearn", "pyarrow", "dask", "distributed", "mpi4py"},
    "training": {"sklearn", "pyarrow", "dask", "distributed", "mpi4py"},
    "losses": {"sklearn", "pyarrow", "dask", "distributed", "mpi4py"},
}


def part_of(path: Path, source: Path) -> str:
    part = path.relative_to(source).parts[0].split(".")[0]
    return "cli" if part == "__main__" else part  # which only starts the command line


def imports(path: Path, source: Path) -> list[str]:
    """Dotted names of all that a module imports, wherever in it, relative imports resolved."""
    package = ("beeline", *path.relative_to(source).with_suffix("").parts[:-1])
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            # `from beeline import data` imports beeline.data, `from beeline.data import Block` beeline.data.Block.
            names += [f"{module}.{alias.name}" for alias in node.names]
    return names


def violations(source: Path) -> list[str]:
    """Every import that points the wrong way, as a sentence."""
    found = []
    for path in sorted([*source.rglob("*.py"), *source.rglob("*.pyi")]):
        part = part_of(path, source)
        if part not in LEVEL and part not in EVERYWHERE and part != "__init__":
            found.append(f"{part} has no place among the layers; give it one")
            continue
        for name in imports(path, source):
            if complaint := judge(part, name):
                found.append(f"{path.relative_to(source)} imports {name}, {complaint}")
    return found


def judge(part: str, name: str) -> str | None:
    top, *rest = name.split(".")
    if top != "beeline":
        return "which does not belong there" if top in FORBIDDEN_IN.get(part, ()) else None
    # The package's face names parts of all layers and loads them late; only the version is below everyone.
    other = rest[0] if rest else "__init__"
    if part == "__init__" or other in {part, "__version__", *EVERYWHERE}:
        return None
    if other not in LEVEL:
        return "which is the package's face; import it from its home"
    return None if LEVEL[other] < LEVEL.get(part, -1) else "which is not below it"


def test_imports_point_one_way():
    assert violations(SOURCE) == []


def test_every_part_was_seen():
    parts = {part_of(path, SOURCE) for path in SOURCE.rglob("*.py")}
    assert {"kernels", "data", "cli", "exceptions", "__init__"} <= parts


@pytest.mark.parametrize(
    ("file", "code", "complaint"),
    [
        ("data/core/block.py", "from beeline.cli import main", "which is not below it"),
        ("data/core/block.py", "def f():\n    import beeline.solvers.base", "which is not below it"),
        ("data/core/block.py", "from beeline import cli", "which is not below it"),
        ("data/core/block.py", "from ...estimators import x", "which is not below it"),
        ("data/store/writer.py", "from ...cli import x", "which is not below it"),
        ("data/core/block.py", "from beeline.losses import Hinge", "which is not below it"),
        ("data/core/block.py", "from beeline import read", "the package's face"),
        ("exceptions.py", "import beeline.data", "which is not below it"),
        ("solvers/newton/newton.py", "import sklearn.linear_model", "sklearn.linear_model, which does not belong"),
        ("solvers/newton/newton.py", "from pyarrow import fs", "pyarrow.fs, which does not belong"),
        ("novelty/thing.py", "import os", "no place among the layers"),
        ("novelty.py", "import os", "no place among the layers"),
    ],
)
def test_a_planted_violation_is_found(tmp_path, file, code, complaint):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    found = violations(tmp_path)
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("cli/commands/info.py", "from beeline.data.core.block import Block\nfrom beeline import __version__"),
        ("data/core/block.py", "from beeline.exceptions import DataError\nfrom ...kernels import RowArrays"),
        ("data/core/block.py", "from beeline.data.core.labels import LabelSets\nimport pyarrow"),
        ("__init__.py", "from beeline.data.core.block import Block"),
        ("__main__.py", "from beeline.cli import main"),
    ],
)
def test_an_import_downwards_is_fine(tmp_path, file, code):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    assert violations(tmp_path) == []
