"""The blocked, threaded searches against the obvious one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.errors import ConfigError, InputError
from xswe.io.products import COLUMNS, ROWS, pack, products
from xswe.mining.hard_rules import FilterConfig
from xswe.mining.pipeline import MineConfig
from xswe.search import clusters, exact
from xswe.search.kernels import Lists, merge, sweep
from xswe.search.lists import NONE, Neighbours, SearchConfig, empty_lists
from xswe.search.neighbours import find_neighbours, neighbours_within
from xswe.search.shard import Opened, Search
from xswe.search.vectors import Vectors, VectorWriter, quantise
from xswe.work.config import ExecutionConfig

ONE = SearchConfig(threads=1)
NOTHING = np.zeros(0, np.int64)


def naive(scores, k):
    """The k best of each row, equal scores by rising id."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, 1), order


def assert_neighbours(found, a, b, k):
    scores = products(a, b)
    for values, ids, table in ((found.forward, found.forward_ids, scores), (found.backward, found.backward_ids, scores.T)):
        wanted, names = naive(table, k)
        width = wanted.shape[1]
        np.testing.assert_array_equal(values[:, :width], wanted)
        np.testing.assert_array_equal(ids[:, :width], names)
        assert (values[:, width:] == -np.inf).all()
        assert (ids[:, width:] == NONE).all()


def same(a, b):
    for name in ("forward", "forward_ids", "backward", "backward_ids"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@settings(max_examples=20)
@given(st.integers(1, 150), st.integers(1, 150), st.integers(1, 6), st.integers(0, 99))
def test_sweep_keeps_the_best_of_rows_and_columns_with_ties_by_id(rows, columns, k, seed):
    draw = np.random.default_rng(seed)
    left, right = (draw.integers(0, 3, (n, 3)).astype(np.float32) for n in (rows, columns))  # many equal products
    scores = left @ right.T
    row, column = empty_lists(rows, k), empty_lists(columns, k)
    limits = np.full(rows, -np.inf, np.float32), np.full(columns, -np.inf, np.float32)
    for r in range(0, rows, 64):
        for c in range(0, columns, 70):
            x, y = slice(r, r + 64), slice(c, c + 70)
            own = Lists(row[0][x], row[1][x], limits[0][x], r), Lists(column[0][y], column[1][y], limits[1][y], c)
            sweep(pack(left[x], ROWS), pack(right[y], COLUMNS), *own)
    for found, table in ((row, scores), (column, scores.T)):
        wanted, ids = naive(table, k)
        np.testing.assert_array_equal(found[0][:, : wanted.shape[1]], wanted)
        np.testing.assert_array_equal(found[1][:, : wanted.shape[1]], ids)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=40), st.integers(1, 5), st.randoms())
def test_merge_is_the_same_in_any_order_and_holds_no_id_twice(candidates, k, random):
    best = {}
    for score, name in candidates:
        best[name] = max(score, best.get(name, 0))
    wanted = sorted((-score, name) for name, score in best.items())[:k]
    random.shuffle(candidates)
    scores, ids = empty_lists(1, k)
    for score, name in candidates:
        merge(scores, ids, NOTHING, np.array([[score]], np.float32), np.array([[name]], np.int32), NOTHING)
    assert [(-s, i) for s, i in zip(scores[0].tolist(), ids[0].tolist(), strict=True) if i >= 0] == wanted


def test_the_nearest_before_and_after_of_any_number_of_vectors():
    """Whatever part of a tile is left at the end."""
    every = np.random.default_rng(7).standard_normal((75, 6)).astype(np.float32)
    every /= np.linalg.norm(every, axis=1, keepdims=True)
    scores = products(every, every)
    for n in range(1, len(every) + 1):
        found = neighbours_within(every[:n], 2, ONE)
        for values, ids, others in (
            (found.forward, found.forward_ids, lambda row: range(row)),
            (found.backward, found.backward_ids, lambda row, n=n: range(row + 1, n)),
        ):
            for row in range(n):
                wanted = sorted(others(row), key=lambda other: (-scores[row, other], other))[:2]
                assert ids[row, : len(wanted)].tolist() == wanted
                assert values[row, : len(wanted)].tolist() == [scores[row, other] for other in wanted]
                assert (ids[row, len(wanted) :] == NONE).all()


@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (3, 2, 4), (700, 1300, 4), (1500, 600, 1), (2100, 513, 17)])
def test_exact_equals_the_whole_matrix(vectors, n, m, k):
    a, b = vectors(n, m)
    assert_neighbours(find_neighbours(a, b, k, ONE), a, b, k)


