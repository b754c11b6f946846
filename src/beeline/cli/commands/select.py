"""`beeline select`: the C that data ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from beeline.cli.options.common import Debug, Json, Threads, print_json, use_threads
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.options.groups import with_group
from beeline.cli.options.reading import with_read_options
from beeline.cli.options.search import SearchOptions, search_option
from beeline.cli.options.training import TrainingOptions
from beeline.cli.output.errors import one_line_errors

if TYPE_CHECKING:
    from beeline.cli.input.learning import Prepared
    from beeline.cli.output.facts import Facts
    from beeline.selection import Selection

__all__ = ["select"]

RuleName = Literal["best", "one_se"]
StopName = Literal["auto", "paper"]

# What `train` has no need of once C is known.
_OF_THE_SEARCH = {
    "folds",
    "metric",
    "resume",
    "report",
    "rule",
    "stop",
    "refine",
    "C_min",
    "C_max",
    "tol",
    "cold",
    "json",
    "debug",
}


@with_read_options
@with_group("searching", SearchOptions)
@with_group("training", TrainingOptions)
def select(
    context: click.Context,
    sources: Annotated[list[str], Positional("DATA")],
    *,
    output: Annotated[
        str | None,
        Option(
            "Train on all rows with the C found; the file to write.",
            (
                "--output",
                "-o",
            ),
            metavar="MODEL",
        ),
    ] = None,
    searching: SearchOptions,
    rule: Annotated[
        RuleName,
        search_option(
            "Which C is taken: the best, or the smallest within one standard error of it.", "RULE", choices=RuleName
        ),
    ] = "best",
    stop: Annotated[
        StopName,
        search_option(
            "When the path ends: auto, when neither scores nor losses on held-out rows improve any more; paper, when "
            "the weights no longer change with C.",
            "RULE",
            choices=StopName,
        ),
    ] = "auto",
    refine: Annotated[
        bool, search_option("In the end, try half a step to both sides of the best C too.", None, "--refine")
    ] = False,
    C_min: Annotated[
        float | None,
        search_option("The first C; when not given, where a model begins to have something to say.", "C", "--C-min"),
    ] = None,
    C_max: Annotated[
        float | None,
        search_option("The last C, unless the path ends before; far beyond most when not given.", "C", "--C-max"),
    ] = None,
    tol: Annotated[
        float | None,
        search_option(
            "How exactly folds are solved: to this part of the objective, 1e-4 when not given; with --stop paper to "
            "this part of the gradient, 1e-2 when not given, and weights that change less count as settled.",
            "PART",
        ),
    ] = None,
    cold: Annotated[
        bool, search_option("Afterwards, try the same values from cold starts, to compare the time.", None, "--cold")
    ] = False,
    training: TrainingOptions,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
    reading: dict[str, Any],
) -> None:
    """Search for the best C by cross-validation, each value from where the last one ended.

    DATA is a store, or whatever can be converted to one. C doubles until scores no longer improve. Ctrl-C ends the
    search, tells the best C so far and, with -o, trains with it; the exit code is 130 then. Where there is reason to
    doubt what was found, a warning says why and what to do, and the exit code is 3.

    Example: beeline select train.csv.gz --label income --scale standard -o income.model
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline._sentences import Argument
        from beeline.cli.input.learning import fitted, prepare
        from beeline.cli.input.searching import leave_interrupted, search_for_C, was_interrupted
        from beeline.cli.input.targets import checked_model
        from beeline.cli.output.model_facts import model_facts
        from beeline.cli.output.pages import write_result_page
        from beeline.cli.output.show_model import show_trained
        from beeline.cli.output.show_search import show_search
        from beeline.exceptions import ParameterError
        from beeline.fitting import Settings

        if cold and training.searches_epsilon:
            raise ParameterError(
                Argument("cold"), " has no meaning with ", Argument("epsilon", "auto"), "; leave it out"
            )
        if output is None and training.checkpoint is not None:
            raise ParameterError(
                Argument("checkpoint"),
                " is for the training of a model; name one by ",
                Argument("output"),
                ", or say ",
                Argument("resume"),
                " to keep the search",
            )
        limits: dict[str, Any] = {
            "rule": rule,
            "stop": stop,
            "refine": refine,
            "C_min": C_min,
            "C_max": C_max,
            "tol": tol,
            "compare_cold": cold,
        }
        limits |= {"max_passes": training.max_passes, "search_epsilon": training.searches_epsilon}
        limits |= {"time_limit": training.seconds} if output is None else {}  # else some of it is for the model
        settings = Settings(C="auto", selecting=searching.selecting(**limits), **training.to_settings(threads))
        target = None if output is None else checked_model(output)
        page = searching.checked_files(sources, output)
        model, near = None, target or Path(searching.resume or "beeline.select")
        with prepare(sources, reading, training, settings, near) as prepared:
            selection = search_for_C(prepared, sources, page, to_train=target is not None)
            if target is not None:
                trained = fitted(prepared, selection)
                model = trained.model
                model.save(target)
                trained.remove_checkpoint()
                if page is not None:
                    write_result_page(page, prepared, sources, selection, trained)
        facts = None if model is None else model_facts(model, str(output))
        if json:
            print_json(_record(selection, facts, prepared))
        else:
            show_search(selection, prepared.why, _following(context, selection) if model is None else None)
            if facts is not None:
                show_trained(facts, with_search=False)
        prepared.concerns.say()
        if was_interrupted(selection, cold=cold) or (facts is not None and facts["report"]["status"] == "interrupted"):
            leave_interrupted(_left(selection, output, searching.resume or training.checkpoint))
        prepared.concerns.leave()


def _record(selection: Selection, model: Facts | None, prepared: Prepared) -> Facts:
    """All that there is to say, as plain JSON."""
    record = selection.to_json() | {"rows": prepared.data.n_rows, "features": prepared.data.n_features}
    record |= {"loss": prepared.settings.the_loss.name, "loss_chosen_because": prepared.why, "model": model}
    return record if selection.cold is None else record | {"cold": selection.cold.to_json()}


def _following(context: click.Context, selection: Selection) -> str:
    """The command that trains with what was found."""
    from beeline.cli.output.following import following_command

    found, epsilon = ["-o", "MODEL", "--C", repr(selection.best_C)], selection.best.epsilon
    if epsilon is None:
        return following_command(context, "train", _OF_THE_SEARCH, *found)
    return following_command(context, "train", _OF_THE_SEARCH | {"epsilon"}, *found, "--epsilon", repr(epsilon))


def _left(selection: Selection, output: str | None, resume: str | None) -> str:
    """What is left after Ctrl-C."""
    left = f"the best C so far is {selection.best_C:.6g}"
    if output is not None:
        left += f", and the model with it was saved as {output}"
    return left if resume is None else f"{left}; the same command goes on from {resume}"
