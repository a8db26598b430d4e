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
    from xswe.embedding.ensemble import Ensemble
    from xswe.embedding.static import StaticEmbedding

__version__ = "0.1.0"
__all__ = ["StaticEmbedding", "__version__", "load"]


def load(path: str | Path) -> StaticEmbedding | Ensemble:
    """Load a model folder.

    Args:
        path: the folder that ``python -m xswe train`` (or ``ensemble``, or ``model.save``) wrote.

    Raises:
        xswe.errors.ModelError: the folder is missing, damaged, too new, or of another library.
    """
    from xswe.embedding.ensemble import load_any

    return load_any(Path(path))


def __getattr__(name: str) -> Any:
    if name == "StaticEmbedding":
        from xswe.embedding.static import StaticEmbedding

        return StaticEmbedding
    raise AttributeError(f"module 'xswe' has no attribute {name!r}")