def test_neither_threads_nor_memory_change_the_result(vectors):
    a, b = vectors(2500, 1700)
    a[7] = a[2400]  # equal scores, too
    b[11] = b[1600]
    first = find_neighbours(a, b, 3, ONE)
    same(first, find_neighbours(a, b, 3, replace(ONE, threads=3)))
    small = replace(ONE, memory=1e-6)
    assert exact.panel_rows(1700, 24, 3, small, 1) == 512
    same(first, find_neighbours(a, b, 3, small))
    assert first.forward_ids[7].tolist() == first.forward_ids[2400].tolist()
    rows = np.flatnonzero((first.forward_ids == 1600).any(1))
    assert all(11 in first.forward_ids[row] for row in rows)


def test_the_panel_and_the_lists_fit_in_the_memory():
    config = SearchConfig(memory=0.5, threads=4)
    rows = exact.panel_rows(50_000_000, 256, 4, config, 4)
    needed = rows * (256 * 4 + 4 * (4 * 8 + 4)) + (8 * 1024 + 64 * COLUMNS) * 256 * 4
    assert 0.9 * 2**29 < needed <= 2**29


@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_vectors_on_the_disk(vectors, storage, tmp_path):
    a, b = vectors(1200, 1100, 64)
    for name, array in (("a", a), ("b", b)):
        writer = VectorWriter(tmp_path / f"{name}.npy", 64, storage)
        writer.append(array[:500])
        writer.append(array[500:])
        writer.close()
    on_disk = [Vectors.open(tmp_path / f"{name}.npy") for name in "ab"]
    assert on_disk[0].array.dtype == storage
    kept = [side.read(0, len(side)) for side in on_disk]
    np.testing.assert_allclose(np.linalg.norm(kept[0], axis=1), 1, atol=1e-6)
    assert np.abs(kept[0] - a).max() < {"float32": 1e-9, "float16": 1e-3, "int8": 6e-3}[storage]
    np.testing.assert_array_equal(on_disk[0].take(np.array([5, 3])), kept[0][[5, 3]])
    found = find_neighbours(tmp_path / "a.npy", on_disk[1], 4, ONE)
    same(found, find_neighbours(*kept, 4, ONE))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_rows_of_an_array_in_memory(kind, layout):
    array = np.asarray(np.eye(6) * 0.5 + np.eye(6, k=1) * 0.25, kind, order=layout)
    rows = np.array([5, 0, 0, 3])
    unit = array.astype(np.float32)
    if kind is not np.float32:
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(Vectors(array).take(rows), unit[rows], atol=1e-6)
    np.testing.assert_allclose(Vectors(array).read(1, 4), unit[1:4], atol=1e-6)
    np.testing.assert_allclose(Vectors(array).at_hand().take(rows), unit[rows], atol=1e-6)
    assert [(first, len(block)) for first, block in Vectors(array).blocks(4)] == [(0, 4), (4, 2)]
    names = {Vectors(one).digest() for one in (array, array[::-1], array[:3], np.asarray(unit.reshape(4, 9)))}
    assert len(names) == 4
    assert Vectors(array).digest() == Vectors(array.copy()).digest()


@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_vectors_are_quantised_by_their_largest_number(storage):
    given = np.array([[0.5, -1.0, 0.25], [0, 0, 0], [2, 1, 0]], np.float32)
    wanted = given if storage == "float32" else [[64, -127, 32], [0, 0, 0], [127, 64, 0]]  # 63.5 is rounded to even
    np.testing.assert_array_equal(quantise(given, storage), wanted)
    assert quantise(given[:0], storage).shape == (0, 3)


def test_no_vectors_at_all(tmp_path):
    VectorWriter(tmp_path / "a.npy", 8, "float16").close()
    empty = Vectors.open(tmp_path / "a.npy")
    assert (len(empty), empty.dim) == (0, 8)
    found = find_neighbours(empty, np.zeros((3, 8), np.float32), 2)
    assert found.forward.shape == (0, 2)
    assert (found.backward_ids == NONE).all()


def test_a_zero_vector_is_nobodys_special_neighbour(vectors):
    a, b = vectors(30, 30)
    a[4] = 0
    found = find_neighbours(a, b, 2, ONE)
    assert (found.forward[4] == 0).all()
    assert (quantise(a, "int8")[4] == 0).all()
    np.testing.assert_array_equal(Vectors(quantise(a, "int8")).read(0, 30)[4], 0)


def test_clusters_with_every_line_in_every_cluster_are_exact(vectors):
    a, b = vectors(700, 900)
    found = find_neighbours(a, b, 4, SearchConfig(method="clusters", clusters=5, probes=5, threads=2))
    assert_neighbours(found, a, b, 4)


