"""The search by shards against the search in one process: the same lists, bit by bit, ties among them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.clusters import slices
from xswe.errors import ConfigError, Unfinished
from xswe.search.neighbours import find_neighbours, neighbours_within
from xswe.search.shards import Sizes, search_shards
from xswe.search.types import SearchConfig
from xswe.work.config import ExecutionConfig

SMALL = Sizes(rows=16_384, pairs=150_000, edge=1024, lines=700)
NAMES = ("forward", "forward_ids", "backward", "backward_ids")


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Of 17,000 and 2,500 vectors some are the same, so that cosines tie."""
    folder, generator = tmp_path_factory.mktemp("vectors"), np.random.default_rng(0)
    out = []
    base = generator.normal(size=(300, 16))
    for n, size in enumerate((17_000, 2_500)):
        vectors = base[generator.integers(0, 300, size)] + 0.2 * generator.normal(size=(size, 16))
        vectors[size // 2 : size // 2 + 200] = vectors[:200]
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        np.save(folder / f"{n}.npy", vectors)
        out.append(folder / f"{n}.npy")
    return out


def same(found, expected):
    return all(getattr(found, name).tobytes() == getattr(expected, name).tobytes() for name in NAMES)


def in_an_array(paths, config, folder):
    """Let the tasks of an array come until all stages are done."""
    for _ in range(6):
        for how in slices(2):
            try:
                return search_shards(paths, 3, config, folder, how, SMALL)
            except Unfinished:
                continue
    raise AssertionError


@pytest.mark.parametrize("method", ["exact", "clusters"])
@pytest.mark.parametrize("within", [False, True])
def test_as_in_one_process(paths, tmp_path, method, within):
    config = SearchConfig(method=method, threads=1, clusters=64, probes=4)
    given = paths[1:] if within else paths
    expected = neighbours_within(paths[1], 3, config) if within else find_neighbours(*paths, 3, config)
    assert same(search_shards(given, 3, config, tmp_path / "local", ExecutionConfig(), SMALL), expected)
    if not within:
        assert same(in_an_array(given, config, tmp_path / "array"), expected)
        assert len(list((tmp_path / "array" / "neighbours").glob("*.safetensors"))) > 2


def test_as_in_one_process_on_ray(ray_cluster, paths, tmp_path):
    config = SearchConfig(method="clusters", threads=1, clusters=64, probes=4)
    expected = find_neighbours(*paths, 3, config)
    assert same(search_shards(paths, 3, config, tmp_path / "ray", ExecutionConfig("ray"), SMALL), expected)


def test_nothing_to_search(tmp_path, paths):
    np.save(tmp_path / "none.npy", np.zeros((0, 16), np.float32))
    found = search_shards([tmp_path / "none.npy", paths[1]], 3, SearchConfig(), tmp_path / "w", ExecutionConfig(), SMALL)
    assert found.forward.shape == (0, 3)


def test_blocks_must_not_be_cut(tmp_path, paths):
    with pytest.raises(ConfigError, match="multiple"):
        search_shards(paths, 3, SearchConfig(), tmp_path, ExecutionConfig(), Sizes(rows=100))


@pytest.mark.parametrize(("pairs", "group"), [(10, 1 << 28), (1 << 33, 1 << 28), (1 << 36, 1 << 30), (1 << 45, 1 << 32)])
def test_groups_of_clusters_are_enough_to_share_out_and_not_too_small(pairs, group):
    assert Sizes().group(pairs) == group
    assert SMALL.group(pairs) == SMALL.pairs
