"""Memory that a training frees is there for the next one: each page that goes back to the system is a fault later."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how glibc is told to keep memory")

# Vectors of a megabyte, which glibc would give back at the end of each training.
PROGRAM = """
import resource
import numpy as np
import scipy.sparse as sp
import beeline

random = np.random.default_rng(0)
n, d, k = 3000, 150_000, 20
X = sp.csr_matrix((random.random(n * k), random.integers(0, d, n * k), np.arange(0, n * k + 1, k)), shape=(n, d))
X.sum_duplicates()
y = np.sign(random.normal(size=n))
faults = []
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    beeline.LinearModel("logistic", fit_intercept=False, solver="lbfgs", tol=1e-3).fit(X, y)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(faults[1:])[1])
"""


def faults(**environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    return int(done.stdout)


def test_trainings_have_few_page_faults():
    assert faults() < 200


def test_what_the_user_says_about_the_heap_stays():
    assert faults(MALLOC_TRIM_THRESHOLD_="100000", MALLOC_MMAP_THRESHOLD_="100000") > 1000


# Blocks of 8 MB that come and go on two threads, as those of a store larger than its budget do.
BLOCKS = """
import sys
import numpy as np
from beeline._thread_pool import prefetched
from beeline.kernels import keep_freed_memory

keep_freed_memory(keep=sys.argv[1] == "keep")
for block in prefetched(np.ones(1 << 20) for _ in range(40)):
    kept = [block[: 1 + 7919 * k].copy() for k in range(40)]
    del kept
del block
with open("/proc/self/status") as status:
    print(*(int(line.split()[1]) for line in status if line.startswith("RssAnon")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what the system says of a process")
def test_within_a_budget_freed_memory_goes_back():
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    left = {
        kind: int(subprocess.check_output([sys.executable, "-c", BLOCKS, kind], env=plain)) for kind in ("keep", "give")
    }
    assert left["give"] < left["keep"] - 10_000  # kB
