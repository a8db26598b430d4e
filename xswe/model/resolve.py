"""From what a user calls a model to its folder: a path, a name in this package, or a repository on the hub.

Models on the Hugging Face hub: fetched with a pinned revision, pushed with their card. Nothing fetched is executed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from xswe.errors import DependencyError, ModelError
from xswe.model.ensemble import AnyModel, Ensemble, load_any
from xswe.model.static import StaticModel
from xswe.version import __version__

# What a model folder may hold; nothing else of a repository is fetched.
_MODEL = (
    *("config.json", "model.safetensors", "tokenizer.json", "words.json", "backoff.json"),
    *("modules.json", "1_Normalize/*", "README.md"),
)
FILES = (*_MODEL, *(f"part-*/{name}" for name in _MODEL))  # the parts are an ensemble's


def from_hub(repository: str, revision: str | None = None, *, token: str | None = None) -> Path:
    """Fetch a repository's model files into the hub's cache, unless they are there, and return the folder.

    Raises:
        ModelError: there is no such repository or revision, or no network and nothing in the cache.
    """
    cure = "check the name and the revision, and the network (HF_HUB_OFFLINE=1 uses what was fetched before)"
    with _hub(f"{repository}: cannot be fetched from the hub, and there is no folder of that name", cure) as hub:
        folder = hub.snapshot_download(
            repository,
            revision=revision,
            token=token,
            allow_patterns=list(FILES),
            library_name="xswe",
            library_version=__version__,
        )
    return Path(folder)


def push_to_hub(
    model: AnyModel | str | Path,
    repository: str,
    *,
    revision: str | None = None,
    private: bool = False,
    token: str | None = None,
    message: str = "Upload model",
) -> str:
    """Push a model to the hub; the repository is made if there is none.

    Args:
        model: a model folder, which is pushed with its card, or a model, which is written first.
        repository: ``user/name``.
        revision: the branch; None for the main one.
        private: whether a repository made now is private.
        token: an access token; the stored one if not given.
        message: of the commit.

    Returns:
        The address of the commit.

    Raises:
        ModelError: the folder is no model, or the hub refuses.
    """
    with tempfile.TemporaryDirectory() as temporary:
        if isinstance(model, (StaticModel, Ensemble)):
            folder = Path(temporary) / "model"
            model.save(folder)
        else:
            folder = Path(model)
            load_any(folder)  # never push what nobody can open
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
def _hub(what: str, cure: str) -> Iterator[ModuleType]:
    """Give the hub's library, and turn whatever it raises into one line."""
    try:
        import huggingface_hub
    except ImportError:
        raise DependencyError("huggingface_hub", "hub", "fetching from and pushing to the hub") from None
    try:
        yield huggingface_hub
    except Exception as error:  # the hub's own errors, and whatever its transport raises without a network
        raise ModelError(f"{what} ({' '.join(str(error).split())[:300]}); {cure}") from None


# From what a user calls a model to its folder: a path, the name of one in this package, or a repository on the hub.


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
