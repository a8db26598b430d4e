"""A model in other forms: fewer dimensions or units, word2vec, ONNX, bits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from xswe.errors import ConfigError
from xswe.io.files import scratch, whole_file
from xswe.model.folder import Precision
from xswe.model.onnx_graph import write_onnx
from xswe.model.static import StaticModel
from xswe.model.word2vec import write_binary, write_text
from xswe.text.subwords import SubwordUnits

Format = Literal["folder", "word2vec", "word2vec-binary", "onnx", "bits"]


@dataclass(frozen=True)
class ExportConfig:
    """What to make of a model.

    Attributes:
        format: ``folder`` (a model folder), ``word2vec`` (text), ``word2vec-binary``, ``onnx`` or ``bits``.
        dtype: precision of the matrix: ``float32``, ``float16``, ``int8`` (a float32 scale a row); None for the model's.
        dim: keep this many dimensions, 0 for all.
        rotate: turn the vectors first, so that the first dimensions carry the most; cosines stay as they are.
        keep: keep the most frequent units, so many; 0 for all.
    """

    format: Format = "folder"
    dtype: Precision | None = None
    dim: int = 0
    rotate: bool = False
    keep: int = 0

    def __post_init__(self) -> None:
        if self.format not in get_args(Format):
            raise ConfigError(f"format={self.format}: use one of {', '.join(get_args(Format))}")
        if self.dtype not in (None, "float32") and self.format in ("word2vec", "word2vec-binary", "bits"):
            raise ConfigError(f"dtype={self.dtype}: format={self.format} has a precision of its own; leave dtype out")


def reshape(model: StaticModel, config: ExportConfig, counts: np.ndarray | None = None) -> StaticModel:
    """Return the model with the units, dimensions and precision asked for.

    Args:
        model: the model.
        config: what to make of it.
        counts: int (units,), by which the most frequent units are chosen; see :meth:`xswe.model.static.StaticModel.prune`.
    """
    dtype = config.dtype or model.dtype
    if config.keep:
        model = model.prune(config.keep, counts)
    if config.rotate:
        model = model.rotate()
    if config.dim:
        model = model.quantize("float32").truncate(config.dim)
    return model.quantize(dtype)


def export(model: StaticModel, config: ExportConfig, output: Path, counts: np.ndarray | None = None) -> Path:
    """Write a model in another form.

    Args:
        model: the model.
        config: the form.
        output: the folder or file to write, whole or not at all. Beside an ONNX graph the look-up is written, as
            ``<name>.tokenizer.json``.
        counts: see :func:`reshape`.

    Returns:
        ``output``.
    """
    if config.format == "onnx" and not isinstance(model.units, SubwordUnits):
        raise ConfigError(
            "an ONNX graph takes the ids of a tokenizer.json, which word units do not share: use format=folder"
        )
    model = reshape(model, config, counts)
    if config.format == "folder":
        model.save(output)
    elif config.format == "onnx":
        write_onnx(output, model)
        write_lookup(model, output.with_suffix(".tokenizer.json"))
    elif config.format == "bits":
        write_bits(output, model)
    else:
        write = write_text if config.format == "word2vec" else write_binary
        write(output, *vectors_by_token(model))
    return output


def vectors_by_token(model: StaticModel) -> tuple[list[str], np.ndarray]:
    """Return the units that have a vector and those vectors, float32 (n, d).

    Raises:
        ConfigError: a unit holds a blank, which the field's vector files use between values.
    """
    tokens = model.units.tokens
    kept = [i for i, token in enumerate(tokens) if token]
    if spaced := [tokens[i] for i in kept if any(character.isspace() for character in tokens[i])]:
        raise ConfigError(f"the unit {spaced[0]!r} holds a blank, which a word2vec file cannot: use format=folder or onnx")
    return [tokens[i] for i in kept], model.vectors[kept]


def write_lookup(model: StaticModel, path: Path) -> None:
    """Write the model's ``tokenizer.json`` alone."""
    if not isinstance(model.units, SubwordUnits):
        raise ConfigError(
            "an ONNX graph needs ids from a tokenizer.json, whose ids word units do not share: use format=folder"
        )
    with scratch() as folder:
        model.units.save(Path(folder))
        text = (Path(folder) / "tokenizer.json").read_bytes()
    with whole_file(path) as temporary:
        temporary.write_bytes(text)


def write_bits(path: Path, model: StaticModel) -> None:
    """Write one bit a number: ``bits``, uint8 (units, d / 8), a set bit for a value above zero, and ``scales``.

    A row is about ``scale * (2 * bit - 1)``; the scale is its mean magnitude, which among all makes the error smallest.
    """
    from safetensors.numpy import save_file

    vectors = model.vectors
    if model.dim % 8:
        raise ConfigError(f"format=bits packs eight dimensions a byte; the model has {model.dim}: choose a dim")
    tensors = {"bits": np.packbits(vectors > 0, axis=1), "scales": np.abs(vectors).mean(1).astype(np.float32)}
    with whole_file(path) as temporary:
        save_file(tensors, temporary, {"format": "xswe-bits", "dim": str(model.dim)})
