"""The nodes, constants and inputs of an ONNX graph, collected one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from beeline._types import AnyArray

__all__ = ["CATEGORIES_DOMAIN", "OnnxNodes"]

CATEGORIES_DOMAIN = "ai.onnx.ml"  # the operators that read texts


class OnnxNodes:
    """Collects nodes; each operation returns the name of its output.

    Parameters
    ----------
    onnx
        The package.
    precision
        The type of numbers.
    taken
        Names that are not ours to give.
    """

    def __init__(self, onnx: Any, precision: np.dtype[Any], taken: set[str]) -> None:  # noqa: ANN401
        self.onnx, self.helper, self.type = onnx, onnx.helper, precision
        self.element = self.helper.np_dtype_to_tensor_dtype(precision)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self._taken = taken

    def add_input(self, name: str, element: int, width: int) -> None:
        """An input of so many entries a row."""
        self.inputs.append(self.helper.make_tensor_value_info(name, element, [None, width]))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """An operation; `domain` says whose it is, where it is not ONNX's own."""
        name = self._new_name()
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def divisor(self, numbers: str) -> str:
        """The numbers, 1 instead of 0."""
        return self.op("Where", self.op("Equal", numbers, self.number(0)), self.number(1), numbers)

    def number(self, value: float) -> str:
        """A single number."""
        return self.constant(np.array(value, self.type))

    def whole(self, values: list[int]) -> str:
        """Whole numbers."""
        return self.constant(np.array(values, np.int64))

    def constant(self, array: AnyArray) -> str:
        """Numbers of any shape."""
        name = self._new_name()
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def texts(self, values: list[str]) -> str:
        """Texts."""
        name, found = self._new_name(), [text.encode() for text in values]
        self.constants.append(self.helper.make_tensor(name, self.onnx.TensorProto.STRING, [len(found)], found))
        return name

    def free_name(self, name: str) -> str:
        """The name, with underscores behind it where it is taken."""
        while name in self._taken:
            name += "_"
        return name

    def _new_name(self) -> str:
        return self.free_name(f"t{len(self.nodes) + len(self.constants)}")
