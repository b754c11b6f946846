"""A loss of one's own, with any regularizer: `python examples/own_loss.py TRAIN TEST`, two CSV files."""

import sys

import numpy as np

import beeline
from beeline.losses import ScalarLoss


class Huber(ScalarLoss):
    """Half the square of small residuals, the absolute value of large ones: outliers count little."""

    name = "huber"
    labels = "real"

    def __init__(self, width: float) -> None:
        self.width = width

    def value_and_grad(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of every row, and its slope."""
        r = z - y
        inside = np.clip(r, -self.width, self.width)
        return inside * (r - 0.5 * inside), inside

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The slope of the slope, for Newton's method."""
        return (np.abs(z - y) < self.width).astype(float)


def main(train_path: str, test_path: str) -> None:
    """Spoil some labels, and compare a model that minds with one that does not."""
    train = beeline.read(train_path, label="Elevation", ignore=["Cover_Type"], scale="minmax")
    test = beeline.read(test_path, recipe=train.recipe)
    spoiled = train.labels.copy()
    spoiled[::20] += 30_000  # one label in twenty is nonsense
    for loss in ("squared", Huber(width=100.0)):
        model = beeline.LinearModel(loss, C=1.0).fit(train, spoiled)
        error = np.median(np.abs(model.predict(test) - test.labels))
        print(f"{model.model_.loss:8} median error {error:5.0f} m   {model.report_.sentence}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
