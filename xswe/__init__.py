"""Static word embeddings that encode sentences of English, German, Chinese and Japanese, aligned across languages.

    import xswe
    model = xswe.load("mini")           # or a folder that train wrote, or user/repository on the hub
    vectors = model.encode(["A cat sleeps.", "猫が寝ている。"])   # float32 (2, d), rows of norm 1

Loading and encoding need numpy, numba, tokenizers and safetensors; torch and transformers are imported by training only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from xswe.io.numba_cache import find_room
from xswe.version import __version__

if TYPE_CHECKING:
    from xswe.model.ensemble import Ensemble
    from xswe.model.static import StaticModel

__all__ = ["StaticModel", "__version__", "load", "push_to_hub"]

find_room()  # before anything imports numba


def load(model: str | Path, *, revision: str | None = None, token: str | None = None) -> StaticModel | Ensemble:
    """Load a model, or an ensemble of models.

    Args:
        model: the folder that ``python -m xswe train`` (or ``ensemble``, or ``model.save``) wrote, ``mini`` (in this
            package), or ``user/repository`` on the Hugging Face hub. What is on the disk goes first.
        revision: branch, tag or commit of a repository on the hub; name a commit for the same bytes for ever.
        token: an access token, where the repository asks for one and none is stored.

    Raises:
        xswe.errors.ModelError: the model is missing, damaged, too new, or of another library.
    """
    from xswe.model.ensemble import load_any
    from xswe.model.resolve import locate

    return load_any(locate(model, revision, token=token))


def __getattr__(name: str) -> Any:
    if name == "StaticModel":
        from xswe.model.static import StaticModel

        return StaticModel
    if name == "push_to_hub":
        from xswe.model.resolve import push_to_hub

        return push_to_hub
    raise AttributeError(f"module 'xswe' has no attribute {name!r}")
