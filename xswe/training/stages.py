"""Stages of a run: each writes one folder, named by a fingerprint of its inputs, and is never repeated."""

from __future__ import annotations

import logging
import platform
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open

from xswe.errors import ModelError
from xswe.io.files import check_folder, fingerprint, read_json, whole_folder, write_json
from xswe.io.locks import locked
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import remove_unheld
from xswe.work.kept import keep

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

logger = logging.getLogger(__name__)
T = TypeVar("T")
# Metadata of a dataclass field that is left out of fingerprints at its default, which changes nothing, so that results from
# before the field existed keep their fingerprint.
OMIT_DEFAULT = {"omit": True}


def fingerprint_fields(settings: DataclassInstance) -> dict[str, Any]:
    """Return a dataclass as a dict, without fields marked :data:`OMIT_DEFAULT` that have their default."""
    omitted = {f.name for f in fields(settings) if f.metadata.get("omit") and getattr(settings, f.name) == f.default}
    return {name: value for name, value in asdict(settings).items() if name not in omitted}


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


@cache
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
        shared: whether other processes may be at work in the folder: one does a stage while the others wait for it.
        execution: who does the work of a stage that is divided into shards.

    Attributes:
        folder: folder of the artefacts.
        execution: who does the work of a stage that is divided into shards.
        seconds: how long each stage took, in this run or an earlier one.
    """

    def __init__(self, folder: Path, shared: bool = False, execution: ExecutionConfig = LOCAL) -> None:
        check_folder(folder)
        self.folder, self._shared, self.execution = folder / "stages", shared, execution
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in (
            () if shared else self.folder.glob(".*.tmp")
        ):  # of a killed run: the lock shows that no other run is at work
            shutil.rmtree(leftover, ignore_errors=True) if leftover.is_dir() else leftover.unlink(missing_ok=True)
        self.seconds: dict[str, float] = {}

    def checkpoint(self, name: str, identity: str) -> Path:
        """Return the path for the state of an unfinished long stage; see :func:`check_whole`."""
        path = self.folder / f"{name}-{identity}.checkpoint.safetensors"
        if path.exists():
            check_whole(path, path)
        return path

    def run(self, name: str, inputs: Any, make: Callable[[Path, str], None]) -> tuple[Path, str]:
        """Do a stage unless it is done; return the artefact's folder and the stage's identity.

        Args:
            name: name of the stage.
            inputs: everything that decides its result, as JSON values, including fingerprints of earlier stages.
            make: writes the artefact's files into the given folder; its second argument is the identity.

        Raises:
            ModelError: a file of a finished stage is damaged.
        """
        with locked(self.folder / ".making" / f"{name}-{fingerprint(name, inputs)}") if self._shared else nullcontext():
            return self._run(name, inputs, make)

    def run_shared(
        self, name: str, inputs: Any, share: Callable[[Path], T], make: Callable[[Path, T], None]
    ) -> tuple[Path, str]:
        """Do a stage in shards unless it is done; see :meth:`run`.

        ``share`` computes the shards in the given folder, with all who take part, and returns a reader of them, from which
        ``make`` writes the artefact's files into its folder. Unfinished: with ``execution=array``, the other tasks are not
        done yet.
        """
        own = f"{name}-{fingerprint(name, inputs)}"
        shards, shared = self.folder / f"{own}.shards", list[T]()
        if self.execution.has_peers:
            # All compute shards; then one makes the artefact while the others wait, and the last one removes the shards.
            with locked(shards, shared=True):
                if not (self.folder / own / "stage.json").is_file():
                    shared.append(share(shards))
        done = self.run(name, inputs, lambda folder, _: make(folder, shared[0] if shared else share(shards)))
        remove_unheld(shards)
        return done

    def _run(self, name: str, inputs: Any, make: Callable[[Path, str], None]) -> tuple[Path, str]:
        identity = fingerprint(name, inputs)
        target = self.folder / f"{name}-{identity}"
        if (target / "stage.json").is_file():
            for file in sorted(target.rglob("*")):
                check_whole(file, target)
            logger.info("%s: done before (%s)", name, target.name)
            self._count(name, self.seconds_of(target))
            keep(target / "stage.json", f"after the stage {name}")
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
        keep(target / "stage.json", f"after the stage {name}")
        self.checkpoint(name, identity).unlink(missing_ok=True)
        return target, identity

    def _count(self, name: str, seconds: float) -> None:
        """Add to the time of the stage with that name; the sentence PCA, for example, is fitted twice."""
        self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)

    def seconds_of(self, folder: Path) -> float:
        """Return how many seconds the stage in ``folder`` took in the run that did it."""
        return float(read_json(folder / "stage.json")["seconds"])


def check_whole(file: Path, *artefacts: Path) -> None:
    """Open a file in the format of its suffix, without reading its numbers; files of other formats are not checked.

    ModelError: the file is truncated, or not of that format; the message says to remove the artefacts.
    """
    try:
        if file.suffix == ".json":
            read_json(file)
        elif file.suffix == ".npy":
            np.load(file, mmap_mode="r")  # compares the file's length with the array's
        elif file.suffix == ".safetensors":
            with safe_open(file, "np"):  # so does this
                pass
    except (ValueError, EOFError, SafetensorError) as error:
        doomed = " and ".join(map(str, artefacts))
        raise ModelError(
            f"{file}: damaged ({error}); remove {doomed} and give the same command again to make it anew"
        ) from None


def only_run(folder: Path, shared: bool = False) -> AbstractContextManager[None]:
    """Lock a run folder for one process, or for those that share it; ConfigError: another process is at work in it."""
    return locked(folder, f"{folder}: another run is at work there; wait for it, or choose another output=", shared)
