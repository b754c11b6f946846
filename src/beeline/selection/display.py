"""The curve of C as a display in scikit-learn's manner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from beeline._sentences import Argument
from beeline.exceptions import ParameterError
from beeline.plotting import load_matplotlib
from beeline.selection.result import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SelectionDisplay"]


class SelectionDisplay:
    """How held-out rows were scored along the path of C, drawn by matplotlib.

    Made by `from_estimator`, as scikit-learn's displays are. `Selection.plot` draws more: times and losses.

    Parameters
    ----------
    selection : Selection
        What a search found.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        What was drawn last, and where.

    Examples
    --------
    >>> from beeline import LinearSVC, SelectionDisplay
    >>> X, y = [[i] for i in range(20)], [int(i > 9) for i in range(20)]
    >>> display = SelectionDisplay.from_estimator(LinearSVC(C="auto").fit(X, y))
    >>> display.ax_.get_xlabel()
    'log₂ C'
    """

    ax_: Axes
    figure_: Figure | Any  # a part of one, where the axes lie in a part

    def __init__(self, *, selection: Selection) -> None:
        self.selection = selection

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:  # noqa: ANN401
        """Draw the search of a fitted estimator, or of the last step of a pipeline.

        Parameters
        ----------
        estimator : estimator or Pipeline
            One that was fitted with C="auto" or alpha="auto".
        ax : Axes, default=None
            Where to draw; by default a figure of pyplot's.
        """
        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        if not isinstance(found := getattr(last, "selection_", None), Selection):
            strength = "alpha" if hasattr(last, "alpha") else "C"
            raise ParameterError(
                f"this {type(last).__name__} has made no search; fit it with ",
                Argument(strength, "auto"),
                parameter="estimator",
            )
        return cls(selection=found).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, here or into other axes.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; by default a figure of pyplot's.
        """
        from beeline.selection.plot import draw_curve

        load_matplotlib()
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        draw_curve(self.selection, ax)
        self.ax_, self.figure_ = ax, ax.get_figure()
        return self
