"""LIBLINEAR by its own Python package, timed without Python's part; also as a process of its own.

liblinear-official and liblinear-multicore are imported by the same name, so that the second has to live in a virtual
environment of its own: `python liblinear_peer.py ROWS.npz` reads requests from standard input there, and answers on
standard output, a line of JSON each. Needs nothing but NumPy, SciPy and one of the two packages.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time

import numpy as np
import scipy.sparse

__all__ = ["LiblinearProblem"]


class LiblinearProblem:
    """Rows in LIBLINEAR's own structure, ready to be trained on.

    Parameters
    ----------
    X, y
        A CSR matrix, and a label a row: −1 and +1, or class numbers from 0.
    """

    def __init__(self, X, y) -> None:
        from liblinear import liblinear

        self.library = liblinear
        self.problem = liblinear.problem(y, X)
        self.binary = set(np.unique(y)) == {-1.0, 1.0}
        self._libc = ctypes.CDLL(None)
        self._said: list[str] = []
        self._print = liblinear.PRINT_STRING_FUN(lambda text: self._said.append(text.decode()))

    def train(self, options: str) -> tuple[tuple[float, float], np.ndarray, bool]:
        """Seconds in LIBLINEAR's `train`, weights, whether the iteration limit ended it.

        The seconds are those of the clock and of all cores together; weights have a column an output.
        """
        parameter = self.library.parameter(options)
        self.library.liblinear.set_print_string_function(self._print)
        self._said.clear()
        self._libc.srand(1)  # the same order of rows every time
        start = time.perf_counter(), time.process_time()
        pointer = self.library.liblinear.train(self.problem, parameter)
        seconds = time.perf_counter() - start[0], time.process_time() - start[1]
        weights = self._weights(pointer.contents)
        self.library.liblinear.free_and_destroy_model(ctypes.pointer(pointer))
        capped = "Switching" not in "".join(self._said) and "max number of iterations" in "".join(self._said)
        return seconds, weights, capped

    def _weights(self, model) -> np.ndarray:
        """Columns in the order of the classes, or one for the positive class."""
        K = 1 if self.binary and model.param.solver_type != 4 else model.nr_class
        W = np.ctypeslib.as_array(model.w, (model.nr_feature * K,)).reshape(-1, K).copy()
        labels = np.array(model.label[: model.nr_class])
        return W * labels[0] if K == 1 else W[:, np.argsort(labels)]


def serve(path: str) -> None:
    """Answer requests ({"options": …, "weights": FILE}) until there are no more."""
    with np.load(path) as file:
        X = scipy.sparse.csr_matrix((file["values"], file["indices"], file["indptr"]), tuple(file["shape"].tolist()))
        problem = LiblinearProblem(X, file["labels"])
    answers, sys.stdout = sys.stdout, sys.stderr  # the package prints warnings
    for line in sys.stdin:
        request = json.loads(line)
        seconds, weights, capped = problem.train(request["options"])
        np.save(request["weights"], weights)
        print(json.dumps({"seconds": seconds, "capped": capped}), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