def test_clusters_find_planted_pairs_and_depend_on_the_seed_only(vectors):
    a, b = vectors(6000, 6000, 32, planted=3000)
    config = SearchConfig(method="clusters", threads=1)
    found = find_neighbours(a, b, 1, config)
    assert (found.forward_ids[:3000, 0] == np.arange(3000)).mean() > 0.95
    same(found, find_neighbours(a, b, 1, replace(config, threads=3)))
    other = find_neighbours(a, b, 1, replace(config, seed=1))
    assert (other.forward_ids != found.forward_ids).any()


def test_of_equal_scores_clusters_keep_the_lower_ids_whichever_cluster_comes_first(monkeypatch):
    """Entries are small binary fractions, so that sums are exact and many scores are equal."""
    rng = np.random.default_rng(3)
    a, b = ((rng.integers(-1, 2, (90, 16)) / 4).astype(np.float32) for _ in range(2))
    both, last_first = np.tile([0, 1], (90, 1)), np.stack([np.arange(90) < 45, np.full(90, -1)], 1)
    given = [({"clusters": each.astype(np.int32)}, {"lines": 90}) for each in (both, last_first)]
    monkeypatch.setattr(clusters.AssignJob, "compute", lambda _, opened, shard: given[shard])
    found = find_neighbours(a, b, 3, SearchConfig("clusters", clusters=2, probes=2, threads=1))
    for values, ids, table in ((found.forward, found.forward_ids, a @ b.T), (found.backward, found.backward_ids, b @ a.T)):
        wanted, order = naive(table, 3)
        np.testing.assert_array_equal(values, wanted)
        np.testing.assert_array_equal(ids, order)


