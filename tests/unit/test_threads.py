"""The thread pool: same bits for any number of threads, from several Python threads, and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import beeline
from beeline import Block
from beeline.exceptions import ParameterError


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(1)
    csr = sp.random_array((30_000, 500), density=0.05, format="csr", rng=rng)
    return [Block(csr.data, 500, csr.indptr, csr.indices), Block(rng.normal(size=(30_000, 20)), 20)]


def products(block, threads=0):
    rng = np.random.default_rng(2)
    w, u = rng.normal(size=block.n_features), rng.normal(size=block.n_rows)  # few enough for sums by parts to differ
    return [
        block.scores(w, threads=threads),
        block.transposed(u, threads=threads),
        block.squared_norms(threads=threads),
    ]


def test_same_bits_for_any_number_of_threads(same_bits, blocks):
    for block in blocks:
        expected = same_bits(lambda block=block: products(block))
        for threads in (1, 2, 3, 8):  # told to the kernel itself
            for a, b in zip(expected, products(block, threads), strict=True):
                assert a.tobytes() == b.tobytes()


def test_same_bits_from_several_python_threads(blocks):
    expected = products(blocks[0], 1)
    with ThreadPoolExecutor(6) as pool:
        for got in pool.map(lambda _: products(blocks[0], 2), range(24)):
            assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, got, strict=True))


def test_a_forked_child_has_a_pool_of_its_own(blocks):
    expected = products(blocks[0], 2)
    child = os.fork()
    if child == 0:
        same = all(a.tobytes() == b.tobytes() for a, b in zip(expected, products(blocks[0], 2), strict=True))
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_environment_sets_the_number():
    run = [sys.executable, "-c", "import beeline; print(beeline.num_threads())"]
    env = os.environ | {"BEELINE_NUM_THREADS": "3"}
    assert subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout == "3\n"


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_an_environment_that_makes_no_sense_is_refused(number):
    run = [sys.executable, "-m", "beeline", "info", "x.svm"]
    env = os.environ | {"BEELINE_NUM_THREADS": number}
    done = subprocess.run(run, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    message = f"BEELINE_NUM_THREADS must be a whole number of at least 1, not {number!r}"
    assert done.stderr == f"beeline: error: {message}\n"


FEW_THREADS = """
import resource
import numpy as np
from beeline import Block
block = Block(np.ones((20_000, 100)), 100)
alone = block.scores(np.ones(100), threads=1)
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
# Room for the stacks of a few threads more, by far not for all that are wanted.
resource.setrlimit(resource.RLIMIT_AS, (size + (40 << 20), resource.RLIM_INFINITY))
assert block.scores(np.ones(100), threads=30).tobytes() == alone.tobytes()
"""


def test_a_system_that_gives_few_threads_is_no_error():
    done = subprocess.run([sys.executable, "-c", FEW_THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_argument_sets_the_number():
    before = beeline.num_threads()
    beeline.set_num_threads(5)
    assert beeline.num_threads() == 5
    beeline.set_num_threads(before)
    with pytest.raises(ParameterError, match="at least 1"):
        beeline.set_num_threads(0)
