"""Training while the process is forked, or ends.

Scripts run in processes of their own, which repeat what depends on the moment until it would show.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap

import pytest

COMMON = """
import os, random, signal, sys, threading, time, warnings
import numpy as np
import beeline
from beeline import LinearModel, LinearSVC, LogisticRegression

# From Python 3.12 on, a fork beside threads is warned of; just this is what is tried here.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 20))
three = (X[:, :3] + rng.gumbel(size=(3000, 3))).argmax(axis=1)
two = np.where(three == 2, 1, 0)

going_on = threading.Event()

def start(works):
    begun = threading.Semaphore(0)
    def run(work):
        begun.release()
        while going_on.wait():
            work()
    going_on.set()
    for work in works:
        threading.Thread(target=run, args=(work,), daemon=True).start()
    for _ in works:
        begun.acquire()
"""

# What threads do at the same time.
WORKS = {
    "smooth": [
        "LogisticRegression(solver='newton', tol=1e-8).fit(X, two)",
        "LogisticRegression(solver='lbfgs').fit(X, two)",
        "LogisticRegression(solver='l1_cd', l1_ratio=1.0, tol=1e-8).fit(X, two)",
    ],
    "dual": [
        "LinearSVC(solver='dual_cd', loss='hinge', C=0.1).fit(X, two)",
        "LinearSVC(loss='hinge', multi_class='crammer_singer', C=0.1).fit(X, three)",
    ],
    "bundle": [
        "LinearModel('hinge', solver='bundle', tol=1e-2, C=0.1).fit(X, two)",
        "LinearModel('hinge', 'l1', solver='bundle', tol=1e-2, C=0.1).fit(X, two)",
    ],
    "several problems": [
        "LinearSVC(tol=1e-8).fit(X, three)",
        "LogisticRegression(multi_class='softmax').fit(X, three)",
    ],
    "search": ["LogisticRegression(C='auto', cv=2).fit(X, two)", "LinearSVC(loss='hinge', C='auto', cv=2).fit(X, two)"],
}
every_work = pytest.mark.parametrize("works", WORKS.values(), ids=WORKS)
rounds = pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])


def functions(works: list[str]) -> str:
    return f"works = [{', '.join(f'lambda: {work}' for work in works)}]"


# Loads everything once. For each line, a script, a child runs it, and ends as any program does when it is through.
SERVER = (
    COMMON
    + """
import tempfile

for line in sys.stdin:
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        exec(eval(line), globals())
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = []
    for file in (out, err):
        file.seek(0)
        said.append(file.read().decode())
    print(repr((code, *said)), flush=True)
"""
)


@pytest.fixture(scope="module")
def run():
    """Run a script in a process of its own: (its exit code, its output, its errors)."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", SERVER], text=True, **pipes) as server:

        def ask(script):
            server.stdin.write(f"{textwrap.dedent(script)!r}\n")
            server.stdin.flush()
            return ast.literal_eval(server.stdout.readline())

        yield ask


# A child that is forked from a thread's midst has none of the other threads, and all of their locks as they were.
FORK = """
{works}
expected = [work().predict(X) for work in works]
start(works)
for i in range({rounds}):
    time.sleep(random.Random(i).random() * 0.03)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        same = [(work().predict(X) == what).all() for work, what in zip(works, expected)]
        os._exit(0 if all(same) else 1)
    going_on.clear()  # the child has the processor for itself
    if (status := os.waitpid(child, 0)[1]) != 0:
        print("child", i, "ended with", status)
        break
    going_on.set()
sys.stdout.flush()
os._exit(0)
"""


@rounds
@every_work
def test_a_child_forked_while_threads_fit_can_fit(run, works, rounds):
    assert run(FORK.format(works=functions(works), rounds=rounds)) == (0, "", "")


def test_a_child_forked_while_a_thread_loads_a_solver_can_use_it(run):
    # HiGHS is loaded when the first linear programme is solved.
    script = """
    def fit(): return LinearModel('hinge', 'l1', solver='bundle', tol=1e-2, C=0.1).fit(X, two)

    threading.Thread(target=fit, daemon=True).start()
    while "highspy" not in sys.modules:
        time.sleep(0)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        fit()
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
    os._exit(0)
    """
    assert run(script) == (0, "0\n", "")


# Each child ends as a script does: by Python's own shutdown, with threads at work.
END = """
{works}
for work in works:
    work()
codes = []
for i in range({rounds}):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        start(works)
        time.sleep(random.Random(i).random() * 0.1)
        sys.exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(set(codes))
"""


@rounds
@every_work
def test_a_process_ends_while_daemon_threads_fit(run, works, rounds):
    assert run(END.format(works=functions(works), rounds=rounds)) == (0, "{7}\n", "")


@rounds
def test_a_process_ends_while_daemon_threads_read(run, tmp_path, rounds):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1.5,2.5\n" * 100_000)
    read = f"beeline.read({str(path)!r}, scale='standard')"
    assert run(END.format(works=functions([read, read]), rounds=rounds)) == (0, "{7}\n", "")


def test_a_process_does_not_wait_for_daemon_threads(run):
    script = """
    solving = threading.Event()
    def told(step):
        solving.set()
        time.sleep(60)
    threading.Thread(target=LinearSVC(callback=told).fit, args=(X, three), daemon=True).start()
    solving.wait()
    sys.exit(7)
    """
    assert run(script) == (7, "", "")


def test_other_threads_fit_and_read_on_when_the_main_thread_has_ended(run, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "1.5,2.5,1\n0.5,-2.5,0\n" * 50)
    script = f"""
    def work():
        threading.main_thread().join()
        data = beeline.read({str(path)!r}, label="y")
        print(LinearSVC().fit(X, three).n_features_in_, LogisticRegression().fit(data).n_features_in_)
    threading.Thread(target=work).start()
    """
    assert run(script) == (0, "20 2\n", "")


def test_an_abort_that_is_none_of_python_s_still_shows(run):
    code, out, err = run("import ctypes; ctypes.CDLL('libstdc++.so.6')._ZSt9terminatev()")
    assert (code, out) == (-6, "")
    assert "terminate called" in err
