"""What a person at a terminal sees, and what a pipe gets."""

from __future__ import annotations

import json
import re

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def test_a_bar_with_rates_on_a_terminal(terminal, example_data):
    done = terminal("convert", example_data / "covtype-train.csv.gz", "c.store", "--label", "Cover_Type")
    assert done.returncode == 0
    plain = ESCAPE.sub("", done.screen)
    assert "━" in plain
    assert re.search(r"100 %\s+4\.0k rows\s+\S+ rows/s\s+\S+ MB/s\s+00:0\d", plain), plain
    assert "c.store: 4,000 rows × 54 features" in plain


def test_no_bar_in_a_pipe(beeline, example_data):
    done = beeline("convert", example_data / "covtype-train.csv.gz", "c.store", "--label", "Cover_Type")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "━" not in done.stdout


def test_the_bar_does_not_enter_redirected_output(terminal, example_data, tmp_path):
    with (tmp_path / "out.json").open("w") as out:
        done = terminal("info", example_data / "covtype-test.csv.gz", "--label", "Cover_Type", "--json", stdout=out)
    assert done.returncode == 0
    assert "━" in done.screen
    assert json.loads((tmp_path / "out.json").read_text())["rows"] == 1001


def test_colors_only_on_a_terminal(terminal, beeline, svm):
    assert "\x1b[" in terminal("info", svm).screen
    assert "\x1b" not in beeline("info", svm).stdout
    assert "\x1b[1;31merror" in terminal("info", "nowhere").screen
    assert "\x1b" not in beeline("info", "nowhere").stderr


def test_an_error_on_a_terminal_is_one_line(terminal):
    screen = ESCAPE.sub("", terminal("info", "nowhere.svm").screen)
    assert screen.strip() == "beeline: error: nowhere.svm: no such file or folder"
