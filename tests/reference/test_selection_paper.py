"""Table 2 of the warm-start paper (Chu et al. 2015): how far starts from C/2 are from the optimum at C."""

import numpy as np
import pytest

from beeline.data.core.arrays import from_arrays
from beeline.losses import get_loss
from beeline.objective import Objective, conjugate_bound
from beeline.regularizers import L2
from beeline.solvers.newton.newton import Newton

# ijcnn1, logistic regression, by log₂ C: the primal start (13), the dual start (14), and ½‖w̄‖².
PUBLISHED = {
    -4: (1.30e01, 4.55e01, 5.85e01),
    0: (1.31e01, 1.90e02, 2.03e02),
    4: (1.50e00, 2.64e02, 2.66e02),
    8: (9.86e-02, 2.71e02, 2.71e02),
}


@pytest.mark.slow
def test_starts_are_as_far_from_the_optimum_as_published(shared_data):
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(shared_data("ijcnn1") / "ijcnn1.trn.bz2", n_features=22)
    base = Objective.of(from_arrays(X), y, np.ones(len(y)), get_loss("logistic"), L2(), 1.0, "none")
    solver = Newton(1e-12)
    for power, published in PUBLISHED.items():
        C = 2.0**power
        w = solver.run(base.with_strength(2 / C)).theta
        start = base.with_strength(1 / C).at(w)  # C inside the strength: both starts are copies
        best = solver.run(base.with_strength(1 / C), w).objective
        dual = conjugate_bound(start, start.slopes, start.loss_gradient)
        found = C * (start.value - best), C * (best - dual), 0.5 * float(w @ w)
        assert found == pytest.approx(published, rel=0.01)
