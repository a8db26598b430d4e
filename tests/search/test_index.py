from __future__ import annotations

import errno
import gc
import re
import sqlite3
from contextlib import contextmanager

import numpy as np
import pytest

import xswe
from tests.clusters import damage, slices
from xswe.errors import ConfigError, InputError, ModelError, Unfinished, XsweError
from xswe.search import building as module
from xswe.search import numbers as numbers_module
from xswe.search import writer as writer_module
from xswe.search.hits import Hit, Hits
from xswe.search.kernels import Coded, make_codes, nearest
from xswe.search.layout import copy_files
from xswe.search.sentences import Sentences
from xswe.search.vectors import Vectors
from xswe.work import parts
from xswe.work.config import ExecutionConfig
from xswe.work.run import shards_ahead


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture
def texts(sample):
    return [*sample["en"], *sample["ja"], "\U0001f980", ""]


def unit(rng, rows, dim):
    vectors = rng.normal(size=(rows, dim)).astype(np.float32) ** 3  # some numbers are much larger than the others
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_few_rows_are_scored_in_full():
    rng, taken = np.random.default_rng(0), []

    class Counted(Vectors):
        def take(self, rows):
            taken.append(len(rows))
            return super().take(rows)

    vectors = unit(rng, 2000, 64)
    codes, scales, error = make_codes(vectors)
    for query in unit(rng, 10, 64):
        nearest(query[None], 5, Coded(codes, scales, Counted(vectors), error))
    assert len(taken) == 10
    assert max(taken) < 200


@pytest.mark.parametrize("dim", [1, 3, 64, 1500])
@pytest.mark.parametrize("threads", [1, 3])
def test_no_estimate_hides_one_of_the_nearest(monkeypatch, dim, threads):
    monkeypatch.setattr("xswe.search.kernels._MIN_THREAD_ROWS", 1)
    rng = np.random.default_rng(dim)
    vectors = unit(rng, 400, dim)
    vectors[200:210] = vectors[7]  # equal cosines: the lower rows win
    codes, scales, error = make_codes(vectors)
    assert error == pytest.approx(np.linalg.norm(vectors - codes * scales[:, None], axis=1).max(), abs=1e-5)
    scales[11] = np.nan
    for query in (*unit(rng, 20, dim), vectors[7], vectors[11]):
        scores = vectors.astype(np.float64) @ query.astype(np.float64)
        order = [row for row in np.lexsort((np.arange(400), -scores.astype(np.float32))) if row != 11]
        for k in (1, 5, 128, 129, 1000):
            ((found, rows),) = nearest(query[None], k, Coded(codes, scales, Vectors(vectors), error), threads=threads)
            assert rows.tolist() == order[:k]
            np.testing.assert_allclose(found, scores[rows], atol=1e-6)


@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_an_index_finds_what_all_cosines_say(mini, texts, storage):
    index = xswe.index(mini, texts, storage=storage)
    queries = texts[:300:7]
    cosines = mini.encode(queries) @ mini.encode(texts).T
    for found, row in zip(index.search(queries, k=5), cosines, strict=True):
        best = np.sort(row)[::-1][:5]
        tolerance = {"float32": 1e-6, "float16": 1e-3, "int8": 0.03}[storage]
        np.testing.assert_allclose([hit.score for hit in found], best, atol=tolerance)
        assert [hit.text for hit in found] == [texts[hit.row] for hit in found]
    assert [len(found) for found in index.search(["", "\U0001f980"])] == [0, 0]
    every = index.search(texts[0], k=10_000)
    assert not {len(texts) - 2, len(texts) - 1} & {hit.row for hit in every}


