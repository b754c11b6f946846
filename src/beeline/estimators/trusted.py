"""The classes by which skops makes a saved estimator again."""

from __future__ import annotations

from inspect import isabstract, isclass

from beeline import estimators, losses
from beeline.losses import Loss
from beeline.regularizers import REGULARIZERS
from beeline.solvers.registry import SOLVERS

__all__ = ["trusted_types"]


def trusted_types() -> list[str]:
    """The names of all classes of beeline's that a skops file of an estimator can have, for `skops.io.load`.

    Estimators, and what may be given to them: losses, regularizers and solvers. What was learned is numbers, texts and
    arrays. A class of your own is not among them: add it where you trust it.

    Returns
    -------
    list of str
        Names as skops writes them, with their modules.

    Examples
    --------
    >>> import beeline
    >>> "beeline.estimators.classifiers.LinearSVC" in beeline.trusted_types()
    True
    """
    kinds = [getattr(estimators, name) for name in estimators.__all__]
    kinds += [losses.LabelTree, *_losses(), *REGULARIZERS.values(), *SOLVERS.values()]
    return sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)


def _losses() -> list[type[Loss]]:
    """Those of the registry, and those that are made of another one."""
    public = (getattr(losses, name) for name in losses.__all__)
    return [kind for kind in public if isclass(kind) and issubclass(kind, Loss) and not isabstract(kind)]
