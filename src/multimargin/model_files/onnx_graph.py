"""A builder of ONNX graphs in double precision: constants and operators by name."""

from __future__ import annotations

from typing import Any

import numpy as np

OPSET = 17
IR_VERSION = 8  # readers refuse files of a later version
LARGEST_FILE = 2_000_000_000  # protobuf's limit, with a reserve
NEEDED = "export_onnx needs onnx, which is not installed; run pip install 'multimargin[onnx]'."


class Graph:
    """Nodes in the order of their computation; every method returns the name of its result."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(NEEDED) from error
        self.onnx: Any = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.n_bytes = 0

    def constant(self, value: Any) -> str:
        """Add numbers (floats as double) or texts."""
        array = np.asarray(value)
        name = f"c{len(self.constants)}"
        if array.dtype.kind in "UO":
            texts = [str(each).encode() for each in array.tolist()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, list(array.shape), texts)
        else:
            array = array.astype(np.float64) if array.dtype.kind == "f" else array
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.n_bytes += array.nbytes
        if self.n_bytes > LARGEST_FILE:
            raise ValueError(
                "The model has more than 2 GB of numbers, which an ONNX file cannot hold; use save_model instead."
            )
        self.constants.append(tensor)
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def add(self, a: str, value: Any) -> str:
        return self.op("Add", a, self.constant(np.asarray(value)))

    def multiply(self, a: str, value: Any) -> str:
        return self.op("Mul", a, self.constant(np.asarray(value)))

    def product(self, a: str, matrix: Any) -> str:
        return self.op("MatMul", a, self.constant(matrix))

    def columns(self, a: str, indices: Any) -> str:
        return self.op("Gather", a, self.constant(np.asarray(indices, dtype=np.int64)), axis=1)

    def column(self, a: str, index: int) -> str:
        """Return one column as a vector."""
        return self.op("Squeeze", self.columns(a, [index]), self.constant(np.array([1])))

    def as_double(self, a: str) -> str:
        return self.op("Cast", a, to=self.onnx.TensorProto.DOUBLE)

    def as_integer(self, a: str) -> str:
        return self.op("Cast", a, to=self.onnx.TensorProto.INT64)

    def sums(self, a: str, axis: int) -> str:
        return self.op("ReduceSum", a, self.constant(np.array([axis])), keepdims=1)

    def largest(self, scores: str) -> str:
        """Return the place of the largest of each row, the first of equal ones."""
        return self.op("ArgMax", scores, axis=1, keepdims=0)

    def model(self, width: int, outputs: list[tuple[str, str, Any, list[Any]]]) -> Any:
        """Return the file's contents: input X (rows, width), and outputs (name, of which result, type, shape)."""
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        named = [helper.make_node("Identity", [result], [name]) for name, result, _, _ in outputs]
        graph = helper.make_graph(
            self.nodes + named,
            "multimargin",
            [helper.make_tensor_value_info("X", double, ["rows", width])],
            [helper.make_tensor_value_info(name, kind, ["rows", *shape]) for name, _, kind, shape in outputs],
            self.constants,
        )
        opset = [helper.make_opsetid("", OPSET)]
        made = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="multimargin")
        self.onnx.checker.check_model(made)
        return made
