"""One positive row in a hundred, and models trained for what they are judged by: `python examples/imbalanced.py`."""

import numpy as np

import beeline


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which about 1 % are fraud: most of it plain to see, some of it hardly."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 8))
    fraud = random.random(n) < 0.01
    plain = fraud & (random.random(n) < 0.7)
    X[plain, :3] += [2.5, -2.0, 1.5]
    X[fraud & ~plain, 2:5] += [1.0, 1.5, 1.0]
    odd = ~fraud & (random.random(n) < 0.03)  # customers who are unlike others, and honest
    X[odd, :2] += [3.0, 3.0]
    return X, np.where(fraud, "fraud", "fine")


def main() -> None:
    """Train for each measure, and show all measures of each model on other rows."""
    X, y = rows(10_000, 0)
    X_test, y_test = rows(10_000, 1)
    models = {
        "logistic regression": beeline.LogisticRegression(),
        "roc area": beeline.ROCClassifier(C=100),
        "roc area up to 1 % false": beeline.ROCClassifier(max_fpr=0.01, C=100),
        "F1": beeline.FBetaClassifier(C=1000),
        "F2": beeline.FBetaClassifier(beta=2, C=1000),
        "precision at 70": beeline.PrecisionAtK(k=70, C=3000),
        "balanced error": beeline.LinearModel("balanced_error", C=100),
    }
    judged = {
        "ROC area": beeline.losses.RocArea(),
        "to 1 %": beeline.losses.RocArea(0.01),
        "F1": beeline.losses.FBeta(),
        "F2": beeline.losses.FBeta(2),
        "p@70": beeline.losses.Precision(70),
        "balanced": beeline.losses.BalancedError(),
    }
    print(f"{'trained for':26}" + "".join(f"{name:>10}" for name in judged))
    signs, ones = np.where(y_test == "fraud", 1.0, -1.0), np.ones(len(y_test))
    for name, model in models.items():
        z = model.fit(X, y).decision_function(X_test)
        print(f"{name:26}" + "".join(f"{loss.measured(z, signs, ones):10.3f}" for loss in judged.values()))


if __name__ == "__main__":
    main()
