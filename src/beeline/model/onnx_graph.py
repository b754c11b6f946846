"""Models as ONNX graphs of plain matrix operations, for any runtime.

The graph of a model of a table takes its columns by their names, as they are in the table (`onnx_table.py`); any other
takes `X`, rows of features as they were before scaling. It gives `label`, `scores` and, where the model has them,
`probabilities`; a regression gives `value`. Sets of labels are rows of 0 and 1.
"""

from __future__ import annotations

import os
from typing import Any, Literal, get_args

import numpy as np

from beeline import __version__
from beeline._numbers import as_choice
from beeline._types import AnyArray, Floats
from beeline.data.files.atomic import replacing
from beeline.exceptions import MissingDependencyError, ModelError
from beeline.model.exporting import unscaled
from beeline.model.model import Model
from beeline.model.onnx_nodes import CATEGORIES_DOMAIN, OnnxNodes
from beeline.model.onnx_table import table_product

__all__ = ["Precision", "write_onnx"]

Precision = Literal["float32", "float64"]

_OPSETS, _IR = {"": 17, CATEGORIES_DOMAIN: 2}, 8  # old enough for runtimes of several years ago
_MOST_BYTES = 2_000_000_000  # what one protocol buffer can hold


def write_onnx(model: Model, path: str | os.PathLike[str], precision: Precision = "float32") -> None:
    """Write a model as an ONNX graph.

    Parameters
    ----------
    model
        The model.
    path
        The file to write.
    precision
        The type of numbers, given and computed. Every runtime has float32; float64 gives beeline's own digits.
    """
    as_choice("precision", precision, get_args(Precision))
    if model.weights.size * np.dtype(precision).itemsize > _MOST_BYTES:
        raise ModelError("the model is larger than the 2 GB that one ONNX file can hold")
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError.of_extra("ONNX export needs", "onnx") from None
    graph = _Graph(onnx, model, precision).built()
    onnx.checker.check_model(graph)
    with replacing(path) as temporary:
        onnx.save_model(graph, str(temporary))


