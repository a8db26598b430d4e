"""The model folder: written whole, read with care, opened by three libraries.

``config.json`` (format version, units, description), ``model.safetensors`` (one tensor, ``embeddings``), ``tokenizer.json``
and, for sentence-transformers, ``modules.json`` with a normalising module. Nothing in a folder is ever executed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from xswe.embedding.portable import write_portable
from xswe.embedding.static import StaticEmbedding
from xswe.errors import ModelError
from xswe.files import whole_folder
from xswe.language.units import load_units
from xswe.language.words import WordUnits

FORMAT_VERSION = 1
MODEL_TYPE = "xswe"
_MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"},
]


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def save(model: StaticEmbedding, folder: Path) -> None:
    """Write a model folder; an existing *model* folder of that name is replaced in the last moment.

    Raises:
        ModelError: there is something else of that name, which is left alone.
    """
    from safetensors.numpy import save_file

    if folder.exists() and not (folder.is_dir() and ((folder / "config.json").exists() or not any(folder.iterdir()))):
        raise ModelError(f"{folder}: exists and is no model folder; choose another name or move it away")
    units = model.units
    with whole_folder(folder) as temporary:
        units.save(temporary)
        # Word units have a file of their own; other libraries look words up through what write_portable adds.
        portable = write_portable(units, temporary) if isinstance(units, WordUnits) else {}
        tensors = {"embeddings": np.ascontiguousarray(model.matrix), **portable}
        save_file(tensors, temporary / "model.safetensors")
        config = {
            "model_type": MODEL_TYPE,
            "format_version": FORMAT_VERSION,
            "hidden_dim": model.dim,
            "vocabulary_size": len(model.matrix),
            "normalize": True,
            "max_length": None,  # model2vec: no text is cut
            "units": units.settings,
            **model.description,
        }
        _write(temporary / "config.json", config)
        _write(temporary / "modules.json", _MODULES)
        (temporary / "1_Normalize").mkdir()


def load(folder: Path) -> StaticEmbedding:
    """Load a model folder.

    Raises:
        ModelError: naming the file that is missing, damaged, too new, or does not fit the others.
    """
    config = _read_config(folder)
    matrix = _read_matrix(folder / "model.safetensors", config)
    own = {"model_type", "format_version", "hidden_dim", "vocabulary_size", "normalize", "max_length", "units"}
    return StaticEmbedding(load_units(folder), matrix, {k: v for k, v in config.items() if k not in own})


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not folder.is_dir():
        raise ModelError(f"{folder}: there is no such folder; give the folder that train wrote (…/model)")
    if not path.is_file():
        raise ModelError(f"{path}: missing; {folder} is no model folder")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        kind, version = config["model_type"], config["format_version"]
        int(config["hidden_dim"]), config["units"]["kind"], list(config["units"]["languages"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: damaged or of another library ({error!r}); fetch or train the model again") from None
    if kind != MODEL_TYPE:
        raise ModelError(f"{path}: model_type is {kind!r}, not {MODEL_TYPE!r}; this folder belongs to another library")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelError(f"{path}: format version {version} is newer than {FORMAT_VERSION}; upgrade xswe")
    return config


def _read_matrix(path: Path, config: dict[str, Any]) -> np.ndarray:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not path.is_file():
        raise ModelError(f"{path}: missing; fetch or train the model again")
    try:
        tensors = load_file(path)
    except (SafetensorError, ValueError, OSError) as error:
        raise ModelError(f"{path}: damaged ({error}); fetch or train the model again") from None
    matrix = tensors.get("embeddings")
    if matrix is None or matrix.ndim != 2 or matrix.shape[1] != config["hidden_dim"]:
        found = "no tensor 'embeddings'" if matrix is None else f"a tensor of shape {matrix.shape}"
        raise ModelError(f"{path}: {found}, config.json says (…, {config['hidden_dim']}); fetch the model again")
    if not np.isfinite(matrix).all():
        raise ModelError(f"{path}: holds values that are not finite; fetch or train the model again")
    return np.ascontiguousarray(matrix, np.float32)


def copy_model(source: Path, target: Path) -> None:
    """Copy a model folder, whole or not at all."""
    with whole_folder(target) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
