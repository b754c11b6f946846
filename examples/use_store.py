"""Open two stores and work with their rows: `python examples/use_store.py TRAIN TEST`."""

import sys

import numpy as np

import beeline


def main(train_path: str, test_path: str) -> None:
    """Find the mean patch of each class, then see how many held-out patches lie nearest to that of their own."""
    train, test = beeline.open_store(train_path), beeline.open_store(test_path)
    print(train)
    print(test)

    # A store is walked in blocks, so that it never has to be in memory as a whole.
    classes = np.array(train.label_statistics["distinct"]["values"])
    sums, counts = np.zeros((train.n_features, len(classes))), np.zeros(len(classes))
    for block in train.blocks(memory=1 << 20):
        member = (block.labels[:, None] == classes).astype(float)
        sums += block.transposed(member)  # Xᵀu, compiled, on all cores
        counts += member.sum(axis=0)
    means = sums / counts

    right = 0
    for block in test.blocks():
        distances = (means**2).sum(axis=0) - 2 * block.scores(means)  # ‖x − m‖² up to ‖x‖²
        right += int((classes[distances.argmin(axis=1)] == block.labels).sum())
    share, largest = right / test.n_rows, counts.max() / counts.sum()
    print(f"{right:,} of {test.n_rows:,} held-out patches ({share:.1%}) lie nearest to the mean of their own class")
    print(f"(the largest class alone holds {largest:.1%})")


if __name__ == "__main__":
    main(*sys.argv[1:3])
