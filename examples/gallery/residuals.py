"""Residuals.

What a regression leaves over, against what it predicts. A cloud without a shape is a good sign; this one opens to the
right: far from roads, errors are large. Quantiles say how large, without assuming anything about their shape.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import beeline

DATA = Path(__file__).parents[1] / "data"


def main(folder: Path) -> None:
    """Predict how far a patch of forest is from the next road, and draw what is left over on other rows."""
    train = beeline.read(
        DATA / "covtype-train.csv.gz", label="Horizontal_Distance_To_Roadways", text=["Cover_Type"], scale="minmax"
    )
    test = beeline.read(DATA / "covtype-test.csv.gz", recipe=train.recipe)

    model = beeline.HuberRegressor(delta=500.0, alpha="auto").fit(train)
    low, high = (beeline.QuantileRegressor(quantile=q, alpha=1e-3).fit(train) for q in (0.1, 0.9))
    predicted = model.predict(test)
    inside = (low.predict(test) <= test.labels) & (test.labels <= high.predict(test))
    print(f"R² {model.score(test):.2f}; {inside.mean():.0%} of other rows between the quantiles of 10 % and 90 %")

    figure = Figure(figsize=(7.4, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.scatter(predicted, test.labels - predicted, s=7, alpha=0.5, label="other rows")
    groups = np.array_split(np.argsort(predicted), 12)
    for quantile, name in ((low, "10 %"), (high, "90 %")):
        difference = quantile.predict(test) - predicted
        means = [(predicted[group].mean(), difference[group].mean()) for group in groups]
        axes.plot(*zip(*means, strict=True), label=f"quantile {name}")
    axes.axhline(0, linewidth=0.8, color="gray")
    axes.set(xlabel="predicted distance to the next road, m", ylabel="residual, m")
    axes.legend(frameon=False)
    figure.savefig(folder / "residuals.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
