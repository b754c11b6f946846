"""The docs tell the truth: their code runs, their references are fresh, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from beeline.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
RUN = {"python", "console"}
OWN_TESTS = {"store.md"}  # tests/unit/test_store_docs.py runs it, and looks at what comes out
SHOWN = {"text", "sh", "json"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BESIDE_PYTHON = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def blocks(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


def run_command(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command, and one of ours within this process: to start one takes longer than most of them do."""
    if words[0] != "beeline":
        return subprocess.run(words, capture_output=True, text=True, env=os.environ | BESIDE_PYTHON, check=False)
    before = signal.getsignal(signal.SIGTERM)
    done = CliRunner().invoke(app, words[1:], prog_name="beeline")
    signal.signal(signal.SIGTERM, before)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def run_commands(text: str) -> None:
    """Run each `$ command` of a console session; what is shown below it must be what it prints, `...` for anything."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = run_command(shlex.split(command))
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        lines = [re.escape(" ".join(line.split())).replace(r"\.\.\.", ".*") for line in expected.splitlines()]
        printed = "\n".join(" ".join(line.split()) for line in done.stdout.splitlines())
        assert re.fullmatch("\n".join(lines), printed, flags=re.DOTALL), f"$ {command}\n{done.stdout}"


@pytest.fixture
def folder(tmp_path, example_data, monkeypatch):
    for path in example_data.glob("*.gz"):
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUNNABLE = [page for page in PAGES if page.name not in OWN_TESTS and any(kind in RUN for kind, _ in blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda p: p.name)
def test_the_code_of_a_page_runs(page, folder):
    names: dict[str, object] = {}
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, str(page), "exec"), names)
        elif kind == "console" and "$ " in text:
            run_commands(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_block_says_what_it_is(page):
    assert {kind for kind, _ in blocks(page)} <= RUN | SHOWN


def test_a_wrong_session_is_noticed(folder):
    with pytest.raises(AssertionError):
        run_commands("$ beeline --version\nbeeline 99\n")
    with pytest.raises(AssertionError):
        run_commands("$ beeline info nowhere\n...\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [p.name for p in (ROOT / "docs").glob("*.md") if p.name != "index.md" and f"({p.name})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_make_targets_that_are_named_exist(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)\b(?=`|$|\s{2,})", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.fixture(scope="module")
def make_docs():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "tools" / "make_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "api.md", "losses.md", "solver-options.md"])
def test_the_references_are_fresh(make_docs, tmp_path, name):
    make_docs.main(tmp_path)
    fresh, kept = (tmp_path / name).read_text(encoding="utf-8"), (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert fresh == kept, "run `make docs`"


def test_every_command_and_option_is_in_the_reference():
    reference = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    environment = os.environ | {"COLUMNS": "200", "TERM": "dumb"}

    def options(*command: str) -> set[str]:
        text = subprocess.run(
            [sys.executable, "-m", "beeline", *command, "--help"],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        ).stdout
        return set(re.findall(r"(?<!\S)--[a-z][a-z-]+", text)), text

    _, overview = options()
    commands = re.findall(r"^  ([a-z-]+)  +\S", overview.split("Commands:", 1)[1], re.MULTILINE)
    assert {"convert", "info"} <= set(commands)
    for command in commands:
        _, _, section = reference.partition(f"## beeline {command}\n")
        assert section, f"beeline {command} is not in docs/cli.md"
        found, _ = options(command)
        assert found - {"--help"} <= set(re.findall(r"--[a-z-]+", section.split("\n## ")[0]))


def test_every_public_name_is_in_the_reference():
    import beeline

    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [n for n in beeline.__all__ if n != "__version__" and f"## beeline.{n}\n" not in reference] == []


def test_every_solver_is_in_the_table_that_helps_to_choose_one():
    from beeline.solvers import SOLVERS

    page = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
    assert [name for name in SOLVERS if f"\n| `{name}` |" not in page] == []


def test_no_tracked_file_names_a_place_on_one_machine(tool):
    listed = subprocess.run([tool("git"), "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.suffix == ".gz" or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {match}" for match in re.findall(r"/(?:home|Users|work|root)/\w+", text)]
    assert found == []
