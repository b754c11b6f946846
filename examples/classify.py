"""Classify kinds of forest: `python examples/classify.py TRAIN TEST`, two stores."""

import sys

import numpy as np

import beeline


def main(train_path: str, test_path: str) -> None:
    """Train classifiers straight from a store, and compare them on held-out rows."""
    train, test = beeline.open_store(train_path), beeline.open_store(test_path)
    classifiers = {
        "logistic regression, softmax": beeline.LogisticRegression(C=10),
        "logistic regression, one against the rest": beeline.LogisticRegression(C=10, multi_class="ovr"),
        "logistic regression, sparse": beeline.LogisticRegression(C=1, l1_ratio=1.0),
        "support vector machine": beeline.LinearSVC(C=10, probability=True),
        "support vector machine, balanced": beeline.LinearSVC(C=10, class_weight="balanced"),
    }
    print(f"{'':42} accuracy  weights  training")
    for name, classifier in classifiers.items():
        classifier.fit(train)  # the labels are inside
        weights = np.count_nonzero(classifier.coef_)
        print(f"{name:42} {classifier.score(test):8.3f}  {weights:7d}  {classifier.report_.sentence}")

    svm = classifiers["support vector machine"]
    p = svm.predict_proba(test)
    sure = p.max(axis=1) > 0.8
    right = svm.predict(test)[sure] == test.labels[sure]
    print(f"\nWhere the support vector machine is more than 80 % sure ({sure.mean():.0%} of the rows), ", end="")
    print(f"it is right in {right.mean():.0%}.")


if __name__ == "__main__":
    main(*sys.argv[1:3])
