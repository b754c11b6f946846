"""Models as ONNX graphs of plain matrix operations, for any runtime.

The graph takes `X`, rows of features as they were before scaling (categories already as indicators), and gives `label`,
`scores` and, where the model has them, `probabilities`; a regression gives `value`. Sets of labels are rows of 0 and 1.
"""

from __future__ import annotations

import os
from typing import Any, Literal, get_args

import numpy as np

from beeline import __version__
from beeline._sentences import Argument
from beeline._types import AnyArray
from beeline.data.files.atomic import replacing
from beeline.exceptions import MissingDependencyError, ModelError, ParameterError
from beeline.model.exporting import unscaled
from beeline.model.model import Model

__all__ = ["Precision", "write_onnx"]

Precision = Literal["float32", "float64"]

_OPSET, _IR = 17, 8  # old enough for runtimes of several years ago
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
        The type of X and of everything computed from it. Every runtime has float32; float64 gives beeline's own digits.
    """
    if precision not in get_args(Precision):
        raise ParameterError(
            Argument("precision"), f" must be one of {', '.join(get_args(Precision))}, not {precision!r}"
        )
    if model.weights.size * np.dtype(precision).itemsize > _MOST_BYTES:
        raise ModelError("the model is larger than the 2 GB that one ONNX file can hold")
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError("ONNX export needs another package; run: pip install beeline[onnx]") from None
    graph = _Graph(onnx, model, precision).built()
    onnx.checker.check_model(graph)
    with replacing(path) as temporary:
        onnx.save_model(graph, str(temporary))


class _Graph:
    """Collects nodes; each operation returns the name of its output."""

    def __init__(self, onnx: Any, model: Model, precision: Precision) -> None:  # noqa: ANN401
        self.onnx, self.helper, self.model = onnx, onnx.helper, model
        self.type = np.dtype(precision)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
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
        kind = self.helper.np_dtype_to_tensor_dtype(self.type)
        inputs = [self.helper.make_tensor_value_info("X", kind, [None, model.n_features])]
        graph = self.helper.make_graph(self.nodes, "beeline", inputs, self.outputs, self.constants)
        return self.helper.make_model(
            graph,
            opset_imports=[self.helper.make_opsetid("", _OPSET)],
            ir_version=_IR,
            producer_name="beeline",
            producer_version=__version__,
        )

    def _scores(self) -> str:
        weights, intercepts = unscaled(self.model)
        rows = "X"
        if self.model.recipe is not None and self.model.recipe.scaling.kind == "unit-norm":
            norms = self._op("ReduceL2", rows, axes=[1])
            empty = self._op("Equal", norms, self._number(0))
            rows = self._op("Div", rows, self._op("Where", empty, self._number(1), norms))
        product = self._op("MatMul", rows, self._constant(weights.astype(self.type)))
        return self._op("Add", product, self._constant(intercepts.astype(self.type)))

    def _values(self, scores: str) -> None:
        """The values of a regression: those of one output without a dimension for it."""
        operation = {"exp": "Exp", "logistic": "Sigmoid"}.get(self.model.link, "Identity")
        if self.model.n_outputs > 1:
            self._output(operation, "value", [None, self.model.n_outputs], scores)
        else:
            self._output("Squeeze", "value", [None], self._op(operation, scores), self._whole([1]))

    def _sets(self, scores: str) -> None:
        """Which labels a row has, as 0 and 1."""
        shape: list[int | None] = [None, self.model.n_outputs]
        has = self._op("Greater", scores, self._number(0))
        self._output("Cast", "label", shape, has, to=self.onnx.TensorProto.INT64)
        self._output("Identity", "scores", shape, scores)
        if self.model.has_probabilities:
            self._output("Sigmoid", "probabilities", shape, scores)

    def _winner(self, scores: str) -> str:
        if self.model.n_outputs > 1:
            return self._op("ArgMax", scores, axis=1, keepdims=0)
        positive = self._op("Greater", scores, self._number(0))
        number = self._op("Cast", positive, to=self.onnx.TensorProto.INT64)
        return self._op("Squeeze", number, self._whole([1]))

    def _probabilities(self, scores: str, n_classes: int) -> None:
        model, shape = self.model, [None, n_classes]
        if model.link == "softmax" and model.n_outputs > 1:
            self._output("Softmax", "probabilities", shape, scores, axis=1)
            return
        if model.platt is not None:
            slopes, offsets = -model.platt.T.astype(self.type)
            scores = self._op("Add", self._op("Mul", scores, self._constant(slopes)), self._constant(offsets))
        p = self._op("Sigmoid", scores)
        if model.n_outputs == 1:
            other = self._op("Sigmoid", self._op("Neg", scores))
            self._output("Concat", "probabilities", shape, other, p, axis=1)
            return
        total = self._op("ReduceSum", p, self._whole([1]))
        share = self._op("Div", p, self._op("Max", total, self._number(float(np.finfo(self.type).tiny))))
        some = self._op("Greater", total, self._number(0))
        self._output("Where", "probabilities", shape, some, share, self._number(1 / n_classes))

    def _classes(self, classes: AnyArray) -> str:
        if classes.dtype.kind in "OU":
            name = self._name()
            texts = [str(text).encode() for text in classes]
            self.constants.append(self.helper.make_tensor(name, self.onnx.TensorProto.STRING, [len(texts)], texts))
            return name
        return self._constant(classes.astype(np.float64 if classes.dtype.kind == "f" else np.int64))

    def _output(self, kind: str, name: str, shape: list[int | None], *inputs: str, **attributes: int) -> None:
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        element = self.helper.np_dtype_to_tensor_dtype(self.type)
        if name == "label" and self.model.classes is not None:
            proto = self.onnx.TensorProto
            kind = "i" if self.model.multilabel else self.model.classes.dtype.kind
            element = {"O": proto.STRING, "U": proto.STRING, "f": proto.DOUBLE}.get(kind, proto.INT64)
        self.outputs.append(self.helper.make_tensor_value_info(name, element, shape))

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        name = self._name()
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _number(self, value: float) -> str:
        return self._constant(np.array(value, self.type))

    def _whole(self, values: list[int]) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, array: AnyArray) -> str:
        name = self._name()
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def _name(self) -> str:
        return f"t{len(self.nodes) + len(self.constants)}"
