"""The model folder on disk, which three libraries can open.

``config.json`` (format version, units, precision, description), ``model.safetensors`` (``embeddings``: float32,
float16, or int8 with one factor per row in ``weights``), ``tokenizer.json`` and, for sentence-transformers,
``modules.json`` with a normalising module. ``counts.safetensors``, if known, has how often each unit occurred in each
language (``counts``: unsigned integers, a row for each language in the order of ``config.json``), and how the texts of
the language write it (``forms``: zlib-compressed lines of text, one per unit, one language after the other).
model2vec and sentence-transformers multiply rows by ``weights`` too, so an int8 folder means the same to all three. Word
models have their look-up in ``words.json`` and ``backoff.json``, and their factors in ``scales``; their
``tokenizer.json``, ``mapping`` and ``weights`` are for the other libraries, see :mod:`xswe.model.portable`.
If units share rows, ``codes.safetensors``, with the tensors of :func:`pack`, replaces ``model.safetensors``: other
libraries then find no file of that name, rather than vectors that mean something else. If bigrams have rows,
``bigrams.safetensors`` replaces it: in ``embeddings``, their rows come after those of the units, and ``bigrams``, uint32
(bigrams, 2), has the units of each.
Nothing in a folder is ever executed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.errors import ConfigError, ModelError
from xswe.io.files import read_json, save_tensors, whole_folder, write_json
from xswe.io.ragged import Texts
from xswe.model.bigrams import Bigrams
from xswe.model.counts import check_counts, narrow_counts
from xswe.model.portable import write_portable
from xswe.model.precision import is_finite, pack, unpack
from xswe.text.languages import check_languages
from xswe.text.subwords import SubwordUnits
from xswe.text.units import Units
from xswe.text.words import WordUnits

FORMAT_VERSION = 3  # of folders with bigrams; 2 of those with shared rows; 1 of all others, which older versions can read
MODEL_TYPE = "xswe"
_DTYPES = {"F32": "<f4", "F16": "<f2", "I8": "|i1", "U8": "|u1", "U16": "<u2", "U32": "<u4"}
_MAX_FORM_BYTES = 500  # on average over all forms
_COUNTS, _CODES, _BIGRAMS = "counts.safetensors", "codes.safetensors", "bigrams.safetensors"
# Keys of config.json about the folder itself; all others are the model's description.
_FOLDER_KEYS = {"model_type", "format_version", "hidden_dim", "vocabulary_size", "normalize", "max_length"}
_FOLDER_KEYS |= {"embedding_dtype", "units", "shared", "bigrams"}
_MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"},
]


class Contents(NamedTuple):
    """The contents of a model folder, as plain data."""

    units: Units  # the function from text to unit ids
    matrix: np.ndarray  # (rows, d) float32, float16 or int8: rows of the units, then of the bigrams
    description: dict[str, Any]  # the other entries of ``config.json``
    scales: np.ndarray | None  # float32 (rows,), the factor of each row of an int8 matrix; None for the others
    # unsigned integers (languages, units), how often each unit occurred in each language; None if not known
    counts: np.ndarray | None = None
    shared: int = 0  # dimensions of a part of an int8 matrix in which units share rows; 0 if they do not
    forms: tuple[Texts, ...] | None = None  # how the texts of each language write each unit; None if not known
    bigrams: Bigrams | None = None  # the pairs of adjacent units that have rows; None if there are none


def load_units(folder: Path) -> Units:
    """Load the units of a model folder; raise ModelError if ``config.json`` names no known kind of units."""
    kind = read_json(folder / "config.json").get("units", {}).get("kind")
    if kind == "words":
        return WordUnits.load(folder)
    if kind in ("teacher", "subwords"):
        return SubwordUnits.load(folder)
    raise ModelError(
        f"{folder / 'config.json'}: units.kind is {kind!r}; this version knows words, teacher and subwords; upgrade xswe"
    )


def save(contents: Contents, folder: Path) -> None:
    """Write a model folder; an existing *model* folder of that name is replaced last.

    ModelError: the folder exists and is something else; it is left alone.
    """
    if folder.exists() and not (folder.is_dir() and ((folder / "config.json").exists() or not any(folder.iterdir()))):
        raise ModelError(f"{folder}: exists and is no model folder; choose another name or move it away")
    units, matrix, description, scales, counts, shared, forms, bigrams = contents
    with whole_folder(folder) as temporary:
        units.save(temporary)
        if shared and scales is not None:
            save_tensors(temporary / _CODES, pack(matrix, float(scales.max(initial=0.0)), shared))
        elif bigrams is not None:
            factors = {} if scales is None else {_factors(units.kind): scales}
            save_tensors(temporary / _BIGRAMS, {"embeddings": matrix, "bigrams": bigrams.pairs, **factors})
        else:
            tensors = {"embeddings": matrix}
            if isinstance(units, WordUnits):  # with a look-up file of their own; tokenizer.json is for other libraries
                tensors |= write_portable(units, temporary, scales)
            elif scales is not None:
                tensors["weights"] = scales
            save_tensors(temporary / "model.safetensors", tensors)
        known = {} if counts is None else {"counts": narrow_counts(counts)}
        if known := known if forms is None else known | _packed_forms(forms):
            save_tensors(temporary / _COUNTS, known)
        config = {
            "model_type": MODEL_TYPE,
            "format_version": 3 if bigrams is not None else 2 if shared else 1,
            "hidden_dim": int(matrix.shape[1]),
            "vocabulary_size": len(units),
            "normalize": True,
            "max_length": None,  # for model2vec: texts are not truncated
            "embedding_dtype": matrix.dtype.name,
            "units": units.settings,
            **({"shared": shared} if shared else {}),
            **({} if bigrams is None else {"bigrams": len(bigrams)}),
            **description,
        }
        write_json(temporary / "config.json", config)
        write_json(temporary / "modules.json", _MODULES)
        (temporary / "1_Normalize").mkdir()


def _factors(kind: str) -> str:
    """Return the name of the tensor with the factors of int8 rows; those of words must not be read by other libraries."""
    return "scales" if kind == "words" else "weights"


def matrix_file(folder: Path) -> Path:
    """Return the path of a model's matrix, whether it exists or not."""
    return next((path for name in (_CODES, _BIGRAMS) if (path := folder / name).is_file()), folder / "model.safetensors")


