"""Mining by shards: the pairs of one process, byte by byte, whoever sought the neighbours."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from unittest.mock import Mock

import numpy as np
import pytest

import xswe
from tests.clusters import damage, slices
from xswe.errors import ConfigError, Unfinished
from xswe.mining import dedup as deduplicating
from xswe.mining import pipeline, verdicts
from xswe.mining import score as scoring
from xswe.mining.dedup import dedup
from xswe.mining.mined import mine
from xswe.mining.pipeline import MineConfig, mine_vectors
from xswe.search import clusters
from xswe.search.lists import SearchConfig
from xswe.search.vectors import encoded_to
from xswe.work import kept
from xswe.work.config import ExecutionConfig
from xswe.work.stage import Stage


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
    load, ended = Stage.load, []

    def work(name):
        how = ExecutionConfig("array", 0, 1)
        mine(model, *files, output=tmp_path / "array.tsv", execution=how, method="exact", threads=1)
        ended.append(name)

    def late(*arguments):
        if not ended:
            monkeypatch.setattr(Stage, "load", load)
            work("another")
        return load(*arguments)

    monkeypatch.setattr(Stage, "load", late)
    work("one")
    assert ended == ["another", "one"]


@pytest.mark.parametrize("method", ["exact", "clusters"])
def test_files_of_vectors_in_a_folder_that_is_gone_on_from(vectors, tmp_path, monkeypatch, method):
    monkeypatch.setattr(kept, "BRIEF", 0.0)
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
            (left,) = folder.glob("neighbours-*/000000.safetensors")
            left.unlink()
    with pytest.raises(ConfigError, match="save the arrays"):
        mine_vectors(*vectors, folder=tmp_path)


def mined(model, files, output, **how):
    mine(model, *files, output=output, threads=1, **how)


def found_again(model, files, output, **how):
    dedup(model, files[0], output, threshold=0.5, near=None, threads=1, **how)


def filtered(model, files, output, **how):
    xswe.filter(model, files, output, languages=("en", "ja"), threshold=None, threads=1, **how)


def scored(model, files, output, **how):
    xswe.score_file(model, files, output, score="ratio", threads=1)


ARRAY, CLUSTERS = {"execution": ExecutionConfig("array", 0, 1)}, {"method": "clusters"}


@pytest.mark.parametrize(
    ("work", "how", "stopped", "name"),
    [
        (mined, {}, (pipeline, "find_neighbours"), "source/vectors.npy"),
        (mined, {}, (pipeline, "choose_pairs"), "neighbours/forward.npy"),
        (mined, ARRAY | CLUSTERS, (clusters.AssignJob, "compute"), "search-*/centroids-*/centroids.npy"),
        (mined, ARRAY | CLUSTERS, (clusters.ClustersJob, "compute"), "search-*/members-*/lines0.npy"),
        (found_again, {}, (deduplicating, "neighbours_within"), "lines-*/vectors.npy"),
        (found_again, {}, (deduplicating, "neighbours_within"), "lines-*/kinds.npy"),
        (filtered, ARRAY, (verdicts.FilterSteps, "second"), "folded-*/folded.npy"),
        (scored, {}, (scoring, "find_neighbours"), "bitext/source.npy"),
    ],
)
def test_what_was_damaged_after_a_kill_is_made_again(model, files, tmp_path, monkeypatch, work, how, stopped, name):
    work(model, files, tmp_path / "whole.tsv", **how)
    with monkeypatch.context() as killed:
        killed.setattr(*stopped, Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            work(model, files, tmp_path / "o.tsv", **how)
    (path,) = (tmp_path / "o.tsv.work").glob(name)
    damage(path)
    work(model, files, tmp_path / "o.tsv", **how)
    assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


@pytest.mark.slow
def test_ray_within_one_side(ray_cluster, model, files, tmp_path):
    how = {"method": "exact", "threads": 1, "threshold": None}
    mine(model, files[0], output=tmp_path / "here.tsv", **how)
    mine(model, files[0], output=tmp_path / "ray.tsv", execution=ExecutionConfig("ray"), **how)
    assert (tmp_path / "ray.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
    assert not (tmp_path / "ray.tsv.work").exists()


@pytest.fixture
def twice(files, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("".join(f"{line}\n" for line in files[0].read_text("utf-8").split("\n") * 2), encoding="utf-8")
    return text


def deduplicated(model, text, name, **how):
    """Return what came of it, and both files."""
    output, rejects = (text.with_name(f"{name}.{end}") for end in ("txt", "tsv"))
    found = dedup(model, text, output, rejects=rejects, **{"threshold": 0.5, "threads": 1} | how)
    return str(found), output.read_bytes(), rejects.read_bytes()


@pytest.mark.parametrize("method", ["exact", "clusters"])
def test_duplicates_by_an_array(model, twice, method, monkeypatch):
    """In any order; a task that was killed, and those that come late, do nothing again that is done."""
    first, second, third = slices(3)
    how: dict = {"method": method, "near": None}
    here = deduplicated(model, twice, "here", **how)

    with monkeypatch.context() as killed:
        killed.setattr(deduplicating, "neighbours_within", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            deduplicated(model, twice, "o", execution=first, **how)
    monkeypatch.setattr(deduplicating, "encoded_to", None)  # all is read and encoded
    steps = 1 if method == "exact" else 2
    for execution in (second, first, third) * steps:
        with suppress(Unfinished):
            found = deduplicated(model, twice, "o", execution=execution, **how)
    assert found == here
    assert {path.name for path in twice.with_name("o.txt.work").iterdir()} == {".lock", "done", "work.json"}
    with monkeypatch.context() as written:
        written.setattr(deduplicating.Deduplicated, "save", None)
        assert deduplicated(model, twice, "o", execution=second, **how) == here
    monkeypatch.setattr(deduplicating, "encoded_to", encoded_to)
    for more in ({"threshold": 0.9}, {}):  # another result, and one that was moved away
        with pytest.raises(Unfinished):
            deduplicated(model, twice, "o", execution=first, **how | more)
        twice.with_name("o.tsv").unlink(missing_ok=True)


def test_tasks_of_an_array_that_are_given_twice_at_once(warm_python, twice):
    here = deduplicated(xswe.load("mini"), twice, "here")
    words = ["dedup", "model=mini", f"input={twice}", f"output={twice.with_name('o.txt')}", "threshold=0.5", "threads=1"]
    words += [f"rejects={twice.with_name('o.tsv')}", "execution=array", "execution.count=2", "execution.wait=60"]
    given = [[warm_python / "python", "-m", "xswe", *words, f"execution.index={index}"] for index in (0, 0, 1)]
    tasks = [subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for each in given]
    told = [task.communicate(timeout=100)[0].splitlines()[:1] for task in tasks]
    assert ([task.returncode for task in tasks], told) == ([0] * 3, [[here[0]]] * 3)
    assert tuple(twice.with_name(name).read_bytes() for name in ("o.txt", "o.tsv")) == here[1:]
    assert {path.name for path in twice.with_name("o.txt.work").iterdir()} == {".lock", "done", "work.json"}


def test_lines_that_others_cannot_read_are_refused(model, tmp_path):
    with pytest.raises(ConfigError, match="others read and write the same"):
        mine(model, ["a"], ["b"], output=tmp_path / "a.tsv", execution=ExecutionConfig("ray"))
    with pytest.raises(ConfigError, match="others read and write the same"):
        mine(model, "a.txt", "b.txt", execution=ExecutionConfig("ray"))
    for given in ((["a"], tmp_path / "a.txt"), ("-", tmp_path / "a.txt"), ("a.txt", "-")):
        with pytest.raises(ConfigError, match="others read and write the same"):
            dedup(model, *given, execution=ExecutionConfig("array", 0, 1))