class _Graph(OnnxNodes):
    """The graph of a model."""

    def __init__(self, onnx: Any, model: Model, precision: Precision) -> None:  # noqa: ANN401
        columns = [] if model.recipe is None or model.recipe.columns is None else model.recipe.columns
        super().__init__(onnx, np.dtype(precision), {column.name for column in columns})
        self.model = model
        self.outputs: list[Any] = []

    def built(self) -> Any:  # noqa: ANN401
        model = self.model
        scores = self._scores()
        if model.classes is None:
            self._values(scores)
        elif model.multilabel:
            self._sets(scores)
        else:
            self._output("Gather", "label", [None], self._classes(model.classes), self._winner(scores))
            self._output("Identity", "scores", [None, model.n_outputs], scores)
            if model.has_probabilities:
                self._probabilities(scores, len(model.classes))
        graph = self.helper.make_graph(self.nodes, "beeline", self.inputs, self.outputs, self.constants)
        domains = sorted({node.domain for node in self.nodes})
        return self.helper.make_model(
            graph,
            opset_imports=[self.helper.make_opsetid(domain, _OPSETS[domain]) for domain in domains],
            ir_version=_IR,
            producer_name="beeline",
            producer_version=__version__,
        )

    def _scores(self) -> str:
        if self.model.recipe is not None and self.model.recipe.columns is not None:
            product, intercepts = table_product(self, self.model)
        else:
            product, intercepts = self._product_of_rows()
        return self.op("Add", product, self.constant(intercepts.astype(self.type)))

    def _product_of_rows(self) -> tuple[str, Floats]:
        """(Xw with X as it was before scaling, what is still to be added)."""
        weights, intercepts = unscaled(self.model)
        rows = "X"
        self.add_input(rows, self.element, self.model.n_features)
        if self.model.recipe is not None and self.model.recipe.scaling.kind == "unit-norm":
            rows = self.op("Div", rows, self.divisor(self.op("ReduceL2", rows, axes=[1])))
        return self.op("MatMul", rows, self.constant(weights.astype(self.type))), intercepts

    def _values(self, scores: str) -> None:
        """The values of a regression: those of one output without a dimension for it."""
        operation = {"exp": "Exp", "logistic": "Sigmoid"}.get(self.model.link, "Identity")
        if self.model.n_outputs > 1:
            self._output(operation, "value", [None, self.model.n_outputs], scores)
        else:
            self._output("Squeeze", "value", [None], self.op(operation, scores), self.whole([1]))

    def _sets(self, scores: str) -> None:
        """Which labels a row has, as 0 and 1."""
        shape: list[int | None] = [None, self.model.n_outputs]
        has = self.op("Greater", scores, self.number(0))
        self._output("Cast", "label", shape, has, to=self.onnx.TensorProto.INT64)
        self._output("Identity", "scores", shape, scores)
        if self.model.has_probabilities:
            self._output("Sigmoid", "probabilities", shape, scores)

    def _winner(self, scores: str) -> str:
        if self.model.n_outputs > 1:
            return self.op("ArgMax", scores, axis=1, keepdims=0)
        positive = self.op("Greater", scores, self.number(0))
        number = self.op("Cast", positive, to=self.onnx.TensorProto.INT64)
        return self.op("Squeeze", number, self.whole([1]))

    def _probabilities(self, scores: str, n_classes: int) -> None:
        model, shape = self.model, [None, n_classes]
        if model.link == "softmax" and model.n_outputs > 1:
            self._output("Softmax", "probabilities", shape, scores, axis=1)
            return
        if model.link == "cumulative":
            self._level_probabilities(scores, n_classes)
            return
        if model.platt is not None:
            slopes, offsets = -model.platt.T.astype(self.type)
            scores = self.op("Add", self.op("Mul", scores, self.constant(slopes)), self.constant(offsets))
        p = self.op("Sigmoid", scores)
        if model.n_outputs == 1:
            other = self.op("Sigmoid", self.op("Neg", scores))
            self._output("Concat", "probabilities", shape, other, p, axis=1)
            return
        total = self.op("ReduceSum", p, self.whole([1]))
        share = self.op("Div", p, self.op("Max", total, self.number(float(np.finfo(self.type).tiny))))
        some = self.op("Greater", total, self.number(0))
        self._output("Where", "probabilities", shape, some, share, self.number(1 / n_classes))

    def _level_probabilities(self, scores: str, n_levels: int) -> None:
        """P(y > k−1) − P(y > k), with the sigmoids of the differences of neighbouring scores."""
        first, axis = np.arange(n_levels - 1), self.whole([1])
        lower = self.op("Slice", scores, self.whole([0]), self.whole([n_levels - 1]), axis)
        upper = self.op("Slice", scores, self.whole([1]), self.whole([n_levels]), axis)
        apart = np.zeros((n_levels - 1, n_levels))
        apart[first, first], apart[first, first + 1] = -1.0, 1.0
        falls = self.op("MatMul", self.op("Sigmoid", self.op("Sub", upper, lower)), self.constant(apart.astype(self.type)))
        found = self.op("Add", falls, self.constant(np.eye(1, n_levels).astype(self.type)))
        self._output("Max", "probabilities", [None, n_levels], found, self.number(0))

    def _classes(self, classes: AnyArray) -> str:
        if classes.dtype.kind in "OU":
            return self.texts([str(text) for text in classes])
        return self.constant(classes.astype(np.float64 if classes.dtype.kind == "f" else np.int64))

    def _output(self, kind: str, name: str, shape: list[int | None], *inputs: str, **attributes: int) -> None:
        free = self.free_name(name)
        self.nodes.append(self.helper.make_node(kind, list(inputs), [free], **attributes))
        element = self.element
        if name == "label" and self.model.classes is not None:
            proto = self.onnx.TensorProto
            kind = "i" if self.model.multilabel else self.model.classes.dtype.kind
            element = {"O": proto.STRING, "U": proto.STRING, "f": proto.DOUBLE}.get(kind, proto.INT64)
        self.outputs.append(self.helper.make_tensor_value_info(free, element, shape))
