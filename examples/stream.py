"""Rows that come once: learned from as they come, judged before they are learned from, and gone on with later.

The rows of a table come in batches, as from a queue; the kinds of forest are not known before they appear.
"""

import sys
from collections.abc import Iterator

import numpy as np

import beeline

BATCH = 250


def batches(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows as they come."""
    for start in range(0, len(y), BATCH):
        yield X[start : start + BATCH], y[start : start + BATCH]


def main(train_path: str, test_path: str, model_path: str) -> None:
    train = beeline.read(train_path, label="Cover_Type")
    test = beeline.read(test_path, recipe=train.recipe)
    X, y = train.X, train.labels
    order = np.argsort(y == 7, kind="stable")  # the last kind of forest is seen late
    online = beeline.SGDClassifier()
    for part, (rows, labels) in enumerate(batches(X[order], y[order])):
        before = online.score(rows, labels) if part else 0.0
        online.partial_fit(rows, labels)
        if part % 5 == 4:
            print(f"{online.report_.n_rows:5,} rows, {len(online.classes_)} kinds; the last {before:.0%} right before")
    online.model_.save(model_path)

    # Another day, another process: the model goes on, to the same bits as if it had never been saved.
    model = beeline.fit_stream(batches(X, y), start=model_path)
    right = np.mean(model.predict(test.X) == test.labels)
    print(f"{model.report.n_rows:5,} rows, {right:.0%} of other rows right; {model.report.sentence}")
    model.save(model_path)


if __name__ == "__main__":
    main(*sys.argv[1:])
