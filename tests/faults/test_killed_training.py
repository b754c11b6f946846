"""What a training that is killed leaves behind: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from beeline.data.files.scratch import folder_for_a_while, scratch_folder

PATIENCE = 60.0


def wait_for(what):
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("moment", ["rows", "manifest.json"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_rows_on_disk_are_removed(tmp_path, moment, how):
    """In the middle of the conversion, and in the middle of the training."""
    rows = tmp_path / "rows.svm"
    rows.write_text("".join(f"{1 if k % 3 else -1} 1:{k % 17} 2:{k % 5} 3:{k % 7}\n" for k in range(200_000)))
    command = [sys.executable, "-m", "beeline", "train", str(rows), "-o", str(tmp_path / "m"), "--memory", "64K"]
    endless = ["--solver", "lbfgs", "--tol", "1e-15", "--max-passes", "1e9"]
    with subprocess.Popen([*command, *endless], stderr=subprocess.DEVNULL, start_new_session=True) as child:
        pattern = ".m.rows-*" if moment == "rows" else f".m.rows-*/rows/{moment}"
        wait_for(lambda: list(tmp_path.glob(pattern)))
        assert child.poll() is None
        child.send_signal(how)
    wait_for(lambda: sorted(path.name for path in tmp_path.iterdir()) == ["rows.svm"])


@pytest.mark.parametrize("delay", [0.001, 0.002, 0.003, 0.004, 0.006, 0.01])
def test_an_end_is_an_end_also_in_the_middle_of_an_import(tmp_path, delay):
    """Some hundred modules are loaded on the way, and Python's compiler drops what is raised inside of it."""
    rows = tmp_path / "rows.svm"
    rows.write_text("".join(f"{1 if k % 3 else -1} 1:{k % 17}\n" for k in range(20_000)))
    command = [sys.executable, "-B", "-m", "beeline", "train", str(rows), "-o", str(tmp_path / "m"), "--memory", "64K"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as child:
        wait_for(lambda: list(tmp_path.glob(".m.rows-*")))
        time.sleep(delay)
        child.send_signal(signal.SIGTERM)
    assert child.returncode == 128 + signal.SIGTERM


def test_a_folder_is_removed_where_the_process_ends_as_it_should(tmp_path):
    with folder_for_a_while(tmp_path / "a b'c") as folder:
        folder.mkdir()
        (folder / "file").write_text("something")
    assert list(tmp_path.iterdir()) == []


def test_vectors_on_disk_have_no_name(tmp_path):
    """So that nothing has to be removed."""
    script = """
import os, sys
import numpy as np
from beeline.engines.scratch import Scratch

scratch = Scratch(1)
scratch.array((1000,), np.float64)[:] = 1
assert os.listdir(os.environ["TMPDIR"]) == []
"""
    env = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=env, check=True)


def test_where_files_go_that_are_needed_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert scratch_folder() == tmp_path


@pytest.mark.parametrize(("end", "code"), [("_Terminated(143)", 143), ("KeyboardInterrupt", 130)])
def test_an_end_while_a_class_is_made_is_an_end(end, code):
    """Python makes a RuntimeError of what is raised in `__set_name__`."""
    script = f"""
from beeline.cli.output.errors import _Terminated, one_line_errors

class Name:
    def __set_name__(self, owner, name):
        raise {end}

with one_line_errors(debug=False):
    class Owner:
        name = Name()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "stopped before the end" in done.stderr
