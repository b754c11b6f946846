"""How the command fails: one line, the right exit code, a traceback only on request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import beeline as package

BEELINE = [sys.executable, "-m", "beeline"]


def one_line(done) -> str:
    assert done.stdout == ""
    assert done.stderr.startswith("beeline: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", [(), ("convert",), ("info",)])
def test_help(quickly, command, flag):
    done = quickly(*command, flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: beeline{''.join(f' {c}' for c in command)} [OPTIONS]" in done.stdout


def test_version(beeline):
    assert beeline("--version").stdout == f"beeline {package.__version__}\n"


def test_the_installed_command_is_the_module(tmp_path):
    script = os.path.join(os.path.dirname(sys.executable), "beeline")  # noqa: PTH118, PTH120
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"beeline {package.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("convert",),
        ("convert", "only-a-store"),
        ("convert", "a", "b", "--nonsense"),
        ("convert", "a", "b", "--scale", "nonsense"),
        ("convert", "a", "b", "--seed", "x"),
        ("info",),
        ("info", "a", "--format", "nonsense"),
    ],
)
def test_wrong_usage_leaves_with_2(quickly, arguments):
    done = quickly(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "Usage: beeline" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--memory", "lots"), "'lots' is not a size"),
        (("--threads", "0"), "at least 1"),
        (("--n-features", "0"), "at least 1"),
        (("--label", "y"), "--label has no meaning for"),
        (("--qid", "q"), "--qid has no meaning for"),
    ],
)
def test_values_that_make_no_sense_leave_with_2(quickly, svm, options, words):
    done = quickly("convert", svm, "x.store", *options)
    assert done.returncode == 2
    assert words in one_line(done)


def test_options_for_a_source_are_refused_for_a_store(quickly, svm):
    assert quickly("convert", svm, "x.store").returncode == 0
    done = quickly("info", "x.store", "--scale", "minmax")
    assert done.returncode == 2
    assert "--scale has no meaning for a store" in one_line(done)


def test_a_missing_file(beeline):
    done = beeline("info", "nowhere.svm")
    assert done.returncode == 1
    assert one_line(done) == "beeline: error: nowhere.svm: no such file or folder\n"


def test_an_error_in_json_mode_leaves_standard_output_empty(quickly):
    done = quickly("info", "nowhere.svm", "--json")
    assert done.returncode == 1
    one_line(done)


def test_a_format_that_cannot_be_told_names_the_option(quickly, tmp_path):
    (tmp_path / "riddle").write_text("hello\n")
    done = quickly("info", "riddle")
    assert done.returncode == 1
    assert "--format" in one_line(done)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(beeline, svm):
    svm.chmod(0)
    done = beeline("info", svm)
    assert done.returncode == 1
    assert "ermission denied" in one_line(done)


def test_a_target_that_cannot_be_written(quickly, svm):
    done = quickly("convert", svm, "no/such/folder/x.store")
    assert done.returncode == 1
    one_line(done)


def test_debug_shows_the_traceback(beeline):
    done = beeline("info", "nowhere.svm", "--debug")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.splitlines()[-1] == "beeline: error: nowhere.svm: no such file or folder"


FAILING = """
import sys
import beeline.data.convert
def fail(*args, **kwargs):
    raise {error}
