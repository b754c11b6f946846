"""`beeline train` on rows that come once: pipes, --stream, --continue, time limits."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from outcomes import done_well, done_with_note, one_line

from beeline import Model

RNG = np.random.default_rng(0)
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def text(n, seed=0):
    """LIBSVM text of three classes."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 4))
    y = np.argmax(X[:, :3], axis=1)
    return "".join(
        f"{label} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x)) + "\n"
        for label, x in zip(y, X, strict=True)
    )


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "a.svm").write_text(text(3000))
    (tmp_path / "b.svm").write_text(text(2000, 1))
    return tmp_path


def test_a_pipe_files_and_going_on_give_the_same_bits(beeline, quickly, rows):
    with (rows / "a.svm").open() as file:
        done = beeline("train", "-", "--solver", "sgd", "-o", "piped", stdin=file)
    note, said = done_with_note(done), done.stdout
    assert "taken as classes: the first labels are 3 different whole numbers; --loss squared makes it" in note
    assert "logistic, 3 classes (softmax), 4 features, 3,000 rows" in said
    assert "sgd: ended after 3,000 rows without a certificate; rows before they were learned from:" in said
    assert "the loss was chosen because the first labels are 3 different whole numbers" in said
    done_with_note(quickly("train", "a.svm", "--stream", "-o", "a"))
    assert (rows / "a").read_bytes() != (rows / "piped").read_bytes()  # which tell how long they took
    done_well(quickly("train", "--continue", "piped", "b.svm", "-o", "piped"))
    done_with_note(quickly("train", "a.svm", "b.svm", "--stream", "-o", "both"))
    models = [Model.load(rows / name) for name in ("piped", "both")]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
    assert repr(models[0].state) == repr(models[1].state)
    shown = json.loads(done_well(quickly("evaluate", "both", "a.svm", "--json")))
    assert shown["measures"]["accuracy"] > 0.95


def test_a_table_with_text_labels_that_appear_later(quickly, tmp_path):
    for name, kinds in (("a", ["cat", "dog"]), ("b", ["cat", "dog", "ant"])):
        lines = [f"{i % len(kinds)},{'red' if i % 5 else 'blue'},{kinds[i % len(kinds)]}" for i in range(300)]
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(("size,color,kind\n" + "\n".join(lines)).encode()))
    done_well(quickly("train", "a.csv.gz", "--stream", "--label", "kind", "-o", "a"))
    said = done_well(quickly("train", "--continue", "a", "b.csv.gz", "-o", "b"))
    assert "3 classes (softmax), 3 features, 600 rows" in said
    facts = json.loads(done_well(quickly("evaluate", "b", "b.csv.gz", "--json")))
    assert facts["classes"] == ["ant", "cat", "dog"]
    assert facts["measures"]["accuracy"] == 1
    with (tmp_path / "c.csv").open("w") as file:
        file.write("size,color,kind\n1,green,dog\n")
    done = quickly("train", "--continue", "b", "c.csv", "-o", "c")
    assert done.stderr == "beeline: warning: column 'color' has 1 value that the recipe does not know\n"


def test_json_and_a_time_limit(beeline, rows):
    endless = "import sys\nwhile True:\n  sys.stdout.write('1 1:1\\n-1 1:-1\\n' * 5000)\n"
    with subprocess.Popen([sys.executable, "-c", endless], stdout=subprocess.PIPE, cwd=rows) as source:
        clock = time.perf_counter()
        arguments = ("train", "-", "-o", "m", "--loss", "hinge", "--time-limit", "1s", "--json", "--memory", "8M")
        facts = json.loads(done_well(beeline(*arguments, stdin=source.stdout)))
        source.kill()
    assert time.perf_counter() - clock < 20
    assert facts["report"]["status"] == "time"
    assert "reached its time limit after" in facts["report"]["sentence"]
    assert facts["progress"][-1]["error"] == 0
    assert facts["progress"][-1]["rows"] <= facts["report"]["n_rows"]


def test_a_pipe_that_falls_silent_ends_by_the_time_limit(beeline, rows):
    silent = "import sys, time\nsys.stdout.write('1 1:1\\n-1 1:-1\\n' * 200_000)\nsys.stdout.flush()\ntime.sleep(20)\n"
    with subprocess.Popen([sys.executable, "-c", silent], stdout=subprocess.PIPE, cwd=rows) as source:
        arguments = ("train", "-", "-o", "m", "--loss", "hinge", "--time-limit", "2s", "--json", "--memory", "1M")
        facts = json.loads(done_well(beeline(*arguments, stdin=source.stdout)))
        source.kill()
    assert facts["report"]["status"] == "time"


