"""Nearest neighbours between two sets of vectors, or within one, by any method and executor."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xswe.errors import ConfigError
from xswe.io.settings import for_all
from xswe.search.clusters import search_clusters
from xswe.search.exact import search_tiles
from xswe.search.kernels import merge
from xswe.search.lists import Method, Neighbours, SearchConfig
from xswe.search.shard import Search
from xswe.search.vectors import Vectors, as_vectors
from xswe.work.cluster import one_cluster
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.stage import NOWHERE

_MAX_LINES = 2**31 - 1
_NO_ROWS = np.zeros(0, np.int64)
Given = Vectors | np.ndarray | str | Path
_SEARCH_METHODS = for_all(Method, {"exact": search_tiles, "clusters": search_clusters})


def find_neighbours(
    source: Given,
    target: Given,
    k: int,
    config: SearchConfig | None = None,
    execution: ExecutionConfig = LOCAL,
    work: Path | None = None,
) -> Neighbours:
    """Find each vector's k nearest on the other side, in both directions.

    The sides are unit vectors, (n, d) and (m, d): arrays, ``.npy`` paths, or :class:`Vectors`. ``execution`` says who
    searches, always with the same bytes as result; a batch queue or a cluster needs paths and ``work``, a folder for
    the results of other processes and for resuming a killed call; its name must depend on the content of the vectors.
    Without it nothing is kept.

    ConfigError: widths differ, k is below 1, or a side has 2**31 lines or more. DependencyError: a library that the device
    or executor needs is not installed. Unfinished: with ``array``, the other tasks are not done yet.
    """
    return _search([source, target], k, config or SearchConfig(), execution, work)


def neighbours_within(
    vectors: Given,
    k: int,
    config: SearchConfig | None = None,
    execution: ExecutionConfig = LOCAL,
    work: Path | None = None,
) -> Neighbours:
    """Find each vector's k nearest before it and after it; no vector is its own neighbour, and each pair is scored once.

    As :func:`find_neighbours`, but ``forward`` holds the nearest among the vectors before each one, ``backward`` those
    among the vectors after it.
    """
    return _search([vectors], k, config or SearchConfig(), execution, work)


def _search(given: list[Given], k: int, config: SearchConfig, execution: ExecutionConfig, work: Path | None) -> Neighbours:
    sides = [as_vectors(side) for side in given]
    lengths = len(sides[0]), len(sides[-1])
    if sides[0].dim != sides[-1].dim:
        raise ConfigError(f"source vectors have {sides[0].dim} dimensions, target vectors {sides[-1].dim}: use one model")
    if k < 1:
        raise ConfigError(f"k={k}: must be at least 1")
    if max(lengths) > _MAX_LINES:
        raise ConfigError(f"a side has more than {_MAX_LINES:,} lines: split it and mine the parts")
    paths = tuple(Path(side).absolute() for side in given if isinstance(side, (str, Path)))
    if work is not None and len(paths) < len(given):
        raise ConfigError(f"{work}: a later call, and others, read vectors from files: save the arrays, and give paths")
    execution.check_names(work)
    lists = Neighbours.empty(*lengths, k)
    if not all(lengths):
        return lists
    folder = NOWHERE if work is None else work.absolute()
    search = Search(paths, lengths, len(sides) == 1, k, config, folder)
    with one_cluster():  # for all steps
        for found in _SEARCH_METHODS[config.method](search, sides, lists, execution):
            for name in ("forward", "backward"):
                scores, ids = getattr(lists, name), getattr(lists, f"{name}_ids")
                merge(scores, ids, found[f"{name}_lines"], found[name], found[f"{name}_ids"], _NO_ROWS)
    return lists