beeline.data.convert.open_reader = fail
from beeline.cli import main
sys.argv = ["beeline", "info", {path!r}, *sys.argv[1:]]
main()
"""


def fail_with(error: str, path, *options: str):
    code = FAILING.format(error=error, path=str(path))
    return subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True, check=False)


def test_an_unexpected_exception_is_called_a_bug(svm):
    done = fail_with("KeyError('boo')", svm)
    assert done.returncode == 1
    message = one_line(done)
    assert "bug in beeline (KeyError: 'boo')" in message
    assert "--debug" in message
    assert "Traceback" in fail_with("KeyError('boo')", svm, "--debug").stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("PermissionError(13, 'Permission denied', 'x.svm')", "x.svm: permission denied"),
        ("OSError(28, 'No space left on device')", "no space left on device"),
        ("MemoryError()", "not enough memory"),
        ("beeline.exceptions.DataError('two\\nlines')", "two lines"),
    ],
)
def test_errors_of_the_machine_are_one_line(svm, error, words):
    done = fail_with(error, svm)
    assert done.returncode == 1
    assert one_line(done) == f"beeline: error: {words}\n" or words in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize("option", ["", "--json"])
def test_a_closed_pipe_is_quiet(tmp_path, option):
    (tmp_path / "wide.svm").write_text("1 " + " ".join(f"{i}:1" for i in range(1, 30001)) + "\n")
    command = f"{' '.join(BEELINE)} info wide.svm --features {option} | head -n 1; echo code ${{PIPESTATUS[0]}}"
    # Without a buffer, Python takes no notice of a write that was cut short.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "code 141"


ENDLESS = """
import sys, time
from beeline.cli import main
from beeline.data.text.libsvm import LibsvmReader

read = LibsvmReader.blocks

def blocks(self, memory):
    yield from read(self, memory)
    time.sleep(100)

LibsvmReader.blocks = blocks
sys.argv = ["beeline", "convert", "small.svm", "x.store", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("sent", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_an_interrupted_conversion_leaves_nothing(svm, tmp_path, sent, code, word):
    command = [sys.executable, "-c", ENDLESS]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not list(tmp_path.glob(".x.store.partial-*/*")):
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(sent)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert stdout == ""
    assert stderr == f"beeline: {word}: stopped before the end, nothing was written\n"
    assert [p.name for p in tmp_path.iterdir()] == ["small.svm"]


TWICE = """
import os, shutil, signal
remove = shutil.rmtree
def remove_disturbed(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGTERM)
    remove(*args, **kwargs)
shutil.rmtree = remove_disturbed
from beeline.data.store import StoreWriter
def write(self, block):
    os.kill(os.getpid(), signal.SIGTERM)
StoreWriter.write = write
"""


def test_whoever_asks_twice_does_not_disturb_the_clearing_away(svm, tmp_path):
    command = [sys.executable, "-c", TWICE + ENDLESS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 143
    assert done.stderr == "beeline: terminated: stopped before the end, nothing was written\n"
    assert [p.name for p in tmp_path.iterdir()] == ["small.svm"]


def test_ctrl_c_while_starting_is_one_line():
    code = "import sys\nfrom beeline.cli import main\nsys.modules['beeline.cli.app'] = None\n"
    code += "import builtins\nreal = builtins.__import__\n"
    code += "def stop(name, *rest):\n    if name == 'beeline.cli.app':\n        raise KeyboardInterrupt\n"
    code += "    return real(name, *rest)\nbuiltins.__import__ = stop\nmain()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "name", "ours"),
    [
        ("train", "--query", "--qid"),
        ("train", "--group", "--qid"),
        ("train", "--target", "--label"),
        ("train", "--scoring", "--metric"),
        ("train", "--penalty", "--regularizer"),
        ("train", "--max-iter", "--max-passes"),
        ("train", "--n-jobs", "--threads"),
        ("train", "-s", "--loss"),
        ("train", "-c", "--C"),
        ("select", "-v", "--folds"),
        ("predict", "-b", "--probabilities"),
    ],
)
def test_options_are_found_under_other_names(quickly, command, name, ours):
    assert f"Did you mean '{ours}'?" in quickly(command, "rows.csv", name, "1").stderr


def test_export_writes_where_other_commands_do(quickly):
    for where in ((), ("a.txt", "-o", "b.txt")):
        assert "say once where the model is to go: as FILE, or by --output" in quickly("export", "m", *where).stderr
    assert "FILE" not in quickly("export", "m", "-o", "a.txt").stderr  # which has gone on, to a model that is not there
