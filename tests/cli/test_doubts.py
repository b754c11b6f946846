"""Models to be doubted: a warning, an exit code of its own, and the model all the same."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from outcomes import done_well, one_line

from beeline import Model
from beeline._sentences import Argument, Sentence
from beeline.cli.output.concerns import Concerns
from beeline.cli.output.exit_codes import EXIT_CODES
from beeline.exceptions import ConvergenceWarning, ModelWarning
from beeline.training.concerns import Concern

DOCS = Path(__file__).parent.parent.parent / "docs"
WORTHLESS = ("--C", "1e-12")


def warned(done, *words):
    """The lines of warning of a command that has done its work, and doubts it."""
    assert done.returncode == 3, done.stderr
    lines = done.stderr.splitlines()
    assert all(line.startswith("beeline: warning: ") for line in lines), done.stderr
    assert len(lines) == len(words)
    for line, expected in zip(lines, words, strict=True):
        assert expected in line
    return [line.removeprefix("beeline: warning: ") for line in lines]


def in_python(sentence):
    """The line as files keep it, for all who read them."""
    assert "take --class-weight balanced where" in sentence
    return sentence.replace("--class-weight balanced", "class_weight='balanced'")


def test_a_model_that_is_no_better_than_none(beeline, tmp_path, rows):
    done = beeline("train", rows, "-o", "m", *WORTHLESS)
    (sentence,) = warned(done, "the model is no better than its intercept alone")
    assert "raise C" in sentence
    assert done.stdout.startswith("m: logistic")
    assert Model.load(tmp_path / "m").report.concerns == (in_python(sentence),)


def test_a_stop_far_from_the_optimum_in_the_words_of_the_command_line(quickly, tmp_path, rows):
    done = quickly("train", rows, "-o", "m", "--tol", "1e-14", "--max-passes", "2")
    warned(done, "raise --max-passes (now 2) or --tol (now 1e-14)")
    (kept,) = Model.load(tmp_path / "m").report.concerns
    assert "raise max_passes (now 2) or tol (now 1e-14)" in kept


def test_json_and_inspect_tell_it(quickly, tmp_path, rows):
    done = quickly("train", rows, "-o", "m", "--json", *WORTHLESS)
    (sentence,) = warned(done, "no better")
    assert json.loads(done.stdout)["report"]["concerns"] == [in_python(sentence)]
    shown = done_well(quickly("inspect", "m"))
    assert "warning" in shown
    assert "no better than its intercept alone" in " ".join(shown.split())
    assert json.loads(done_well(quickly("inspect", "m", "--json")))["report"]["concerns"] == [in_python(sentence)]


def test_the_page_shows_it_near_the_top(quickly, tmp_path, rows):
    warned(quickly("train", rows, "-o", "m", "--report", "page.html", *WORTHLESS), "no better")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    box = re.search(r'<aside class="concerns".*?</aside>', page, re.DOTALL)
    assert "The model is no better than its intercept alone" in box[0]
    assert box.start() < page.index("How it converged")
    done_well(quickly("train", rows, "-o", "n", "--report", "well.html"))
    assert "<aside" not in (tmp_path / "well.html").read_text(encoding="utf-8")


def test_inspect_writes_settings_as_people_do(quickly, rows):
    done_well(quickly("train", rows, "-o", "m", "--C", "2"))
    shown = " ".join(done_well(quickly("inspect", "m")).split())
    assert "C 2, " in shown
    assert "tol 0.0001, max_passes 1000, seed 0" in shown


def test_the_page_has_all_settings(quickly, tmp_path):
    (tmp_path / "t.csv").write_text(
        "\n".join(["a,b,y", *(f"{i % 7},{i % 5},{'no' if i % 3 else 'yes'}" for i in range(60))])
    )
    options = ["--scale", "standard", "--loss", "huber_hinge", "--loss-setting", "width=0.5", "--C", "2"]
    options += ["--regularizer", "elastic_net", "--l1-ratio", "0.25", "--intercept", "regularized", "--tol", "1e-3"]
    options += ["--class-weight", "yes=2", "--max-passes", "700", "--time-limit", "60", "--seed", "5", "--threads", "1"]
    done = quickly("train", "t.csv", "--label", "y", "-o", "m", "--report", "p.html", *options)
    assert done.returncode in (0, 3), done.stderr
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    facts = dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', page))
    expected = {"data": "t.csv", "rows": "60", "features": "2", "scaling": "standard", "loss": "huber_hinge"}
    expected |= {"width": "0.5", "regularizer": "elastic_net", "l1_ratio": "0.25", "C": "2", "intercept": "regularized"}
    expected |= {
        "multiclass": "auto",
        "class weights": "yes: 2",
        "calibrated probabilities": "no",
        "tolerance": "0.001",
    }
    expected |= {"most passes": "700", "time limit": "60 s", "solver": "auto", "seed": "5", "threads": "1"}
    assert {name: facts.get(name) for name in expected} == expected


def test_a_time_limit(quickly, tmp_path, rows):
    done = quickly("train", rows, "-o", "m", "--time-limit", "1e-9", "--tol", "1e-15", "--loss", "logistic")
    assert done.returncode == 3
    assert "reached its time limit after" in done.stderr
    assert "raise --time-limit (now 1e-09) or --tol" in done.stderr
    model = Model.load(tmp_path / "m")
    assert model.report.status == "time"
    assert model.settings["time_limit"] == 1e-9
    done_well(quickly("train", rows, "-o", "n", "--time-limit", "600"))
    assert "--time-limit must be positive" in one_line(quickly("train", rows, "-o", "n", "--time-limit", "0"), 2)


@pytest.mark.parametrize("output", [(), ("-o", "m")])
def test_concerns_about_a_search(quickly, tmp_path, rows, monkeypatch, output):
    """Whatever a search is concerned about is said once, also where it warned of it before."""
    from dataclasses import replace

    from beeline.fitting import searching
    from beeline.training.concerns import warn_of

    select = searching.select
    concerns = (Concern(Sentence("the curve is flat; raise ", Argument("C_max")), ModelWarning),)

    def doubtful(*arguments, **options):
        found = select(*arguments, **options)
        warn_of(concerns)
        return replace(found, concerns=concerns)

    monkeypatch.setattr(searching, "select", doubtful)
    done = quickly("select", rows, *output, "--report", "p.html", "--json")
    warned(done, "the curve is flat; raise --C-max")
    assert json.loads(done.stdout)["concerns"] == [concerns[0].sentence]
    assert "The curve is flat; raise C_max." in (tmp_path / "p.html").read_text(encoding="utf-8")
    done = quickly("train", rows, "-o", "t", "--C", "auto", "--json")
    warned(done, "the curve is flat; raise --C-max")
    assert json.loads(done.stdout)["report"]["concerns"] == [concerns[0].sentence]


def test_a_time_limit_for_a_search(quickly, tmp_path, rows):
    done = quickly("select", rows, "--time-limit", "1e-6", "--json")
    assert json.loads(done.stdout)["end"] == "time"
    done = quickly("train", rows, "-o", "m", "--C", "auto", "--time-limit", "1e-6", "--json")
    assert json.loads(done.stdout)["selection"]["end"] == "time"
    assert Model.load(tmp_path / "m").settings["time_limit"] == 1e-6


def test_warnings_of_others_are_lines_too_but_no_concerns(capsys):
    import warnings

    concerns = Concerns()
    with concerns.gathered():
        warnings.warn("something old", DeprecationWarning, stacklevel=1)
        warnings.warn("something poor", ConvergenceWarning, stacklevel=1)
    assert capsys.readouterr().err == "beeline: warning: something old\n"
    assert list(concerns.sentences) == ["something poor"]
    concerns.add(["something poor", "and more"])
    concerns.say()
    assert capsys.readouterr().err == "beeline: warning: something poor\nbeeline: warning: and more\n"
    with pytest.raises(SystemExit) as left:
        concerns.leave()
    assert left.value.code == 3
    Concerns().leave()


def test_every_exit_code_is_told(quickly):
    assert set(EXIT_CODES) == {0, 1, 2, 3, 128 + signal.SIGINT, 128 + signal.SIGPIPE, 128 + signal.SIGTERM}
    shown, reference = " ".join(quickly("--help").stdout.split()), (DOCS / "cli.md").read_text(encoding="utf-8")
    for code, meaning in EXIT_CODES.items():
        assert f"{int(code)} {meaning.split()[0]}" in shown
        assert f"| {int(code)} | {meaning} |" in reference


def test_no_feature_that_is_not_asked_for_is_said_to_be_zero(quickly, rows):
    done_well(quickly("train", rows, "-o", "m"))
    assert "every weight is zero" not in done_well(quickly("inspect", "m", "--top", "0"))
