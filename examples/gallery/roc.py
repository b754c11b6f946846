"""ROC curves.

Of all thresholds: how many tumours are found, against how many healthy samples are taken for one. Estimators are
scikit-learn's kind, so that its metrics, splits and pipelines go with them. C is found on the training rows alone.
"""

import sys
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import beeline


def main(folder: Path) -> None:
    """Train three classifiers, and draw their ROC curves on rows that they have not seen."""
    X, y = load_breast_cancer(return_X_y=True)
    malignant = y == 0
    X_train, X_test, y_train, y_test = train_test_split(X, malignant, test_size=0.5, random_state=0, stratify=malignant)

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.subplots()
    for name, classifier in {
        "logistic regression": beeline.LogisticRegression(C="auto"),
        "support vector machine": beeline.LinearSVC(C="auto", loss="hinge"),
        "sparse logistic regression": beeline.LogisticRegression(C="auto", l1_ratio=1.0),
    }.items():
        scores = make_pipeline(StandardScaler(), classifier).fit(X_train, y_train).decision_function(X_test)
        false, true, _ = roc_curve(y_test, scores)
        area = roc_auc_score(y_test, scores)
        print(f"{name:27} area {area:.4f}")
        axes.plot(false, true, label=f"{name}, area {area:.3f}")
    axes.set(xlabel="healthy, taken for a tumour", ylabel="tumours found", xlim=(-0.01, 0.5), ylim=(0.5, 1.01))
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(folder / "roc.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