def test_lists_files_and_streams_give_the_same_index(mini, texts, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    made = [xswe.index(mini, given) for given in (texts, tmp_path / "a.txt", iter(texts))]
    found = [index.search(texts[:20], k=3) for index in made]
    assert found[0] == found[1] == found[2]
    vectors = mini.encode(texts[:20])
    assert [each.hits for each in made[0].search(vectors, k=3)] == [each.hits for each in found[0]]


def test_what_is_added_removed_and_saved_is_there_when_it_is_opened_again(mini, texts, tmp_path):
    index = xswe.index(mini, texts[:100], folder=tmp_path / "a", metadata=({"line": n} for n in range(100)))
    assert index.add(texts[100:150]) == range(100, 150)
    index.remove([3, 120])
    assert len(index) == 148
    assert texts[3] not in [hit.text for hit in index.search(texts[3], k=150)]
    index.save(tmp_path / "b")
    index.remove([4])
    for folder, missing in (("a", {3, 4, 120}), ("b", {3, 120})):
        opened = xswe.load_index(tmp_path / folder)
        assert {hit.row for hit in opened.search(texts[5], k=200)} == set(range(150)) - missing
        assert opened[5] == (1.0, texts[5], 5, {"line": 5})
        assert opened[149].metadata is None
        with pytest.raises(IndexError, match="row 3"):
            opened[3]
    with pytest.raises(ConfigError, match="no sentence 3, or it was removed before"):
        xswe.load_index(tmp_path / "b").remove([5, 3])
    assert xswe.load_index(tmp_path / "b")[5].row == 5


def test_a_copy_is_of_one_moment_or_not_made(mini, texts, tmp_path, monkeypatch):
    index, copy, calls = xswe.index(mini, texts[:20], folder=tmp_path / "a"), copy_files, []

    def disturbed(*given):
        calls.append(given)
        if len(calls) == 1:  # another process adds what this one does not copy
            xswe.load_index(tmp_path / "a").add(texts[20:22])
            raise FileNotFoundError
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        copy(*given)

    monkeypatch.setattr("xswe.search.index.copy_files", disturbed)
    index.save(tmp_path / "b")
    assert len(xswe.load_index(tmp_path / "b")) == 22
    with pytest.raises(OSError, match="No space left"):
        index.save(tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_an_addition_that_fails_leaves_nothing_behind(mini, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(numbers_module, "BLOCK", 16)
    index = xswe.index(mini, texts[:50], folder=tmp_path / "a")
    with pytest.raises(TypeError, match=r"texts\[40\] is int"):
        index.add([*texts[50:90], 3])
    with pytest.raises(ConfigError, match="only 20 values"):
        index.add(texts[50:90], range(20))
    with pytest.raises(ConfigError, match="more values than the 2 texts"):
        index.add(texts[:2], range(3))
    for each in (index, xswe.load_index(tmp_path / "a")):
        assert len(each) == 50
    index.add(texts[50:60])
    again = xswe.index(mini, texts[:60])
    assert xswe.load_index(tmp_path / "a").search(texts[:60]) == again.search(texts[:60])


def test_an_addition_that_fails_writes_nothing_later(mini, texts, tmp_path):
    gc.freeze()  # what is older is not looked through
    index = xswe.index(mini, texts[:50], folder=tmp_path / "a", threads=1)
    with pytest.raises(ConfigError, match="more values than the 40 texts") as kept:  # as a notebook keeps it
        index.add(texts[50:90], range(41), threads=1)
    index.add(texts[90:190], threads=1)
    before = content(tmp_path / "a")
    del kept
    gc.collect()
    assert content(tmp_path / "a") == before


def test_an_index_that_another_process_adds_to_is_not_called_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr("xswe.search.connections.WAIT", 0.05)
    sentences = Sentences(tmp_path / "a.sqlite")
    sentences.create({"rows": 0})
    with sentences.writing(), pytest.raises(XsweError, match="another process is changing the index"), sentences.writing():
        pass


def test_metadata_holds_any_text(mini, texts, tmp_path):
    index = xswe.index(mini, texts[:2], folder=tmp_path / "a", metadata=[{"file": "caf\udce9.txt"}, "é"], threads=1)
    assert [index[0].metadata, index[1].metadata] == [{"file": "caf\udce9.txt"}, "é"]


def test_an_index_of_nothing_grows(mini, texts, tmp_path):
    index = xswe.index(mini, [], folder=tmp_path / "a")
    for each in (index, xswe.load_index(tmp_path / "a")):
        assert [len(each), len(each.search("train")), each.verify()] == [0, 0, None]
    assert index.add(texts[:3]) == range(3)
    assert index.add([]) == range(3, 3)
    index.remove([])
    assert [hit.row for hit in xswe.load_index(tmp_path / "a").search(texts[1], k=1)] == [1]
    index.verify()


def test_other_tools_read_the_files(mini, texts, tmp_path):
    xswe.index(mini, texts, folder=tmp_path / "a", metadata=[{"n": 1}] * len(texts))
    np.testing.assert_array_equal(np.load(tmp_path / "a" / "vectors.npy"), mini.encode(texts))
    database = sqlite3.connect(tmp_path / "a" / "sentences.sqlite")
    query = "SELECT text FROM sentences WHERE json_extract(metadata, '$.n') = 1 ORDER BY row"
    assert [text for (text,) in database.execute(query)] == texts


def test_sign_bits_find_nearly_all_and_what_came_later(mini, texts, monkeypatch):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 500)
    exact = xswe.index(mini, texts[:600])
    index = xswe.index(mini, texts[:400], method="binary")
    assert index._now._signs is None
    index.add(texts[400:600])
    assert len(index._now._signs.rows) == 600
    queries = texts[:600:5]
    pairs = zip(exact.search(queries), index.search(queries, rescored=30), strict=True)
    shared = [len({hit.row for hit in a} & {hit.row for hit in b}) / len(a) for a, b in pairs]
    assert 0.8 < np.mean(shared) < 1
    assert index.search(queries, rescored=600) == exact.search(queries)
    assert [hits[0] for hits in index.search(queries, rescored=30)] == [hits[0] for hits in exact.search(queries)]
    index.add(["Hovercrafts are full of eels."])
    assert index.search("My hovercraft is full of eels.", k=1, rescored=5)[0].row == 600
    index.remove([600])
    assert all(hit.row != 600 for hit in index.search("My hovercraft is full of eels.", k=20, rescored=20))


def test_sign_bits_are_the_same_however_an_index_grew(mini, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 500)
    many = [f"{texts[i % len(texts)]} {i}" for i in range(8_900)]
    xswe.index(mini, many, folder=tmp_path / "a", method="binary", threads=2)
    index = xswe.index(mini, many[:100], folder=tmp_path / "b", method="binary", threads=1)
    for start, stop in ((100, 101), (101, 700), (700, 8_191), (8_191, 8_900)):  # pages are of 8,192
        index.add(many[start:stop], threads=1)
    for name in ("sign_pages.npy", "sign_rows.npy"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert len(index._now._signs.pages) == 1
    assert xswe.load_index(tmp_path / "a").search(many[:90]) == index.search(many[:90])


def test_hits_print_and_convert(mini):
    pandas = pytest.importorskip("pandas")
    hits = xswe.index(mini, ["Wir kaufen\nBrot.", "Der Zug hat Verspätung."]).search("We buy bread.", k=1)
    assert repr(hits) == "Hits('We buy bread.', 1)"
    assert str(hits).endswith("  Wir kaufen Brot.")
    assert isinstance(hits.to_pandas(), pandas.DataFrame)
    assert hits.to_pandas()["text"].tolist() == ["Wir kaufen\nBrot."]


def test_mistakes_are_named(mini, tmp_path):
    index = xswe.index(mini, ["a cat"], folder=tmp_path / "a")
    with pytest.raises(ConfigError, match=r"folder=.*a: exists; give another name, or load_index"):
        xswe.index(mini, ["a dog"], folder=tmp_path / "a")
    with pytest.raises(ConfigError, match="method='hnsw': choose one of exact, binary"):
        xswe.index(mini, ["a dog"], method="hnsw")
    with pytest.raises(ConfigError, match="k=0"):
        index.search("a", k=0)
    with pytest.raises(ConfigError, match="vectors of 256 dimensions"):
        index.search(np.ones((1, 8), np.float32))
    with pytest.raises(InputError, match="no such file"):
        xswe.index(mini, tmp_path / "absent.txt", folder=tmp_path / "b")
    with pytest.raises(ModelError, match="no index; build one"):
        xswe.load_index(tmp_path)
    (tmp_path / "a" / "sentences.sqlite").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(ModelError, match="no database of an index, or damaged"):
        xswe.load_index(tmp_path / "a")
    assert not (tmp_path / "b").exists()


def test_what_a_search_is_given(mini):
    index = xswe.index(mini, [f"Sentence number {n}." for n in range(60)], threads=1)
    assert [len(index.search("number")), len(index.search("number", k=1))] == [10, 1]
    for asked in ({"k": 0}, {"rescored": 0}, {"candidates": 0}):
        given = {"k": 3, "rescored": None, "candidates": 50} | asked
        told = "^k={k}, rescored={rescored}, candidates={candidates}: give at least 1$".format(**given)
        with pytest.raises(ConfigError, match=told):
            index.search("number", **{"k": 3} | asked)
    assert len(index.search("number", 3, rescored=1, candidates=1)) == 3
    for wrong in (np.ones(256, np.float32), np.ones((2, 255), np.float32)):
        told = f"queries are {wrong.shape}: the index holds vectors of 256 dimensions"
        with pytest.raises(ConfigError, match=f"^{re.escape(told)}$"):
            index.search(wrong)
    vectors = mini.encode(["number", "sentence"])
    by_vector, by_text = index.search(vectors, 4), index.search(np.array(["number", "sentence"]), 4)
    assert [hits.query for hits in (*by_vector, *by_text)] == [None, None, "number", "sentence"]
    assert [list(hits) for hits in by_vector] == [list(hits) for hits in by_text]
    assert index.search([], 3) == []
    asked = []

    class Reranker:
        def encode(self, texts):
            asked.extend(texts)
            return mini.encode(list(texts))

    for k, given, scored in ((3, {}, 50), (55, {}, 55), (3, {"candidates": 7}, 7), (1, {"candidates": 1}, 1)):
        asked.clear()
        assert len(index.search("number", k, rerank=Reranker(), **given)) == k
        assert len(asked) == scored + 1
    assert str(Hits("x", ())) == "nothing found"
    assert str(Hits("x", (Hit(0.12345, "a\n b", 3), Hit(-0.5, "c", 1)))) == "0.1235  a b\n-0.5000  c"
    assert Hits("x", (Hit(0.5, "a", 3),)).with_texts(["b"]).hits == (Hit(0.5, "b", 3),)


def test_an_argument_that_nobody_knows_is_refused(mini, tmp_path):
    index = xswe.index(mini, ["a dog"])
    with pytest.raises(TypeError, match=r"search\(\) got an unexpected .* 'rescord'; did you mean rescored\?"):
        index.search("dog", rescord=10)
    with pytest.raises(TypeError, match=r"index\(\) got an unexpected .* 'strage'; did you mean storage\?"):
        xswe.index(mini, ["a dog"], folder=tmp_path / "a", strage="int8")
    with pytest.raises(TypeError, match=r"open_index\(\) got an unexpected .* 'thread'"):
        module.open_index(tmp_path / "a", mini, thread=1)
    assert not (tmp_path / "a").exists()


def test_a_disk_too_small_for_an_index_does_not_make_it_a_damaged_one(tmp_path):
    sentences = Sentences(tmp_path / "a.sqlite")
    sentences.create({"rows": 0})

    def fill():
        with sentences.writing() as writing:
            writing._database.execute("PRAGMA max_page_count=5")
            writing.add(0, ["long " * 1000] * 50, None)

    with pytest.raises(OSError, match=r"No space left.*a\.sqlite"):
        fill()
    assert sentences.state().facts == {"rows": 0}


def content(folder):
    with sqlite3.connect(folder / "sentences.sqlite") as database:
        rows = database.execute("SELECT * FROM sentences").fetchall(), sorted(database.execute("SELECT * FROM info"))
    return rows, {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}


def test_an_index_that_many_build(mini, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 100)
    lines, how = tmp_path / "a.txt", {"method": "binary", "storage": "float16", "threads": 1}
    lines.write_text("\n".join([*texts, "long " * 9000, texts[0]]), encoding="utf-8")  # a line of three shards
    how["metadata"] = [{"row": row} for row in range(len(texts) + 2)]
    alone = xswe.index(mini, lines, folder=tmp_path / "alone", **how)
    first, last = slices(2, shard=20_000)
    with pytest.raises(Unfinished):
        xswe.index(mini, lines, folder=tmp_path / "many", execution=first, **how)
    assert not (tmp_path / "many").exists()
    numbers_ahead = module.numbers_ahead

    def another(*given):
        """Encode the rest when another task has built the index."""
        monkeypatch.setattr(module, "numbers_ahead", numbers_ahead)
        xswe.index(mini, lines, folder=tmp_path / "many", execution=last, **how)
        return numbers_ahead(*given)

    monkeypatch.setattr(module, "numbers_ahead", another)
    for execution in (last, first):  # the first once more, late
        made = xswe.index(mini, lines, folder=tmp_path / "many", execution=execution, **how)
        assert content(made.folder) == content(alone.folder)
    with pytest.raises(ConfigError, match="give another name"):
        xswe.index(mini, lines, folder=tmp_path / "alone", execution=first, **how)
    with pytest.raises(ConfigError, match="others read and write the same"):
        xswe.index(mini, texts, folder=tmp_path / "b", execution=first)
    one = slices(1, shard=20_000)[0]
    with pytest.raises(ConfigError, match="metadata: only 3 values"):
        xswe.index(mini, lines, metadata=[1, 2, 3], folder=tmp_path / "c", execution=one)
    assert not (tmp_path / "c").exists()


def test_a_shard_that_was_damaged_since_is_not_put_into_an_index(mini, texts, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("\n".join(texts[:600]), encoding="utf-8")
    how = {"execution": slices(1, shard=20_000)[0], "threads": 1}
    with monkeypatch.context() as patched:

        @contextmanager
        def damaged(stage, *given):
            with shards_ahead(stage, *given) as wait:
                damage(stage.path(1))
                yield wait

        patched.setattr(parts, "shards_ahead", damaged)
        with pytest.raises(XsweError, match=r"000001.parts: gone or damaged since it was written; the same command"):
            xswe.index(mini, tmp_path / "a.txt", folder=tmp_path / "many", **how)
    assert not (tmp_path / "many").exists()
    made = xswe.index(mini, tmp_path / "a.txt", folder=tmp_path / "many", **how)
    alone = xswe.index(mini, tmp_path / "a.txt", folder=tmp_path / "alone", threads=1)
    assert content(made.folder) == content(alone.folder)


@pytest.mark.slow
def test_an_index_that_a_cluster_encodes_for(ray_cluster, mini, texts, tmp_path):
    lines = tmp_path / "a.txt"
    lines.write_text("\n".join(texts), encoding="utf-8")
    alone = xswe.index(mini, lines, folder=tmp_path / "alone", storage="int8", threads=1)
    how = ExecutionConfig("ray", shard=20_000)
    many = xswe.index(mini, lines, folder=tmp_path / "many", storage="int8", threads=1, execution=how)
    assert content(many.folder) == content(alone.folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "alone", "many"]


def test_an_index_of_a_document_that_many_build(mini, sample, tmp_path):
    page = "".join(f"<p>{' '.join(sample['en'][n : n + 5])}</p>" for n in range(0, 1000, 5))
    (tmp_path / "a.html").write_text(f"<html>{page}</html>", "utf-8")
    made, how = [], {"language": "en", "threads": 1}
    for name, execution in (("alone", ExecutionConfig()), ("many", slices(1, shard=20_000)[0])):
        made.append(module.open_index(tmp_path / name, mini, tmp_path / "a.html", execution=execution, **how))
        assert len(module.open_index(tmp_path / name, None, tmp_path / "a.html", language="en")) == len(made[-1]) > 900
    assert content(made[0].folder) == content(made[1].folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "alone", "many"]


def test_an_index_that_was_not_noted_as_done_is_opened_or_built_again(mini, texts, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    given, how = (mini, tmp_path / "a.txt"), {"folder": tmp_path / "many", "execution": slices(1)[0]}

    def killed(place, identity, build, outputs, execution):
        build()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "written_once", killed)
        with pytest.raises(KeyboardInterrupt):
            xswe.index(*given, **how)
    assert len(module.open_index(how["folder"], *given, execution=how["execution"])) > 3000
    assert len(xswe.index(*given, **how)) > 3000
    assert len(module.open_index(how["folder"], *given, execution=ExecutionConfig("ray"))) > 3000
    assert not (tmp_path / "many.work").exists()
    assert len(module.open_index(how["folder"], *given)) > 3000
