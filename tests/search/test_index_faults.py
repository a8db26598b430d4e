"""Indexes whose process is killed, or files damaged, or folder not to be written: the right answer, or one error."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest

import xswe
from tests.conftest import eval_script
from xswe.errors import ConfigError, ModelError
from xswe.io.checksums import file_sums
from xswe.io.ragged import HEADER
from xswe.search import building as module
from xswe.search import numbers as numbers_module
from xswe.search import sentences as sentences_module
from xswe.search import writer as writer_module
from xswe.search.sentences import Sentences, Writing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def texts(sample):
    return list(dict.fromkeys(sample["en"]))[:300]


@pytest.fixture(scope="module")
def faults():
    return eval_script("experiments.index_faults")


@pytest.fixture(scope="module")
def bench(faults, tmp_path_factory):
    with faults.small_steps():
        return faults.Bench(tmp_path_factory.mktemp("faults"), 120, random.Random(8))


def killed(work):
    """Call a function in another process, which must be killed in it."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def in_other_process(work):
    """Call a function in another process; returns its result, or the error, as a string."""
    return eval_script("experiments.index_faults").in_child(work)[1]


def end(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def assert_holds(index, texts, gone=()):
    """An index holds these texts but those of some rows, and finds each by itself."""
    live = [row for row in range(len(texts)) if row not in gone]
    assert len(index) == len(live)
    found = index.search([texts[row] for row in live], k=1, rescored=10_000)
    assert [hits[0].row for hits in found] == live
    assert [index[row].text for row in live] == [texts[row] for row in live]
    for row in gone:
        with pytest.raises(IndexError):
            index[row]


def spoil(path, place, change=1):
    data = bytearray(path.read_bytes())
    data[place] ^= change
    path.write_bytes(data)


@pytest.mark.slow
def test_whatever_moment_a_process_is_killed_at_an_index_is_as_before_or_after(faults, bench):
    with faults.small_steps():
        rows = faults.kills(bench, 10)
    assert not [row for row in rows if row["found"].startswith("wrong")]


@pytest.mark.slow
def test_whatever_byte_is_damaged_answers_are_right_or_an_error_names_the_file(faults, bench):
    with faults.small_steps():
        rows = faults.flips(bench, 40)
    assert not [row for row in rows if row["found"].startswith("wrong")]
    assert not [row for row in rows if row["found"] == "error" and not row["named"]]
    assert sum(row["found"] == "error" for row in rows) >= 20


@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_a_killed_removal_hides_nothing(mini, texts, tmp_path, monkeypatch, storage):
    xswe.index(mini, texts, folder=tmp_path / "a", storage=storage, threads=1)
    with monkeypatch.context() as patched:
        patched.setattr(Writing, "remove", end)
        killed(lambda: xswe.load_index(tmp_path / "a").remove(range(100)))
    assert_holds(xswe.load_index(tmp_path / "a"), texts)
    xswe.load_index(tmp_path / "a").remove(range(10))
    assert_holds(xswe.load_index(tmp_path / "a"), texts, gone=range(10))


def test_what_a_killed_addition_leaves_is_removed_by_the_next_change(mini, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 100)
    xswe.index(mini, texts[:200], folder=tmp_path / "a", method="binary", threads=1)
    files = [tmp_path / "a" / name for name in ("vectors.npy", "sign_rows.npy")]
    before = [path.read_bytes() for path in files]
    with monkeypatch.context() as patched:
        patched.setattr(Writing, "note", end)  # when the arrays have grown
        killed(lambda: xswe.load_index(tmp_path / "a").add(texts[200:], threads=1))
    assert all(len(path.read_bytes()) > len(was) for path, was in zip(files, before, strict=True))
    index = xswe.load_index(tmp_path / "a")
    assert_holds(index, texts[:200])
    index.remove([7])
    assert [path.read_bytes() for path in files] == before
    index.verify()


def interrupt(folder):
    """Kill a process that has written a part of a change of many texts into the database."""

    def work():
        database = sqlite3.connect(folder / "sentences.sqlite", isolation_level=None)
        database.execute("PRAGMA cache_size=2")
        database.execute("BEGIN IMMEDIATE")
        database.execute("UPDATE sentences SET text = text || 'long ' || text || text || text")
        end()

    killed(work)
    assert (folder / "sentences.sqlite-journal").stat().st_size > 0


def test_an_unfinished_change_of_the_database_is_undone_when_an_index_is_opened(mini, texts, tmp_path):
    xswe.index(mini, texts, folder=tmp_path / "a", threads=1)
    interrupt(tmp_path / "a")
    assert_holds(xswe.load_index(tmp_path / "a"), texts)
    assert not (tmp_path / "a" / "sentences.sqlite-journal").exists()


def as_a_reader(folder, work):
    """Call a function in another process, of a user who may read a folder and not write it."""

    def read():
        if os.geteuid() == 0:
            os.setgid(65_534)
            os.setuid(65_534)
        return work()

    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        return in_other_process(read)
    finally:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_folder_that_cannot_be_written_opens_and_nothing_in_it_is_given_up(mini, texts):
    with tempfile.TemporaryDirectory() as place:  # which other users may enter, as they may not pytest's
        Path(place).chmod(0o755)
        folder = Path(place) / "a"
        xswe.index(mini, texts, folder=folder, threads=1)

        def ask():
            return xswe.load_index(folder).search(texts[9], k=1, threads=1)[0].row

        assert as_a_reader(folder, ask) == "9"
        assert "cannot be opened or written" in as_a_reader(folder, lambda: xswe.load_index(folder).remove([0]))
        interrupt(folder)
        said = as_a_reader(folder, ask)
        assert said.startswith(f"ModelError: {folder}/sentences.sqlite: a killed process left a change unfinished")
        assert "sentences.sqlite-journal" in said
        assert "build" not in said
        shutil.copytree(folder, Path(place) / "b")
        assert_holds(xswe.load_index(Path(place) / "b"), texts)  # as the message advises


def test_a_copy_takes_nothing_of_a_change_under_way(mini, texts, tmp_path):
    index = xswe.index(mini, texts, folder=tmp_path / "a", threads=1)
    with index._sentences.writing() as writing:
        writing.add(len(texts), ["not yet " * 1000] * 50, None)
        assert (tmp_path / "a" / "sentences.sqlite-wal").exists()
        index.save(tmp_path / "b")
        assert [path.name for path in (tmp_path / "b").glob("sentences*")] == ["sentences.sqlite"]
    assert_holds(xswe.load_index(tmp_path / "b"), texts)
    xswe.load_index(tmp_path / "b").verify()


def test_each_damaged_file_is_named_with_its_place(mini, texts, tmp_path):
    index = xswe.index(mini, texts, folder=tmp_path / "a", metadata=range(300), threads=1)
    index.verify()
    folder = tmp_path / "a"
    spoil(folder / "vectors.npy", HEADER + 1024 * 20)
    spoil(folder / "model" / "tokenizer.json", 20_000)
    database = (folder / "sentences.sqlite").read_bytes()
    spoil(folder / "sentences.sqlite", database.index(texts[5].encode()))
    with pytest.raises(ModelError) as raised:
        index.verify()
    lines = str(raised.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        str(folder / name) for name in ("sentences.sqlite", "model/tokenizer.json", "vectors.npy")
    ]
    assert "1 sentences are not what was written, the first of them number 5" in lines[0]
    assert "1 of 19 blocks are not what was written, the first at bytes 16,512 to 32,895" in lines[2]
    with pytest.raises(ModelError, match=r"tokenizer.json: bytes 16,384 to"):
        xswe.load_index(folder)


def test_damage_is_noticed_where_it_is_read_and_nowhere_else(mini, texts, tmp_path):
    xswe.index(mini, texts, folder=tmp_path / "a", threads=1)
    spoil(tmp_path / "a" / "vectors.npy", HEADER + 1024 * 20)
    index = xswe.load_index(tmp_path / "a")
    assert index.search(texts[200], k=1)[0].row == 200
    for _ in range(2):
        with pytest.raises(ModelError, match=r"vectors.npy: bytes .* are not what was written; restore it"):
            index.search(texts[20], k=1)
    with pytest.raises(ModelError, match=r"vectors.npy: bytes"):
        index.search(texts, k=1)


def test_damaged_texts_and_missing_sentences_are_no_answers(mini, texts, tmp_path):
    index = xswe.index(mini, texts, folder=tmp_path / "a", metadata=range(300), threads=1)
    with sqlite3.connect(tmp_path / "a" / "sentences.sqlite") as database:
        database.execute("UPDATE sentences SET text = 'Something else.' WHERE row = 5")
        database.execute("UPDATE sentences SET metadata = '7' WHERE row = 6")
        database.execute("DELETE FROM sentences WHERE row = 7")
    for row in (5, 6):
        with pytest.raises(ModelError, match=rf"sentences.sqlite: the text of sentence {row} is not what was written"):
            index[row]
    with pytest.raises(ModelError, match=r"sentence 7 is missing, and was not removed"):
        index.search(texts[7], k=1)
    assert index[8].metadata == 8


def test_damage_does_not_spread_into_what_is_added(mini, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 300)
    index = xswe.index(mini, texts[:290], folder=tmp_path / "a", method="binary", threads=1)
    spoil(tmp_path / "a" / "codes.npy", HEADER + 256 * 289)  # in a block to which rows are added
    with pytest.raises(ModelError, match=r"codes.npy: bytes"):
        xswe.load_index(tmp_path / "a").add(["A new sentence."], threads=1)
    spoil(tmp_path / "a" / "codes.npy", HEADER + 256 * 289)
    spoil(tmp_path / "a" / "codes.npy", HEADER)  # in one of which sign bits are made
    with pytest.raises(ModelError, match=r"codes.npy: bytes"):
        xswe.load_index(tmp_path / "a").add(texts[290:], threads=1)
    spoil(tmp_path / "a" / "codes.npy", HEADER)
    assert_holds(xswe.load_index(tmp_path / "a"), texts[:290])
    index.add(texts[290:], threads=1)
    assert_holds(xswe.load_index(tmp_path / "a"), texts)


def test_sentences_that_another_process_removed_are_not_called_missing(mini, texts, tmp_path):
    index = xswe.index(mini, texts, folder=tmp_path / "a", threads=1)
    xswe.load_index(tmp_path / "a").remove([0, 1])
    assert {hit.row for hit in index.search(texts[0], k=300)} == set(range(2, 300))
    with pytest.raises(IndexError, match="row 1"):
        index[1]


def test_an_index_that_changes_while_it_is_opened_is_opened_as_it_is_then(mini, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 100)
    index = xswe.index(mini, texts[:200], folder=tmp_path / "a", method="binary", threads=1)
    state = Sentences.state

    def changed_after(self):
        found = state(self)
        monkeypatch.setattr(Sentences, "state", state)
        other = xswe.load_index(tmp_path / "a")
        other.add(texts[200:], threads=1)
        other.remove([7])
        other.compact()  # by which the arrays become others
        return found

    monkeypatch.setattr(Sentences, "state", changed_after)
    index._open()
    assert_holds(index, texts, gone=[7])


NEW = ", ".join(f"'{key}'" for key in writer_module.NEW)  # what a database until v0.2 does not say


def as_format_1(folder, removed, hidden=()):
    """Write an index as v0.2 did: no checksums, and no scale of a sentence that was removed, or whose removal had begun."""
    with sqlite3.connect(folder / "sentences.sqlite") as database:
        for name in ("text_checksums", "removed", "checksums"):
            database.execute(f"DROP TABLE {name}")
        database.execute("UPDATE info SET value = 1 WHERE key = 'format_version'")
        ((stamp,),) = database.execute("SELECT value FROM info WHERE key = 'documents'")
        database.execute(f"DELETE FROM info WHERE key IN ('checksum', 'documents', {NEW})")
        database.execute("DROP TABLE replaced")
        database.execute("INSERT INTO info VALUES ('clustered', 0)")
        database.execute("UPDATE info SET value = 'clusters' WHERE key = 'method' AND value = 'binary'")
        database.executemany("DELETE FROM sentences WHERE row = ?", [(row,) for row in removed])
        database.execute("UPDATE info SET value = ? WHERE key = 'removed'", (len(removed),))
        (rows,) = database.execute("SELECT value FROM info WHERE key = 'rows'").fetchone()
    for path in folder.glob("sign_*.npy"):
        path.unlink()
    scales = np.memmap(folder / "scales.npy", np.float32, "r+", HEADER, (rows,))
    scales[[*removed, *hidden]] = np.nan
    scales.flush()
    (folder / "documents.json").write_text(stamp, encoding="utf-8")


@pytest.mark.parametrize(
    ("method", "storage"), [pytest.param("exact", "float32", marks=pytest.mark.slow), ("binary", "int8")]
)
def test_an_index_of_v0_2_opens_and_has_checksums_from_its_first_change_on(
    mini, texts, tmp_path, monkeypatch, method, storage
):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 100)
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    folder = tmp_path / "a"
    xswe.index(mini, tmp_path / "a.txt", folder=folder, method=method, storage=storage, threads=1)
    scales = (folder / "scales.npy").read_bytes()
    as_format_1(folder, removed=[3, 4], hidden=[10, 11])
    index = module.open_index(folder, mini, tmp_path / "a.txt")
    assert_holds(index, texts, gone=[3, 4])
    assert index.verify() is None
    index.save(tmp_path / "b")
    assert_holds(xswe.load_index(tmp_path / "b"), texts, gone=[3, 4])
    assert (folder / "documents.json").exists()
    assert index.add(["A sentence of its own, about hovercrafts."]) == range(300, 301)
    index.remove([5])
    texts = [*texts, "A sentence of its own, about hovercrafts."]
    for each in (index, xswe.load_index(folder), module.open_index(folder, None, tmp_path / "a.txt")):
        assert_holds(each, texts, gone=[3, 4, 5])
    assert not (folder / "documents.json").exists()
    np.testing.assert_array_equal(
        np.load(folder / "scales.npy")[5:300], np.frombuffer(scales, np.float32, offset=HEADER)[5:]
    )
    index.verify()
    spoil(folder / "codes.npy", HEADER + 256 * 200)
    with pytest.raises(ModelError, match=r"codes.npy"):
        index.verify()


