"""Parameters and attributes that all estimators share, documented once."""

from __future__ import annotations

from inspect import cleandoc
from typing import TypeVar

__all__ = ["documented"]

Kind = TypeVar("Kind", bound=type)

_SHARED = {
    "fit_intercept": """
fit_intercept : bool or "regularized", default=True
    True: an intercept that is not regularized. "regularized": one that is, as LIBLINEAR has it. False: none. Where
    only differences of scores matter to the loss, True is none either; of two classes a threshold is chosen after
    training.
""",
    "l1_ratio": """
l1_ratio : float, default=0.0
    0: L2 regularization, ½‖w‖². 1: L1, ‖w‖₁, which makes weights exactly zero. Between: the elastic net,
    l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖².
""",
    "C": """
C : float or "auto", default=1.0
    What multiplies the loss of every row; smaller means stronger regularization. "auto" searches for the best by
    cross-validation, and trains on all rows with it.
""",
    "alpha": """
alpha : float or "auto", default=1.0
    What multiplies the regularizer; larger means stronger regularization. "auto" searches for the best by
    cross-validation, and trains on all rows with it.
""",
    "alpha_sgd": """
alpha : float or None, default=None
    What multiplies the regularizer; larger means stronger regularization. None: 1e-6, but 1/(3n) for hinges where all n
    rows are at hand. scikit-learn's default is 1e-4.
""",
    "solving_sgd": """
shuffle : bool, default=True
    Whether the rows of a batch are learned from in a random order; otherwise as they lie. `fit` with all rows at hand
    takes them in random order in any case.
solver : str, tuple or Solver, default="auto"
    For `fit` with all rows at hand: "auto" is "sgd" from 5,000 rows on, or with fewer than 100 passes; else, where the
    optimum takes no longer, it is the fastest solver that certifies it. "sgd" is always stochastic,
    ("sgd", {"variant": "pegasos"}) has options. Batches are learned from by "sgd".
tol : float, default=1e-4
    For a solver that certifies: stop when the model is at most this far, relatively, from the optimum.
max_passes : float, default=1000
    `fit` stops after so many passes over the data; "sgd" ends by itself when a pass hardly lowers J.
time_limit : float or None, default=None
    Stop after so many seconds, and take what was learned until then; for each call. None: no limit.
memory : str, int or None, default=None
    How much memory data may take, such as "400M", or bytes; an eighth is for rows of batches that are mixed (64 MB
    where nothing is said). None: as much as is free.
checkpoint : str, path or None, default=None
    A folder in which `fit` keeps where it is, so that a process that was ended goes on from there when the same `fit`
    is called again. Batches do not use it: `model_.save` keeps all that `from_model` goes on from.
warm_start : bool, default=False
    Whether `fit` begins from the last model where it has the same shape and classes.
random_state : int, RandomState or None, default=None
    The seed of the order of rows. None is the seed 0: the same data give the same bits, always.
callback : callable, default=None
    Is called after every iteration of `fit` with a `Step` (objective, passes, seconds), and after each buffer of
    batches with a `StreamStep` (rows, seconds, loss, error); returning True stops the training.
verbose : bool, default=False
    Print a line each time.
""",
    "class_weight": """
class_weight : dict or "balanced", default=None
    What multiplies C for the rows of each class: {class: weight}, 1 where none is given. "balanced" gives every class
    the same total weight.
""",
    "searching": """
cv : int, float, splitter or iterable, default=5
    For a search: so many folds, spread evenly over the classes; a part of the rows to hold out once, such as 0.2; a
    splitter of scikit-learn's; or pairs of train and test rows.
scoring : str or callable, default=None
    For a search: what is best on held-out rows. "accuracy", "f1", "auc", "log_loss", "rmse", "mae", "r2", "loss" (the
    mean of the loss itself), "ndcg@10" and others as in `Selecting`, or a scorer of scikit-learn's. None: the log loss
    where the loss gives probabilities, accuracy for other classifiers, the root of the mean squared error for a
    regression; but the loss itself where it asks for something else than the middle of the targets, where mistakes have
    costs, and for several labels a row.
""",
    "solving": """
solver : str, tuple or Solver, default="auto"
    Who minimises; "auto" takes the one that should be fastest for the loss, the regularizer and the shape of the data.
    Options are said by ("bundle", {"variant": "bmrm"}), or by a solver, `beeline.solvers.Bundle(variant="bmrm")`. The
    solver's own `tol`, `max_passes` and `seed` come before those of the estimator, where it was told any.
tol : float, default=1e-4
    Stop when the model is certified to be at most this far, relatively, from the optimum.
max_passes : float, default=1000
    Stop, with a `ConvergenceWarning`, after so many passes over the data.
time_limit : float or None, default=None
    Stop, with a `ConvergenceWarning`, after so many seconds, looked at after each iteration, and take the best so far.
    They are for all of `fit`: each class or output gets its share, a search at most four fifths. None: no limit.
memory : str, int or None, default=None
    How much memory data may take, such as "400M", or bytes: for a `Store`, which is read in pieces of the right size,
    and for copies of arrays. Solvers that need more are refused, with the names of those that do not; "auto" takes one
    that fits. None: as much as is free.
checkpoint : str, path or None, default=None
    A folder in which to keep where training is, so that a process that was ended at any moment goes on from there, to
    the same bits, when the same `fit` is called again. The folder is removed when `fit` is done. None: nothing is kept.
warm_start : bool, default=False
    Begin from the model of the last `fit` where it has the same shape and classes.
random_state : int, RandomState or None, default=None
    The seed of what is random. None is the seed 0: the same data give the same bits, always.
callback : callable, default=None
    Is called after every iteration with a `Step` (objective, gap, passes, seconds); returning True stops the training.
verbose : bool, default=False
    Print a line after every iteration.
""",
    "attributes": """
coef_, intercept_ : ndarray, ndarray or float
    The weights and intercepts, in scikit-learn's shapes.
n_iter_ : int
    Passes over the data.
report_ : Report
    How the training went; `report_.sentence` says it in words.
results_ : list of Result
    What the solver found, for each problem that it solved: one for every class against the rest and for every output
    by itself, otherwise one. Each has a `trace`: passes, seconds, objective and gap after every iteration.
selection_ : Selection
    After a search: the curve of C, the best C, why the search ended, and `plot()`.
C_ : float
    The C that the model was trained with, given or found (alpha_ where the estimator has alpha; epsilon_ too).
model_ : Model
    The model, with `save`, `to_liblinear` and `to_onnx`.
n_features_in_, feature_names_in_ : int, ndarray
    The number of features; their names where the data had names.
""",
    "fit": """
Ctrl-C during `fit` ends it and keeps the best model so far; `report_` says so.
""",
}


def documented(kind: Kind) -> Kind:
    """Fill the shared paragraphs into a class's docstring, where it names them on a line of their own as `<name>`."""
    text = cleandoc(kind.__doc__ or "")
    for name, paragraph in _SHARED.items():
        text = text.replace(f"<{name}>", paragraph.strip())
    kind.__doc__ = text
    return kind
