"""From what a user calls a model to its folder: a path, the name of one in this package, or a repository on the hub."""

from __future__ import annotations

import re
from pathlib import Path

from xswe.errors import ModelError
from xswe.model.ensemble import load_any
from xswe.model.folder import from_hub, push_folder

PRETRAINED = ("mini",)
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def locate(model: str | Path, revision: str | None = None, *, token: str | None = None) -> Path:
    """Return the folder of a model; what is on the disk goes first, though one that is no model hides none of this package.

    Args:
        model: a folder, ``mini`` (in this package), or ``user/repository`` on the Hugging Face hub.
        revision: branch, tag or commit of a repository.
        token: an access token, where the repository asks for one and none is stored.

    Raises:
        ModelError: there is none of that name; the message says where it was looked for.
    """
    path = Path(model)
    if model in PRETRAINED and not (path / "config.json").is_file():
        return pretrained(str(model))
    if isinstance(model, Path) or path.exists():
        return path
    if _REPOSITORY.fullmatch(model):
        return from_hub(model, revision, token=token)
    return path


def is_elsewhere(model: str) -> bool:
    """Tell whether a name that is no path may be one in this package or on the hub."""
    return model in PRETRAINED or _REPOSITORY.fullmatch(model) is not None


def pretrained(name: str) -> Path:
    """Return the folder of a model that ships in this package.

    Raises:
        ModelError: it is not in this installation.
    """
    folder = Path(__file__).parent.parent / "pretrained" / name
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{folder}: the model {name!r} is not in this installation; install the released wheel, or train one: "
            "python -m xswe train"
        )
    return folder


def push_to_hub(
    folder: str | Path,
    repository: str,
    *,
    revision: str | None = None,
    private: bool = False,
    token: str | None = None,
    message: str = "Upload model",
) -> str:
    """Push a model folder with its card to the hub; a loaded model is pushed by its own ``push_to_hub``.

    Args:
        folder: the folder.
        repository: ``user/name``; it is made if there is none.
        revision: the branch; None for the main one.
        private: whether a repository made now is private.
        token: an access token; the stored one if not given.
        message: of the commit.

    Returns:
        The address of the commit.

    Raises:
        ModelError: the folder is no model, or the hub refuses.
    """
    load_any(Path(folder))  # never push what nobody can open
    return push_folder(Path(folder), repository, revision, private, token, message)
