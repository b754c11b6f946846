"""Open two stores and compare their rows: `python examples/use_store.py TRAIN TEST`."""

import sys

import numpy as np

import beeline


def class_means(store: beeline.Store, feature: int, classes: np.ndarray) -> np.ndarray:
    """Find the mean of one feature in each class, by one walk over the rows."""
    sums, counts = np.zeros(len(classes)), np.zeros(len(classes))
    for block in store.blocks(memory=1 << 20):  # at most 1 MB of rows at a time
        member = (block.labels[:, None] == classes).astype(float)
        sums += block.transposed(member)[feature]  # Xᵀu, compiled, on all cores
        counts += member.sum(axis=0)
    return sums / counts


def main(train_path: str, test_path: str) -> None:
    """Print how high each kind of forest grows, in the rows to learn from and in those held out."""
    train, test = beeline.open_store(train_path), beeline.open_store(test_path)
    print(train)
    print(test)
    feature = train.feature_names.index("Elevation")
    classes = np.array(train.label_statistics["distinct"]["values"])

    # The recipe knows how values were scaled, so that they can be shown in metres again.
    scaling = train.recipe.scaling
    print("\nmean elevation   train  held out")
    means = [class_means(store, feature, classes) for store in (train, test)]
    for label, *scaled in zip(classes, *means, strict=True):
        metres = [x / scaling.factor[feature] + scaling.shift[feature] for x in scaled]
        print(f"cover type {label:.0f}    {metres[0]:5.0f} m   {metres[1]:5.0f} m")


if __name__ == "__main__":
    main(*sys.argv[1:3])
