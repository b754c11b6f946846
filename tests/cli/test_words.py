"""Messages of the library, in the words of the command line."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from beeline._sentences import Argument, Sentence
from beeline._words import count
from beeline.cli.app import app
from beeline.cli.output.drawing import byte_size, number_text, percent
from beeline.cli.output.errors import printable
from beeline.cli.output.spelling import spelled, spelled_argument
from beeline.data.options import ReadOptions
from beeline.fitting import Settings
from beeline.selection import Selecting
from beeline.solvers import SOLVERS

SOURCE = Path(__file__).parents[2] / "src" / "beeline"


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        (Argument("format"), "--format"),
        (Argument("query"), "--qid"),
        (Argument("C_min"), "--C-min"),
        (Argument("output"), "--output"),
        (Argument("header", False), "--no-header"),
        (Argument("header", True), "--header"),
        (Argument("zero_based", False), "--one-based"),
        (Argument("nonnegative", True), "--nonnegative"),
        (Argument("ignore", ["d"]), "--ignore d"),
        (Argument("ignore", ["a b", ""]), "--ignore 'a b' --ignore ''"),
        (Argument("ignore", ["a,b", '"c"']), '--ignore \'"a,b"\' --ignore \'"""c"""\''),
        (Argument("text", ["a\nb"]), "--text 'a\\nb'"),
        (Argument("missing", "zero"), "--missing zero"),
        (Argument("folds", 0.2), "--folds 0.2"),
        (Argument("zero_based", None), "--zero-based"),
        (Argument("recipe"), "--like"),
        (Argument("fit_intercept"), "--intercept"),
        (Argument("fit_intercept", False), "--intercept none"),
        (Argument("fit_intercept", "regularized"), "--intercept regularized"),
        (Argument("on_point"), "on_point"),
        (Argument("alpha", 0.5), "--alpha 0.5"),
        (Argument("start", "m"), "--continue m"),
    ],
)
def test_arguments_are_called_by_their_options(argument, shown):
    assert spelled_argument(argument) == shown


def test_only_arguments_are_spelled_anew():
    sentence = Sentence("the label of tol=3.csv; say ", Argument("header", False), ", or drop the header")
    assert sentence == "the label of tol=3.csv; say header=False, or drop the header"
    assert spelled(sentence) == "the label of tol=3.csv; say --no-header, or drop the header"
    assert spelled("a text with header=False") == "a text with header=False"


# Arguments of the library that no option sets; what a loss or a solver has of its own is said with its name.
_PYTHON_ONLY = {
    *("X", "all_the_way", "bounds", "classes", "column", "costs", "curve", "delta", "estimator", "group", "groups"),
    *(
        "k",
        "max_fpr",
        "n_shards",
        "number",
        "objectives",
        "on_point",
        "power",
        "quantile",
        "query_weight",
        "rescaling",
    ),
    *(
        "resources",
        "runs",
        "sample_weight",
        "search_epsilon",
        "selecting",
        "source",
        "store",
        "strength",
        "targets",
        "verbose",
        "warm",
    ),
    *("y"),
}


def _named_in_sentences() -> dict[str, str]:
    """Every argument that a sentence names by a constant, and a place where."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            given = [k.value for k in node.keywords if node.func.id == "ParameterError" and k.arg == "parameter"]
            given += node.args[:1] if node.func.id == "Argument" else []
            constants = (part.value for one in given for part in ast.walk(one) if isinstance(part, ast.Constant))
            found |= {name: f"{path.name}:{node.lineno}" for name in constants if isinstance(name, str)}
    return found


def test_every_argument_in_a_sentence_has_its_option():
    named = set(_named_in_sentences())
    for settings in (ReadOptions, Settings, Selecting):  # whose sentences name their fields
        named |= {field.name for field in fields(settings)}
    assert {"tol", "C", "folds", "class_weight", "fit_intercept", "header"} <= named
    assert {name for name in named if not spelled_argument(Argument(name)).startswith("--")} == _PYTHON_ONLY


@pytest.mark.parametrize("command", ["train", "select"])
def test_every_option_is_called_by_its_own_name(command):
    options = [p for p in app.commands[command].params if p.param_type_name == "option"]
    assert len(options) > 30
    for option in options:
        assert spelled_argument(Argument(option.name)) in option.opts


def test_examples_of_solver_settings_can_be_said():
    (option,) = (p for p in app.commands["train"].params if p.name == "solver_setting")
    examples = re.findall(r"\b(\w+)=", option.help)
    assert len(examples) == 2
    known = {field.name for kind in SOLVERS.values() for field in fields(kind.kind_of_options)}
    assert set(examples) <= known


def test_every_parameter_error_names_its_parameter():
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ParameterError":
                named = any(keyword.arg == "parameter" for keyword in node.keywords)
                inside = [a.func.id for a in node.args if isinstance(a, ast.Call) and isinstance(a.func, ast.Name)]
                assert named or "Argument" in inside, f"{path.name}:{node.lineno}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-passes", "-1"), "--max-passes must be positive and finite, not -1.0"),
        (("--C", "0"), "--C must be positive and finite, or 'auto', not 0.0"),
        (("--folds", "3"), "--folds has no meaning without --C auto; leave it out"),
        (("--epsilon", "auto", "--loss", "epsilon_insensitive"), "--epsilon auto has no meaning without --C auto"),
        (("--loss", "novelty"), "take --intercept none, or a regularized one"),
        (("--loss", "softmax", "--multiclass", "ovr"), "leave --multiclass ovr out"),
        (("--loss", "huber", "--loss-setting", "delta=-1"), "delta must be positive and finite, not -1"),
        (("--class-weight", "1=-2"), "--class-weight of 1.0 must be finite and not negative, not -2.0"),
    ],
)
def test_errors_name_the_option_as_it_was_typed(quickly, tmp_path, options, said):
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 1:2\n1 1:3\n-1 2:1\n")
    done = quickly("train", "rows.svm", "-o", "m.model", *options)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


def test_numbers_are_written_for_people():
    assert [byte_size(n) for n in (1, 999, 1000, 1_234_567, 5 * 10**12)] == [
        "1 bytes",
        "999 bytes",
        "1.0 kB",
        "1.2 MB",
        "5.0 TB",
    ]
    assert [count(1, "row"), count(2000, "row"), count(2, "class")] == ["1 row", "2,000 rows", "2 classes"]
    assert [number_text(x) for x in (3.0, -2, 1234567.0, 0.1, 1e-12, 1e300, "nan")] == [
        "3",
        "-2",
        "1,234,567",
        "0.1",
        "1e-12",
        "1e+300",
        "nan",
    ]
    assert [percent(x) for x in (0.0, 1.0, 0.5, 0.0001)] == ["0.0 %", "100.0 %", "50.0 %", "0.01 %"]


def test_control_characters_are_shown_and_not_obeyed():
    assert printable("a\x1b[31m\tb\n") == "a\\x1b[31m\\tb\\n"
    assert printable("Zürich") == "Zürich"
