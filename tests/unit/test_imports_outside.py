"""Benchmarks, tools and fuzzers name what is there: nobody runs them all after something was renamed."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("benchmarks", "tools", "fuzz", "examples")
    for path in (ROOT / folder).rglob("*.py")
)


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "beeline":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.split(".")[0] == "beeline")


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_scripts_import_is_there(script):
    for module, name in imports(ROOT / script):
        found = importlib.import_module(module)
        if name is not None and not hasattr(found, name):
            importlib.import_module(f"{module}.{name}")


def test_a_name_that_is_gone_is_found(tmp_path):
    script = tmp_path / "old.py"
    script.write_text("from beeline._thread_pool import one_ahead\n")
    assert list(imports(script)) == [("beeline._thread_pool", "one_ahead")]
    with pytest.raises(ModuleNotFoundError):
        test_what_scripts_import_is_there(script)
