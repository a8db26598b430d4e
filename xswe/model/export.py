"""Export of a model: fewer dimensions or units, word2vec, ONNX, bits.

The ONNX graph of a model's matrix takes ids and offsets, and returns unit vectors:

    session.run(["vectors"], {"ids": bags.ids.astype("int64"), "offsets": bags.offsets})

``ids`` are the units of all texts one after the other (int64), ``offsets`` (int64, texts + 1) where each text begins and
the last one ends, the form in which this library looks up texts. The look-up itself is not in the graph: the
``tokenizer.json`` beside it is read by the tokenizers library in Python, JavaScript and Rust alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from xswe.bitext.texts import TextSource
from xswe.errors import ConfigError, needs
from xswe.io.arguments import check_model
from xswe.io.files import check_folder, check_output, save_tensors, scratch, whole_file
from xswe.io.settings import changed, check_choice, check_least, for_all
from xswe.model.ensemble import load_single, locate
from xswe.model.precision import Precision
from xswe.model.static import StaticModel
from xswe.model.word_vectors import write_binary, write_text
from xswe.text.subwords import SubwordUnits

if TYPE_CHECKING:
    from xswe.settings import ExportSettings

_OPSET = 18  # the first with scatter operators that add
_TINY = float(np.finfo(np.float32).tiny)


def build_graph(model: StaticModel) -> Any:
    """Build the graph, an ``onnx.ModelProto``; float16 and int8 rows are stored as such, and widened when gathered.

    A text's vector is the sum of its units' rows divided by its norm (the mean's division cancels out). The text of each
    unit is found by marking where texts begin and summing the marks; rows are then added to their texts' vectors.
    DependencyError: onnx is not installed.
    """
    with needs("onnx", "onnx", "exporting to ONNX"):
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    nodes, constants = _nodes(model)
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


def _nodes(model: StaticModel) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Return the operations of the graph in order, and its constant arrays."""
    from onnx import TensorProto, helper

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
        # Which text does each unit belong to? The running sum of marks, where marks[t] is how many texts begin at t.
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
    return nodes, constants


def write_onnx(path: Path, model: StaticModel) -> None:
    """Write the graph atomically."""
    built = build_graph(model)
    with whole_file(path) as temporary:
        temporary.write_bytes(built.SerializeToString())


Format = Literal["folder", "word2vec", "word2vec-binary", "onnx", "bits"]


@dataclass(frozen=True)
class ExportConfig:
    """Settings of an export.

    Attributes:
        format: ``folder`` (a model folder), ``word2vec`` (text), ``word2vec-binary``, ``onnx`` or ``bits``.
        dtype: precision of the matrix: ``float32``, ``float16``, ``int8`` (a float32 scale per row); null for the model's.
        dim: keep this many dimensions, 0 for all.
        rotate: first rotate the vectors so that the first dimensions hold the most variance; cosines do not change.
        keep: keep this many units, the most frequent ones; 0 for all.
        shared: let units share 256 rows in each part of ``shared`` dimensions, see ``StaticModel.share_rows``; 0 for none.
    """

    format: Format = "folder"
    dtype: Precision | None = None
    dim: int = 0
    rotate: bool = False
    keep: int = 0
    shared: int = 0

    def __post_init__(self) -> None:
        check_choice("format", self.format, Format)
        check_least(self, dim=0, keep=0, shared=0)
        if self.dtype not in (None, "float32") and self.format in ("word2vec", "word2vec-binary", "bits"):
            raise ConfigError(f"dtype={self.dtype}: format={self.format} has a precision of its own; leave dtype out")
        if self.shared and (self.format != "folder" or self.dtype not in (None, "int8")):
            raise ConfigError(f"shared={self.shared}: rows are shared in an int8 folder; leave format and dtype out")


def reshape(model: StaticModel, config: ExportConfig, counts: np.ndarray | None = None) -> StaticModel:
    """Return the model with the requested units, dimensions and precision; ``counts`` as for ``StaticModel.prune``."""
    dtype = config.dtype or model.dtype
    if config.keep:
        model = model.prune(config.keep, counts)
    if config.rotate:
        model = model.rotate()
    if config.dim:
        model = model.quantize("float32").truncate(config.dim)
    if config.shared:
        return model.share_rows(config.shared)
    return model if config.dtype is None and model.dtype == dtype else model.quantize(dtype)


def export(model: StaticModel, config: ExportConfig, output: Path, counts: np.ndarray | None = None) -> Path:
    """Write a model in another form to a folder or file, atomically, and return its path.

    The look-up of an ONNX graph is written beside it, as ``<name>.tokenizer.json``. ``counts`` as for
    ``StaticModel.prune``.
    """
    if config.format == "onnx" and not isinstance(model.units, SubwordUnits):
        raise ConfigError(
            "an ONNX graph takes the ids of a tokenizer.json, which word units do not share: use format=folder"
        )
    if config.format != "folder" and model.bigrams is not None:
        raise ConfigError(
            f"format={config.format} cannot hold rows of bigrams, which this model has: use format=folder, or train a "
            "model with refine.bigrams=0"
        )
    check_folder(output) if config.format == "folder" or str(output) == "-" else check_output(output)
    model = reshape(model, config, counts)
    _WRITERS[config.format](output, model)
    return output


def _write_graph(output: Path, model: StaticModel) -> None:
    write_onnx(output, model)
    write_lookup(model, output.with_suffix(".tokenizer.json"))


def vectors_by_token(model: StaticModel) -> tuple[list[str], np.ndarray]:
    """Return the units that have a vector, and their vectors, float32 (n, d).

    ConfigError: a unit contains a blank, which separates values in files of vectors.
    """
    tokens = model.units.tokens
    kept = [i for i, token in enumerate(tokens) if token]
    if spaced := [tokens[i] for i in kept if any(character.isspace() for character in tokens[i])]:
        raise ConfigError(f"the unit {spaced[0]!r} has a blank, impossible in a word2vec file: use format=folder or onnx")
    return [tokens[i] for i in kept], model.vectors[kept]


def write_lookup(model: StaticModel, path: Path) -> None:
    """Write only the ``tokenizer.json`` of a model with sub-word units."""
    with scratch() as folder:
        model.units.save(Path(folder))
        text = (Path(folder) / "tokenizer.json").read_bytes()
    with whole_file(path) as temporary:
        temporary.write_bytes(text)


def write_bits(path: Path, model: StaticModel) -> None:
    """Write one bit per number: ``bits``, uint8 (units, d / 8), a set bit for a value above zero, and ``scales``.

    A row is about ``scale * (2 * bit - 1)``; its mean magnitude is the scale with the smallest squared error.
    """
    vectors = model.vectors
    if model.dim % 8:
        raise ConfigError(f"format=bits packs eight dimensions a byte; the model has {model.dim}: choose a dim")
    tensors = {"bits": np.packbits(vectors > 0, axis=1), "scales": np.abs(vectors).mean(1).astype(np.float32)}
    save_tensors(path, tensors, {"format": "xswe-bits", "dim": str(model.dim)})


_WRITERS: dict[str, Callable[[Path, StaticModel], None]] = for_all(
    Format,
    {
        "folder": lambda output, model: model.save(output),
        "word2vec": lambda output, model: write_text(output, *vectors_by_token(model)),
        "word2vec-binary": lambda output, model: write_binary(output, *vectors_by_token(model)),
        "onnx": _write_graph,
        "bits": write_bits,
    },
)


@dataclass(frozen=True)
class Exported:
    """The result of an export: the folder or file, and its size in bytes."""

    path: Path
    size: int

    def __str__(self) -> str:
        return f"{self.size:,} bytes: {self.path}"


def export_model(
    model: StaticModel | str | Path,
    output: str | Path,
    *,
    counts: str | Path | np.ndarray | None = None,
    config: ExportConfig | None = None,
    **settings: Unpack[ExportSettings],
) -> Exported:
    """Write a model in another form: smaller, as word vectors, or as a graph.

    Args:
        model: a single model, or its name; an ensemble is exported part by part.
        output: folder or file to write; it appears whole or not at all. The look-up of an ONNX graph is written beside
            it, as ``<name>.tokenizer.json``.
        counts: how often each unit occurs, or a text in which to count them, for ``keep``; null for the tokenizer's own
            scores.
        config: what to write; see :class:`ExportConfig`.
        settings: single fields of it: ``format``, ``dtype``, ``dim``, ``keep``, …

    Raises:
        ConfigError: a setting is unknown or impossible, or the output exists.
        InputError: the text is missing or damaged.

    Example:
        >>> import pathlib, tempfile, xswe
        >>> small = xswe.export(xswe.load("mini"), pathlib.Path(tempfile.mkdtemp()) / "small", dim=64, dtype="int8")
        >>> xswe.load(small.path).dim
        64
    """
    config = changed(config or ExportConfig(), settings, "export")
    if counts is not None and not config.keep:
        raise ConfigError("counts is the text by which units are kept: say how many, keep=8000")
    if isinstance(model, (str, Path)):
        model = load_single(locate(model))
    check_model(model, "export(model, output)")
    if isinstance(counts, (str, Path)):
        counts = model.count_units(TextSource(str(counts), split=False))
    path = export(model, config, Path(output), counts)
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    return Exported(path, sum(file.stat().st_size for file in files))
