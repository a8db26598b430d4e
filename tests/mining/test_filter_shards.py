"""Filtering by shards: the bytes of one process, repetitions across shards, and the line of an error."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import xswe
from tests.clusters import slices
from xswe.errors import ConfigError, InputError, Unfinished, XsweError
from xswe.mining import filter as filtering
from xswe.mining import verdicts
from xswe.mining.filter import filter_bitext
from xswe.mining.learning import CLASSES, Learnt
from xswe.mining.wrong import KINDS
from xswe.work.config import ExecutionConfig

HOW = {"near_duplicates": True, "hubs": 2, "numbers": True, "on_error": "skip", "languages": ("en", "de")}
SHARD = 20_000


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def bitext(sample, tmp_path_factory):
    """Real pairs, repetitions far apart, other targets, a damaged line, one over three shards, no line feed at the end."""
    en, de = sample["en"][:500], sample["de"][:500]
    lines = [f"{a}\t{b}\tmore" for a, b in zip(en, de, strict=True)]
    lines += [
        *lines[:60],
        "alone",
        "long " * 9000 + "\tlang",
        *(f"{a}\t{b} {k}" for k, (a, b) in enumerate(zip(en[:90], de[1:91], strict=True))),
    ]
    path = tmp_path_factory.mktemp("bitext") / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    return path


class Summed:
    """In the place of a classifier, whose training takes seconds: a sum of all that it would learn from."""

    def __init__(self, model, languages, features, sample):
        drawn = zlib.crc32(repr((languages, sample.pairs, sample.rows.tolist())).encode())
        self._sums = (features.sum(axis=1, dtype=np.int64) + drawn) % 1000 / 1000

    def learn(self):
        kinds = 1 + (self._sums * len(KINDS)).astype(np.uint8)
        shares = np.full(len(CLASSES), 1 / len(CLASSES))
        return Learnt(self._sums.astype(np.float32), kinds, shares, tuple(np.linspace(0, 1, 20) for _ in KINDS))


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(filtering, "Learner", Summed)
        patched.setattr(verdicts, "BLOCK", 64)
        patched.setattr(verdicts, "WINDOW", 4096)
        patched.setattr(filtering, "WINDOW", 4096)
        yield


@pytest.fixture(scope="module")
def local(mini, bitext, tmp_path_factory, small_blocks):
    """What one process makes of the bitext."""
    folder = tmp_path_factory.mktemp("local")
    found = filter_bitext(mini, bitext, folder / "o.tsv", rejects=folder / "o.no", threads=2, **HOW)
    assert len(set(filter(None, found.reasons.tolist()))) > 2
    return results(found, folder)


def results(found, folder):
    """Return all that a filtering has found, and the bytes of its files."""
    arrays = [found.reasons.tolist(), np.nan_to_num(found.scores, nan=-9.0).tolist()]
    return found.threshold, *arrays, *((folder / f"o.{end}").read_bytes() for end in ("tsv", "no"))


def test_an_array_in_any_order(mini, bitext, local, tmp_path, monkeypatch):
    files = {"output": tmp_path / "o.tsv", "rejects": tmp_path / "o.no"}
    thirds = slices(3, shard=SHARD)
    for stage in range(2):  # every slice cleans before any compares
        for n, how in enumerate(thirds):
            if stage and n == 1:
                break
            with pytest.raises(Unfinished, match="clean" if not stage and n < 2 else "compare"):
                filter_bitext(mini, bitext, threads=1, execution=how, **files, **HOW)
    assert results(filter_bitext(mini, bitext, threads=1, execution=thirds[1], **files, **HOW), tmp_path) == local
    files["rejects"].unlink()  # and whoever comes late writes what is gone, but not what is there
    assert results(filter_bitext(mini, bitext, threads=1, execution=thirds[0], **files, **HOW), tmp_path) == local
    monkeypatch.setattr(filtering, "_second_pass", None)
    assert results(filter_bitext(mini, bitext, threads=1, execution=thirds[2], **files, **HOW), tmp_path) == local
    assert [(one.name, one.done) for one in xswe.work_status(tmp_path / "o.tsv")] == [("clean", 8), ("compare", 8)]


def test_every_executor_finds_the_same(any_executor, mini, bitext, local, tmp_path):
    files = {"output": tmp_path / "o.tsv", "rejects": tmp_path / "o.no"}
    made = any_executor(lambda how: filter_bitext(mini, bitext, threads=1, execution=how, **files, **HOW), shard=SHARD)
    assert results(made, tmp_path) == local
    assert (tmp_path / "o.tsv.work").exists() == any_executor.tasks[0].has_peers  # for tasks that come late


def test_a_bitext_that_cannot_be_cut_is_one_shard(mini, sample, tmp_path):
    for code in ("en", "de"):
        (tmp_path / f"a.{code}").write_text("\n".join(sample[code][:200]), encoding="utf-8")
    paths, how = [tmp_path / "a.en", tmp_path / "a.de"], ExecutionConfig("array", 0, 1)
    here = filter_bitext(mini, paths, tmp_path / "local.tsv", threads=1)
    made = filter_bitext(mini, paths, tmp_path / "o.tsv", threads=1, execution=how)
    assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "local.tsv").read_bytes()
    assert made.scores.tobytes() == here.scores.tobytes()
    with pytest.raises(ConfigError, match="execution=array: others read and write the same"):
        filter_bitext(mini, paths, execution=how)


def test_the_line_of_an_error_is_counted_from_the_beginning(mini, bitext, tmp_path):
    number = 1 + bitext.read_text("utf-8").split("\n").index("alone")
    how = ExecutionConfig("array", 0, 1, shard=SHARD)
    with pytest.raises(XsweError, match=rf"a\.tsv:{number}: 1 tab-separated columns.*1 of 8 shards failed"):
        filter_bitext(mini, bitext, tmp_path / "o.tsv", threads=1, execution=how, **HOW | {"on_error": "raise"})


@pytest.mark.slow
def test_a_bitext_of_an_object_store(mini, bitext, local, tmp_path):
    storage = pytest.importorskip("fsspec", reason="fsspec is not installed").filesystem("memory")
    storage.pipe("/filter/a.tsv", bitext.read_bytes())
    files = {"output": tmp_path / "o.tsv", "rejects": tmp_path / "o.no"}
    how = ExecutionConfig("array", 0, 1, shard=SHARD)
    assert (
        results(filter_bitext(mini, "memory://filter/a.tsv", threads=1, execution=how, **files, **HOW), tmp_path) == local
    )


def test_a_bitext_that_changes_meanwhile(mini, bitext, tmp_path, monkeypatch):
    (tmp_path / "a.tsv").write_bytes(bitext.read_bytes())
    fold = verdicts.FilterSteps.fold

    def change(self, *given):
        (tmp_path / "a.tsv").write_bytes(bitext.read_bytes()[:-100])
        return fold(self, *given)

    monkeypatch.setattr(verdicts.FilterSteps, "fold", change)
    with pytest.raises(InputError, match="changed while it was read"):
        filter_bitext(mini, tmp_path / "a.tsv", tmp_path / "o.tsv", execution=ExecutionConfig("array", 0, 1), **HOW)
