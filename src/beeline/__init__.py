"""beeline: linear models on data of any size.

>>> import beeline
>>> data = beeline.read("train.svm")            # in memory              # doctest: +SKIP
>>> store = beeline.convert("train.csv", "train.store", label="y")       # doctest: +SKIP

Names are loaded when they are first used, so that `import beeline` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline._lazy import found_late

if TYPE_CHECKING:
    from beeline.data.convert import convert as convert
    from beeline.data.convert import open_store as open_store
    from beeline.data.convert import read as read
    from beeline.data.core.arrays import from_arrays as from_arrays
    from beeline.data.core.block import Block as Block
    from beeline.data.core.dataset import ArrayDataset as ArrayDataset
    from beeline.data.core.dataset import Dataset as Dataset
    from beeline.data.core.labels import LabelSets as LabelSets
    from beeline.data.options import ReadOptions as ReadOptions
    from beeline.data.recipe.recipe import Recipe as Recipe
    from beeline.data.store import Store as Store
    from beeline.estimators import CostSensitiveClassifier as CostSensitiveClassifier
    from beeline.estimators import ElasticNet as ElasticNet
    from beeline.estimators import FBetaClassifier as FBetaClassifier
    from beeline.estimators import GammaRegressor as GammaRegressor
    from beeline.estimators import HierarchicalClassifier as HierarchicalClassifier
    from beeline.estimators import HuberRegressor as HuberRegressor
    from beeline.estimators import Lasso as Lasso
    from beeline.estimators import LinearModel as LinearModel
    from beeline.estimators import LinearRanker as LinearRanker
    from beeline.estimators import LinearSVC as LinearSVC
    from beeline.estimators import LinearSVR as LinearSVR
    from beeline.estimators import LogisticRegression as LogisticRegression
    from beeline.estimators import MultiTaskRegressor as MultiTaskRegressor
    from beeline.estimators import NoveltyDetector as NoveltyDetector
    from beeline.estimators import OrdinalClassifier as OrdinalClassifier
    from beeline.estimators import PoissonRegressor as PoissonRegressor
    from beeline.estimators import PrecisionAtK as PrecisionAtK
    from beeline.estimators import QuantileRegressor as QuantileRegressor
    from beeline.estimators import Ridge as Ridge
    from beeline.estimators import RidgeClassifier as RidgeClassifier
    from beeline.estimators import ROCClassifier as ROCClassifier
    from beeline.estimators import SGDClassifier as SGDClassifier
    from beeline.estimators import SGDRegressor as SGDRegressor
    from beeline.estimators import TweedieRegressor as TweedieRegressor
    from beeline.estimators.trusted import trusted_types as trusted_types
    from beeline.evaluation import Evaluation as Evaluation
    from beeline.evaluation import evaluate as evaluate
    from beeline.fitting import select_C as select_C
    from beeline.fitting.indexing import build_index as build_index
    from beeline.fitting.stream import fit_stream as fit_stream
    from beeline.kernels import num_threads as num_threads
    from beeline.kernels import set_num_threads as set_num_threads
    from beeline.losses.label_tree import LabelTree as LabelTree
    from beeline.model import Model as Model
    from beeline.selection import Selecting as Selecting
    from beeline.selection import Selection as Selection
    from beeline.selection.display import SelectionDisplay as SelectionDisplay
    from beeline.solvers.convergence import plot_convergence as plot_convergence

__version__ = "0.1.0"

_HOMES = {
    "ArrayDataset": "beeline.data.core.dataset",
    "Block": "beeline.data.core.block",
    "CostSensitiveClassifier": "beeline.estimators",
    "Dataset": "beeline.data.core.dataset",
    "ElasticNet": "beeline.estimators",
    "Evaluation": "beeline.evaluation",
    "FBetaClassifier": "beeline.estimators",
    "GammaRegressor": "beeline.estimators",
    "HierarchicalClassifier": "beeline.estimators",
    "HuberRegressor": "beeline.estimators",
    "LabelSets": "beeline.data.core.labels",
    "LabelTree": "beeline.losses.label_tree",
    "Lasso": "beeline.estimators",
    "LinearModel": "beeline.estimators",
    "LinearRanker": "beeline.estimators",
    "LinearSVC": "beeline.estimators",
    "LinearSVR": "beeline.estimators",
    "LogisticRegression": "beeline.estimators",
    "Model": "beeline.model",
    "MultiTaskRegressor": "beeline.estimators",
    "NoveltyDetector": "beeline.estimators",
    "OrdinalClassifier": "beeline.estimators",
    "PoissonRegressor": "beeline.estimators",
    "PrecisionAtK": "beeline.estimators",
    "QuantileRegressor": "beeline.estimators",
    "ROCClassifier": "beeline.estimators",
    "ReadOptions": "beeline.data.options",
    "Recipe": "beeline.data.recipe.recipe",
    "Ridge": "beeline.estimators",
    "RidgeClassifier": "beeline.estimators",
    "SGDClassifier": "beeline.estimators",
    "SGDRegressor": "beeline.estimators",
    "Selecting": "beeline.selection",
    "Selection": "beeline.selection",
    "SelectionDisplay": "beeline.selection.display",
    "Store": "beeline.data.store",
    "TweedieRegressor": "beeline.estimators",
    "build_index": "beeline.fitting.indexing",
    "convert": "beeline.data.convert",
    "evaluate": "beeline.evaluation",
    "fit_stream": "beeline.fitting.stream",
    "from_arrays": "beeline.data.core.arrays",
    "num_threads": "beeline.kernels",
    "open_store": "beeline.data.convert",
    "plot_convergence": "beeline.solvers.convergence",
    "read": "beeline.data.convert",
    "select_C": "beeline.fitting",
    "set_num_threads": "beeline.kernels",
    "trusted_types": "beeline.estimators.trusted",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604

__getattr__ = found_late(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
