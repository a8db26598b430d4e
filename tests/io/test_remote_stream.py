"""A stream of a remote file, by a storage of our own that fails now and then."""

from __future__ import annotations

import io

import pytest

from xswe.errors import InputError
from xswe.io import sources
from xswe.io.sources import _ATTEMPTS, _FIRST_PAUSE, _RetryingStream

DATA = bytes(range(100))


class Storage:
    """Opens one file; so many of the reads, and of the openings, fail first."""

    def __init__(self, reads=0, error=None):
        self.reads, self.error, self.seeks, self.opened = reads, error or OSError("503, later"), [], 0

    def open(self, name, mode, block_size):
        assert (name, mode) == ("name", "rb")
        self.opened += 1
        stream, storage = io.BytesIO(DATA), self

        class Stream(io.BytesIO):
            def seek(self, place, *more):
                storage.seeks.append(place)
                return super().seek(place, *more)

            def read(self, size=-1):
                if storage.reads:
                    storage.reads -= 1
                    raise storage.error
                return super().read(size)

        self.last = Stream(stream.getvalue())
        return self.last


@pytest.fixture
def made(monkeypatch):
    pauses = []
    monkeypatch.setattr(sources.time, "sleep", pauses.append)

    def make(**how):
        storage = Storage(**how)
        monkeypatch.setattr(sources, "_system", lambda path: (storage, "name"))
        return _RetryingStream("s3://bucket/name"), storage, pauses

    return make


def test_a_place_is_sought_before_and_while_it_is_read(made):
    stream, storage, _ = made()
    assert (stream.seek(40), stream.tell(), storage.opened) == (40, 40, 0)
    assert stream.read(5) == DATA[40:45]
    assert stream.seek(45) == 45
    assert stream.read(5) == DATA[45:50]
    assert (stream.seek(3), stream.read(2), stream.tell()) == (3, DATA[3:5], 5)
    assert (storage.seeks, storage.opened) == ([40, 3], 1)  # none to where it is
    with pytest.raises(io.UnsupportedOperation):
        stream.seek(0, io.SEEK_END)
    assert stream.readable()
    assert stream.seekable()
    stream.close()
    assert storage.last.closed
    made()[0].close()  # before anything is read


def test_it_goes_on_from_where_it_broke(made):
    stream, storage, pauses = made()
    assert stream.read(10) == DATA[:10]
    storage.reads = 3
    assert stream.read(10) == DATA[10:20]
    assert pauses == [_FIRST_PAUSE, 2 * _FIRST_PAUSE, 4 * _FIRST_PAUSE]
    assert (storage.opened, storage.seeks) == (4, [10, 10, 10])
    assert stream.readall() == DATA[20:]


def test_what_fails_again_and_again_is_named(made):
    stream, _, pauses = made(reads=_ATTEMPTS)
    with pytest.raises(InputError, match=r"s3://bucket/name: the storage fails again and again \(503, later\)"):
        stream.read(1)
    assert len(pauses) == _ATTEMPTS - 1
    stream, _, pauses = made(reads=_ATTEMPTS - 1)
    assert stream.read(1) == DATA[:1]
    stream, _, pauses = made(reads=1, error=FileNotFoundError("none"))
    pauses.clear()
    with pytest.raises(InputError, match=r"cannot be read \(none\); check the name"):
        stream.read(1)
    assert pauses == []


@pytest.mark.parametrize(
    ("status", "again"), [(404, False), (428, False), (429, True), (430, False), (499, False), (500, True)]
)
def test_a_storage_that_is_overloaded_is_asked_again_though_it_says_that_the_file_is_missing(made, status, again):
    error = FileNotFoundError("none")
    error.__cause__ = OSError()
    error.__cause__.status = status
    stream, _, pauses = made(reads=1, error=error)
    if again:
        assert stream.read(1) == DATA[:1]
        assert pauses == [_FIRST_PAUSE]
    else:
        with pytest.raises(InputError, match="check the name"):
            stream.read(1)


def test_the_version_of_a_remote_file(monkeypatch):
    known = {"type": "file", "size": 7, "etag": "x", "mtime": 5, "updated": None}
    system = type("System", (), {"info": lambda self, name: known})()
    monkeypatch.setattr(sources, "_system", lambda path: (system, "name"))
    assert sources.remote_state("s3://a") == (7, ["s3://a", 7, "x", "5"])
    known["partial"] = False
    assert sources.remote_state("s3://a") == (None, ["s3://a", 7, "x", "5"])
    known["type"] = "directory"
    with pytest.raises(InputError, match=r"s3://a: a folder; give the name of a file"):
        sources.remote_state("s3://a")
