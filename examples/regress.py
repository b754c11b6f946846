"""Predict how high a patch of forest lies: `python examples/regress.py TRAIN TEST`, two CSV files."""

import sys

import numpy as np

import beeline


def main(train_path: str, test_path: str) -> None:
    """Train regressions on a table, and show which measurements they use."""
    train = beeline.read(train_path, label="Elevation", text=["Cover_Type"], scale="minmax")
    test = beeline.read(test_path, recipe=train.recipe)
    regressions = {
        "lasso": beeline.Lasso(alpha=0.5),
        "elastic net": beeline.ElasticNet(alpha=0.02, l1_ratio=0.5),
        "support vector regression": beeline.LinearSVR(C=10, epsilon=20, loss="squared_epsilon_insensitive"),
    }
    print(f"{'':26}   R²  mean error  weights")
    for name, regression in regressions.items():
        regression.fit(train)
        error = np.abs(regression.predict(test) - test.labels).mean()
        print(f"{name:26} {regression.score(test):.2f}  {error:8.0f} m  {np.count_nonzero(regression.coef_):7d}")

    lasso = regressions["lasso"]
    print("\nWhat the lasso looks at most:")
    for j in np.argsort(-np.abs(lasso.coef_))[:5]:
        print(f"  {lasso.feature_names_in_[j]:32} {lasso.coef_[j]:+7.0f} m")


if __name__ == "__main__":
    main(*sys.argv[1:3])
