"""Levels in an order: `python examples/ordinal.py`, which makes 2,000 answers from never to always, and 1,000 more."""

import numpy as np

import beeline

LEVELS = ["never", "seldom", "sometimes", "often", "always"]


def answers(seed: int, people: int) -> tuple[np.ndarray, np.ndarray]:
    """What is known of people, and how often they say that they walk."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(people, 8))
    hidden = X @ np.linspace(1.5, -0.5, 8) + 1.5 * random.logistic(size=people)
    return X, np.array(LEVELS)[np.digitize(hidden, [-5.0, -1.0, 1.0, 4.0])]


def main() -> None:
    """Compare losses of levels with a classifier that does not know of their order, by how far off mistakes are."""
    X, y = answers(0, 2_000)
    X_new, y_new = answers(1, 1_000)
    models: dict[str, beeline.OrdinalClassifier | beeline.LogisticRegression] = {
        loss: beeline.OrdinalClassifier(loss, levels=LEVELS, C="auto", cv=3, tol=1e-3)  # type: ignore[arg-type]
        for loss in ("immediate_threshold", "all_threshold", "level_pairs")
    }
    models["softmax, no order"] = beeline.LogisticRegression(C="auto", cv=3)
    for name, model in models.items():
        predicted = model.fit(X, y).predict(X_new)
        off = [abs(LEVELS.index(one) - LEVELS.index(other)) for one, other in zip(predicted, y_new, strict=True)]
        print(f"{name:20} {np.mean(off):.3f} levels off in the mean; {model.report_.sentence}")
    known = models["immediate_threshold"]
    assert isinstance(known, beeline.OrdinalClassifier)
    print(f"thresholds {known.thresholds_.round(2).tolist()}")
    for level, part in zip(LEVELS, known.predict_proba(X_new[:1])[0], strict=True):
        print(f"the first of them: {level} with a probability of {part:.2f}")


if __name__ == "__main__":
    main()
