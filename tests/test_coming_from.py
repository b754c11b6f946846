"""The tables of names for those who come from other tools name what beeline has."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import beeline
from beeline.cli.app import app
from beeline.losses import LOSSES
from beeline.solvers.registry import SOLVERS

PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"
VALUES = {"--loss": LOSSES, "--solver": {*SOLVERS, "auto"}}


def named() -> list[str]:
    """What stands in backticks in the last column of every table."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return sorted({text for row in rows for text in re.findall(r"`([^`]+)`", re.split(r"(?<!\\)\|", row)[-2])} - HEADS)


HEADS = {"beeline"}


def check_command(text: str) -> None:
    """A command, or options of any: each option is there, and a loss or solver that is named too."""
    words = text.split()
    commands = [app.commands[words[1]]] if words[0] == "beeline" else list(app.commands.values())
    known = {option for command in commands for param in command.params for option in param.opts}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            assert word in known, f"{text}: there is no {word}"
        assert word not in VALUES or after in VALUES[word], f"{text}: there is no {after}"


def check_python(text: str) -> None:
    """A call whose keywords are there, with a loss that is; or the name of something public."""
    tree = ast.parse(text.replace("…", "..."), mode="eval").body
    if not isinstance(tree, ast.Call):
        owner, *names = ast.unparse(tree).split(".")
        found = getattr(beeline, owner)
        assert all(hasattr(found, name) for name in names), text
        return
    called = getattr(beeline, ast.unparse(tree.func))
    keywords = {keyword.arg for keyword in tree.keywords}
    assert keywords <= set(inspect.signature(called).parameters), text
    if called is beeline.LinearModel:
        assert ast.literal_eval(tree.args[0]) in LOSSES, text
    if inspect.isclass(called) and called.__module__.startswith("beeline.estimators") and "…" not in text:
        eval(text, vars(beeline) | {called.__name__: called}).get_params()


@pytest.mark.parametrize("text", named())
def test_a_name_is_there(text):
    (check_command if text.startswith(("beeline ", "--")) else check_python)(text)


@pytest.mark.parametrize(
    "text", ["--no-such-option", "beeline train --scores", "--loss squared_hedge", "LinearSVC(penalty='l1')", "Rigde()"]
)
def test_a_name_that_is_not_there_is_noticed(text):
    with pytest.raises((AssertionError, AttributeError)):
        test_a_name_is_there(text)
