"""`beeline train`: data become a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import click

from beeline.cli.input.streaming import STANDARD_INPUT, StreamRequest, said_options, train_stream
from beeline.cli.options.common import Debug, Json, Threads, print_json, use_threads
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.options.groups import with_group
from beeline.cli.options.reading import with_read_options
from beeline.cli.options.search import SearchOptions
from beeline.cli.options.training import TrainingOptions, number_or_auto, panel_option
from beeline.cli.output.errors import one_line_errors

if TYPE_CHECKING:
    from beeline.fitting import Settings

__all__ = ["train"]


@with_read_options
@with_group("searching", SearchOptions)
@with_group("training", TrainingOptions)
def train(
    context: click.Context,
    sources: Annotated[list[str], Positional("DATA")],
    *,
    output: Annotated[
        str,
        Option(
            "The model file to write.",
            (
                "--output",
                "-o",
            ),
            metavar="MODEL",
        ),
    ],
    C: Annotated[
        str,
        panel_option(
            "What multiplies the loss of every row; smaller regularizes more. auto searches for the best.", "C", "--C"
        ),
    ] = "1.0",
    alpha: Annotated[
        float | None,
        panel_option(
            "What multiplies the regularizer, where the mean of the losses is minimised; instead of --C. When neither "
            "is given it is 1e-6 for --solver sgd, whose hinges have C = 3, and for rows that are learned from as they "
            "are read.",
            "NUMBER",
        ),
    ] = None,
    training: TrainingOptions,
    tol: Annotated[float, panel_option("Stop at this relative distance from the optimum.", "PART")] = 1e-4,
    probability: Annotated[
        bool,
        panel_option(
            "Calibrate probabilities for a loss that gives scores only; trains five times more.", None, "--probability"
        ),
    ] = False,
    stream: Annotated[
        bool,
        Option(
            "Learn from the rows as they are read, once, by stochastic steps, in bounded memory; always so where DATA "
            "is -, standard input.",
            ("--stream",),
        ),
    ] = False,
    start: Annotated[
        str | None,
        Option(
            "Go on from this model with the rows of DATA, which are learned from as they are read.",
            ("--continue",),
            metavar="MODEL",
        ),
    ] = None,
    searching: SearchOptions,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
    reading: dict[str, Any],
) -> None:
    """Train a model on data of any size.

    DATA is a store, or whatever can be converted to one. Rows that do not fit in memory are kept in a store beside
    MODEL until the end, or for longer in the folder that --cache names. Ctrl-C ends the training and saves the best
    model so far, with exit code 130. With --checkpoint a training that was ended, in whatever way, goes on when the
    same command is given again. Where there is reason to doubt a model, it is saved too; a warning says why and
    what to do, and the exit code is 3.

    With --stream, or where DATA is -, rows are learned from as they come, once. Such a model goes on with more rows by
    --continue, to the same bits as if they had come at once.

    Example: beeline train train.csv.gz -o income.model --label income --scale standard

    Example: zcat log.svm.gz | beeline train - --solver sgd -o clicks.model
    """
    with one_line_errors(debug):
        use_threads(threads)
        if stream or start is not None or STANDARD_INPUT in sources:
            request = StreamRequest(sources, reading, training, alpha, start, said_options(context))
            train_stream(request, output, json=json)
            return
        from beeline.cli.input.learning import fitted, prepare
        from beeline.cli.input.searching import leave_interrupted, search_for_C, was_interrupted
        from beeline.cli.input.targets import checked_model
        from beeline.cli.output.model_facts import finite_numbers, model_facts, traces
        from beeline.cli.output.pages import write_result_page
        from beeline.cli.output.show_model import show_trained

        more = {"tol": tol, "probability": probability, **training.to_settings(threads)}
        more |= _strength(alpha, more, context)
        settings = _settings(str(more.pop("C", C)), training, searching, more)
        target = checked_model(output)
        page = searching.checked_files(sources, output)
        with prepare(sources, reading, training, settings, target) as prepared:
            selection = search_for_C(prepared, sources, page, to_train=True) if settings.searches else None
            trained = fitted(prepared, selection)
        trained.model.save(target)
        trained.remove_checkpoint()
        if page is not None:
            write_result_page(page, prepared, sources, selection, trained)
        facts = model_facts(trained.model, target) | {"loss_chosen_because": prepared.why}
        if json:
            said = [finite_numbers(result.facts) for result in trained.results]
            facts |= {"trace": traces(trained.results), "solver_facts": said}
            print_json(facts if selection is None else facts | {"selection": selection.to_json()})
        else:
            show_trained(facts)
        prepared.concerns.say()
        if facts["report"]["status"] == "interrupted":
            leave_interrupted(f"the best model so far was saved as {output}" + training.goes_on)
        if selection is not None and was_interrupted(selection):
            leave_interrupted(f"the model with the best C so far was saved as {output}" + training.goes_on)
        prepared.concerns.leave()


def _strength(alpha: float | None, more: dict[str, Any], context: click.Context) -> dict[str, Any]:
    """How strong Ω is, where --C does not say it: alpha, or by a rule of stochastic steps."""
    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError

    if "C" in said_options(context):
        if alpha is not None:
            raise ParameterError(Argument("alpha"), " says what ", Argument("C"), " says; leave one of them out")
        return {}
    if alpha is not None:
        return {"alpha": alpha}
    if "sgd" in (more["solver"], more["solver"][0]):
        from beeline.fitting.online_settings import default_strength, ends_stochastic
        from beeline.losses import get_loss

        if ends_stochastic(more["solver"]):
            return default_strength(get_loss(more["loss"]))
    return {}


def _settings(C: str, training: TrainingOptions, searching: SearchOptions, more: dict[str, Any]) -> Settings:
    """The settings, before anything is known of the data."""
    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError
    from beeline.fitting import Settings

    strength = number_or_auto("C", C)
    settings = Settings(C=strength, **more)
    if strength == "auto":
        selecting = searching.selecting(max_passes=training.max_passes, search_epsilon=training.searches_epsilon)
        return replace(settings, selecting=selecting)
    searching.refuse_without_search()
    if training.searches_epsilon:
        raise ParameterError(
            Argument("epsilon", "auto"), " has no meaning without ", Argument("C", "auto"), "; give a number"
        )
    return settings