def test_of_equal_centroids_the_lower_number_is_nearest(vectors):
    points, distinct = vectors(50, 4)
    centroids = np.repeat(distinct, 3, axis=0)
    found = clusters.assign(Vectors(points), centroids, np.zeros(points.shape[1], np.float32), 5, 1)
    wanted = np.argsort(-np.round((points @ centroids.T).astype(np.float64), 5), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(found, wanted)


def test_members_of_clusters_are_all_there_and_rise():
    chosen = np.array([[2, 0], [1, -1], [0, 2], [2, 1]], np.int32)
    members = clusters.Members.of(chosen, 4)
    assert [members[c].tolist() for c in range(4)] == [[0, 2], [1, 3], [0, 2, 3], []]


@pytest.mark.parametrize(
    ("sources", "targets", "asked", "count"),
    [
        (100, 100, 0, 64),
        (100, 10, 0, 10),
        (100, 1_000_000, 0, 100),
        (10**6, 10**6, 0, 8192),
        (0, 5, 0, 1),
        (9, 9, 7, 7),
        (3, 9, 7, 3),
    ],
)
def test_clusters_are_the_power_of_two_next_to_six_roots_unless_told(sources, targets, asked, count):
    assert clusters.cluster_count(sources, targets, SearchConfig(method="clusters", clusters=asked)) == count


@pytest.mark.parametrize(
    ("pairs", "groups"), [(0, 1), (1 << 28, 1), (1 << 30, 4), (1 << 34, 64), (1 << 38, 64), (1 << 40, 256)]
)
def test_groups_of_clusters_have_a_few_seconds_work_and_fit_on_many_machines(pairs, groups):
    assert clusters.group_count(pairs) == groups


def test_groups_of_clusters_have_equal_shares_of_the_pairs(monkeypatch):
    rng = np.random.default_rng(2)
    sides = [rng.integers(0, 200, (3000, 2)).astype(np.int32) for _ in range(2)]
    monkeypatch.setattr(clusters, "group_count", lambda pairs: 8)
    found = clusters._members(sides, rng.normal(size=(200, 4)).astype(np.float32), SearchConfig())
    assert sorted(found["order"]) == list(range(200))
    pairs = np.prod([np.bincount(side.ravel(), minlength=200) for side in sides], axis=0)[found["order"]]
    shares = [part.sum() for part in np.split(pairs, found["cuts"])]
    assert len(shares) == 8
    assert np.ptp(shares) <= 2 * pairs.max()
    for n, side in enumerate(sides):
        assert np.array_equal(np.diff(found[f"bounds{n}"]), np.bincount(side.ravel(), minlength=200))


@pytest.mark.parametrize("count", [1, 3, 7, 12])
def test_centroids_are_those_of_spherical_k_means_written_out(count):
    """Six rounds, all but the last on every second point; clusters without any begin anew at the farthest points."""
    rng = np.random.default_rng(count)
    sides = [rng.normal(size=(size, 5)).astype(np.float32) * 3 for size in (30, 21)]
    found = clusters.train_centroids([side.copy() for side in sides], count, np.random.default_rng(0), 1)
    points = np.concatenate(sides).astype(np.float64)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    centroids = points[np.sort(np.random.default_rng(0).choice(51, count, replace=False))]
    for turn in range(6):
        seen = points if turn == 5 else points[turn % 2 :: 2]
        cosines = seen @ centroids.T
        nearest, best = cosines.argmax(1), cosines.max(1)
        far = iter(np.resize(np.argsort(best.astype(np.float32), kind="stable"), count))
        sums = [seen[nearest == each].sum(0) if (nearest == each).any() else seen[next(far)] for each in range(count)]
        centroids = np.array(sums) / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(found, centroids, atol=1e-5)
    more = clusters.train_centroids([points[:2].astype(np.float32)], 3, np.random.default_rng(0), 1)
    np.testing.assert_allclose(np.linalg.norm(more, axis=1), 1, atol=1e-6)


def test_centroids_are_of_samples_without_the_mean_of_each_side(vectors):
    sides = [side + np.float32(shift) for side, shift in zip(vectors(60, 9), (1, -2), strict=True)]
    config = SearchConfig("clusters", seed=3, threads=1)
    found, means = clusters.make_centroids([Vectors(side) for side in sides], 4, config, 1)
    draw = np.random.default_rng([3, 11])
    samples = [side[np.sort(draw.permutation(len(side))[:32])] for side in sides]
    for mean, sample in zip(means, samples, strict=True):
        np.testing.assert_allclose(mean, sample.mean(0), rtol=1e-5)
    centred = [sample - mean for sample, mean in zip(samples, means, strict=True)]
    np.testing.assert_array_equal(found, clusters.train_centroids(centred, 4, draw, 1))


def test_lists_of_a_shard_are_empty_or_those_known_so_far():
    lines = np.array([4, 0, 2]), np.array([1, 3])
    new = Opened([]).lists(lines, 2)
    assert (new.forward.shape, new.backward.shape, new.k) == ((3, 2), (2, 2), 2)
    assert (new.forward_ids == NONE).all()
    numbers = np.arange(10).reshape(5, 2)
    known = Neighbours(numbers.astype(np.float32), numbers, numbers + 10.0, numbers + 10)
    own = Opened([], known=known).lists(lines, 2)
    assert own.forward_ids.tolist() == own.forward.tolist() == [[8, 9], [0, 1], [4, 5]]
    assert own.backward_ids.tolist() == own.backward.tolist() == [[12, 13], [16, 17]]
    assert known.reversed().forward is known.backward


def test_sides_are_kept_at_hand_if_they_take_less_than_half_of_the_memory(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(16, dtype=np.float32))  # of 1 KiB
    side = Vectors.open(tmp_path / "a.npy")
    for kib, at_hand in ((4.0, False), (4.004, True)):
        kept = clusters.near([side, side], SearchConfig(memory=kib / 2**20))
        assert [one is not side for one in kept] == [at_hand] * 2


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("method", ["exact", "clusters"])
def test_the_bar_is_told_of_every_pair(vectors, monkeypatch, method, within):
    """As many as are announced, and as many as the shards say they scored."""
    module = exact if method == "exact" else clusters
    monkeypatch.setattr(exact, "_TILE_ROWS", 256)
    monkeypatch.setattr(clusters, "_MAX_GROUP_PAIRS", 1 << 12)
    monkeypatch.setattr(clusters, "_MIN_GROUP_PAIRS", 1)
    told, stages = [], []

    def one_by_one(stage, execution, threads, opened, total, state=None):
        advanced, scored = [], 0
        stages.append(stage)
        opened.advance = advanced.append
        for shard in range(stage.count):
            arrays, counts = stage.job.compute(opened, shard)
            scored += next(iter(counts.values()))
            yield arrays
        told.append((total, sum(advanced), scored))

    monkeypatch.setattr(module, "map_shards", one_by_one)
    a, b = vectors(700, 300)
    config = SearchConfig(threads=1) if method == "exact" else SearchConfig("clusters", clusters=9, probes=2, threads=1)
    found = neighbours_within(a, 3, config) if within else find_neighbours(a, b, 3, config)
    assert told[-1][0][0] == "pair"
    assert all(total == advanced == scored for (_, total), advanced, scored in told)
    assert stages[-1].count == {("exact", False): 6, ("exact", True): 6}.get((method, within), stages[-1].count)
    if method == "exact":
        tiles = 256 * 256 * 3 + 188 * 256 * 2 + 188**2 if within else 700 * 300
        assert told[-1][1] == tiles
        if not within:
            assert_neighbours(found, a, b, 3)
    else:
        assert told[0][:1] == (("line", 700 if within else 1000),)
        assert stages[-1].count > 4


@pytest.mark.parametrize(
    ("lines", "tiles", "edge"),
    [((1, 1), 1, 1 << 17), (((1 << 17) + 1, 1), 2, 1 << 17), ((1 << 24, 1), 64, (1 << 24) // 64)],
)
def test_a_side_has_no_more_than_64_tiles(monkeypatch, lines, tiles, edge):
    kept = []
    monkeypatch.setattr(exact, "map_shards", lambda stage, *_, **__: kept.append(stage) or iter(()))
    search = Search((), lines, False, 1, SearchConfig(), Path("work"))
    assert list(exact.search_tiles(search, [], Neighbours.empty(0, 0, 1), ExecutionConfig())) == []
    assert (kept[0].count, kept[0].job.edge) == (tiles, edge)


def test_what_decides_a_search_is_in_its_name():
    search = Search((), (3, 4), False, 2, SearchConfig(), Path("work"))
    other = [replace(search, lengths=(4, 3)), replace(search, within=True), replace(search, k=3)]
    other.append(replace(search, config=SearchConfig(method="clusters", seed=1)))
    names = [search.identity(), search.identity(1), search.identity(2), *(each.identity() for each in other)]
    assert len(set(names)) == len(names)
    assert replace(search, config=SearchConfig(threads=3, memory=0.5)).identity() == search.identity()
    assert search.place("a", "b") == Path("work/a-b")


def test_limits_of_the_settings():
    for fine in ({"memory": 1e-9}, {"clusters": 0, "probes": 1}, {"threads": 0}, {"threads": None}, {"clusters": 1}):
        SearchConfig(method="exact" if fine.keys() & {"memory", "threads"} else "clusters", **fine)
    for wrong, message in (
        ({"memory": 0.0}, "memory=0.0: give GiB, as in memory=2"),
        ({"memory": float("inf")}, "memory=inf: give GiB, as in memory=2"),
        ({"probes": 0, "method": "clusters"}, "probes=0: must be at least 1"),
        ({"clusters": -1, "method": "clusters"}, "clusters=-1: give a number, or 0 for one that suits the sizes"),
        ({"threads": -1}, "threads=-1: give at least 1, or null for all processors"),
        ({"device": "cuda", "method": "clusters"}, "device=cuda: only method=exact runs on a device"),
    ):
        with pytest.raises(ConfigError, match=f"^{message}$"):
            SearchConfig(**wrong)
    assert SearchConfig(memory=1.5).bytes == 3 * 2**29
    assert SearchConfig(threads=3).workers == 3
    assert SearchConfig().workers == SearchConfig(threads=0).workers >= 1


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda a: find_neighbours(a, a[:, :5], 2), "dimensions"),
        (lambda a: find_neighbours(a, a, 0), "k=0"),
        (lambda a: find_neighbours(a.astype(np.float64), a, 2), "float64"),
        (lambda a: SearchConfig(method="annoy"), "exact, clusters"),
        (lambda a: SearchConfig(memory=0), "memory"),
        (lambda a: SearchConfig(memory=float("nan")), "memory"),
        (lambda a: SearchConfig(clusters=-1), "clusters=-1"),
        (lambda a: SearchConfig(threads=-1), "threads=-1"),
        (lambda a: FilterConfig(min_characters=-1), "min_characters=-1"),
        (lambda a: FilterConfig(length_ratio=float("nan")), "length_ratio=nan"),
        (lambda a: MineConfig(threshold=float("nan")), "threshold=nan"),
        (lambda a: MineConfig(max_score=float("nan")), "max_score=nan"),
        (lambda a: SearchConfig(device="cuda", method="clusters"), "exact"),
        pytest.param(
            lambda a: find_neighbours(a, a, 2, SearchConfig(device="nonsense")), "device=nonsense", marks=pytest.mark.slow
        ),
    ],
)
def test_mistakes_name_the_setting(vectors, call, found):
    with pytest.raises(ConfigError, match=found):
        call(vectors(10, 10)[0])


def test_a_file_that_is_no_array(tmp_path):
    (tmp_path / "a.npy").write_text("hello")
    with pytest.raises(InputError, match=r"a\.npy"):
        Vectors.open(tmp_path / "a.npy")
    with pytest.raises(InputError, match="no array"):
        Vectors.open(tmp_path / "b.npy")
