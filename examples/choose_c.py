"""Let beeline choose C: `python examples/choose_c.py TRAIN TEST`, two stores."""

import math
import sys

import beeline
from beeline.selection import PathPoint


def main(train_path: str, test_path: str) -> None:
    """Search for C on rows held out, then compare the model with those of other values of C."""
    train, test = beeline.open_store(train_path), beeline.open_store(test_path)

    def tell(point: PathPoint) -> None:
        print(f"  C = 2^{math.log2(point.C):<4.0f} accuracy {point.score:.3f}")

    # From a C that is surely too small up to one that is large enough; a fifth of the rows is held out.
    found = beeline.select_C(train, "squared_hinge", folds=0.2, C_min=2**-6, on_point=tell)
    print(f"{found.sentence}\n")

    # The same search inside an estimator, with five folds; it is then trained on all rows with the best C.
    chosen = beeline.LinearSVC(C="auto").fit(train)
    for name, model in {
        "C = 0.001": beeline.LinearSVC(C=0.001).fit(train),
        f"C = {chosen.C_:g}, the one found": chosen,
        "C = 1000": beeline.LinearSVC(C=1000).fit(train),
    }.items():
        print(f"{name:26} accuracy on other rows {model.score(test):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
