"""Static models of other libraries, read from their files as ours: WordLlama's, and the folders of Model2Vec."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from xswe.embedding.static import StaticEmbedding
from xswe.errors import DependencyError, ModelError
from xswe.files import read_json
from xswe.language.codes import LANGUAGES
from xswe.language.subwords import SubwordUnits
from xswe.language.tokenizer_files import load_tokenizer, pieces_only


def read_wordllama(languages: Sequence[str] = ("en",)) -> StaticEmbedding:
    """Read the model in WordLlama's package; the package need not be importable, its files suffice.

    Raises:
        DependencyError: it is not installed.
        ModelError: its files are not those of version 0.3.
    """
    found = importlib.util.find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise DependencyError("wordllama", "baselines", "the part wordllama")
    folder = Path(found.submodule_search_locations[0])
    weights = folder / "weights" / "l2_supercat_256.safetensors"
    matrix = _tensors(weights).get("embedding.weight")
    if matrix is None:
        raise ModelError(f"{weights}: has no tensor 'embedding.weight'; install wordllama 0.3 or later")
    return piece_table(
        load_tokenizer(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"), matrix, languages, "wordllama"
    )


def is_model2vec(folder: Path) -> bool:
    """Tell whether a folder is one that Model2Vec wrote."""
    try:
        config = read_json(folder / "config.json")
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "model2vec"


def read_model2vec(folder: Path, languages: Sequence[str] = tuple(LANGUAGES)) -> StaticEmbedding:
    """Read a folder that Model2Vec wrote.

    Raises:
        ModelError: a file is missing or damaged.
    """
    path = folder / "model.safetensors"
    tensors = _tensors(path)
    matrix = tensors.get("embeddings")
    if matrix is None:
        raise ModelError(f"{path}: has no tensor 'embeddings'; fetch the model again")
    rows = token_rows(matrix, tensors.get("mapping"), tensors.get("weights"))
    return piece_table(load_tokenizer(folder / "tokenizer.json"), rows, languages, folder.name)


def _tensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, ValueError, OSError) as error:
        raise ModelError(f"{path}: missing or damaged ({error}); fetch it again") from None


def token_rows(matrix: np.ndarray, mapping: np.ndarray | None, weights: np.ndarray | None) -> np.ndarray:
    """Work Model2Vec's mapping of tokens to rows, and its weights of tokens, into a float32 matrix of a row a token."""
    rows = np.asarray(matrix if mapping is None else matrix[mapping], np.float32)
    return rows if weights is None else rows * np.asarray(weights, np.float32)[:, None]


def piece_table(tokenizer: Tokenizer, matrix: np.ndarray, languages: Sequence[str], name: str) -> StaticEmbedding:
    """Make a static embedding of pieces; rows beyond the tokenizer's last id are left out, missing ones are zero."""
    units = SubwordUnits(pieces_only(tokenizer), "teacher", languages)
    rows = np.zeros((len(units.tokens), matrix.shape[1]), np.float32)
    rows[: len(matrix)] = matrix[: len(rows)]
    return StaticEmbedding(units, rows, {"from": name})
