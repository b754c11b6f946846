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
    return [Block(csr.data, 500, csr.indptr, csr.indices), Block(rng.normal(size=(30_000, 60)), 60)]


def products(block, threads):
    rng = np.random.default_rng(2)
    w, u = rng.normal(size=block.n_features), rng.normal(size=(block.n_rows, 3))
    return [
        block.scores(w, threads=threads),
        block.transposed(u, threads=threads),
        block.squared_norms(threads=threads),
    ]


def test_same_bits_for_any_number_of_threads(blocks):
    for block in blocks:
        alone = products(block, 1)
        for threads in (2, 3, 8):
            for a, b in zip(alone, products(block, threads), strict=True):
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


def test_argument_sets_the_number():
    before = beeline.num_threads()
    beeline.set_num_threads(5)
    assert beeline.num_threads() == 5
    beeline.set_num_threads(before)
    with pytest.raises(ParameterError, match="at least 1"):
        beeline.set_num_threads(0)
