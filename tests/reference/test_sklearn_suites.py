"""scikit-learn's own tests of its linear models, with beeline's estimators in their place.

The tests are taken from the installed scikit-learn, whichever version that is. `sklearn_adapters` translates parameters
and attributes; `sklearn_left_out` lists what beeline's estimators do not pass, with reasons. Tests that train none of
beeline's estimators are skipped.
"""

import functools
import importlib
import sys
from fnmatch import fnmatchcase
from inspect import isfunction

import pytest
import sklearn_adapters
from sklearn_left_out import AT_THE_LAST_DIGIT, LEFT_OUT

SUITES = {
    "TestLogistic": "sklearn.linear_model.tests.test_logistic",
    "TestCoordinateDescent": "sklearn.linear_model.tests.test_coordinate_descent",
    "TestQuantile": "sklearn.linear_model.tests.test_quantile",
    "TestHuber": "sklearn.linear_model.tests.test_huber",
    "TestGlm": "sklearn.linear_model._glm.tests.test_glm",
    "TestSvm": "sklearn.svm.tests.test_svm",
}
# Warnings that their tests do not expect pass. Training that did not converge is a failure unless they allow for it.
WARNINGS = [pytest.mark.filterwarnings(f).mark for f in ("ignore", "error::sklearn_adapters.NotConverged")]

pytestmark = pytest.mark.slow


@pytest.fixture
def global_random_seed():
    """The seed that scikit-learn's own fixture of this name has, unless told otherwise."""
    return 42


class Suite:
    """Base of the suites: a test that is left out must fail."""

    @pytest.fixture(autouse=True)
    def _expectation(self, request):
        for table in (LEFT_OUT, AT_THE_LAST_DIGIT):
            for reason, entries in table.get(type(self).__name__, {}).items():
                if any(matches(entry, request.node.name) for entry in entries):
                    request.applymarker(pytest.mark.xfail(reason=reason, strict=table is LEFT_OUT))


def matches(entry, test):
    """Whether an entry of the tables speaks of a test: of the same name, and parameters that its pattern fits."""
    (name, _, pattern), (other, _, parameters) = entry.partition("["), test.partition("[")
    return name == other and (not pattern or fnmatchcase(parameters.removesuffix("]"), pattern.removesuffix("]")))


def with_our_estimators(function):
    """The same test, skipped when it turns out to train none of beeline's estimators."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        before = sklearn_adapters.trainings
        with sklearn_adapters.adapters_in_place():
            function(*args, **kwargs)
        if sklearn_adapters.trainings == before:
            pytest.skip("trains none of beeline's estimators")

    run.pytestmark = WARNINGS + [listed(mark) for mark in getattr(function, "pytestmark", [])]  # the last one counts
    return run


def listed(mark):
    """The mark, with a list of parameters where it has a generator, which pytest no longer takes."""
    if mark.name != "parametrize":
        return mark
    names, values, *rest = mark.args
    return pytest.mark.parametrize(names, list(values), *rest, **mark.kwargs).mark


def load(name):
    """A module of scikit-learn's tests, loaded with the adapters in place; None where it is not installed."""
    kept = sys.modules.pop(name, None)
    try:
        with sklearn_adapters.adapters_in_place():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None
    finally:
        sys.modules.pop(name, None)
        if kept is not None:
            sys.modules[name] = kept


def suite_of(name, module):
    """A class of the tests of a module."""
    if module is None:
        missing = {"test_suite": lambda self: pytest.skip("the installed scikit-learn comes without these tests")}
        return type(name, (Suite,), missing)
    tests = {key: value for key, value in vars(module).items() if isfunction(value) and key.startswith("test_")}
    return type(name, (Suite,), {key: staticmethod(with_our_estimators(test)) for key, test in tests.items()})


for class_name, module_name in SUITES.items():
    theirs = load(module_name)
    globals()[class_name] = suite_of(class_name, theirs)
    for key, value in vars(theirs).items() if theirs else ():
        if type(value).__name__ == "FixtureFunctionDefinition":
            globals()[key] = value


def test_every_entry_speaks_of_a_test():
    known = {name: vars(globals()[name]) for name in SUITES}
    stray = [
        f"{suite}::{entry}"
        for table in (LEFT_OUT, AT_THE_LAST_DIGIT)
        for suite, reasons in table.items()
        for entries in reasons.values()
        for entry in entries
        if "test_suite" not in known[suite] and entry.partition("[")[0] not in known[suite]
    ]
    if stray:
        pytest.skip(f"the installed scikit-learn has no such tests any more: {', '.join(stray)}")
