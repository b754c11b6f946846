"""Settings for rows that come once: what was said, or what a model says that goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from beeline._sentences import Argument
from beeline._words import did_you_mean
from beeline.data.options import ReadOptions
from beeline.exceptions import ModelError, ParameterError
from beeline.fitting.settings import Settings
from beeline.losses import CrammerSinger, Hinge, Loss, SquaredHinge, get_loss
from beeline.model import Model
from beeline.regularizers import get_regularizer
from beeline.solvers.registry import SolverLike, the_solver
from beeline.solvers.stochastic.sgd import SGD
from beeline.training.task import Multiclass

__all__ = [
    "ALPHA",
    "NAMES",
    "default_strength",
    "ends_stochastic",
    "online_settings",
    "settings_of_model",
    "settings_of_record",
]

ALPHA = 1e-6  # what multiplies Ω where nothing is said
_HINGES = (Hinge, SquaredHinge, CrammerSinger)
_C_OF_HINGES = 3.0
NAMES = ("loss", "regularizer", "alpha", "class_weight", "intercept", "multiclass", "solver", "seed")


def default_strength(loss: Loss) -> dict[str, float]:
    """How strong Ω is for stochastic steps over rows that are all at hand, where nothing is said.

    Of a hinge only rows within the margin are left to learn from, and to fit the last few of them is to fit noise:
    C = 3. Other losses go on to learn from all rows, and C = 3 would keep their weights too small.
    """
    return {"C": _C_OF_HINGES} if isinstance(loss, _HINGES) else {"alpha": ALPHA}


def ends_stochastic(solver: SolverLike) -> bool:
    """Whether a model ends by stochastic steps whose length does not depend on how strong Ω is."""
    sgd = the_solver(solver)
    return isinstance(sgd, SGD) and (sgd.options.variant, sgd.options.finish) == ("averaged", "none")


def online_settings(given: Mapping[str, Any]) -> Settings:
    """The settings for rows that come once; `alpha` is 1e-6 where it is not given."""
    for name in given:
        if name not in NAMES:
            reading = [field.name for field in fields(ReadOptions)]
            instead = did_you_mean(name, [*NAMES, *reading]) or f"there are {', '.join(NAMES)}"
            raise ParameterError(Argument(name), f" has no meaning for rows that come once; {instead}")
    solver = the_solver(given.get("solver", "sgd"))
    if not isinstance(solver, SGD):
        raise ParameterError(
            "rows that come once are learned from by 'sgd'; take it, or save the rows first", parameter="solver"
        )
    settings = Settings(**{"alpha": ALPHA, **given, "solver": solver})
    if settings.searches:
        raise ParameterError(Argument("alpha", "auto"), " would need rows that come more than once; give a number")
    return settings


def settings_of_model(model: Model) -> Settings:
    """The settings for going on: those of the model."""
    said = model.settings
    if model.multilabel or model.platt is not None or said.get("nonnegative"):
        what = "sets of labels" if model.multilabel else "calibrated probabilities" if model.platt is not None else ""
        raise ModelError(f"a model with {what or 'weights that may not be negative'} cannot go on with more rows")
    alpha = said.get("alpha")
    if alpha is None:
        rows = 1 if model.report is None else max(1, model.report.n_rows)
        alpha = 1.0 / (float(said.get("C", 1.0)) * rows)  # of Ω + C·Σ l_i over n rows
    said = said | {"alpha": alpha}
    if model.state is None and isinstance(weights := said.get("class_weight"), dict) and model.classes is not None:
        named = {str(name): name for name in model.classes.tolist()}
        said |= {"class_weight": {named.get(name, name): weight for name, weight in weights.items()}}
    return settings_of_record(get_loss(model.loss, **model.loss_settings), said, model.state)


def settings_of_record(loss: Loss, said: Mapping[str, Any], state: Mapping[str, Any] | None) -> Settings:
    """The settings for going on, of what `Settings.to_json` said; a state knows classes as they are, not as texts."""
    known = said if state is None else state
    weights, multiclass = known.get("class_weight"), known.get("multiclass")
    weights = {pair[0]: pair[1] for pair in weights} if isinstance(weights, list) else weights
    regularizer = str(said.get("regularizer", "l2"))
    ratio = {"l1_ratio": said["l1_ratio"]} if regularizer == "elastic_net" else {}
    options = said.get("solver_options", {}) if said.get("solver") == SGD.name else {}
    return online_settings(
        {
            "loss": loss,
            "regularizer": get_regularizer(regularizer, **ratio),
            "alpha": float(said["alpha"]),
            "class_weight": weights,
            "intercept": said.get("intercept") or "free",
            "multiclass": multiclass if multiclass in get_args(Multiclass) else "auto",
            "solver": (SGD.name, options),
            "seed": int(said.get("seed", 0)),
        }
    )
