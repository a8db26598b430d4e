"""A model's matrix as an ONNX graph: ids and offsets in, unit vectors out.

    session.run(["vectors"], {"ids": bags.ids.astype("int64"), "offsets": bags.offsets})

``ids`` are the units of all texts one after the other (int64), ``offsets`` (int64, texts + 1) where each text's begin and
where the last one's end: the flat form that every look-up of the library gives. The look-up itself stays outside: the
``tokenizer.json`` beside the graph is read by the tokenizers library in Python, JavaScript and Rust alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import DependencyError
from xswe.io.files import whole_file
from xswe.model.static import StaticModel

_OPSET = 18  # the first whose scatter operators add
_TINY = float(np.finfo(np.float32).tiny)


def build_graph(model: StaticModel) -> Any:
    """Build the graph.

    A text's vector is the sum of its units' rows divided by its norm (the mean's division cancels). Each unit's text is
    found by marking where texts begin and summing the marks; rows are then added into their texts' vectors.

    Args:
        model: of any precision; float16 and int8 rows stay so in the file and are widened after they are gathered.

    Returns:
        An ``onnx.ModelProto``.

    Raises:
        DependencyError: onnx is not installed.
    """
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise DependencyError("onnx", "onnx", "exporting to ONNX") from None
    node = helper.make_node
    constants = {
        "matrix": np.ascontiguousarray(model.matrix),
        "width": np.array([model.dim], np.int64),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "last": np.array([-1], np.int64),
        "axis": np.array(0, np.int64),
        "tiny": np.array(_TINY, np.float32),
    }
    nodes = [
        # Which text does each unit belong to? marks[t] = how many texts begin at t; their running sum tells.
        node("Slice", ["offsets", "zero", "last"], ["begins"]),
        node("Shape", ["begins"], ["texts"]),
        node("Shape", ["ids"], ["units"]),
        node("Add", ["units", "one"], ["places"]),
        node("ConstantOfShape", ["places"], ["unmarked"], value=helper.make_tensor("v0", TensorProto.INT64, [1], [0])),
        node("ConstantOfShape", ["texts"], ["ones"], value=helper.make_tensor("v1", TensorProto.INT64, [1], [1])),
        node("ScatterElements", ["unmarked", "begins", "ones"], ["marks"], axis=0, reduction="add"),
        node("CumSum", ["marks", "axis"], ["running"]),
        node("Sub", ["running", "one"], ["text_of_place"]),
        node("Slice", ["text_of_place", "zero", "last"], ["text_of_unit"]),
        node("Unsqueeze", ["text_of_unit", "last"], ["targets"]),
        # Gather, widen, add up, divide by the norm.
        node("Gather", ["matrix", "ids"], ["kept"], axis=0),
        node("Cast", ["kept"], ["wide"], to=TensorProto.FLOAT),
        node("Concat", ["texts", "width"], ["shape"], axis=0),
        node("ConstantOfShape", ["shape"], ["empty"], value=helper.make_tensor("v2", TensorProto.FLOAT, [1], [0.0])),
        node("ScatterND", ["empty", "targets", "rows"], ["sums"], reduction="add"),
        node("ReduceL2", ["sums", "last"], ["norms"], keepdims=1),
        node("Max", ["norms", "tiny"], ["divisors"]),
        node("Div", ["sums", "divisors"], ["vectors"]),
    ]
    if model.scales is None:
        nodes.insert(13, node("Identity", ["wide"], ["rows"]))
    else:
        constants["scales"] = np.ascontiguousarray(model.scales[:, None])
        nodes[13:13] = [node("Gather", ["scales", "ids"], ["factors"], axis=0), node("Mul", ["wide", "factors"], ["rows"])]
    graph = helper.make_graph(
        nodes,
        "xswe",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["units"]),
            helper.make_tensor_value_info("offsets", TensorProto.INT64, ["texts_and_one"]),
        ],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", model.dim])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="xswe", ir_version=9)
    onnx.checker.check_model(built)
    return built


def write_onnx(path: Path, model: StaticModel) -> None:
    """Write the graph, whole or not at all."""
    built = build_graph(model)
    with whole_file(path) as temporary:
        temporary.write_bytes(built.SerializeToString())