def as_format_2(folder):
    """Write an index with clusters as its second format had it: without sign bits, and with a folder of clusters."""
    signs = [path.name for path in folder.glob("sign_*.npy")]
    for name in signs:
        (folder / name).unlink()
    (folder / "clusters-300").mkdir()
    (folder / "clusters-300" / "mean.npy").write_bytes(b"centroids and members were here")
    with Sentences(folder / "sentences.sqlite").writing() as writing:
        facts = {"format_version": 2, "method": "clusters", "clustered": 300}
        writing.note(facts)
        writing.forget_sums(signs)
        writing._database.execute("DROP TABLE replaced")
        writing._database.execute(f"DELETE FROM info WHERE key IN ({NEW})")
        writing.note_sums("clusters-300/mean.npy", file_sums(folder / "clusters-300" / "mean.npy"))


def test_an_index_with_clusters_is_searched_exactly_and_has_sign_bits_from_its_first_change_on(
    mini, texts, tmp_path, monkeypatch
):
    monkeypatch.setattr(writer_module, "_MIN_SIGNED", 100)
    folder = tmp_path / "a"
    index = xswe.index(mini, texts, folder=folder, method="binary", threads=1)
    signs = [path.read_bytes() for path in sorted(folder.glob("sign_*.npy"))]
    assert signs
    index.remove([3])
    as_format_2(folder)
    index = xswe.load_index(folder)
    assert index.method == "binary"
    assert_holds(index, texts, gone=[3])
    assert len(index.search(texts[9], k=299, rescored=1)) == 299
    index.save(tmp_path / "b")
    assert_holds(xswe.load_index(tmp_path / "b"), texts, gone=[3])
    index.add([])
    assert [path.read_bytes() for path in sorted(folder.glob("sign_*.npy"))] == signs
    assert not list(folder.glob("clusters-*"))
    for each in (index, xswe.load_index(folder)):
        assert_holds(each, texts, gone=[3])
        each.verify()
        assert len(each.search(texts[9], k=1, rescored=5)) == 1
    assert Sentences(folder / "sentences.sqlite").state().facts["format_version"] == 3


