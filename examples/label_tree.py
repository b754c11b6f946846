"""Classes that form a tree: `python examples/label_tree.py TRAIN TEST`, two stores of cover types."""

import sys

import beeline

# Five kinds of forest are conifers, two have leaves.
TREE = {
    "conifer": {"pine": [2, 3], "fir": [1, 6], "krummholz": [7]},
    "broadleaf": [4, 5],
}


def main(train_path: str, test_path: str) -> None:
    """Compare a classifier that knows the tree with one that does not, by how far off their mistakes are."""
    train, test = beeline.open_store(train_path), beeline.open_store(test_path)
    tree = beeline.LabelTree.from_nested(TREE)
    models = {
        "without a tree": beeline.LogisticRegression(C=0.1, multi_class="softmax"),
        "softmax over paths": beeline.HierarchicalClassifier(tree, C=0.1),
        "margin as far as off": beeline.HierarchicalClassifier(tree, loss="tree_margin", C=0.1, tol=1e-2),
    }
    distances = tree.distances(range(1, 8))
    for name, model in models.items():
        found = beeline.evaluate(model.fit(train), test)
        assert found.confusion is not None
        far = (found.confusion * distances).sum() / found.confusion.sum()
        print(f"{name:21} accuracy {found.measures['accuracy']:.3f}, mistakes are {far:.3f} edges off in the mean")

    knowing = models["softmax over paths"]
    assert isinstance(knowing, beeline.HierarchicalClassifier)
    for path, (row, *_) in zip(knowing.predict_path(test)[:3], knowing.predict_node_proba(test), strict=False):
        print(f"a conifer with a probability of {row:.3f}: {' > '.join(path)}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