def load(folder: Path) -> Contents:
    """Read a model folder; ModelError: a file, which it names, is missing, damaged, too new, or does not fit the others."""
    config = _read_config(folder)
    shared = _read_shared(folder, config)
    path = folder / (_BIGRAMS if config.get("bigrams") else "model.safetensors")
    matrix, scales = shared or _read_matrix(path, config)
    try:
        units = load_units(folder)
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelError(f"{folder / 'config.json'}: its units cannot be read ({error}); fetch the model again") from None
    bigrams = _read_bigrams(path, len(units), config["bigrams"]) if path.name == _BIGRAMS else None
    rows = len(matrix) - len(bigrams or ())
    if len(units) != rows:
        name = "words.json" if units.kind == "words" else "tokenizer.json"
        raise ModelError(f"{folder / name}: {len(units)} units for {rows} vectors; fetch the model again")
    counts, forms = _read_counts(folder / _COUNTS, len(config["units"]["languages"]), len(units))
    description = {k: v for k, v in config.items() if k not in _FOLDER_KEYS}
    return Contents(units, matrix, description, scales, counts, config["shared"] if shared else 0, forms, bigrams)


def _read_bigrams(path: Path, units: int, stated: Any) -> Bigrams:
    """Read the bigrams."""
    pairs = _read_tensors(path, ("bigrams",)).get("bigrams", np.zeros(0))
    try:
        if pairs.shape[:1] != (stated,):
            raise ModelError(f"bigrams of shape {pairs.shape}, config.json says {stated!r}")
        return Bigrams(pairs, units)
    except ModelError as error:
        raise ModelError(f"{path}: {error}; fetch or train the model again") from None


def _read_counts(path: Path, languages: int, units: int) -> tuple[np.ndarray | None, tuple[Texts, ...] | None]:
    """Read the units' counts in each language, and their forms; None for what a folder lacks."""
    if not path.is_file():
        return None, None
    found = _read_tensors(path, ("counts", "forms"))
    counts, packed = found.get("counts"), found.get("forms")
    try:
        if not found:
            raise ModelError("holds no tensor 'counts'")
        if counts is not None:
            check_counts(counts, languages, units)
        return counts, None if packed is None else _unpacked_forms(packed, languages, units)
    except ModelError as error:
        raise ModelError(f"{path}: {error}; fetch or train the model again, or remove the file") from None


class _ReadForms(tuple[Texts, ...]):
    """Forms with the bytes they were read from, so that saving the model again need not compress them again (0.2 s)."""

    packed: np.ndarray


def _packed_forms(forms: Sequence[Texts]) -> dict[str, np.ndarray]:
    """Return the tensors of forms."""
    if isinstance(forms, _ReadForms):
        return {"forms": forms.packed}
    lines = "\n".join(form for own in forms for form in own)
    return {"forms": np.frombuffer(zlib.compress(lines.encode("utf-8"), 9), np.uint8)}


