"""Stages of a run: each leaves one folder named by a fingerprint of what went in, and is never done twice."""

from __future__ import annotations

import logging
import platform
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from xswe.files import fingerprint, held, read_json, whole_folder, write_json

logger = logging.getLogger(__name__)
_LIBRARIES = (
    "xswe",
    "numpy",
    "numba",
    "tokenizers",
    "torch",
    "transformers",
    "sentencepiece",
    "opencc",
    "fugashi",
    "jieba",
)


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


class Stages:
    """The stages of one run folder.

    Args:
        folder: the run folder; ``folder/stages`` receives the artefacts.

    Attributes:
        folder: where the artefacts are.
        seconds: how long each stage of this run took, in whatever run it was done.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "stages"
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.glob(".*.tmp"):  # of a run that was killed; the lock says it is no other run's
            shutil.rmtree(leftover, ignore_errors=True) if leftover.is_dir() else leftover.unlink(missing_ok=True)
        self.seconds: dict[str, float] = {}

    def checkpoint(self, name: str, identity: str) -> Path:
        """Return where a long stage may keep its state until it is done."""
        return self.folder / f"{name}-{identity}.checkpoint.safetensors"

    def run(self, name: str, inputs: Any, make: Callable[[Path, str], None]) -> tuple[Path, str]:
        """Do a stage, unless it is done.

        Args:
            name: of the stage.
            inputs: everything that decides its result, as JSON values (fingerprints of earlier stages among them).
            make: writes the artefact's files into the folder it is given; the second argument is the identity.

        Returns:
            The artefact's folder and the stage's identity.
        """
        identity = fingerprint(name, inputs)
        target = self.folder / f"{name}-{identity}"
        if (target / "stage.json").is_file():
            logger.info("%s: done before (%s)", name, target.name)
            self._count(name, self.seconds_of(target))
            return target, identity
        start = time.monotonic()
        with whole_folder(target) as temporary:
            make(temporary, identity)
            seconds = round(time.monotonic() - start, 3)
            write_json(
                temporary / "stage.json",
                {
                    "stage": name,
                    "identity": identity,
                    "inputs": inputs,
                    "versions": versions(),
                    "command": sys.argv,
                    "seconds": seconds,
                },
            )
        self._count(name, seconds)
        self.checkpoint(name, identity).unlink(missing_ok=True)
        return target, identity

    def _count(self, name: str, seconds: float) -> None:
        """Add to what stages of that name took: the sentence PCA is fitted twice."""
        self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)

    def seconds_of(self, folder: Path) -> float:
        """Return how long the stage in ``folder`` took, in whatever run it was done."""
        return float(read_json(folder / "stage.json")["seconds"])


def only_run(folder: Path) -> AbstractContextManager[None]:
    """Hold a run folder for one process.

    Raises:
        ConfigError: another process is at work in it.
    """
    return held(folder, f"{folder}: another run is at work there; wait for it, or choose another output=")
