"""Models on the hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from xswe.errors import ModelError, brief, needs
from xswe.model.folder import _BIGRAMS, _CODES, _COUNTS
from xswe.version import __version__

# The files of a model folder; nothing else in a repository is fetched.
_MODEL = (
    *("config.json", "model.safetensors", _CODES, _BIGRAMS, "tokenizer.json", "words.json", "backoff.json", _COUNTS),
    *("modules.json", "1_Normalize/*", "README.md"),
)
FILES = (*_MODEL, *(f"part-*/{name}" for name in _MODEL))  # an ensemble has parts


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
    """Yield the hub's library; turn its exceptions into one-line errors."""
    with needs("huggingface_hub", "hub", "fetching from and pushing to the hub"):
        import huggingface_hub
    try:
        yield huggingface_hub
    except Exception as error:  # the hub's own errors, and whatever its transport raises without a network
        raise ModelError(f"{what} ({brief(error, 300)}); {hint}") from None