def _unpacked_forms(packed: np.ndarray, languages: int, units: int) -> tuple[Texts, ...]:
    """Return the forms that :func:`_packed_forms` packed; ModelError: they are invalid, or of other units."""
    stream = zlib.decompressobj()
    try:
        lines = stream.decompress(packed.tobytes(), _MAX_FORM_BYTES * languages * units)
        lines.decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        raise ModelError(f"the forms are damaged ({error})") from None
    data = np.frombuffer(lines + b"\n", np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if not stream.eof or len(ends) != languages * units:
        raise ModelError(f"the forms are {len(ends)}, expected {units} for each of {languages} languages")
    bounds = np.append(0, ends + 1 - np.arange(1, len(ends) + 1))
    every = Texts(data[data != ord("\n")], bounds)
    forms = _ReadForms(every[start : start + units] for start in range(0, len(every), units))
    forms.packed = packed.copy()
    return forms


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not folder.is_dir():
        raise ModelError(f"{folder}: there is no such folder; give the folder that train wrote (…/model)")
    if not path.is_file():
        own = folder / "model"  # of a run
        hint = f"; the run's model is {own}" if (own / path.name).is_file() else ""
        raise ModelError(f"{path}: missing; {folder} is no model folder{hint}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        kind, version = config["model_type"], config["format_version"]
        int(config["hidden_dim"]), config["units"]["kind"], list(config["units"]["languages"])
        check_languages(config["units"]["languages"])
    except (ValueError, KeyError, TypeError, RecursionError, ConfigError) as error:
        raise ModelError(f"{path}: damaged or of another library ({error!r}); fetch or train the model again") from None
    if kind != MODEL_TYPE:
        raise ModelError(f"{path}: model_type is {kind!r}, not {MODEL_TYPE!r}; this folder belongs to another library")
    check_version(path, version, FORMAT_VERSION)
    return config


def check_version(path: Path, version: Any, newest: int) -> None:
    """Raise ModelError for the format version of a ``config.json`` that is no version, or newer than this library's."""
    if type(version) is not int or version < 1:
        raise ModelError(f"{path}: format_version is {version!r}, no version; fetch or train the model again")
    if version > newest:
        raise ModelError(f"{path}: format version {version} is newer than {newest}; upgrade xswe")


def _read_shared(folder: Path, config: dict[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Read the matrix and the scales of a model whose units share rows; return None for any other."""
    path, width = folder / _CODES, config.get("shared")
    if not width:
        return None
    if not path.is_file():
        raise ModelError(f"{path}: missing; fetch or export the model again")
    try:
        tensors = _read_tensors(path, ("codes", "rows", "scale"))
        if tensors["rows"].shape[-1:] != (width,) or config.get("embedding_dtype") != "int8":
            raise ValueError(f"config.json says {config.get('embedding_dtype')} in parts of {width}")
        return unpack(tensors, config["hidden_dim"])
    except (KeyError, ValueError) as error:
        raise ModelError(f"{path}: damaged ({error}); fetch or export the model again") from None


def _read_matrix(path: Path, config: dict[str, Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Read the matrix, and the scales of an int8 one."""
    if not path.is_file():
        raise ModelError(f"{path}: missing; fetch or train the model again")
    factors = _factors(config["units"]["kind"])
    tensors = _read_tensors(path, ("embeddings", factors))
    matrix, scales = tensors.get("embeddings"), tensors.get(factors)
    if matrix is None or matrix.ndim != 2 or matrix.shape[1] != config["hidden_dim"]:
        found = "no tensor 'embeddings'" if matrix is None else f"a tensor of shape {matrix.shape}"
        raise ModelError(f"{path}: {found}, config.json says (…, {config['hidden_dim']}); fetch the model again")
    dtype = config.get("embedding_dtype", "float32")
    if matrix.dtype.name != dtype:
        raise ModelError(f"{path}: {matrix.dtype.name} vectors, config.json says {dtype}; fetch the model again")
    if (dtype == "int8") != (scales is not None) or (
        scales is not None and (scales.shape, scales.dtype) != ((len(matrix),), np.float32)
    ):
        raise ModelError(
            f"{path}: int8 vectors need one float32 factor a row in the tensor {factors!r}; fetch the model again"
        )
    if not is_finite(matrix) or (scales is not None and not is_finite(scales)):
        raise ModelError(f"{path}: holds values that are not finite; fetch or train the model again")
    return matrix, scales


def _read_tensors(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read those of the named tensors that a safetensors file has.

    Each is read straight into its array: the library's own reader holds a large matrix in memory twice.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as checked:  # checks the header against the size of the file
            names = [name for name in names if name in checked.keys()]  # noqa: SIM118 (not a mapping)
        tensors = {}
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size))
            for name in names:
                entry = header[name]
                if entry["dtype"] not in _DTYPES:
                    raise ModelError(
                        f"{path}: {name} is {entry['dtype']}, expected one of {', '.join(_DTYPES)}; fetch the model again"
                    )
                tensors[name] = np.empty(entry["shape"], _DTYPES[entry["dtype"]])
                stream.seek(8 + size + entry["data_offsets"][0])
                if stream.readinto(tensors[name].reshape(-1).view(np.uint8).data) != tensors[name].nbytes:
                    raise ValueError("the file ends early")
    except (SafetensorError, ValueError, OSError) as error:
        raise ModelError(f"{path}: damaged ({error}); fetch or train the model again") from None
    return tensors
