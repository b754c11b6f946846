"""Searches for C that are ended by signals, and go on from their files."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest
from outcomes import SHORT, done_well

from beeline import Model


def curve(record):
    return [(point["C"], point["fold_scores"]) for point in record["curve"]]


# Ctrl-C at a known moment: the signal is a real one, sent when a C is through, or while the model is trained.
SIGNALLED = """
import os, signal, sys
from contextlib import contextmanager
import beeline.cli.input.searching as searching
import beeline.cli.output.training_line as line
import beeline.selection.path as path

@contextmanager
def watched_search(metric, rule):
    points = []
    def on_point(point):
        points.append(point)
        if len(points) == {point}:
            os.kill(os.getpid(), signal.{signal})
    yield on_point

@contextmanager
def training_line(tol):
    def callback(step):
        if {training}:
            os.kill(os.getpid(), signal.SIGINT)
    yield callback

attempt = path._Search._try
def attempt_or_stop(self, *arguments):
    if {cold} and not self.selecting.warm:
        os.kill(os.getpid(), signal.SIGINT)
    return attempt(self, *arguments)

path._Search._try = attempt_or_stop
searching.watched_search, line.training_line = watched_search, training_line
from beeline.cli import main
sys.argv = ["beeline", *sys.argv[1:]]
main()
"""


@pytest.fixture
def signalled(tmp_path):
    def run(*arguments, point=4, name="SIGINT", training=False, cold=False):
        code = SIGNALLED.format(point=point, signal=name, training=training, cold=cold)
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)

    return run


def test_ctrl_c_tells_the_best_so_far(signalled, rows):
    done = signalled("select", rows, *SHORT)
    assert done.returncode == 130, done.stderr
    best = re.match(r"C = (\S+) .*, the best of 4 values$", done.stdout, re.MULTILINE)[1]
    assert "s because it was interrupted" in done.stdout
    assert f"next: beeline train {rows} -o MODEL --C {best}" in done.stdout
    assert done.stderr == f"beeline: interrupted: the best C so far is {best}\n"


def test_ctrl_c_trains_with_the_best_so_far(signalled, tmp_path, rows):
    done = signalled("select", rows, *SHORT, "-o", "m")
    assert done.returncode == 130, done.stderr
    first, second = done.stderr.splitlines()
    assert first.startswith("beeline: interrupted: training with the best C so far, 2^-")
    assert second.endswith(", and the model with it was saved as m")
    model = Model.load(tmp_path / "m")
    assert model.report.status == "converged"
    assert (model.settings["selection"]["candidates"], model.settings["selection"]["end"]) == (4, "interrupted")
    done = signalled("train", rows, "--C", "auto", "-o", "m")
    assert done.returncode == 130
    assert done.stderr.endswith("beeline: interrupted: the model with the best C so far was saved as m\n")


def test_a_second_ctrl_c_ends_the_training(signalled, tmp_path, rows):
    done = signalled("select", rows, *SHORT, "-o", "m", training=True)
    assert done.returncode == 130, done.stderr
    assert done.stderr.count("\n") == 2
    assert Model.load(tmp_path / "m").report.status == "interrupted"


def test_ctrl_c_before_anything_is_known(tmp_path, rows):
    code = """
import os, signal, sys
import beeline.selection.runners as runners
def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        pass
for kind in runners.Runner.__subclasses__():
    kind.go = interrupted
from beeline.cli import main
sys.argv = ["beeline", "select", "rows.svm", "-o", "m"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "beeline: interrupted: stopped before the end, nothing was written\n"
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_path_goes_on_from_its_file(signalled, beeline, rows, name):
    options = ("--loss", "squared_hinge", "--tol", "1e-9", *SHORT, "--json")
    whole = json.loads(done_well(beeline("select", rows, *options)))
    cut = signalled("select", rows, *options, "--resume", "path", name=name)
    if name == "SIGINT":
        assert cut.stderr.endswith("; the same command goes on from path\n")
        assert curve(json.loads(cut.stdout)) == curve(whole)[:4]
    else:
        assert cut.returncode == -signal.SIGKILL
    resumed = json.loads(done_well(beeline("select", rows, *options, "--resume", "path")))
    assert curve(resumed) == curve(whole)
    assert resumed["best_C"] == whole["best_C"]
    again = json.loads(done_well(beeline("select", rows, *options, "--resume", "path")))
    assert again["curve"] == resumed["curve"]  # nothing was left to do


def test_ctrl_c_during_cold_starts_keeps_what_was_found(signalled, rows):
    done = signalled("select", rows, *SHORT, "--stop", "paper", "--cold", point=0, cold=True)
    assert done.returncode == 130, done.stderr
    assert "s because C reached its upper limit\n" in done.stdout
    assert "the best of 8 values" in done.stdout
    assert done.stderr.startswith("beeline: interrupted: the best C so far is ")
