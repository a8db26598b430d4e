"""A search in many shards against one in a single shard: the same lists, bit by bit, ties among them, whoever does it."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from tests.clusters import damage, slices
from tests.search.test_index_faults import killed
from xswe.errors import ConfigError
from xswe.search import clusters, exact
from xswe.search.clusters import ClustersJob, group_count
from xswe.search.exact import TileJob
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours, neighbours_within
from xswe.work import kept
from xswe.work.config import ExecutionConfig

NAMES = ("forward", "forward_ids", "backward", "backward_ids")
JOBS = {"exact": TileJob, "clusters": ClustersJob}
# Sizes of shards that a search of seconds has many of, kept at once.
SMALL = {exact: {"_TILE_ROWS": 1024}, clusters: {"_ROWS": 4096, "_MAX_GROUP_PAIRS": 150_000}, kept: {"BRIEF": 0.0}}


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


@pytest.fixture
def small(monkeypatch):
    for module, sizes in SMALL.items():
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)


@pytest.fixture
def computed(monkeypatch):
    """The shards that are computed in this process."""
    shards = []
    for job in JOBS.values():

        def compute(own, opened, shard, ask=job.compute):
            shards.append(shard)
            return ask(own, opened, shard)

        monkeypatch.setattr(job, "compute", compute)
    return shards


def settings(method):
    return SearchConfig(method=method, threads=1, **{"clusters": 64, "probes": 4} if method == "clusters" else {})


def same(found, expected):
    return all(getattr(found, name).tobytes() == getattr(expected, name).tobytes() for name in NAMES)


@pytest.fixture(scope="module", params=["exact", "clusters"])
def whole(request, paths):
    """A method, and what it finds in a single shard, between both sides and within one."""
    config = settings(request.param)
    return request.param, find_neighbours(*paths, 3, config), neighbours_within(paths[1], 3, config)


def test_however_it_is_cut(paths, tmp_path, whole, small):
    method, between, within = whole
    config = settings(method)
    assert same(find_neighbours(*(np.load(path) for path in paths), 3, replace(config, threads=3)), between)
    assert same(neighbours_within(paths[1], 3, replace(config, memory=1e-6)), within)
    assert same(neighbours_within(paths[1], 3, config, *slices(1), tmp_path / "within"), within)


def test_every_executor_finds_the_same(any_executor, paths, tmp_path, whole, small):
    method, between, _ = whole
    found = any_executor(lambda how: find_neighbours(*paths, 3, settings(method), how, tmp_path))
    assert same(found, between)
    assert any_executor.kind == "local" or len(list(tmp_path.glob("neighbours-*/*.safetensors"))) > 4


def search_until(last, method, paths, folder):
    """Search, and kill this process in the middle of a shard, after those before it were kept."""
    compute = JOBS[method].compute

    def ends(own, opened, shard):
        if shard == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return compute(own, opened, shard)

    JOBS[method].compute = ends
    find_neighbours(*paths, 3, settings(method), work=folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
@pytest.mark.parametrize("kind", ["local", "array"])
def test_what_a_killed_search_kept_is_not_computed_again(paths, tmp_path, whole, small, computed, kind):
    method, between, _ = whole
    killed(lambda: search_until(4, method, paths, tmp_path / "work"))
    left = sorted(tmp_path.glob("work/neighbours-*/*.safetensors"))
    assert [path.stem for path in left] == [f"{shard:06d}" for shard in range(4)]
    damage(left[2])
    execution = ExecutionConfig(kind, 0, 1) if kind == "array" else ExecutionConfig()
    assert same(find_neighbours(*paths, 3, settings(method), execution, tmp_path / "work"), between)
    assert sorted(computed) == [2, *range(4, max(computed) + 1)]


def test_a_search_with_other_settings_goes_on_from_nothing(paths, tmp_path, small, computed):
    for k, config in ((3, settings("exact")), (2, settings("exact")), (3, settings("clusters"))):
        computed.clear()
        assert same(find_neighbours(*paths, k, config, work=tmp_path), find_neighbours(*paths, k, config))
        assert len(computed) == 2 * (max(computed) + 1)


def test_what_is_brief_leaves_nothing(paths, tmp_path):
    for method in JOBS:
        find_neighbours(*paths, 3, settings(method), work=tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_nothing_to_search(tmp_path, paths):
    np.save(tmp_path / "none.npy", np.zeros((0, 16), np.float32))
    found = find_neighbours(tmp_path / "none.npy", paths[1], 3, execution=ExecutionConfig("ray"), work=tmp_path / "work")
    assert found.forward.shape == (0, 3)


def test_others_need_files_and_a_folder(tmp_path, paths):
    with pytest.raises(ConfigError, match="save the arrays"):
        find_neighbours(paths[0], np.load(paths[1]), 3, work=tmp_path)
    with pytest.raises(ConfigError, match="others read and write the same"):
        find_neighbours(*paths, 3, execution=ExecutionConfig("ray"))


@pytest.mark.parametrize(("pairs", "groups"), [(0, 1), (10, 1), (1 << 30, 4), (1 << 36, 64), (1 << 40, 256)])
def test_groups_of_clusters_are_enough_to_share_out_and_not_too_small(pairs, groups):
    assert group_count(pairs) == groups
