"""The model folder on disk.

A float16 row is half of a float32 one and, of numbers as small as vectors' are, exact to three digits. An int8 row is a
quarter: its largest magnitude becomes 127, and a float32 scale says what 1 is worth. In the folder an int8 row may be a
quarter of that again: where units share the rows of parts, it is a byte a part (product quantisation; Jégou et al. 2011).

The script distinguishes Japanese kana from German, but not German from English, nor Japanese Han from Chinese.
There the frequency of the word in each language, per unit of its text, decides.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from xswe.errors import ConfigError, ModelError, brief, needs
from xswe.io.files import read_json, save_tensors, whole_folder, write_json
from xswe.io.ragged import Texts
from xswe.io.settings import check_choice, for_all
from xswe.model.portable import write_portable
from xswe.text.languages import check_languages
from xswe.text.units import SubwordUnits, Units
from xswe.text.words import WordUnits
from xswe.version import __version__

# A word is a language's own if it is at least this frequent there (per unit of text), beside the one that uses it most.
# Foreign words that are quoted ("the" in German manuals) stay below, words that two languages share stay above.
OWN = 0.1


def narrow_counts(counts: np.ndarray) -> np.ndarray:
    """Return counts as the smallest unsigned integers that fit them; those beyond 32 bits are clipped."""
    highest = int(counts.max(initial=0))
    kind = next((kind for kind in (np.uint8, np.uint16) if highest <= np.iinfo(kind).max), np.uint32)
    return np.ascontiguousarray(np.minimum(counts, np.array(np.iinfo(kind).max, counts.dtype)), kind)


def check_counts(counts: np.ndarray, languages: int, units: int) -> None:
    """Raise ModelError unless the counts are unsigned integers of shape (languages, units)."""
    if counts.dtype.kind != "u" or counts.shape != (languages, units):
        wanted = f"unsigned integers ({languages}, {units}), a row for each language"
        raise ModelError(f"the counts are {counts.dtype} {counts.shape}, expected {wanted}")


def languages_of_units(counts: np.ndarray) -> np.ndarray:
    """Return whose words units are, bool (languages, units), by their counts (languages, units) in each language's text.

    None is set for a unit that never occurred, several for a word that languages share.
    """
    rates = counts / np.maximum(counts.sum(axis=1, keepdims=True, dtype=np.int64), 1)
    return (counts > 0) & (rates >= OWN * rates.max(axis=0, initial=0.0))


Precision = Literal["float32", "float16", "int8"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


def check_precision(dtype: str) -> str:
    """Return the name of a known precision, or raise a ConfigError that lists them."""
    check_choice("dtype", dtype, Precision)
    return dtype


def quantise(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise float32 (n, d), finite, to int8 (n, d) within ±127 and scales, float32 (n,).

    Row ``i`` is about ``numbers[i] * scales[i]``, off by at most half a scale in each dimension. A zero row has the scale
    0.
    """
    scales = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0)) / np.float32(127.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        numbers = rows / scales[:, None]
    # A row whose scale underflows is as good as zero.
    np.nan_to_num(numbers, copy=False, nan=0.0, posinf=127.0, neginf=-127.0)
    np.rint(numbers, out=numbers)
    return np.clip(numbers, -127, 127, out=numbers).astype(np.int8), scales.astype(np.float32)


SHARED = 256  # rows of a part
WIDEST = 8  # dimensions of a part: as int8 they are one integer of 64 bits
_SAMPLE, _ROUNDS = 16_384, 12  # rows that centres are sought by, and how often each moves


def share_rows(rows: np.ndarray, width: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise rows as :func:`quantise` does, to at most 256 different ones in each part of ``width`` dimensions.

    The last part has the remaining dimensions. ``weights``, float (n,), none below 0, say how much each row counts. All
    scales are equal, and rows of zeros stay so.
    """
    made = np.empty(rows.shape, np.float32)
    for start in range(0, rows.shape[1], width):
        made[:, start : start + width] = _nearest_centres(rows[:, start : start + width], weights, start)
    scale = max(float(np.abs(made).max(initial=0.0)) / 127.0, float(np.finfo(np.float32).tiny))
    return np.rint(made / np.float32(scale)).astype(np.int8), np.full(len(rows), scale, np.float32)


def _nearest_centres(rows: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """Return the nearest of 256 centres to each row, found by k-means on rows sampled by their weight."""
    generator = np.random.default_rng([37, seed])
    size = min(_SAMPLE, 4 * len(rows))
    sample = np.ascontiguousarray(rows[generator.choice(len(rows), size, p=weights / weights.sum())])
    centres = np.unique(sample, axis=0)
    if len(centres) > SHARED:
        centres = sample[generator.choice(len(sample), SHARED, replace=False)]
        for _ in range(_ROUNDS):
            own = _nearest(sample, centres)
            counts = np.bincount(own, minlength=SHARED)
            sums = np.stack([np.bincount(own, column, SHARED) for column in sample.T], axis=1)
            centres[counts > 0] = (sums[counts > 0] / counts[counts > 0, None]).astype(np.float32)
    if not rows.any(axis=1).all():
        centres[np.abs(centres).sum(axis=1).argmin()] = 0.0
    return centres[_nearest(rows, centres)]


def _nearest(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the nearest centre to each row, int64 (n,)."""
    from xswe.io.products import products  # compiled: loading a model does without

    offsets, step = 0.5 * (centres**2).sum(axis=1), 1 << 13
    blocks = (products(rows[start : start + step], centres) - offsets for start in range(0, len(rows), step))
    return np.concatenate([block.argmax(axis=1) for block in blocks])


def pack(matrix: np.ndarray, scale: float, width: int) -> dict[str, np.ndarray]:
    """Return the tensors of an int8 matrix whose units share rows; ModelError: a part has over 256 different rows.

    ``codes``, uint8 (units, parts), has the row of each part of a unit; ``rows``, int8 (parts, 256, width), is padded
    with zeros; ``scale``, float32 (1,), multiplies all.
    """
    parts = range(0, matrix.shape[1], width)
    codes, rows = np.empty((len(matrix), len(parts)), np.uint8), np.zeros((len(parts), SHARED, width), np.int8)
    for part, start in enumerate(parts):
        wide = np.zeros((len(matrix), WIDEST), np.int8)
        block = matrix[:, start : start + width]
        wide[:, : block.shape[1]] = block
        found, code = np.unique(wide.view(np.int64)[:, 0], return_inverse=True)
        if len(found) > SHARED:
            raise ModelError(f"a part of the matrix has {len(found)} rows, {SHARED} can be shared: call share_rows first")
        codes[:, part], rows[part, : len(found)] = code, found.view(np.int8).reshape(-1, WIDEST)[:, :width]
    return {"codes": codes, "rows": rows, "scale": np.array([scale], np.float32)}


def unpack(tensors: dict[str, np.ndarray], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and scales that :func:`pack` stored; ValueError: tensors that do not fit each other, or ``dim``."""
    codes, rows, scale = (tensors[name] for name in ("codes", "rows", "scale"))
    if codes.dtype != np.uint8 or codes.ndim != 2 or rows.dtype != np.int8 or rows.shape[:2] != (codes.shape[1], SHARED):
        raise ValueError(f"codes are {codes.dtype} {codes.shape}, rows {rows.dtype} {rows.shape}")
    if not 0 <= codes.shape[1] * rows.shape[2] - dim < rows.shape[2] or scale.shape != (1,) or not is_finite(scale):
        raise ValueError(f"{codes.shape[1]} parts of {rows.shape[2]} dimensions are not {dim}, or the scale is no number")
    matrix, width = np.empty((len(codes), dim), np.int8), rows.shape[2]
    for part, start in enumerate(range(0, dim, width)):
        block = matrix[:, start : start + width]
        block[:] = rows[part, codes[:, part], : block.shape[1]]
    return matrix, np.full(len(codes), scale[0], np.float32)


def convert(rows: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Convert float32 rows to another precision: the rows, C-contiguous, and for ``int8`` their scales, else None.

    ConfigError: the precision is unknown. ModelError: a number is beyond float16's range.
    """
    return _CONVERTED[check_precision(dtype)](rows)


def _as_float16(rows: np.ndarray) -> tuple[np.ndarray, None]:
    if len(rows) and max(float(rows.max()), -float(rows.min())) > float(np.finfo(np.float16).max):
        raise ModelError("the vectors hold numbers above 65504, which float16 cannot: scale them, or use float32 or int8")
    return rows.astype(np.float16), None


_CONVERTED: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]] = for_all(
    Precision,
    {"float32": lambda rows: (np.ascontiguousarray(rows, np.float32), None), "float16": _as_float16, "int8": quantise},
)


def restore(rows: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """Return rows of any precision as float32; the very array if they are that already."""
    wide = rows.astype(np.float32, copy=False)
    return wide if scales is None else wide * scales[:, None]


def is_finite(rows: np.ndarray) -> bool:
    """Return True if all numbers are finite, without an array of booleans."""
    if rows.dtype == np.int8 or rows.size == 0:
        return True
    if rows.dtype == np.float16:
        step = 1 << 12
        blocks = (rows[start : start + step].view(np.uint16) & 0x7FFF for start in range(0, len(rows), step))
        return all(int(block.max()) < 0x7C00 for block in blocks)
    return bool(np.isfinite(rows.min()) and np.isfinite(rows.max()))


# The model folder: written whole, read with care, opened by three libraries.
#
# ``config.json`` (format version, units, precision, description), ``model.safetensors`` (``embeddings``: float32,
# float16, or int8 with one factor a row in ``weights``), ``tokenizer.json`` and, for sentence-transformers,
# ``modules.json`` with a normalising module. ``counts.safetensors`` (``counts``: unsigned integers, a row for each
# language in the order of ``config.json``) says how often each unit occurred in each language, where that is known, and
# how the texts of the language write it (``forms``: lines of text, a line a unit, one language after the other, as zlib
# compresses them).
# model2vec and sentence-transformers multiply rows by ``weights`` too, so that an int8 folder means the same to all
# three. Word models keep their look-up in ``words.json`` and ``backoff.json``, their factors in ``scales``:
# ``tokenizer.json``, ``mapping`` and ``weights`` are for the other libraries there, see :mod:`xswe.model.portable`.
# Where units share rows, ``codes.safetensors`` of :func:`pack` stands for ``model.safetensors``, which alone the other
# libraries read: they find no file of that name, rather than vectors that mean something else.
# Nothing in a folder is ever executed.


FORMAT_VERSION = 2  # of folders whose units share rows; others are written as 1, which earlier versions read
MODEL_TYPE = "xswe"
_DTYPES = {"F32": "<f4", "F16": "<f2", "I8": "|i1", "U8": "|u1", "U16": "<u2", "U32": "<u4"}
_LONGEST_FORM = 500  # bytes, on average at most
_COUNTS, _CODES = "counts.safetensors", "codes.safetensors"
# What config.json says of the folder itself; all else is the model's description.
_OWN = {"model_type", "format_version", "hidden_dim", "vocabulary_size", "normalize", "max_length"}
_OWN |= {"embedding_dtype", "units", "shared"}
_MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"},
]


class Contents(NamedTuple):
    """The contents of a model folder, as plain data."""

    units: Units  # the function from text to unit ids
    matrix: np.ndarray  # (units, d) float32, float16 or int8
    description: dict[str, Any]  # what else ``config.json`` says of the model
    scales: np.ndarray | None  # float32 (units,), the factor of each row of an int8 matrix; None for the others
    # unsigned integers (languages, units), how often each unit occurred in each language; None if not known
    counts: np.ndarray | None = None
    shared: int = 0  # dimensions of a part of an int8 matrix in which units share rows; 0 where they do not
    forms: tuple[Texts, ...] | None = None  # how the texts of each language write each unit; None if not known


def load_units(folder: Path) -> Units:
    """Load the units of a model folder, or raise a ModelError where ``config.json`` names no known kind of units."""
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

    Anything else of that name is left alone, and ModelError raised.
    """
    if folder.exists() and not (folder.is_dir() and ((folder / "config.json").exists() or not any(folder.iterdir()))):
        raise ModelError(f"{folder}: exists and is no model folder; choose another name or move it away")
    units, matrix, description, scales, counts, shared, forms = contents
    with whole_folder(folder) as temporary:
        units.save(temporary)
        if shared and scales is not None:
            save_tensors(temporary / _CODES, pack(matrix, float(scales.max(initial=0.0)), shared))
        else:
            tensors = {"embeddings": matrix}
            if isinstance(units, WordUnits):  # these have a file of their own; tokenizer.json serves other libraries
                tensors |= write_portable(units, temporary, scales)
            elif scales is not None:
                tensors["weights"] = scales
            save_tensors(temporary / "model.safetensors", tensors)
        known = {} if counts is None else {"counts": narrow_counts(counts)}
        if known := known if forms is None else known | _packed_forms(forms):
            save_tensors(temporary / _COUNTS, known)
        config = {
            "model_type": MODEL_TYPE,
            "format_version": FORMAT_VERSION if shared else 1,
            "hidden_dim": int(matrix.shape[1]),
            "vocabulary_size": len(matrix),
            "normalize": True,
            "max_length": None,  # model2vec: no text is cut
            "embedding_dtype": matrix.dtype.name,
            "units": units.settings,
            **({"shared": shared} if shared else {}),
            **description,
        }
        write_json(temporary / "config.json", config)
        write_json(temporary / "modules.json", _MODULES)
        (temporary / "1_Normalize").mkdir()


def load(folder: Path) -> Contents:
    """Read a model folder; a ModelError names the file that is missing, damaged, too new, or does not fit the others."""
    config = _read_config(folder)
    shared = _read_shared(folder, config)
    matrix, scales = shared or _read_matrix(folder / "model.safetensors", config)
    try:
        units = load_units(folder)
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelError(f"{folder / 'config.json'}: its units cannot be read ({error}); fetch the model again") from None
    if len(units) != len(matrix):
        name = "words.json" if units.kind == "words" else "tokenizer.json"
        raise ModelError(f"{folder / name}: {len(units)} units for {len(matrix)} vectors; fetch the model again")
    counts, forms = _read_counts(folder / _COUNTS, len(config["units"]["languages"]), len(matrix))
    description = {k: v for k, v in config.items() if k not in _OWN}
    return Contents(units, matrix, description, scales, counts, config["shared"] if shared else 0, forms)


def _read_counts(path: Path, languages: int, units: int) -> tuple[np.ndarray | None, tuple[Texts, ...] | None]:
    """Read the units' counts in each language, and their forms; None of what a folder lacks."""
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
    """Forms with the bytes they were read from, so that saving a model again need not compress them again (.2 s)."""

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
        lines = stream.decompress(packed.tobytes(), _LONGEST_FORM * languages * units)
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
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelError(f"{path}: format_version is {version!r}, no version; fetch or train the model again")
    if version > FORMAT_VERSION:
        raise ModelError(f"{path}: format version {version} is newer than {FORMAT_VERSION}; upgrade xswe")
    return config


def _read_shared(folder: Path, config: dict[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Read the matrix and the scales of a model whose units share rows; None of any other."""
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
    factors = "scales" if config["units"]["kind"] == "words" else "weights"
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
    """Read those of some tensors that a safetensors file has.

    Each is read straight into its array: the library's own reader has a large matrix in memory twice.
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


# What a model folder may hold; nothing else of a repository is fetched.
_MODEL = (
    *("config.json", "model.safetensors", _CODES, "tokenizer.json", "words.json", "backoff.json", _COUNTS),
    *("modules.json", "1_Normalize/*", "README.md"),
)
FILES = (*_MODEL, *(f"part-*/{name}" for name in _MODEL))  # the parts are an ensemble's


def from_hub(repository: str, revision: str | None = None, *, token: str | None = None) -> Path:
    """Download a repository's model files into the hub's cache, unless they are there, and return the folder.

    ModelError: there is no such repository or revision, or no network and nothing in the cache.
    """
    hint = "check the name and the revision, and the network (HF_HUB_OFFLINE=1 uses what was fetched before)"
    with _hub(f"{repository}: cannot be fetched from the hub, and there is no folder of that name", hint) as hub:
        folder = hub.snapshot_download(
            repository,
            revision=revision,
            token=token,
            allow_patterns=list(FILES),
            library_name="xswe",
            library_version=__version__,
        )
    return Path(folder)


def push_folder(folder: Path, repository: str, revision: str | None, private: bool, token: str | None, message: str) -> str:
    """Push a model folder; see :meth:`xswe.model.encoding.Encoding.push_to_hub`."""
    with _hub(f"{repository}: cannot be pushed", "check the name and log in with  hf auth login") as hub:
        hub.create_repo(repository, private=private, token=token, exist_ok=True)
        commit = hub.upload_folder(
            repo_id=repository,
            folder_path=folder,
            revision=revision,
            token=token,
            commit_message=message,
            allow_patterns=list(FILES),
        )
    return str(getattr(commit, "commit_url", commit))


@contextmanager
def _hub(what: str, hint: str) -> Iterator[ModuleType]:
    """Yield the hub's library, and turn whatever it raises into a one-line error."""
    with needs("huggingface_hub", "hub", "fetching from and pushing to the hub"):
        import huggingface_hub
    try:
        yield huggingface_hub
    except Exception as error:  # the hub's own errors, and whatever its transport raises without a network
        raise ModelError(f"{what} ({brief(error, 300)}); {hint}") from None
