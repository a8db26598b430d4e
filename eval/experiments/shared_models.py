"""Models that a process shares with its forks: a folder that none of them changed is read and compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import xswe
from xswe.corpus.cards import sample_sentences
from xswe.model.static import StaticModel

_loaded: dict[tuple[Any, ...], StaticModel] = {}
_load = StaticModel.load


def _once(folder: str | Path) -> StaticModel:
    """Load a model, unless it has been, and no file of its folder was changed since."""
    files = [(path, path.stat()) for path in sorted(Path(folder).rglob("*")) if path.is_file()]
    state = tuple((path.name, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns) for path, at in files)
    if state not in _loaded:
        _loaded[state] = _load(folder)
    return _loaded[state]


@contextmanager
def shared_models() -> Iterator[None]:
    """Let this process and its forks load each model once; ``mini`` is loaded here, with what it makes as it is used."""
    with patch.object(StaticModel, "load", _once):
        mini, texts = xswe.load("mini"), sample_sentences()["en"]
        mini.units.locate(texts)
        mini.encode(texts, threads=1)
        assert mini.identity
        yield
