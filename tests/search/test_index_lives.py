"""An index that is changed while it is asked: by this process and by others, with columns, updates and compactions."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import xswe
from tests.search.test_index_faults import as_a_reader, assert_holds, end, in_other_process, killed
from xswe.errors import ConfigError, ModelError
from xswe.io.checksums import Blocks
from xswe.search import compaction as compaction_module
from xswe.search import sentences as sentences_module
from xswe.search import writer as writer_module
from xswe.search.sentences import Writing


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def texts(sample):
    return list(dict.fromkeys([*sample["en"], *sample["de"]]))[:400]


METHODS = pytest.mark.parametrize("method", ["exact", "binary"])


@pytest.fixture
def few(monkeypatch):
    """Sign bits of few sentences, and compactions in small pieces."""
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 100)
    monkeypatch.setattr(compaction_module, "_PIECE", 64)


@METHODS
def test_what_was_added_is_compared_before_anybody_searches(mini, texts, tmp_path, monkeypatch, few, method):
    with xswe.index(mini, texts[:150], folder=tmp_path / "a", method=method, threads=1) as made:
        reader, whole = xswe.load_index(made.folder), "codes" if method == "exact" else "sign_rows"
        for index in (made, reader):
            index.search(texts[0])
        compared = []
        compare = Blocks._compare
        monkeypatch.setattr(Blocks, "_compare", lambda own, some: compared.append(own.path.stem) or compare(own, some))
        made.add(texts[150:], threads=1)
        assert reader.refresh()
        for index in (made, reader):
            compared.clear()
            index.search(texts[200])
            assert whole not in compared
        xswe.load_index(made.folder).search(texts[200], rescored=5)
        assert whole in compared


def test_what_another_process_changes_is_found_after_refresh(mini, texts, tmp_path):
    index = xswe.index(mini, texts[:100], folder=tmp_path / "a", threads=1)
    assert not index.refresh()
    assert in_other_process(lambda: xswe.load_index(tmp_path / "a").add(texts[100:200], threads=1)) == "range(100, 200)"
    assert len(index) == 100
    assert index.search(texts[150], k=1)[0].row < 100
    assert index.refresh()
    assert_holds(index, texts[:200])
    in_other_process(lambda: xswe.load_index(tmp_path / "a").update([3], ["Hovercrafts are full of eels."]))
    assert index.refresh()
    assert index.search("My hovercraft is full of eels.", k=1)[0].row == 3
    in_other_process(lambda: xswe.load_index(tmp_path / "a").remove([5]))
    assert index.refresh()
    assert not index.refresh()
    assert 5 not in index.rows


def test_an_index_is_iterated_and_its_vectors_are_of_the_same_rows(mini, texts, tmp_path, monkeypatch):
    monkeypatch.setattr("xswe.search.sentences._READ", 7)
    index = xswe.index(mini, texts[:50], folder=tmp_path / "a", metadata=range(50), threads=1)
    index.remove([0, 3, 49])
    index.update([7], ["Hovercrafts are full of eels."])
    live = [row for row in range(50) if row not in (0, 3, 49)]
    for _ in range(2):
        hits = list(index)
        assert [hit.row for hit in hits] == live == index.rows.tolist()
        assert [hit.metadata for hit in hits] == live
        assert hits[5].text == "Hovercrafts are full of eels."
        assert [hit.text for hit in hits[6:]] == [texts[row] for row in live[6:]]
        np.testing.assert_array_equal(index.vectors(), mini.encode([hit.text for hit in hits]))
        np.testing.assert_array_equal(index.vectors([7, 1]), mini.encode([hits[5].text, texts[1]]))
        with pytest.raises(IndexError, match="row 3"):
            index.vectors([1, 3])
        index.compact()


@pytest.mark.parametrize(
    ("method", "storage"), [pytest.param("exact", "int8", marks=pytest.mark.slow), ("binary", "float32")]
)
def test_numbers_stay_whatever_is_updated_removed_and_compacted(mini, texts, tmp_path, few, method, storage):
    folder = tmp_path / "a"
    index = xswe.index(mini, texts[:200], folder=folder, metadata=range(200), method=method, storage=storage, threads=1)
    holds, gone = list(texts[:200]), set()

    def changed():
        for each in (index, xswe.load_index(folder)):
            assert_holds(each, holds, gone)
            each.verify()

    index.update([150, 2], ["Hovercrafts are full of eels.", "A second text."])
    holds[150], holds[2] = "Hovercrafts are full of eels.", "A second text."
    changed()
    assert index[150].metadata == 150
    index.remove([2, 9])
    gone |= {2, 9}
    changed()
    assert index.compact() == 4
    assert sorted(path.name for path in folder.glob("*.npy")) == []
    assert len(np.load(folder / "arrays-1" / "codes.npy")) == 198
    changed()
    assert index.compact() == 0
    assert index.add(texts[200:300]) == range(200, 300)
    holds += texts[200:300]
    changed()
    index.update([150], ["Another one about eels."], [{"kept": True}])
    holds[150] = "Another one about eels."
    assert index[150].metadata == {"kept": True}
    changed()
    index.remove([150, 299])
    gone |= {150, 299}
    assert index.compact() == 3
    changed()
    assert [path.name for path in folder.glob("arrays-*")] == ["arrays-2"]
    index.save(tmp_path / "b")
    assert_holds(xswe.load_index(tmp_path / "b"), holds, gone)
    xswe.load_index(tmp_path / "b").verify()


def test_of_equal_cosines_the_lower_row_is_first_also_after_an_update(mini, texts):
    index = xswe.index(mini, [texts[0], *texts[1:20], *[texts[0]] * 3], threads=1)
    index.update([0], [texts[0]])  # in the last slot from now on
    assert [hit.row for hit in index.search(texts[0], k=2)] == [0, 20]


def test_an_update_that_is_wrong_changes_nothing(mini, texts, tmp_path):
    index = xswe.index(
        mini, texts[:50], folder=tmp_path / "a", metadata=[{"n": n} for n in range(50)], columns={"n": "int"}
    )
    index.remove([7])
    for given, problem in (
        (([1, 7], ["a", "b"]), "no sentence 7"),
        (([1, 50], ["a", "b"]), "no sentence 50"),
        (([1, 1], ["a", "b"]), "given twice"),
        (([1, 2], ["a"]), "texts: 1 for 2 sentences"),
        (([1, 2], ["a", "b"], [{"n": 1}]), "metadata: 1 for 2 sentences"),
        (([1, 2], ["a", "b"], [{"n": 1}, {"n": "x"}]), "n: 'x' of sentence 1 is not of type int"),
    ):
        with pytest.raises(ConfigError, match=problem):
            index.update(*given)
    with pytest.raises(TypeError, match=r"texts\[1\] is int"):
        index.update([1, 2], ["a", 3])
    for each in (index, xswe.load_index(tmp_path / "a")):
        assert_holds(each, texts[:50], gone=[7])


def test_searches_go_on_while_arrays_are_written_anew(mini, texts, tmp_path, few):
    index = xswe.index(mini, texts, folder=tmp_path / "a", method="binary", threads=1)
    in_other_process(lambda: xswe.load_index(tmp_path / "a").remove([1, 2]))
    in_other_process(lambda: xswe.load_index(tmp_path / "a").compact())
    assert not list((tmp_path / "a").glob("*.npy"))
    # It was asked nothing yet: what it has mapped was not compared with its checksums, and its files are gone.
    assert index.search(texts[9], k=1, threads=1)[0].row == 9
    assert_holds(index, texts, gone=[1, 2])


@pytest.mark.parametrize(
    "moment", [pytest.param("_note", marks=pytest.mark.slow), "_write", pytest.param("run", marks=pytest.mark.slow)]
)
def test_a_killed_compaction_is_gone_on_with(mini, texts, tmp_path, monkeypatch, few, moment):
    index = xswe.index(mini, texts, folder=tmp_path / "a", method="binary", threads=1)
    index.remove(range(100))

    def cut():
        calls, real = [], getattr(compaction_module.Compaction, moment)

        def end_at_the_third(self, *given):
            calls.append(real(self, *given))
            if len(calls) == 3 or moment == "run":
                os.kill(os.getpid(), signal.SIGKILL)
            return calls[-1]

        monkeypatch.setattr(compaction_module.Compaction, moment, end_at_the_third)
        xswe.load_index(tmp_path / "a").compact()

    killed(cut)
    assert_holds(xswe.load_index(tmp_path / "a"), texts, gone=range(100))
    written, real = [], compaction_module.Compaction._write
    monkeypatch.setattr(
        compaction_module.Compaction, "_write", lambda self, *one: (written.append(one[1].start), real(self, *one))
    )
    assert index.compact() == 100
    assert written == {"_note": [192, 256], "_write": [128, 192, 256], "run": []}[moment]
    assert_holds(index, texts, gone=range(100))
    index.verify()
    alone = xswe.index(mini, texts, folder=tmp_path / "b", method="binary", threads=1)
    alone.remove(range(100))
    alone.compact()
    for path in (tmp_path / "a" / "arrays-1").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / "arrays-1" / path.name).read_bytes()
    assert len(list((tmp_path / "b" / "arrays-1").iterdir())) == len(list((tmp_path / "a" / "arrays-1").iterdir()))


def test_a_killed_compaction_of_an_index_that_has_changed_since_is_begun_anew(mini, texts, tmp_path, few):
    index = xswe.index(mini, texts, folder=tmp_path / "a", threads=1)
    index.remove(range(100))

    def cut():
        compaction_module.Compaction._note = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        xswe.load_index(tmp_path / "a").compact()

    killed(cut)
    assert (tmp_path / "a" / "arrays-1").exists()
    index.remove([200])
    assert not (tmp_path / "a" / "arrays-1").exists()
    assert index.compact() == 101
    assert_holds(index, texts, gone=[*range(100), 200])


def test_damage_does_not_spread_into_what_is_compacted(mini, texts, tmp_path):
    index = xswe.index(mini, texts, folder=tmp_path / "a", threads=1)
    index.remove([0])
    data = bytearray((tmp_path / "a" / "vectors.npy").read_bytes())
    data[-5] ^= 1
    (tmp_path / "a" / "vectors.npy").write_bytes(data)
    with pytest.raises(ModelError, match=r"vectors.npy: bytes"):
        index.compact()
    assert index.search(texts[1], k=1)[0].row == 1


LANGUAGES = {"columns": {"lang": "str", "year": "int", "score": "float", "seen": "bool"}}


def about(row):
    """The metadata of a row; some values are missing, and some rows have none."""
    if row % 10 == 9:
        return None
    made = {"lang": "en" if row % 3 else "de", "year": 1900 + row, "score": row / 8, "seen": bool(row % 2), "more": [row]}
    return {key: value for key, value in made.items() if row % 7 or key != "year"}


def value(row, key):
    return (about(row) or {}).get(key)


def within(low, high):
    return lambda one: one is not None and (low is None or one >= low) and (high is None or one <= high)


CONDITIONS = [
    ({"lang": "en"}, {"lang": lambda one: one == "en"}),
    ({"lang": {"en", "fr"}}, {"lang": lambda one: one in ("en", "fr")}),
    ({"lang": "fr"}, {"lang": lambda one: one == "fr"}),
    ({"lang": None}, {"lang": lambda one: one is None}),
    ({"year": 1950}, {"year": lambda one: one == 1950}),
    ({"year": (1950, 2000)}, {"year": within(1950, 2000)}),
    ({"year": (None, 1950)}, {"year": within(None, 1950)}),
    ({"year": (2000, None), "lang": ["de"]}, {"year": within(2000, None), "lang": lambda one: one == "de"}),
    ({"year": [None, 1901]}, {"year": lambda one: one in (None, 1901)}),
    ({"score": (1.5, 30)}, {"score": within(1.5, 30)}),
    ({"score": np.array([0.125, 2])}, {"score": lambda one: one in (0.125, 2)}),
    ({"score": {None, 0.5}}, {"score": lambda one: one in (None, 0.5)}),
    ({"score": None}, {"score": lambda one: one is None}),
    ({"seen": True}, {"seen": lambda one: one is True}),
    ({"seen": False, "year": (1910, 1990)}, {"seen": lambda one: one is False, "year": within(1910, 1990)}),
]


@METHODS
def test_conditions_choose_before_the_search(mini, texts, tmp_path, few, method):
    how = {"folder": tmp_path / "a", "metadata": map(about, range(300)), "method": method, "threads": 1}
    index = xswe.index(mini, texts[:300], **how, **LANGUAGES)
    assert index.columns == LANGUAGES["columns"]
    index.remove([1, 4])
    index.update([10], metadata=[{"lang": "fr"}])

    def checks(row, tests):
        kept = {"lang": "fr"} if row == 10 else about(row) or {}
        return all(test(kept.get(key)) for key, test in tests.items())

    for each in (index, xswe.load_index(tmp_path / "a")):
        live = each.rows.tolist()
        for where, tests in CONDITIONS:
            right = {row for row in live if checks(row, tests)}
            assert {hit.row for hit in each.search(texts[5], k=400, where=where)} == right
            some = set(range(0, 300, 2))
            assert {hit.row for hit in each.search(texts[5], k=400, where=where, rows=some)} == right & some
    index.compact()
    index.add(texts[300:310], map(about, range(300, 310)))
    found = index.search(texts[305], k=3, where={"year": (2200, None)})
    assert found[0].row == 305
    assert all(hit.row >= 300 for hit in found)
    index.verify()


def test_a_condition_keeps_recall(mini, texts, few):
    """The nearest of those that meet it are found: it is not a filter of the nearest of all."""
    index = xswe.index(mini, texts, metadata=[{"n": n} for n in range(400)], columns={"n": "int"}, method="binary")
    exact = xswe.index(mini, texts, metadata=[{"n": n} for n in range(400)], columns={"n": "int"})
    for low in (0, 200, 395):
        found, truth = (one.search(texts[:100], k=5, where={"n": (low, None)}, rescored=40) for one in (index, exact))
        shared = [len({hit.row for hit in a} & {hit.row for hit in b}) for a, b in zip(found, truth, strict=True)]
        assert np.mean(shared) >= 4.5


def test_rows_choose_what_is_searched(mini, texts):
    index = xswe.index(mini, texts[:100])
    index.remove([3])
    assert [hit.row for hit in index.search(texts[3], k=5, rows=[3, 90, 80])] == [
        hit.row for hit in index.search(texts[3], k=100) if hit.row in (80, 90)
    ]
    assert index.search(texts[3], rows=[]).hits == ()
    assert len(index.search(texts[:2], k=5, rows=iter([4, 5]))[1]) == 2
    for wrong in ([100], [-1], np.zeros((2, 2), np.int64), [0.5]):
        with pytest.raises(ConfigError, match="rows: give numbers of sentences, from 0 to 99"):
            index.search(texts[3], rows=np.array(wrong))


def test_mistakes_about_columns_are_named(mini, texts):
    index = xswe.index(mini, texts[:3], metadata=[{"lang": "en", "year": 1}] * 3, columns={"lang": "str", "year": "int"})
    for where, problem in (
        ({"language": "en"}, "no column 'language'; there are lang, year"),
        ({"lang": 3}, "lang: 3 is not of type str"),
        ({"lang": ("a", "b")}, "a range is .lowest, highest. of numbers"),
        ({"year": (1, 2, 3)}, "a range is"),
        ({"year": True}, "year: True is not of type int"),
        ({"year": 2**64}, "is not of type int"),
        ({}, "no condition"),
    ):
        with pytest.raises(ConfigError, match=problem):
            index.search("a", where=where)
    with pytest.raises(ConfigError, match="give columns= when the index is built"):
        xswe.index(mini, texts[:2]).search("a", where={"lang": "en"})
    with pytest.raises(ConfigError, match="columns: year='number': choose one of int, float, str, bool"):
        xswe.index(mini, texts[:2], columns={"year": "number"})
    with pytest.raises(ConfigError, match="metadata: 3 of sentence 1 has no lang"):
        index.add(texts[:2], [None, 3])


def test_an_index_is_pickled_by_its_folder(mini, texts, tmp_path):
    index = xswe.index(mini, texts[:50], folder=tmp_path / "a")
    other = pickle.loads(pickle.dumps(index))
    assert other.folder == tmp_path / "a"
    assert_holds(other, texts[:50])
    with pytest.raises(TypeError, match="save it"):
        pickle.dumps(xswe.index(mini, texts[:2]))


def _found(index, text):
    return index.search(text, k=1, threads=1)[0].row


@pytest.mark.parametrize("how", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_several_processes_ask_one_index(mini, texts, tmp_path, how):
    index = xswe.index(mini, texts[:50], folder=tmp_path / "a")
    index.remove([0])  # the database has a write-ahead log from now on
    assert _found(index, texts[1]) == 1
    with multiprocessing.get_context(how).Pool(2) as pool:
        assert pool.starmap(_found, [(index, text) for text in texts[1:9]]) == list(range(1, 9))
    assert _found(index, texts[1]) == 1
    assert index.add(texts[50:60]) == range(50, 60)


def test_a_connection_of_before_a_fork_is_not_used_after_it(mini, texts, tmp_path):
    index = xswe.index(mini, texts[:50], folder=tmp_path / "a", threads=1)
    index.remove([0])
    idle = index._sentences._connections._idle
    assert idle

    def child():
        return [len(idle), _found(index, texts[3]), index.add(["One more."]), len(idle)]

    assert in_other_process(child) == "[0, 3, range(50, 51), 1]"
    assert index.refresh()
    assert index[50].text == "One more."
    assert sqlite3.connect(tmp_path / "a" / "sentences.sqlite").execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_search_does_not_wait_for_a_change(mini, texts, tmp_path):
    """The change is held open until searches have been answered, in a process of its own and here."""
    index = xswe.index(mini, texts[:100], folder=tmp_path / "a", threads=1)
    inside, go_on = threading.Event(), threading.Event()

    def slow():
        yield from texts[100:110]
        inside.set()
        assert go_on.wait(60)

    adding = threading.Thread(target=lambda: xswe.load_index(tmp_path / "a").add(slow(), threads=1))
    adding.start()
    try:
        assert inside.wait(60)
        assert index.search(texts[5], k=1)[0].row == 5
        assert in_other_process(lambda: _found(xswe.load_index(tmp_path / "a"), texts[7])) == "7"
    finally:
        go_on.set()
        adding.join()
    assert len(index) == 100
    assert index.refresh()
    assert_holds(index, texts[:110])


def test_a_killed_change_in_the_log_is_undone(mini, texts, tmp_path, monkeypatch):
    index = xswe.index(mini, texts[:100], folder=tmp_path / "a", threads=1)
    index.remove([0])
    with monkeypatch.context() as patched:
        patched.setattr("xswe.search.sentences._WRITE_CACHE", 16)  # the log is written to before the change is whole
        patched.setattr(Writing, "note_sums", lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        killed(lambda: xswe.load_index(tmp_path / "a").add(texts[100:], threads=1))
    assert (tmp_path / "a" / "sentences.sqlite-wal").stat().st_size > 0
    assert_holds(xswe.load_index(tmp_path / "a"), texts[:100], gone=[0])
    assert xswe.load_index(tmp_path / "a").add(texts[100:110]) == range(100, 110)


def test_a_folder_that_cannot_be_written_opens_also_after_changes(mini, texts):
    with tempfile.TemporaryDirectory() as place:  # which other users may enter, as they may not pytest's
        Path(place).chmod(0o755)
        folder = Path(place) / "a"
        with xswe.index(mini, texts[:100], folder=folder, threads=1) as index:
            index.remove([0])

        def ask():
            index = xswe.load_index(folder)
            return [index.search(texts[row], k=1, threads=1)[0].row for row in (9, 10)], len(list(index))

        assert as_a_reader(folder, ask) == "([9, 10], 99)"
        assert "cannot be opened or written" in as_a_reader(folder, lambda: xswe.load_index(folder).remove([1]))

        def cut():
            sentences_module._empty_log = end
            xswe.load_index(folder).remove([1])

        killed(cut)
        assert (folder / "sentences.sqlite-wal").stat().st_size > 0  # which alone holds what was changed
        answer = as_a_reader(folder, ask)
        assert answer == "([9, 10], 98)"
        assert_holds(xswe.load_index(folder), texts[:100], gone=[0, 1])


def test_an_index_is_closed_and_opened_again(mini, texts, tmp_path):
    with xswe.index(mini, texts[:50], folder=tmp_path / "a") as index:
        index.remove([0])
        assert (tmp_path / "a" / "sentences.sqlite-wal").exists()
    assert not (tmp_path / "a" / "sentences.sqlite-wal").exists()
    assert index.search(texts[1], k=1)[0].row == 1
    started = time.monotonic()
    for _ in range(20):
        index[1]
    assert time.monotonic() - started < 5
