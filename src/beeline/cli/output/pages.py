"""The page of `--report`: a search for C, a training, or both; or an evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from beeline._words import count
from beeline.cli.output.drawing import number_text
from beeline.cli.output.spelling import spelled

if TYPE_CHECKING:
    from pathlib import Path

    from beeline.cli.input.learning import Prepared
    from beeline.evaluation import Evaluation
    from beeline.fitting import Fitted, Settings
    from beeline.model import Model
    from beeline.selection import Selection

__all__ = ["write_evaluation", "write_result_page"]


def write_result_page(
    page: Path,
    prepared: Prepared,
    sources: list[str],
    selection: Selection | None = None,
    trained: Fitted | None = None,
) -> None:
    """Write what there is to show: the search where there was one, and the training where there was one.

    Parameters
    ----------
    page
        The file.
    prepared, sources
        The rows and the settings, and where the rows came from.
    """
    from beeline.report import write_selection_page, write_training_page

    facts = _facts(prepared, sources)
    if selection is not None:
        write_selection_page(page, selection, facts | _search_facts(prepared), trained)
    elif trained is not None:
        write_training_page(page, trained, facts)


def write_evaluation(page: Path, model: Model, found: Evaluation, facts: dict[str, Any]) -> None:
    """Write how good a model's predictions are; `facts` tell the names of the model and of the data."""
    from beeline.report import write_evaluation_page

    facts |= {"rows": found.rows, "weight": "every row counts once" if found.weight is None else found.weight}
    facts |= {"features": model.n_features, "loss": model.loss, **_in_short(model.loss_settings)}
    facts |= {"classes": len(found.classes)} if found.classes else {}
    facts |= {"positive class": found.positive} if found.positive is not None else {}
    facts |= {"probabilities": model.link if model.has_probabilities else "none"} if found.classes else {}
    facts |= {"trained by beeline": model.version}
    if model.report is not None:
        facts |= {"training": f"{model.report.solver}: {model.report.sentence}"}
    write_evaluation_page(page, replace(found, notes=tuple(map(spelled, found.notes))), facts)


def _facts(prepared: Prepared, sources: list[str]) -> dict[str, Any]:
    """What was learned, from what, and all that was said about how."""
    from beeline.data.options import size_in_words
    from beeline.kernels import num_threads

    data, settings = prepared.data, prepared.settings
    loss, regularizer = settings.the_loss, settings.the_regularizer
    facts: dict[str, Any] = {"data": ", ".join(sources), "rows": f"{data.n_rows:,}", "features": f"{data.n_features:,}"}
    facts |= {"scaling": "none" if data.recipe is None else data.recipe.scaling.in_words}
    facts |= {"loss": loss.name, **_loss_settings(settings), "regularizer": regularizer.name}
    facts |= {"l1_ratio": regularizer.l1} if regularizer.name == "elastic_net" else {}
    facts |= {"weights": "not negative"} if regularizer.nonnegative else {}
    facts |= {"C": "searched for" if settings.searches else settings.C, "intercept": settings.the_intercept}
    if loss.classifies:
        facts |= {"multiclass": settings.multiclass, "class weights": _class_weights(settings.class_weight)}
        facts |= {"calibrated probabilities": settings.probability}
    facts |= {"tolerance": settings.tol, "most passes": settings.max_passes}
    facts |= {"time limit": "none" if settings.time_limit is None else f"{number_text(settings.time_limit)} s"}
    budget = settings.resources.budget
    facts |= {"memory": "no limit was set" if budget is None else size_in_words(budget)}
    return facts | {"solver": _solver(settings), "seed": settings.seed, "threads": num_threads()}


def _loss_settings(settings: Settings) -> dict[str, Any]:
    searched = {"epsilon": "searched for"} if settings.selecting.search_epsilon else {}
    return _in_short(settings.the_loss.settings) | searched


def _in_short(loss_settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a loss, of a tree only its size."""
    tree = {"tree": count(len(loss_settings["tree"]), "edge")} if "tree" in loss_settings else {}
    return loss_settings | tree


def _solver(settings: Settings) -> str:
    from beeline.solvers.registry import solver_settings

    said = solver_settings(settings.solver)
    options = ", ".join(f"{name}={value}" for name, value in said.get("solver_options", {}).items())
    return f"{said['solver']} ({options})" if options else str(said["solver"])


def _class_weights(given: Any) -> str:  # noqa: ANN401
    if not given:
        return "none"
    return given if isinstance(given, str) else ", ".join(f"{label}: {number_text(w)}" for label, w in given.items())


def _search_facts(prepared: Prepared) -> dict[str, Any]:
    selecting = prepared.settings.selecting
    folds: Any = selecting.folds
    shown = folds if isinstance(folds, int) else f"{number_text(100 * folds)} % of the rows, held out once"
    return {"folds": shown, "tolerance of folds": selecting.the_tol, "rule": selecting.rule}
