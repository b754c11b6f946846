"""Stochastic gradient descent: a good model in a few passes, without a certificate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from beeline._sentences import Argument, Sentence
from beeline._words import count
from beeline.losses import RowLoss
from beeline.objective import Objective
from beeline.solvers.base import Solver
from beeline.solvers.needs import Needs
from beeline.solvers.result import Result, Status, Step
from beeline.solvers.state import State
from beeline.solvers.stochastic.learning import Learning
from beeline.solvers.stochastic.options import SGDOptions
from beeline.solvers.stochastic.rule import STOCHASTIC_LOSSES, form_of

__all__ = ["SGD", "SGDOptions", "words_for_drowned"]


def words_for_drowned(n: int) -> Sentence:
    """That of so many features next to nothing was learned, and what to do."""
    have, their = ("has", "its") if n == 1 else ("have", "their")
    return Sentence(
        f"{count(n, 'feature')} {have} an offset more than 10 million times {their} spread, in whose rounding "
        f"stochastic steps lose what {their} values tell; subtract {their} mean{'s' * (n > 1)}, or read rows with ",
        Argument("scale", "standard"),
    )


class SGD(Solver):
    """Minimises J by steps along the slope of one row's loss, in random order.

    In units of Σ c_i it is λ₂/2‖w‖² + λ₁‖w‖₁ + mean of c_i·l_i, with λ = strength·Ω's/Σ c_i and costs whose mean is 1.
    A pass has every row once, in an order of its own. The rule itself, and what it keeps, is `Learner`.

    `averaged`, the default, has nothing to set. The first 4,096 rows say how large features are, and steps are as long
    as if these had been scaled and, where an intercept is free, centred; weights and J are those of the features as
    they are. A step is as long as a scaled row asks for, but never goes beyond where the loss's tangent is at the least
    value of the loss (Asi & Duchi 2019), and steps get shorter from pass to pass: η_t = 4/(1 + 4·passes)^¾ (a softmax
    has the power ½), in a regression times the spread of the labels over the usual slope. The result is an average of
    the weights, later ones weighing more: about by the cube of their number. Ω makes weights decay once in several
    rows, so that a step costs no more than the entries of its row; with L1 also when a feature is seen. In the end the
    average is taken at its best multiple, with the best free intercepts, which one look at all rows tells, or, of
    several outputs, a sample of them; with L1 weights that are better zero become so first, which takes three.

    Several classes have all weights of a feature side by side, in float32. Each class against the rest is learned on
    one walk over the rows, as one problem of all classes.

    `pegasos` is the algorithm as published (Shalev-Shwartz, Singer, Srebro & Cotter 2011, figures 1 and 2): the length
    of steps is 1/(λt), gradients of a batch are all taken before it, and weights are kept in the ball ‖w‖ ≤ 1/√λ unless
    `projection` says no; of several classes against the rest each has its own ball. `mcid` is algorithm 1 of MCID (M3):
    the same steps for the softmax, the multi-class hinge and the perceptron, without a ball. In the form U = t·w (M5) a
    step changes the entries of its rows only. One thing is not as in the papers: batches are drawn without replacement,
    from pass to pass.

    Every row, of several classes every few, is scored before it is learned from, by the weights that would be the
    result. The mean of these losses and the part of wrong classes, both weighted by costs, since the last step are the
    facts `progressive_loss` and `progressive_error` of the trace; in the first pass they are those of rows that were
    never seen. `progressive_trend` is by what part the mean loss of a pass differs from that of the one before.

    Nothing is proven. It ends when a pass lowers J by less than a per cent, as the progressive loss has it; J itself is
    evaluated once, in the end, which is one look at the rows more than the passes that are counted. `finish="exact"`
    goes on from there with the solver that `auto` takes for a start, up to its certificate. A start counts as the
    passes that led to it, or as one.

    Cost of a row: two products with its entries, and where its loss has a slope one more and the update. Rows on disk
    are read on one more thread and mixed on another; 17 or more classes against the rest are learned on several, some
    on each.
    Memory: four numbers a feature and output; rows on disk are mixed in a pool, a quarter of the memory, which runs of
    them pass through. The seed says in which order the rows are taken. Options are those of `SGDOptions`.
    """

    name = "sgd"
    certifies = False
    needs = Needs(
        losses=STOCHASTIC_LOSSES,
        losses_named="losses of single rows that are compiled",
        nonnegative=False,
        rows="blocks",
    )
    kind_of_options = SGDOptions
    options: SGDOptions

    def takes(self, objective: Objective) -> bool:
        """Whether the loss has a stochastic form, too."""
        return super().takes(objective) and self._has_form(objective)

    def refusal(self, objective: Objective) -> str | None:
        """Why not."""
        if (found := super().refusal(objective)) is not None or self._has_form(objective):
            return found
        return f"is for {self.needs.losses_named}, not {objective.loss!r}"

    @staticmethod
    def _has_form(objective: Objective) -> bool:
        return isinstance(objective.loss, RowLoss) and form_of(objective.loss) is not None

    def concern(self, result: Result) -> str | None:
        """Only where a limit ended it, or features were lost: that nothing is proven is what it says of itself."""
        if drowned := int(result.facts.get("drowned_features", 0)):
            return words_for_drowned(drowned)
        if result.status not in (Status.LIMIT, Status.TIME):
            return super().concern(result) if result.status is not Status.UNPROVEN else None
        name = "max_passes" if result.status is Status.LIMIT else "time_limit"
        return Sentence(
            f"{self.name} {result.sentence}; raise ",
            Argument(name),
            f" (now {getattr(self, name):g}), or take another solver where J is to be certified",
        )

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """Some rows at a time, until a pass hardly lowers J."""
        step = None
        for step in self._stochastic_steps(objective, start):
            exact = step.ending and self.options.finish == "exact"
            yield replace(step, ending="") if exact else step
        if step is not None and exact:
            yield from self._exact_steps(objective, step)

    def _stochastic_steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        clock, run = time.perf_counter(), Learning(self, objective, start)
        if not objective.total_cost > 0:
            yield run.last_step("no row costs anything")
            return
        while True:
            for portion in run.portions():
                run.learn(portion)
                late = self.time_limit is not None and time.perf_counter() - clock >= self.time_limit
                if late or run.passes >= self.max_passes:
                    yield run.last_step()
                    return
                if run.is_worth_telling:
                    yield run.step()
            if ending := run.end_pass():
                yield run.last_step(ending)
                return
            yield run.step()

    def _exact_steps(self, objective: Objective, last: Step) -> Iterator[Step]:
        """Those of the solver that `auto` takes where there is a start."""
        from beeline.solvers.auto import choose_solver

        exact = choose_solver(objective, tol=self.tol, max_passes=self.max_passes, seed=self.seed, warm=True)
        for step in exact.steps(objective, State(last.theta)):
            yield replace(step, passes=last.passes + step.passes, solver=step.solver or exact.name, snapshot=None)

    @property
    def learns_classes_together(self) -> bool:
        """Unless an exact solver goes on, which wants a problem for each."""
        return self.options.finish == "none"

    def keeps_point(self, objective: Objective) -> bool:
        """Of a perceptron: zero weights are its optimum under any Ω, and the direction is what is learned (M9)."""
        return objective.loss.zero_is_optimal

    def resumes(self, objective: Objective) -> bool:
        """Up to where an exact solver takes over."""
        return True
