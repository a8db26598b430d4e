"""Static word embeddings that encode sentences of English, German, Chinese and Japanese, aligned across languages.

    import xswe
    model = xswe.load("runs/en-ja/…/model")
    vectors = model.encode(["A cat sleeps.", "猫が寝ている。"])   # float32 (2, d), rows of norm 1

Loading and encoding need numpy, numba, tokenizers and safetensors; torch and transformers are imported by training only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xswe.embedding.static import StaticEmbedding

__version__ = "0.1.0"
__all__ = ["StaticEmbedding", "__version__", "load"]


def load(path: str | Path) -> StaticEmbedding:
    """Load a model folder.

    Args:
        path: the folder that ``python -m xswe train`` (or ``model.save``) wrote.

    Raises:
        xswe.errors.ModelError: the folder is missing, damaged, too new, or of another library.
    """
    from xswe.embedding.storage import load as load_folder

    return load_folder(Path(path))


def __getattr__(name: str) -> Any:
    if name == "StaticEmbedding":
        from xswe.embedding.static import StaticEmbedding

        return StaticEmbedding
    raise AttributeError(f"module 'xswe' has no attribute {name!r}")
