"""Random problems at hostile scales for every loss, regularizer, solver and intercept, held against other optima.

Problems are small and processes are many, so a BLAS of many threads only makes them wait for each other. It reads how
many it may have when NumPy is first imported: hence here, before any of that.
"""

import os

for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
