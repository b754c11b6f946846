"""A loss of one's own is one method: `python examples/own_loss.py TRAIN TEST`, two CSV files."""

import sys

import numpy as np

import beeline
from beeline.losses import ScalarLoss


class Clearance(ScalarLoss):
    """For a flight plan: ground that is taken too high costs by the metre, ground taken too low by the square."""

    def __init__(self, metres: float) -> None:
        self.metres = metres

    def value_and_grad(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of every row, and its slope."""
        low, high = np.minimum(z - y, 0), np.maximum(z - y, 0)
        return low**2 / self.metres + high, 2 * low / self.metres + (high > 0)


def main(train_path: str, test_path: str) -> None:
    """Compare a model of the height that fears low ground with one that does not mind."""
    train = beeline.read(train_path, label="Elevation", ignore=["Cover_Type"], scale="minmax")
    test = beeline.read(test_path, recipe=train.recipe)
    for loss in ("squared", Clearance(metres=10.0)):
        model = beeline.LinearModel(loss, C=1.0).fit(train)
        low = np.mean(model.predict(test) < test.labels - 100)
        print(f"{model.model_.loss:9} {low:5.1%} of the heights more than 100 m too low   {model.report_.sentence}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