@pytest.mark.parametrize(
    ("said", "strength"),
    [
        ((), ("alpha", 1e-6)),
        (("--loss", "hinge"), ("C", 3.0)),
        (("--C", "1"), ("C", 1.0)),
        (("--alpha", "1e-3"), ("alpha", 1e-3)),
        (("--solver-setting", "variant=pegasos", "--intercept", "regularized", "--loss", "hinge"), ("C", 1.0)),
        (("--solver-setting", "finish=exact"), ("C", 1.0)),
    ],
)
def test_stochastic_steps_have_a_rule_for_the_strength(quickly, rows, said, strength):
    """As of rows that come once; where steps go by λ, or an exact solver goes on, it is C = 1 as of any other."""
    quickly("train", "a.svm", "--solver", "sgd", "-o", "m", *said)
    settings = Model.load(rows / "m").settings
    assert {name: settings[name] for name in ("C", "alpha") if name in settings} == dict([strength])


def test_what_a_terminal_shows(terminal, rows):
    done = terminal("train", "a.svm", "--stream", "-o", "m", "--memory", "200K")
    assert done.returncode == 0
    plain = ESCAPE.sub("", done.screen)
    assert re.search(
        r"learning  [\d,]+ rows  loss \S+ \(of all \S+\)  wrong \S+ % \(of all \S+ %\)  [\d,]+ rows/s", plain
    )
    plain = ESCAPE.sub("", terminal("train", "a.svm", "--solver", "sgd", "-o", "m", "--loss", "hinge").screen)
    assert re.search(r"training  pass \d+  loss \S+  wrong \S+ %", plain), plain


def test_ctrl_c_saves_what_was_learned(rows):
    command = [sys.executable, "-m", "beeline", "train", "-", "-o", "m", "--memory", "1M"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=rows, text=True
    ) as process:
        process.stdin.write(text(3000) * 20)
        process.stdin.flush()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the model so far was saved as m; --continue goes on from it" in said
    assert Model.load(rows / "m").report.status == "interrupted"


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("a.svm", "--stream", "--C", "2"), "--C has no meaning for rows that are learned from as they are read", 2),
        (("a.svm", "--stream", "--report", "p.html"), "--report has no meaning", 2),
        (("a.svm", "--stream", "--solver", "newton"), "are learned from by 'sgd'", 2),
        (("a.svm", "--stream", "--scale", "standard"), "--scale standard has to see all rows", 2),
        (("a.svm", "--stream", "--time-limit", "soon"), "--time-limit must be a number of seconds", 2),
        (("a.svm", "--stream", "--time-limit", "-1s"), "--time-limit must be positive", 2),
        (("a.svm", "--continue", "nowhere"), "nowhere", 1),
        (("a.svm", "--continue", "m", "--loss", "hinge"), "--loss is what the model says", 2),
        (("a.svm", "--C", "1", "--alpha", "1"), "--alpha says what --C says", 2),
        (("-", "-", "--solver", "sgd"), "standard input can be read only once", 2),
        (("-",), "standard input is empty", 1),
    ],
)
def test_what_is_refused(quickly, rows, arguments, words, code):
    assert words in one_line(quickly("train", *arguments, "-o", "m"), code)
    assert not (rows / "m").exists()


def test_alpha_is_another_word_for_c(quickly, rows):
    done_well(quickly("train", "a.svm", "--alpha", "0.001", "-o", "alpha", "--tol", "1e-9", "--loss", "logistic"))
    done_well(quickly("train", "a.svm", "--C", str(1 / 3), "-o", "c", "--tol", "1e-9", "--loss", "logistic"))
    alpha, c = (Model.load(rows / name) for name in ("alpha", "c"))
    np.testing.assert_allclose(alpha.weights, c.weights, rtol=1e-3, atol=1e-4)


def test_a_model_that_is_worth_nothing_is_told(quickly, rows):
    done = quickly("train", "a.svm", "--stream", "--alpha", "1e10", "-o", "nothing")
    assert done.returncode == 3
    assert "better than without a model" in done.stderr


def test_rows_without_labels_are_told_of_the_option(quickly, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,0\n2,1\n3,0\n4,1\n")
    (tmp_path / "none.csv").write_text("x\n1\n2\n")
    assert quickly("train", "--stream", "a.csv", "--label", "y", "-o", "s.model").returncode == 0
    again = quickly("train", "--continue", "s.model", "none.csv", "-o", "t.model")
    assert "the rows have no labels; name the column that holds them by --label" in again.stderr
