"""Parameters of other libraries' estimators: what they are called here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from beeline._words import did_you_mean

__all__ = ["hint_at", "with_hints"]

# For each name, ours and a sentence about it, of which the first whose parameter the estimator has is told; None: a
# sentence that names none.
_ELSEWHERE: dict[str, tuple[tuple[str | None, str], ...]] = {
    "max_iter": (("max_passes", "max_passes limits the passes over the data, whatever the solver"),),
    "n_jobs": ((None, "threads are set for all of beeline, by beeline.set_num_threads(n)"),),
    "penalty": (
        ("l1_ratio", "l1_ratio=0 is L2, l1_ratio=1 is L1, and between lies the elastic net"),
        ("regularizer", "regularizer is 'l2', 'l1' or 'elastic_net'"),
        (None, "the regularizer is part of what the estimator is"),
    ),
    "l1_ratio": (("regularizer", "regularizer=beeline.regularizers.ElasticNet(l1_ratio) says it here"),),
    "dual": (("solver", "solver='auto' decides whether the dual problem is solved; solver='dual_cd' does it"),),
    "intercept_scaling": (("fit_intercept", "fit_intercept=True does not regularize it, and no scale is needed"),),
    "alpha": (("C", "C takes its place: C = 1/(alpha·n) for the mean of the losses of n rows"),),
    "C": (("alpha", "alpha takes its place: alpha = 1/(C·n) for n rows"),),
    "Cs": (("C", "C='auto' searches for the best C by itself"),),
    "alphas": (("alpha", "alpha='auto' searches for the best alpha by itself"),),
    "l1_ratios": (("l1_ratio", "l1_ratio is one number, and scikit-learn's GridSearchCV tries several"),),
    "positive": ((None, "beeline.LinearModel(nonnegative=True) has no negative weights"),),
    "nonnegative": ((None, "beeline.LinearModel(nonnegative=True) has no negative weights"),),
    "normalize": ((None, "put scikit-learn's StandardScaler before it in a pipeline"),),
    "copy_X": ((None, "rows are never changed, and copied only where their layout does not fit"),),
    "precompute": ((None, "solvers keep the Gram matrix where that pays"),),
    "selection": (("solver", "solver='auto' takes the one that should be fastest; a seed is random_state"),),
    "epsilon": (("delta", "delta is where the loss becomes straight"),),
    "tau": (("quantile", "quantile is between 0 and 1"),),
    "epochs": (("max_passes", "max_passes limits the passes over the data"),),
    "n_epochs": (("max_passes", "max_passes limits the passes over the data"),),
    "seed": (("random_state", "random_state is the seed"),),
    "multiclass": (("multi_class", "multi_class says how classes are told apart"),),
    "folds": (("cv", "cv says which folds there are"),),
    "metric": (("scoring", "scoring says what is best on held-out rows"),),
    "callbacks": (("callback", "callback is one function; set_callbacks takes those of scikit-learn"),),
}  # fmt: skip
_SCALED = "steps are scaled and averaged by themselves, and there is nothing to tune"
_STEPS = ("learning_rate", "eta0", "power_t", "average", "early_stopping", "validation_fraction", "n_iter_no_change")
_ELSEWHERE |= dict.fromkeys(_STEPS, ((None, _SCALED),))


def hint_at(name: str, known: Iterable[str]) -> str:
    """What to say to somebody who gives a parameter that is none of those known."""
    names = list(known)
    ours = (text for own, text in _ELSEWHERE.get(name, ()) if own is None or own in names)
    return next(ours, None) or did_you_mean(name, names) or f"there are {', '.join(names)}"


def with_hints(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, with a sentence in its `TypeError` where a parameter is called otherwise here."""
    known = list(inspect.signature(init).parameters)[1:]

    @wraps(init)
    def checked(self: object, *args: Any, **given: Any) -> None:  # noqa: ANN401
        for name in given:
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}; {hint_at(name, known)}")
        init(self, *args, **given)

    return checked