def test_a_killed_upgrade_leaves_what_was_there(mini, texts, tmp_path, monkeypatch):
    xswe.index(mini, texts, folder=tmp_path / "a", metadata=range(300), threads=1)
    as_format_1(tmp_path / "a", removed=[3])
    with monkeypatch.context() as patched:
        patched.setattr(sentences_module, "_seal", end)
        killed(lambda: xswe.load_index(tmp_path / "a").add(["More."]))
    assert Sentences(tmp_path / "a" / "sentences.sqlite").state().sums is None
    assert_holds(xswe.load_index(tmp_path / "a"), texts, gone=[3])


def test_a_newer_format_is_no_damage(mini, texts, tmp_path):
    index = xswe.index(mini, texts[:9], folder=tmp_path / "a", threads=1)
    with sqlite3.connect(tmp_path / "a" / "sentences.sqlite") as database:
        database.execute("UPDATE info SET value = 4 WHERE key = 'format_version'")
    for work in (lambda: xswe.load_index(tmp_path / "a"), index.verify):
        with pytest.raises(ModelError, match="format version 4 is newer than 3; upgrade xswe"):
            work()


def test_the_file_that_an_index_is_of_is_noted_with_it(mini, texts, tmp_path, monkeypatch):
    (tmp_path / "a.md").write_text("One is here. Two are there.\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(module, "Index", end)  # as soon as the folder is in its place, at the latest
        how = {"split": True, "language": "en", "threads": 1}
        killed(lambda: module.open_index(tmp_path / "a", mini, tmp_path / "a.md", **how))
    module.open_index(tmp_path / "a", mini, tmp_path / "a.md", **how)
    assert len(module.open_index(tmp_path / "a", mini, tmp_path / "a.md", **how)) == 2
    stamp = json.loads(Sentences(tmp_path / "a" / "sentences.sqlite").state().facts["documents"])
    assert stamp[-2:] == ["sentences", "en"]


class Building:
    """Indexes of a file that are built in small pieces, of which a process may be killed at the second."""

    def __init__(self, model, texts, folder, patched):
        self.folder, self._model, self._patched = folder, model, patched
        patched.setattr(numbers_module.NumbersJob, "lines", 32)
        patched.setattr(module, "_PIECE", 64)
        patched.setattr(writer_module, "_MIN_SIGNED", 100)
        (folder / "a.txt").write_text("\n".join(texts), encoding="utf-8")
        self.metadata = [{"row": row} for row in range(len(texts))]
        self.whole = self.files(self.build("a").folder)

    def build(self, name, **how):
        how = {"metadata": self.metadata, "folder": self.folder / name, "method": "binary", "threads": 1, **how}
        return xswe.index(self._model, self.folder / "a.txt", **how)

    def files(self, folder):
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def kill(self, what, number, first=lambda *_: None):
        """Kill another process as it calls something for the so-many-th time."""
        calls = iter(range(number - 1))

        def called(*given):
            if next(calls, None) is None:
                first(*given)
                end()
            return given and was(*given)

        was = getattr(module, what)
        with self._patched.context() as patched:
            patched.setattr(module, what, called)
            killed(lambda: self.build("b"))

    def go_on(self):
        """Build again; returns how many texts are encoded."""
        sizes, numbers_of = [], numbers_module.numbers_of

        def counted(model, texts, storage):
            sizes.append(len(texts))
            return numbers_of(model, texts, storage)

        with self._patched.context() as patched:
            patched.setattr(numbers_module, "numbers_of", counted)
            assert self.files(self.build("b").folder) == self.whole
        assert sorted(path.name for path in self.folder.iterdir()) == ["a", "a.txt", "b"]
        return sum(sizes)


@pytest.fixture
def building(mini, texts, tmp_path, monkeypatch):
    return Building(mini, texts, tmp_path, monkeypatch)


@pytest.mark.parametrize(("what", "number", "left"), [("write_json", 1, 300), ("write_json", 3, 172), ("keep", 3, 108)])
def test_an_index_that_was_killed_while_it_was_built_is_gone_on_with(building, what, number, left):
    building.kill(what, number)
    assert building.go_on() == left


def test_a_piece_that_was_noted_and_not_added_is_added(building):
    building.kill("write_json", 2, module.write_json)
    assert building.go_on() == 236


def test_what_is_left_of_an_index_and_damaged_is_built_anew(building, caplog):
    building.kill("keep", 3)
    spoil(next(building.folder.glob(".b.unfinished.*/codes.npy")), 5000)
    assert building.go_on() == 300
    assert "damaged since it was written; building it anew" in caplog.text


def test_what_is_left_of_an_index_of_other_settings_is_removed(building):
    building.kill("keep", 3)
    building.build("b", storage="int8")
    assert sorted(path.name for path in building.folder.iterdir()) == ["a", "a.txt", "b"]


def test_an_index_is_not_gone_on_with_of_other_metadata(building):
    building.kill("keep", 3)
    said = r"metadata: that of sentence \d is not what the interrupted run had; give the same, or remove .*\.b\.unf"
    for metadata in (building.metadata[::-1], building.metadata[:7]):
        with pytest.raises(ConfigError, match=said):
            building.build("b", metadata=metadata)
    assert building.go_on() == 108


def test_an_index_that_is_interrupted_at_once_leaves_nothing(building, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        building.build("b")
    assert sorted(path.name for path in building.folder.iterdir()) == ["a", "a.txt"]


def test_two_that_build_an_index_without_locks_do_not_meet(building, monkeypatch):
    """One begins when the other is half done."""
    write, calls, others = module.write_json, [], []

    def other(*given):
        write(*given)
        calls.append(given)
        if len(calls) == 2:  # and not in that other process again, which has this count
            others.append(in_other_process(lambda: len(building.build("b"))))

    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr(module, "write_json", other)
    building.build("b")
    assert others == ["300"]
    assert building.files(building.folder / "b") == building.whole
