"""Mining by shards: the pairs of one process, byte by byte, whoever sought the neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from tests.clusters import slices
from xswe.errors import ConfigError, Unfinished
from xswe.io.settings import ExecutionConfig
from xswe.mining.dedup import dedup
from xswe.mining.mined import mine
from xswe.mining.pipeline import MineConfig, mine_vectors
from xswe.search import shards as search_module
from xswe.search.types import SearchConfig


@pytest.fixture(scope="module")
def files(sample, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    source, target = folder / "en.txt", folder / "ja.txt"
    source.write_text("".join(f"{line}\n" for line in sample["en"][:600]), encoding="utf-8")
    target.write_text("".join(f"{line}\n" for line in sample["ja"][300:900]), encoding="utf-8")
    return source, target


@pytest.fixture(scope="module")
def vectors():
    a, noise = np.random.default_rng(0).standard_normal((2, 900, 16), np.float32)
    b = np.roll(a, 300, 0) + 0.4 * noise
    return [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (a, b)]


@pytest.mark.parametrize("method", ["exact", "clusters"])
def test_an_array(model, files, tmp_path, method):
    how = {"method": method, "threads": 1}
    mine(model, *files, output=tmp_path / "here.tsv", **how)
    for _ in range(5):
        for execution in slices(2):
            try:
                mine(model, *files, output=tmp_path / "array.tsv", execution=execution, **how)
            except Unfinished:
                continue
            assert (tmp_path / "array.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
            return
    raise AssertionError


def test_tasks_of_an_array_that_end_together(model, files, tmp_path, monkeypatch):
    """One reads what was found while another, which has the pairs, removes it."""
    fill, ended = search_module._fill, []

    def work(name):
        how = ExecutionConfig("array", 0, 1)
        mine(model, *files, output=tmp_path / "array.tsv", execution=how, method="exact", threads=1)
        ended.append(name)

    def late(*arguments):
        if not ended:
            monkeypatch.setattr(search_module, "_fill", fill)
            work("another")
        fill(*arguments)

    monkeypatch.setattr(search_module, "_fill", late)
    work("one")
    assert ended == ["another", "one"]


@pytest.mark.parametrize("method", ["exact", "clusters"])
def test_files_of_vectors_in_a_folder_that_is_gone_on_from(vectors, tmp_path, method):
    config = MineConfig(neighbours=SearchConfig(method=method, threads=1))
    names = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for name, side in zip(names, vectors, strict=True):
        np.save(name, side)
    for sides, given in ((vectors, names), (vectors[:1], names[:1])):
        folder = tmp_path / str(len(sides))
        expected = mine_vectors(*sides, config=config).pairs
        for _ in range(2):
            found = mine_vectors(*given, config=config, folder=folder).pairs
            assert [getattr(found, name).tobytes() for name in vars(found)] == [
                getattr(expected, name).tobytes() for name in vars(expected)
            ]
            assert (folder / "merge" / "000000.safetensors").is_file()
            (folder / "merge" / "000000.safetensors").unlink()
    with pytest.raises(ConfigError, match="save the arrays"):
        mine_vectors(*vectors, folder=tmp_path)


def test_ray_within_one_side(ray_cluster, model, files, tmp_path):
    how = {"method": "exact", "threads": 1, "threshold": None}
    mine(model, files[0], output=tmp_path / "here.tsv", **how)
    mine(model, files[0], output=tmp_path / "ray.tsv", execution=ExecutionConfig("ray"), **how)
    assert (tmp_path / "ray.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
    assert not (tmp_path / "ray.tsv.work").exists()


def test_duplicates_on_ray(ray_cluster, model, files, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("".join(f"{line}\n" for line in files[0].read_text("utf-8").split("\n") * 2), encoding="utf-8")
    for name, how in (("here", ExecutionConfig()), ("ray", ExecutionConfig("ray"))):
        dedup(model, text, tmp_path / f"{name}.txt", rejects=tmp_path / f"{name}.tsv", threshold=0.5, execution=how)
    assert (tmp_path / "ray.txt").read_bytes() == (tmp_path / "here.txt").read_bytes()
    assert (tmp_path / "ray.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
    with pytest.raises(ConfigError, match="use execution=ray"):
        dedup(model, text, tmp_path / "b.txt", execution=ExecutionConfig("array", 0, 1))


def test_lines_that_others_cannot_read_are_refused(model, tmp_path):
    with pytest.raises(ConfigError, match="give files"):
        mine(model, ["a"], ["b"], output=tmp_path / "a.tsv", execution=ExecutionConfig("ray"))
    with pytest.raises(ConfigError, match="give output="):
        mine(model, "a.txt", "b.txt", execution=ExecutionConfig("ray"))
