"""`solver=` in its three forms: a name, a name with options, a solver; and what each solver declares."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import beeline
from beeline import LinearModel, LinearSVC, LogisticRegression, Model, select_C
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ConvergenceWarning, ModelWarning, ParameterError
from beeline.fitting import Settings, fit
from beeline.losses import LOSSES, Hinge, Logistic, Softmax
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers import LBFGS, SOLVERS, Bundle, DualCD, Newton, Relaxation
from beeline.solvers.auto import Relay, choose_solver
from beeline.solvers.base import Status
from beeline.solvers.needs import Needs, in_words, refusal, unmet
from beeline.solvers.options import options_of
from beeline.solvers.registry import solver_settings, the_solver

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.5 * RNG.normal(size=150) > 0, 1, 0)
FORMS = [("bundle", {"variant": "bmrm"}), Bundle(variant="bmrm"), ["bundle", {"variant": "bmrm"}]]
ESTIMATORS = [
    getattr(beeline, name)
    for name in beeline.__all__
    if isinstance(getattr(beeline, name), type) and hasattr(getattr(beeline, name), "get_params")
]


def problem(loss=None, regularizer=None, intercept="free", outputs=1):
    y = np.where(Y, 1.0, -1.0) if outputs == 1 else (Y + (X[:, 1] > 1)).astype(float)
    rows = from_arrays(X)
    omega = regularizer or L2()
    return Objective.of(rows, y, np.ones(150), loss or Logistic(), omega, 1.0, intercept, n_outputs=outputs)


@pytest.mark.parametrize("solver", FORMS, ids=repr)
def test_all_forms_train_the_same_model(solver):
    one = LinearModel("hinge", solver=solver, tol=1e-3).fit(X, Y)
    by_hand = LinearModel("hinge", solver=Bundle(variant="bmrm"), tol=1e-3).fit(X, Y)
    usual = LinearModel("hinge", solver="bundle", tol=1e-3).fit(X, Y)
    assert one.report_.solver == "bundle"
    np.testing.assert_array_equal(one.coef_, by_hand.coef_)
    assert not np.array_equal(one.coef_, usual.coef_)
    assert one.results_[0].iterations != usual.results_[0].iterations


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_estimator_takes_a_solver_and_a_time_limit(kind):
    estimator = kind(solver=("lbfgs", {"history": 3}), time_limit=60.0)
    again = clone(estimator)
    assert again.get_params()["solver"] == ("lbfgs", {"history": 3})
    assert again.get_params()["time_limit"] == 60.0
    assert repr(clone(kind(solver=LBFGS(history=3))).solver) == "LBFGS(history=3)"


def test_clones_and_pickles():
    solver = DualCD(tol=1e-7, seed=3)
    model = LinearSVC(loss="hinge", solver=solver).fit(X, Y)
    assert solver._shuffled is None  # the one that was given keeps no rows
    for other in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(other.solver, DualCD)
        assert repr(other.solver) == "DualCD(tol=1e-07, seed=3)"
        np.testing.assert_array_equal(other.fit(X, Y).coef_, model.coef_)
    used = choose_solver(problem(Hinge()), solver)
    used.run(problem(Hinge()))
    assert pickle.loads(pickle.dumps(used))._shuffled is None
    relay = choose_solver(problem(Hinge()))
    assert isinstance(relay, Relay)
    assert pickle.loads(pickle.dumps(relay)).second.name == relay.second.name


def test_grid_search():
    grid = {"solver": ["newton", ("lbfgs", {"history": 2}), LBFGS(history=20)], "C": [0.1, 1.0]}
    found = GridSearchCV(LogisticRegression(), grid, cv=2).fit(X, Y)
    assert found.best_score_ > 0.7
    assert len(found.cv_results_["params"]) == 6


def test_what_a_solver_was_told_comes_first():
    o = problem()
    assert choose_solver(o, Newton(), tol=1e-2, max_passes=7, seed=5).tol == 1e-2
    told = choose_solver(o, Newton(tol=1e-9, max_passes=50), tol=1e-2, max_passes=7, seed=5)
    assert (told.tol, told.max_passes, told.seed) == (1e-9, 50, 5)
    loose, tight = (LogisticRegression(solver=solver, tol=0.1).fit(X, Y) for solver in (LBFGS(), LBFGS(tol=1e-9)))
    assert tight.results_[0].gap <= 1e-9 < loose.results_[0].gap
    with pytest.warns(ConvergenceWarning, match=r"reached its pass limit.*max_passes \(now 3\)"):
        LogisticRegression(solver=LBFGS(max_passes=3), tol=1e-12).fit(X, Y)


def test_the_shorter_time_counts():
    solver = LBFGS().with_time_limit(5.0)
    assert solver.with_time_limit(2.0).time_limit == 2.0
    assert solver.with_time_limit(9.0).time_limit == solver.with_time_limit(None).time_limit == 5.0
    assert choose_solver(problem(), solver).with_time_limit(None).time_limit == 5.0
    with pytest.warns(ModelWarning), pytest.warns(ConvergenceWarning, match="time_limit"):
        LogisticRegression(solver=LBFGS().with_time_limit(1e-9), tol=1e-14, time_limit=100.0).fit(X, Y)


def test_settings_are_recorded_as_json(tmp_path):
    solver = Bundle(max_passes=500, variant="bmrm", bounds=(np.full(5, -2.0), np.inf))
    fitted = fit(from_arrays(X), Settings(loss="hinge", solver=solver, tol=1e-3), Y)
    fitted.model.save(tmp_path / "m")
    settings = Model.load(tmp_path / "m").settings
    assert settings["solver"] == "bundle"
    assert settings["solver_options"] == {"variant": "bmrm", "bounds": [[-2.0] * 5, "inf"]}
    assert (settings["tol"], settings["max_passes"]) == (1e-3, 500)
    json.dumps(settings, allow_nan=False)
    again = the_solver((settings["solver"], settings["solver_options"]))
    result = again.with_defaults(1e-3, 500, 0).run(problem(Hinge()))
    np.testing.assert_array_equal(result.theta, solver.with_defaults(1e-3, 500, 0).run(problem(Hinge())).theta)
    plain = fit(from_arrays(X), Settings(solver="newton"), Y).model.settings
    assert plain["solver"] == "newton"
    assert "solver_options" not in plain


def test_searches_take_options():
    found = select_C(X, "hinge", Y, solver=("bundle", {"variant": "bmrm"}), folds=2, C_min=0.1, C_max=0.2)
    usual = select_C(X, "hinge", Y, solver="bundle", folds=2, C_min=0.1, C_max=0.2)
    assert [p.passes for p in found.curve] != [p.passes for p in usual.curve]
    # In lockstep nobody would ask for conjugate gradients.
    by_cg = select_C(X, "logistic", Y, solver=Newton(linear_solver="cg"), folds=2, C_min=0.1, C_max=0.2)
    lockstep = select_C(X, "logistic", Y, solver="newton", folds=2, C_min=0.1, C_max=0.2)
    assert [p.passes for p in by_cg.curve] != [p.passes for p in lockstep.curve]


@pytest.mark.parametrize(
    ("solver", "sentence"),
    [
        (
            ("bundle", {"varant": 1}),
            "the solver 'bundle' has no option 'varant'; did you mean 'variant'?",
        ),
        (("dual_cd", {"memory": 1}), "the solver 'dual_cd' has no option 'memory'; it has none"),
        (("bundle", {"variant": "x"}), "variant must be one of ocas, bmrm, line, not 'x'"),
        (("bundle", {"max_planes": 3}), "max_planes must be at least 4, not 3"),
        (("bundle", {"max_planes": 7.5}), "max_planes must be a whole number or None, not 7.5"),
        (("bundle", {"nonnegative": "yes"}), "nonnegative must be True or False, not 'yes'"),
        (("bundle", {"bounds": 3}), r"bounds must be a pair, \(lower, upper\), of numbers, not 3"),
        (("lbfgs", {"history": True}), "history must be a whole number, not True"),
        (("newton", {"linear_solver": 3}), "linear_solver must be one of auto, cholesky, cg, not 3"),
        (("adam", {}), "there is no solver 'adam'; there are auto, newton"),
        (("auto", {"history": 3}), "auto has no options, such as 'history'; name the solver"),
        (Bundle, r"give a solver, Bundle\(\), and not its class"),
        (7, "solver must be a name, a pair of a name and its options, or a solver, not 7"),
        (("bundle", "bmrm"), "solver must be a name, a pair"),
    ],
)
def test_bad_solvers_are_refused(solver, sentence):
    with pytest.raises(ParameterError, match=sentence):
        LinearModel("hinge", solver=solver).fit(X, Y)
    with pytest.raises(ParameterError, match=sentence):
        select_C(X, "hinge", Y, solver=solver)


def test_auto_in_any_form():
    assert choose_solver(problem(), ("auto", {})).name == choose_solver(problem()).name
    assert solver_settings(("auto", {})) == {"solver": "auto"}


def test_words_of_a_solver():
    assert repr(Newton()) == "Newton()"
    assert repr(Bundle(1e-3, variant="line", idle=20)) == "Bundle(tol=0.001, variant='line')"


@pytest.mark.parametrize("kind", SOLVERS.values(), ids=list(SOLVERS))
def test_what_every_solver_declares(kind):
    assert isinstance(kind.needs, Needs)
    assert is_dataclass(kind.kind_of_options)
    for its in options_of(kind.kind_of_options).values():
        assert its.metadata["text"].endswith(".")
    with pytest.raises(Exception, match="cannot assign"):
        kind().options.anything = 1
    assert all(text for _, text in in_words(kind.needs))
    assert copy.deepcopy(kind(1e-3, 9, 2)).given == {"tol": 1e-3, "max_passes": 9, "seed": 2}


def test_needs_say_what_runs_say():
    """What is declared is what `run` refuses, and what `auto` has to choose from."""
    for name, kind in SOLVERS.items():
        for loss in (Hinge(), Logistic(), LOSSES["absolute"](), Softmax()):
            for omega in (L2(), L1(), ElasticNet(0.5), L2(nonnegative=True)):
                o = problem(loss, omega, outputs=3 if isinstance(loss, Softmax) else 1)
                said = refusal(kind.needs, o)
                assert (said is None) == (unmet(kind.needs, o) is None) == kind().takes(o)
                if said is not None:
                    with pytest.raises(ParameterError, match="the solver"):
                        kind().run(o)
                    assert "{" not in said, name


def test_options_add_needs():
    o = problem(Softmax(), outputs=3)
    with pytest.raises(ParameterError, match=r"no Cholesky factor for several outputs; take linear_solver='cg'"):
        choose_solver(o, Newton(linear_solver="cholesky"))
    with pytest.raises(ParameterError, match=r"needs an L2 part in the regularizer for variant='line', unlike L1\(\)"):
        choose_solver(problem(Hinge(), L1()), ("bundle", {"variant": "line"}))


def test_other_needs_have_their_sentence():
    o = problem()
    assert refusal(Needs(intercepts=("none",)), o) == "cannot have a free intercept; it takes none"
    assert refusal(Needs(most_rows=10), o) == "can take 10 rows, not 150"
    assert refusal(Needs(most_features=3), o) is not None
    assert refusal(Needs(most_features=200), o) is None
    assert refusal(replace(Needs(), one_score=True), problem(Softmax(), outputs=3)) is not None
    assert {f.name for f in fields(Needs)} >= {"loss", "omega", "rows", "intercepts", "nonnegative", "convex"}


def test_a_relay_is_a_solver_like_others():
    """What `auto` gives can be given again, copied and pickled, with its time limit."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = np.where(X[:, 0] > 0.3, 1.0, -1.0)
    o = Objective.of(from_arrays(X), y, np.ones(300), Hinge(), L2())
    relay = choose_solver(o).with_time_limit(50.0)
    assert isinstance(relay, Relay)
    again = choose_solver(o, relay, tol=1e-3, max_passes=77, seed=3)
    assert (again.max_passes, again.time_limit) == (relay.max_passes, 50.0)  # as it was said to it
    for other in (copy.deepcopy(relay), pickle.loads(pickle.dumps(relay)), again):
        assert isinstance(other, Relay)
        assert other.time_limit == 50.0
        assert other.run(o).status is Status.CONVERGED


def test_a_whole_number_may_be_too_large():
    with pytest.raises(ParameterError, match="the solver's continuation must be at most 100, not 2000"):
        Relaxation(continuation=2000)


def test_a_name_is_a_text():
    with pytest.raises(ParameterError, match="the solver's inner must be a text, not 3"):
        Relaxation(inner=3)


def test_a_gap_that_proves_nothing_is_no_tolerance():
    """However large the tolerance is: with a gap of 1, J may be any distance above the optimum."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    o = Objective.of(from_arrays(X), np.sign(X[:, 0]), np.ones(50), Logistic(), L2(), 1.0, "free")
    result = LBFGS(tol=2.0).run(o)
    assert result.gap < 1
    assert "unknown" not in result.sentence
